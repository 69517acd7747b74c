// What the opaque handles of the C interface are, and how its functions fail.
#ifndef TRANSEPT_RUNTIME_CAPI_HANDLES_H
#define TRANSEPT_RUNTIME_CAPI_HANDLES_H

#include "runtime/Model.h"
#include "runtime/Session.h"
#include "transept/transept.h"

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

/// A tensor declaration with everything transept_tensor_info points to.
struct TranseptDeclaration {
  std::string name;
  transept_dtype dtype = TRANSEPT_F32;
  std::vector<int64_t> dims;
  std::vector<std::string> texts;
  std::vector<const char *> textPointers;
  bool optional = false;
};

struct transept_model {
  struct Entry {
    std::string name;
    std::vector<TranseptDeclaration> inputs, outputs;
  };
  std::shared_ptr<const transept::Model> model;
  std::string device;
  std::vector<Entry> entries;
};

struct transept_session {
  std::unique_ptr<transept::Session> session;
};

namespace transept::capi {

/// Fills `error`, where the caller gave one, and returns the status as the C interface knows it.
inline transept_status report(const Status &status, transept_error *error) noexcept {
  auto value = static_cast<transept_status>(status.code());
  constexpr size_t messageBegin = offsetof(transept_error, message);
  if (error && error->struct_size > messageBegin) {
    error->status = value;
    size_t room = error->struct_size - messageBegin - 1;
    room = room < sizeof error->message - 1 ? room : sizeof error->message - 1;
    size_t length = status.message().size() < room ? status.message().size() : room;
    while (length < status.message().size() && length > 0 && (status.message()[length] & 0xC0) == 0x80)
      --length; // not inside a UTF-8 sequence
    std::memcpy(error->message, status.message().data(), length);
    error->message[length] = '\0';
  }
  return value;
}

/// Runs the body of an interface function: exceptions end here.
template <typename Body> transept_status guarded(transept_error *error, Body body) noexcept {
  try {
    return report(body(), error);
  } catch (const std::bad_alloc &) {
    return report({Code::OutOfMemory, "out of memory"}, error); // short enough to need no allocation
  } catch (const std::exception &) {
    return report({Code::Internal, "unexpected"}, error);
  }
}

inline Status nullArgument(const char *name) { return {Code::Usage, std::string(name) + " is null"}; }

/// Copies the part of an options struct the caller knows; the rest keeps its default of zero.
template <typename T> Status readTagged(const T *given, T &out) {
  out = T{};
  if (!given)
    return {};
  if (given->struct_size < sizeof(size_t))
    return {Code::Usage, "struct_size is not set"};
  std::memcpy(&out, given, given->struct_size < sizeof(T) ? given->struct_size : sizeof(T));
  return {};
}

/// Writes the part of a result struct the caller knows.
template <typename T> Status writeTagged(T value, T *out) {
  if (!out)
    return nullArgument("the result");
  if (out->struct_size < sizeof(size_t))
    return {Code::Usage, "struct_size is not set"};
  value.struct_size = out->struct_size;
  std::memcpy(out, &value, out->struct_size < sizeof(T) ? out->struct_size : sizeof(T));
  return {};
}

/// Symbols of a caller's list.
inline Status readSymbols(const transept_symbol *symbols, size_t count, SymbolValues &out) {
  if (count != 0 && !symbols)
    return nullArgument("symbols");
  for (size_t i = 0; i < count; ++i) {
    if (!symbols[i].name)
      return nullArgument("a symbol's name");
    out.push_back({symbols[i].name, symbols[i].value});
  }
  return {};
}

} // namespace transept::capi

#endif
