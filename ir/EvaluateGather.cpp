//===- EvaluateGather.cpp - evaluation of ops that look up by index -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Evaluate.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;
using namespace mlir::transept::host;

namespace {
/// Element `number` of `indices` counted from the front; an error at `op` where it is out of [-bound, bound).
FailureOr<int64_t> checkedIndex(Operation *op, const HostTensor &indices, int64_t number, int64_t bound) {
  const int64_t index = indices.getInt(number);
  std::optional<int64_t> normal = normalizeAxis(index, bound);
  if (!normal)
    return op->emitOpError() << "has index " << index << " out of range for size " << bound << " (element " << number
                             << " of the indices)";
  return *normal;
}

LogicalResult needIntegers(Operation *op, const HostTensor &indices) {
  if (!isFloat(indices))
    return success();
  return op->emitOpError() << "has indices of type " << indices.elementType();
}

LogicalResult expectShape(Operation *op, ArrayRef<int64_t> computed, const HostTensor &result) {
  if (computed == result.shape())
    return success();
  return op->emitOpError() << "gives shape " << toText(computed) << " where " << toText(result.shape())
                           << " was expected";
}

/// Index tuples in the last axis of `indices`, addressing slices of `data` from axis `first` on.
struct Tuples {
  int64_t count, length, slice;
  SmallVector<int64_t> bounds, strides;
};
FailureOr<Tuples> viewTuples(Operation *op, const HostTensor &data, const HostTensor &indices, int64_t first) {
  const auto rank = static_cast<int64_t>(data.shape().size());
  if (failed(needIntegers(op, indices)))
    return failure();
  if (indices.shape().empty() || indices.shape().back() > rank - first)
    return op->emitOpError() << "has indices of shape " << toText(indices.shape()) << " for data of shape "
                             << toText(data.shape());
  Tuples tuples;
  tuples.length = indices.shape().back();
  tuples.count = productOf(indices.shape().drop_back());
  tuples.slice = productOf(data.shape().drop_front(first + tuples.length));
  const Sizes strides = stridesOf(data.shape());
  for (int64_t i = 0; i < tuples.length; ++i) {
    tuples.bounds.push_back(data.shape()[first + i]);
    tuples.strides.push_back(strides[first + i]);
  }
  return tuples;
}
FailureOr<int64_t> tupleOffset(Operation *op, const Tuples &tuples, const HostTensor &indices, int64_t number) {
  int64_t offset = 0;
  for (int64_t i = 0; i < tuples.length; ++i) {
    FailureOr<int64_t> index = checkedIndex(op, indices, number * tuples.length + i, tuples.bounds[i]);
    if (failed(index))
      return failure();
    offset += *index * tuples.strides[i];
  }
  return offset;
}

/// Combines one element of the data with one update.
void scatter(ScatterKind kind, HostTensor &data, int64_t at, const HostTensor &updates, int64_t from) {
  if (kind == ScatterKind::Replace)
    return copyElements(data, at, updates, from);
  if (isFloat(data)) {
    const double a = data.getDouble(at), b = updates.getDouble(from);
    const bool none = std::isnan(a) || std::isnan(b);
    switch (kind) {
    case ScatterKind::Add:
      return data.setDouble(at, a + b);
    case ScatterKind::Mul:
      return data.setDouble(at, a * b);
    case ScatterKind::Max:
      return data.setDouble(at, none ? a + b : std::max(a, b));
    default:
      return data.setDouble(at, none ? a + b : std::min(a, b));
    }
  }
  const int64_t a = data.getInt(at), b = updates.getInt(from);
  const bool less = isUnsigned(data) ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
  switch (kind) {
  case ScatterKind::Add:
    return data.setInt(at, static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)));
  case ScatterKind::Mul:
    return data.setInt(at, static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)));
  case ScatterKind::Max:
    return data.setInt(at, less ? b : a);
  default:
    return data.setInt(at, less ? a : b);
  }
}
} // namespace

LogicalResult GatherOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &data = operands[0], &indices = operands[1];
  std::optional<int64_t> axis = normalizeAxis(getAxis(), data.shape().size());
  if (!axis)
    return emitOpError() << "names axis " << getAxis() << " of a tensor with " << data.shape().size() << " axes";
  if (failed(needIntegers(*this, indices)) || failed(sameElementType(*this, {data, results[0]})))
    return failure();
  Sizes shape(data.shape().take_front(*axis));
  shape.append(indices.shape().begin(), indices.shape().end());
  shape.append(data.shape().begin() + *axis + 1, data.shape().end());
  if (failed(expectShape(*this, shape, results[0])))
    return failure();
  const int64_t bound = data.shape()[*axis], outer = productOf(data.shape().take_front(*axis));
  const int64_t slice = productOf(data.shape().drop_front(*axis + 1)), count = indices.numElements();
  for (int64_t i = 0; i < count; ++i) {
    FailureOr<int64_t> index = checkedIndex(*this, indices, i, bound);
    if (failed(index))
      return failure();
    for (int64_t row = 0; row < outer; ++row)
      copyElements(results[0], (row * count + i) * slice, data, (row * bound + *index) * slice, slice);
  }
  return success();
}

LogicalResult GatherElementsOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &data = operands[0], &indices = operands[1];
  const size_t rank = data.shape().size();
  std::optional<int64_t> axis = normalizeAxis(getAxis(), rank);
  if (!axis)
    return emitOpError() << "names axis " << getAxis() << " of a tensor with " << rank << " axes";
  if (failed(needIntegers(*this, indices)) || failed(sameElementType(*this, {data, results[0]})) ||
      failed(expectShape(*this, indices.shape(), results[0])))
    return failure();
  bool fits = indices.shape().size() == rank;
  for (size_t i = 0; fits && i < rank; ++i)
    fits = i == static_cast<size_t>(*axis) || indices.shape()[i] <= data.shape()[i];
  if (!fits)
    return emitOpError() << "has indices of shape " << toText(indices.shape()) << " for data of shape "
                         << toText(data.shape());
  Sizes strides = stridesOf(data.shape());
  const int64_t stride = strides[*axis];
  strides[*axis] = 0;
  return success(forEachPosition(indices.shape(), {strides}, [&](int64_t number, ArrayRef<int64_t> offsets) {
    FailureOr<int64_t> index = checkedIndex(*this, indices, number, data.shape()[*axis]);
    if (failed(index))
      return false;
    copyElements(results[0], number, data, offsets[0] + *index * stride);
    return true;
  }));
}

LogicalResult GatherNDOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &data = operands[0], &indices = operands[1];
  const auto batchDims = static_cast<int64_t>(getBatchDims());
  const auto rank = static_cast<int64_t>(data.shape().size()), indexRank = static_cast<int64_t>(indices.shape().size());
  if (batchDims < 0 || batchDims > rank || batchDims >= indexRank ||
      data.shape().take_front(batchDims) != indices.shape().take_front(batchDims))
    return emitOpError() << "has indices of shape " << toText(indices.shape()) << " for data of shape "
                         << toText(data.shape()) << " with " << batchDims << " batch axes";
  FailureOr<Tuples> tuples = viewTuples(*this, data, indices, batchDims);
  if (failed(tuples) || failed(sameElementType(*this, {data, results[0]})))
    return failure();
  Sizes shape(indices.shape().drop_back());
  ArrayRef<int64_t> slice = data.shape().drop_front(batchDims + tuples->length);
  shape.append(slice.begin(), slice.end());
  if (failed(expectShape(*this, shape, results[0])))
    return failure();
  const int64_t batch = productOf(data.shape().take_front(batchDims));
  const int64_t perBatch = batch ? tuples->count / batch : 0;
  const int64_t batchStride = productOf(data.shape().drop_front(batchDims));
  for (int64_t i = 0; i < tuples->count; ++i) {
    FailureOr<int64_t> offset = tupleOffset(*this, *tuples, indices, i);
    if (failed(offset))
      return failure();
    copyElements(results[0], i * tuples->slice, data, i / perBatch * batchStride + *offset, tuples->slice);
  }
  return success();
}

LogicalResult ScatterElementsOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &data = operands[0], &indices = operands[1], &updates = operands[2];
  const size_t rank = data.shape().size();
  std::optional<int64_t> axis = normalizeAxis(getAxis(), rank);
  if (!axis)
    return emitOpError() << "names axis " << getAxis() << " of a tensor with " << rank << " axes";
  if (failed(needIntegers(*this, indices)) || failed(sameElementType(*this, {data, updates, results[0]})) ||
      failed(expectShape(*this, data.shape(), results[0])))
    return failure();
  bool fits = indices.shape() == updates.shape() && indices.shape().size() == rank;
  for (size_t i = 0; fits && i < rank; ++i)
    fits = i == static_cast<size_t>(*axis) || indices.shape()[i] <= data.shape()[i];
  if (!fits)
    return emitOpError() << "places " << toText(updates.shape()) << " at " << toText(indices.shape()) << " in "
                         << toText(data.shape());
  copyElements(results[0], 0, data, 0, data.numElements());
  Sizes strides = stridesOf(data.shape());
  const int64_t stride = strides[*axis];
  strides[*axis] = 0;
  return success(forEachPosition(indices.shape(), {strides}, [&](int64_t number, ArrayRef<int64_t> offsets) {
    FailureOr<int64_t> index = checkedIndex(*this, indices, number, data.shape()[*axis]);
    if (failed(index))
      return false;
    scatter(getReduction(), results[0], offsets[0] + *index * stride, updates, number);
    return true;
  }));
}

LogicalResult ScatterNDOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &data = operands[0], &indices = operands[1], &updates = operands[2];
  HostTensor &result = results[0];
  FailureOr<Tuples> tuples = viewTuples(*this, data, indices, 0);
  if (failed(tuples) || failed(sameElementType(*this, {data, updates, result})) ||
      failed(expectShape(*this, data.shape(), result)))
    return failure();
  Sizes shape(indices.shape().drop_back());
  ArrayRef<int64_t> slice = data.shape().drop_front(tuples->length);
  shape.append(slice.begin(), slice.end());
  if (ArrayRef<int64_t>(shape) != updates.shape())
    return emitOpError() << "has updates of shape " << toText(updates.shape()) << " where " << toText(shape)
                         << " is needed";
  copyElements(result, 0, data, 0, data.numElements());
  for (int64_t i = 0; i < tuples->count; ++i) {
    FailureOr<int64_t> offset = tupleOffset(*this, *tuples, indices, i);
    if (failed(offset))
      return failure();
    for (int64_t j = 0; j < tuples->slice; ++j)
      scatter(getReduction(), result, *offset + j, updates, i * tuples->slice + j);
  }
  return success();
}
