#include "runtime/BindSymbols.h"

#include "runtime/Expr.h"

#include <algorithm>
#include <cstring>

namespace transept {

namespace {

constexpr int64_t unbound = -1;

std::string quoted(std::string_view name) { return "'" + printable(std::string(name)) + "'"; }

const program::Buffer *findInput(const program::Entry &entry, std::string_view name) {
  for (const program::Buffer &buffer : entry.buffers())
    if (buffer.storage() == program::INPUT && buffer.name() == name)
      return &buffer;
  return nullptr;
}

const ConstTensorView *findGiven(const std::vector<ConstTensorView> &inputs, std::string_view name) {
  for (const ConstTensorView &input : inputs)
    if (input.name == name)
      return &input;
  return nullptr;
}

std::string inputNames(const program::Entry &entry) {
  std::string names;
  for (const program::Buffer &buffer : entry.buffers())
    if (buffer.storage() == program::INPUT)
      names += (names.empty() ? "" : ", ") + quoted(buffer.name());
  return names.empty() ? "none" : names;
}

/// The shape an input is declared with, e.g. "[batch, 80, source]".
std::string declaredShape(const program::Entry &entry, const program::Buffer &buffer) {
  std::vector<std::string> names;
  for (const program::Symbol &symbol : entry.symbols())
    names.push_back(symbol.name());
  std::string out;
  for (const program::Expr &dim : buffer.dims())
    out += (out.empty() ? "" : ", ") + printExpr(dim, names);
  return printable("[" + out + "]");
}

Status checkGiven(const program::Entry &entry, const std::vector<ConstTensorView> &inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ConstTensorView &given = inputs[i];
    const program::Buffer *buffer = findInput(entry, given.name);
    if (!buffer)
      return {Code::InvalidInput, "there is no input " + quoted(given.name) + "; entry " + quoted(entry.name()) +
                                      " takes " + inputNames(entry)};
    for (size_t j = 0; j < i; ++j)
      if (inputs[j].name == given.name)
        return {Code::InvalidInput, "input " + quoted(given.name) + " is given twice"};
    if (given.dtype != buffer->dtype())
      return {Code::InvalidInput, "input " + quoted(given.name) + " has type " + dtypeName(given.dtype) +
                                      ", expected " + dtypeName(buffer->dtype())};
    if (given.dims.size() != static_cast<size_t>(buffer->dims_size()))
      return {Code::InvalidInput, "input " + quoted(given.name) + " has shape " + shapeText(given.dims) +
                                      ", expected " + std::to_string(buffer->dims_size()) + " dimensions " +
                                      declaredShape(entry, *buffer)};
  }
  for (const program::Buffer &buffer : entry.buffers())
    if (buffer.storage() == program::INPUT && !buffer.has_default() && !findGiven(inputs, buffer.name()))
      return {Code::InvalidInput, "input " + quoted(buffer.name()) + " is missing; entry " + quoted(entry.name()) +
                                      " takes " + inputNames(entry)};
  return {};
}

} // namespace

std::string entryNames(const program::Manifest &manifest) {
  std::string names;
  for (const program::Entry &entry : manifest.entries())
    names += (names.empty() ? "" : ", ") + quoted(entry.name());
  return names.empty() ? "none" : names;
}

std::string shapeText(Span<const int64_t> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    out += (i ? ", " : "") + std::to_string(dims[i]);
  return out + "]";
}

Status bindSymbols(const program::Entry &entry, const google::protobuf::RepeatedPtrField<program::Symbol> &fixedSymbols,
                   Span<const int64_t> fixed, const RunArguments &arguments, std::vector<int64_t> &values) {
  TRANSEPT_TRY(checkGiven(entry, arguments.inputs));
  values.assign(static_cast<size_t>(entry.symbols_size()), unbound);
  auto find = [&](std::string_view name) -> int64_t * {
    for (int i = 0; i < entry.symbols_size(); ++i)
      if (entry.symbols(i).name() == name && !entry.symbols(i).at_run_time())
        return &values[static_cast<size_t>(i)];
    return nullptr;
  };
  for (int i = 0; i < fixedSymbols.size(); ++i)
    if (int64_t *value = find(fixedSymbols[i].name()))
      *value = fixed[static_cast<size_t>(i)];
  for (const SymbolValue &given : arguments.symbols) {
    int64_t *value = find(given.name);
    if (!value)
      return {Code::InvalidInput, "entry " + quoted(entry.name()) + " has no symbol " + quoted(given.name)};
    if (given.value < 0)
      return {Code::InvalidInput, "symbol " + quoted(given.name) + " cannot be " + std::to_string(given.value)};
    *value = given.value;
  }
  for (const ConstTensorView &given : arguments.inputs) {
    const program::Buffer &buffer = *findInput(entry, given.name);
    for (int axis = 0; axis < buffer.dims_size(); ++axis) {
      int64_t symbol = plainSymbol(buffer.dims(axis)), dim = given.dims[static_cast<size_t>(axis)];
      if (dim < 0)
        return {Code::InvalidInput, "input " + quoted(given.name) + " has shape " + shapeText(given.dims)};
      if (symbol >= 0 && values[static_cast<size_t>(symbol)] == unbound)
        values[static_cast<size_t>(symbol)] = dim;
    }
  }
  for (int i = 0; i < entry.symbols_size(); ++i)
    if (values[static_cast<size_t>(i)] == unbound && !entry.symbols(i).at_run_time())
      return {Code::InvalidInput, "no input determines symbol " + quoted(entry.symbols(i).name()) + " of entry " +
                                      quoted(entry.name()) + "; give its value"};
  return {};
}

Status copyInputs(const Plan &plan, const std::vector<ConstTensorView> &inputs) {
  for (const PlannedTensor &tensor : plan.inputs()) {
    const program::Buffer &buffer = *tensor.buffer;
    const ConstTensorView *given = findGiven(inputs, buffer.name());
    if (given && !std::equal(given->dims.begin(), given->dims.end(), tensor.dims.begin(), tensor.dims.end()))
      return {Code::InvalidInput, "input " + quoted(buffer.name()) + " has shape " + shapeText(given->dims) +
                                      ", expected " + shapeText(tensor.dims)};
    if (given && given->bytes != tensor.bytes)
      return {Code::InvalidInput, "input " + quoted(buffer.name()) + " has " + std::to_string(given->bytes) +
                                      " bytes, its shape " + shapeText(given->dims) + " needs " +
                                      std::to_string(tensor.bytes)};
    if (tensor.bytes > 0)
      std::memcpy(tensor.data, given ? given->data : buffer.default_value().data(), static_cast<size_t>(tensor.bytes));
  }
  return {};
}

} // namespace transept
