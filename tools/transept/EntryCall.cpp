#include "EntryCall.h"

#include "Npz.h"
#include "ParseValue.h"
#include "RawFile.h"

#include "runtime/BindSymbols.h"
#include "runtime/Expr.h"

#include <algorithm>

namespace transept::tool {

namespace {

/// The entry that is meant: named, "main", or the only one.
Result<const program::Entry *> chooseEntry(const Model &model, const std::string &name) {
  const program::Manifest &manifest = model.manifest();
  int index = model.findEntry(name.empty() ? "main" : name);
  if (index < 0 && name.empty() && manifest.entries_size() == 1)
    index = 0;
  if (index < 0)
    return Status(Code::InvalidInput,
                  (name.empty() ? "name one with --entry" : "there is no entry '" + printable(name) + "'") +
                      "; the model has " + entryNames(manifest));
  return &manifest.entries(index);
}

const program::Buffer *findInput(const program::Entry &entry, const std::string &name) {
  for (const program::Buffer &buffer : entry.buffers())
    if (buffer.storage() == program::INPUT && buffer.name() == name)
      return &buffer;
  return nullptr;
}

/// The array of --input NAME=VALUE or NAME=@FILE.
Result<Array> readInput(const program::Entry &entry, const std::string &word, const SymbolValues &set) {
  std::string name, value;
  if (!splitAssignment(word, name, value))
    return Status(Code::Usage, "--input takes NAME=VALUE or NAME=@FILE, not '" + printable(word) + "'");
  const program::Buffer *buffer = findInput(entry, name);
  if (!value.empty() && value[0] == '@') {
    if (buffer && isRawFile(value.substr(1)))
      return readRaw(value.substr(1), entry, *buffer, set);
    TRANSEPT_ASSIGN(std::vector<Array> arrays, readArrays(value.substr(1)));
    if (arrays.size() != 1)
      return Status(Code::InvalidInput, printable(value.substr(1)) + ": holds " + std::to_string(arrays.size()) +
                                            " arrays, --input takes one");
    arrays[0].name = name;
    return std::move(arrays[0]);
  }
  if (!buffer) // the session's message lists the names
    return Array{name, program::F32, {}, std::vector<uint8_t>(4)};
  return parseValue(name, value, buffer->dtype(), buffer->dims_size());
}

/// Files have no element types below a byte, and no short floats: bytes given for such an input are its codes.
void adoptNarrowTypes(const program::Entry &entry, std::vector<Array> &arrays) {
  for (Array &array : arrays) {
    const program::Buffer *buffer = findInput(entry, array.name);
    const bool isByte = array.dtype == program::I8 || array.dtype == program::U8;
    if (buffer && isByte && buffer->dtype() > program::BOOL)
      array.dtype = buffer->dtype();
  }
}

Result<std::vector<Array>> gatherInputs(const program::Entry &entry, const CallFlags &flags, const SymbolValues &set) {
  std::vector<Array> arrays;
  if (!flags.inputs.empty()) {
    TRANSEPT_ASSIGN(arrays, readArrays(flags.inputs));
    if (arrays.size() == 1 && arrays[0].name.empty())
      return Status(Code::Usage, "--inputs takes an .npz; for one array use --input NAME=@" + printable(flags.inputs));
  }
  for (const std::string &word : flags.input) {
    TRANSEPT_ASSIGN(Array array, readInput(entry, word, set));
    arrays.push_back(std::move(array));
  }
  adoptNarrowTypes(entry, arrays);
  return arrays;
}

/// Generation symbols for a single run: as set, else from the inputs' shapes, else the least useful value.
SymbolValues sessionSymbols(const program::Manifest &manifest, const program::Entry &entry,
                            const std::vector<Array> &inputs, const SymbolValues &set) {
  SymbolValues symbols;
  for (const program::Symbol &symbol : manifest.generation_symbols()) {
    int64_t value = symbol.name() == "capacity" ? 16 : std::max<int64_t>(symbol.min(), 1);
    for (const Array &input : inputs)
      if (const program::Buffer *buffer = findInput(entry, input.name))
        for (int axis = 0; axis < buffer->dims_size() && static_cast<size_t>(axis) < input.dims.size(); ++axis)
          if (int64_t index = plainSymbol(buffer->dims(axis));
              index >= 0 && entry.symbols(static_cast<int>(index)).name() == symbol.name())
            value = input.dims[static_cast<size_t>(axis)];
    for (const SymbolValue &given : set)
      if (given.name == symbol.name())
        value = given.value;
    symbols.push_back({symbol.name(), value});
  }
  return symbols;
}

/// Symbols the session does not fix.
SymbolValues callSymbols(const SymbolValues &set, const SymbolValues &fixed) {
  SymbolValues symbols;
  for (const SymbolValue &given : set) {
    bool known = false;
    for (const SymbolValue &other : fixed)
      known |= other.name == given.name;
    if (!known)
      symbols.push_back(given);
  }
  return symbols;
}

} // namespace

void CallFlags::add(CLI::App &app) {
  app.add_option("--entry", entry, "Entry to run; default: main, or the only one")->type_name("NAME");
  app.add_option("--inputs", inputs, "Inputs by name")->type_name("FILE.npz");
  app.add_option("--input", input, "One input: a value as in JSON, or @FILE (.npy, .pb or .raw)")
      ->type_name("NAME=VALUE")
      ->type_size(1)
      ->allow_extra_args(false);
  app.add_option("--set", set, "A symbol that no input determines")
      ->type_name("NAME=N")
      ->delimiter(',')
      ->allow_extra_args(false);
}

Result<std::unique_ptr<EntryCall>> EntryCall::create(std::shared_ptr<const Model> model, const CallFlags &flags,
                                                     int threads) {
  TRANSEPT_ASSIGN(SymbolValues set, parseSymbols(flags.set));
  std::unique_ptr<EntryCall> call(new EntryCall);
  TRANSEPT_ASSIGN(call->entry_, chooseEntry(*model, flags.entry));
  TRANSEPT_ASSIGN(call->arrays_, gatherInputs(*call->entry_, flags, set));
  SessionOptions options;
  options.threads = threads;
  options.symbols = sessionSymbols(model->manifest(), *call->entry_, call->arrays_, set);
  TRANSEPT_ASSIGN(call->session_, model->createSession(options));
  for (const Array &array : call->arrays_)
    call->arguments_.inputs.push_back(array.view());
  call->arguments_.symbols = callSymbols(set, options.symbols);
  return call;
}

} // namespace transept::tool
