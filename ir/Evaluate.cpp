//===- Evaluate.cpp - what the evaluations of graph ops share -------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Evaluate.h"
#include <cstring>

using namespace mlir;
using namespace mlir::transept;
using namespace mlir::transept::host;

Sizes host::stridesOf(ArrayRef<int64_t> shape) {
  Sizes strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

int64_t host::productOf(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

std::optional<Sizes> host::broadcastStrides(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  if (from.size() > to.size())
    return std::nullopt;
  const size_t missing = to.size() - from.size();
  Sizes strides(to.size(), 0), own = stridesOf(from);
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] != to[axis + missing] && from[axis] != 1)
      return std::nullopt;
    strides[axis + missing] = from[axis] == 1 ? 0 : own[axis];
  }
  return strides;
}

bool host::forEachPosition(ArrayRef<int64_t> shape, ArrayRef<Sizes> strides,
                           llvm::function_ref<bool(int64_t, ArrayRef<int64_t>)> visit) {
  const int64_t count = productOf(shape);
  Sizes position(shape.size(), 0), offsets(strides.size(), 0);
  for (int64_t number = 0; number < count; ++number) {
    if (!visit(number, offsets))
      return false;
    for (size_t axis = shape.size(); axis-- > 0;) {
      for (size_t view = 0; view < strides.size(); ++view)
        offsets[view] += strides[view][axis];
      if (++position[axis] < shape[axis])
        break;
      for (size_t view = 0; view < strides.size(); ++view)
        offsets[view] -= strides[view][axis] * shape[axis];
      position[axis] = 0;
    }
  }
  return true;
}

std::vector<double> host::toDoubles(const HostTensor &tensor) {
  std::vector<double> values(tensor.numElements());
  if (isa<Float32Type>(tensor.elementType())) {
    const float *data = tensor.data<float>();
    std::copy(data, data + values.size(), values.begin());
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = tensor.getDouble(i);
  return values;
}

std::vector<int64_t> host::toInts(const HostTensor &tensor) {
  std::vector<int64_t> values(tensor.numElements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = tensor.getInt(i);
  return values;
}

void host::copyElements(HostTensor &to, int64_t toIndex, const HostTensor &from, int64_t fromIndex, int64_t count) {
  const int64_t width = byteWidth(to.elementType());
  if (count > 0)
    std::memcpy(to.data() + toIndex * width, from.bytes().data() + fromIndex * width, count * width);
}

std::optional<int64_t> host::normalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

LogicalResult host::sameElementType(Operation *op, ArrayRef<HostTensor> tensors) {
  for (const HostTensor &tensor : tensors)
    if (tensor && tensor.elementType() != tensors.front().elementType())
      return op->emitOpError() << "needs one element type, but has " << tensors.front().elementType() << " and "
                               << tensor.elementType();
  return success();
}

std::string host::toText(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << '[';
  llvm::interleaveComma(shape, out);
  out << ']';
  return text;
}
