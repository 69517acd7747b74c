// Element types of tensors.
#ifndef TRANSEPT_RUNTIME_DTYPE_H
#define TRANSEPT_RUNTIME_DTYPE_H

#include "runtime/program.pb.h"

#include <cstdint>
#include <string_view>

namespace transept {

using program::DType;

/// Bytes of one element; 0 for a value that names no type.
int64_t dtypeSize(DType type);

/// "f32", "i64", "bool" …
const char *dtypeName(DType type);

template <typename T> constexpr DType dtypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return program::F32;
  else if constexpr (std::is_same_v<T, double>)
    return program::F64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return program::I32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return program::I64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return program::U8;
  else
    return program::DTYPE_NONE;
}

} // namespace transept

#endif
