// A tensor in memory that owns its elements.
#ifndef TRANSEPT_TOOLS_ARRAY_H
#define TRANSEPT_TOOLS_ARRAY_H

#include "runtime/DType.h"
#include "runtime/Session.h"

#include <cstdint>
#include <string>
#include <vector>

namespace transept::tool {

/// Dense, row-major, little-endian.
struct Array {
  std::string name;
  DType dtype = program::DTYPE_NONE;
  std::vector<int64_t> dims;
  std::vector<uint8_t> data;

  ConstTensorView view() const { return {name, dtype, dims, data.data(), static_cast<int64_t>(data.size())}; }
};

int64_t elementCount(const Array &array);

/// An element as a double; integers beyond 2^53 lose bits.
double elementAsDouble(DType dtype, const void *data, int64_t index);

/// An element as text, exact for integers, shortest that reads back for floats.
std::string elementText(DType dtype, const void *data, int64_t index);

} // namespace transept::tool

#endif
