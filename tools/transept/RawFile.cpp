#include "RawFile.h"

#include "Command.h"
#include "Npy.h"
#include "Npz.h"
#include "TensorProto.h"

#include "runtime/AtomicFile.h"
#include "runtime/Expr.h"

#include <algorithm>

namespace transept::tool {

namespace {

bool hasEnding(const std::string &path, const std::string &ending) {
  return path.size() > ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
}

/// The size of an axis where constants and `set` say it, else -1.
int64_t knownSize(const program::Expr &dim, const program::Entry &entry, const SymbolValues &set) {
  const int64_t symbol = plainSymbol(dim);
  if (symbol < 0) {
    Result<int64_t> value = isConstant(dim) ? evaluateExpr(dim, {}) : Result<int64_t>(-1);
    return value.ok() ? *value : -1;
  }
  for (const SymbolValue &given : set)
    if (given.name == entry.symbols(static_cast<int>(symbol)).name())
      return given.value;
  return -1;
}

} // namespace

bool isRawFile(const std::string &path) { return hasEnding(path, ".raw") || hasEnding(path, ".bin"); }

Result<Array> readRaw(const std::string &path, const program::Entry &entry, const program::Buffer &input,
                      const SymbolValues &set) {
  Result<std::vector<uint8_t>> bytes = readAll(path);
  if (!bytes.ok())
    return bytes.status().withContext(printable(path));
  auto refuse = [&](const std::string &why) { return Status(Code::InvalidInput, printable(path) + ": " + why); };
  Array array{input.name(), input.dtype(), {}, bytes.take()};
  std::vector<std::string> names;
  for (const program::Symbol &symbol : entry.symbols())
    names.push_back(symbol.name());
  int64_t step = dtypeSize(array.dtype), open = -1;
  for (const program::Expr &dim : input.dims()) {
    const int64_t size = knownSize(dim, entry, set);
    const int64_t axis = static_cast<int64_t>(array.dims.size());
    array.dims.push_back(size);
    if (size < 0) {
      if (open >= 0)
        return refuse("the shape of input '" + printable(input.name()) +
                      "' does not follow from a file of elements; set " + printable(printExpr(dim, names)) +
                      " with --set");
      open = axis;
    } else if (!checkedMul(step, size, step)) {
      return refuse("the shape of input '" + printable(input.name()) + "' is too large");
    }
  }
  const int64_t size = static_cast<int64_t>(array.data.size());
  if (open >= 0) {
    if (step == 0 || size % step != 0)
      return refuse("holds " + std::to_string(size) + " bytes, no multiple of the " + std::to_string(step) +
                    " that input '" + printable(input.name()) + "' takes for each " +
                    printable(printExpr(input.dims(static_cast<int>(open)), names)));
    array.dims[static_cast<size_t>(open)] = size / step;
  } else if (size != step) {
    return refuse("holds " + std::to_string(size) + " bytes, input '" + printable(input.name()) + "' takes " +
                  std::to_string(step));
  }
  return array;
}

Status writeOutput(const std::string &word, Span<const TensorView> outputs) {
  std::string name, path;
  if (!splitAssignment(word, name, path) || path.empty())
    return {Code::Usage, "--output takes NAME=FILE, not '" + printable(word) + "'"};
  const TensorView *output =
      std::find_if(outputs.begin(), outputs.end(), [&](const TensorView &candidate) { return candidate.name == name; });
  if (output == outputs.end())
    return {Code::InvalidInput, "there is no output '" + printable(name) + "'"};
  std::string header;
  bool whole = false;
  if (hasEnding(path, ".pb")) {
    TRANSEPT_ASSIGN(header, tensorProtoOf(*output));
    whole = true;
  } else if (hasEnding(path, ".npy")) {
    header = npyHeader(output->dtype, output->dims);
  } else if (!isRawFile(path)) {
    return {Code::Usage, "--output writes .npy, .pb, .raw or .bin, not '" + printable(path) + "'"};
  }
  TRANSEPT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRANSEPT_TRY(file.write(0, header.data(), header.size()));
  if (!whole)
    TRANSEPT_TRY(file.write(header.size(), output->data, static_cast<uint64_t>(output->bytes)));
  return file.commit();
}

} // namespace transept::tool
