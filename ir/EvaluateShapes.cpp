//===- EvaluateShapes.cpp - evaluation of constants, and of shapes and positions as data ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Evaluate.h"

#pragma STDC FP_CONTRACT OFF

using namespace mlir;
using namespace mlir::transept;
using namespace mlir::transept::host;

LogicalResult ConstantOp::evaluate(ArrayRef<HostTensor>, SmallVectorImpl<HostTensor> &results) {
  results[0] = HostTensor::fromElements(getValue());
  if (!results[0])
    return emitOpError() << "holds elements of a kind that cannot be evaluated: " << getValue().getShapedType();
  return success();
}

LogicalResult WeightOp::evaluate(ArrayRef<HostTensor>, SmallVectorImpl<HostTensor> &results) {
  WeightStore::Weight weight = WeightStore::of(getContext()).lookup(getKey());
  auto type = cast<RankedTensorType>(getResult().getType());
  if (!weight.type || weight.type.getShape() != type.getShape() ||
      weight.type.getElementType() != type.getElementType())
    return emitOpError() << "has no content of type " << type << " under key " << getKey();
  results[0] = HostTensor::fromBytes(type, weight.bytes);
  return success();
}

LogicalResult ShapeOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  ArrayRef<int64_t> shape = operands[0].shape();
  const auto rank = static_cast<int64_t>(shape.size());
  auto clamp = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  const int64_t start = clamp(getStart().value_or(0)), end = std::max(start, clamp(getEnd().value_or(rank)));
  if (results[0].numElements() != end - start)
    return emitOpError() << "gives " << end - start << " sizes where " << results[0].numElements() << " were expected";
  for (int64_t axis = start; axis < end; ++axis)
    results[0].setInt(axis - start, shape[axis]);
  return success();
}

LogicalResult SizeOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  if (results[0].numElements() != 1)
    return emitOpError() << "gives one value where " << results[0].numElements() << " were expected";
  results[0].setInt(0, operands[0].numElements());
  return success();
}

LogicalResult DimValueOp::evaluate(ArrayRef<HostTensor>, SmallVectorImpl<HostTensor> &results) {
  if (results[0].numElements() != static_cast<int64_t>(getDims().size()))
    return emitOpError() << "has " << getDims().size() << " values where " << results[0].numElements()
                         << " were expected";
  for (auto [number, dim] : llvm::enumerate(getDims())) {
    auto expression = dyn_cast<DimAttr>(dim);
    std::optional<int64_t> value = expression ? constantValue(expression) : std::nullopt;
    if (!value)
      return emitOpError() << "depends on a symbol without a value: " << dim;
    results[0].setInt(number, *value);
  }
  return success();
}

LogicalResult NonZeroOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  ArrayRef<int64_t> shape = operands[0].shape();
  const int64_t count = results[0].shape()[1];
  int64_t found = 0;
  for (int64_t i = 0, e = operands[0].numElements(); i < e; ++i) {
    if (operands[0].getDouble(i) == 0)
      continue;
    int64_t rest = i;
    for (int64_t axis = static_cast<int64_t>(shape.size()) - 1; axis >= 0 && found < count; --axis) {
      results[0].setInt(axis * count + found, rest % shape[axis]);
      rest /= shape[axis];
    }
    ++found;
  }
  if (found != count)
    return emitOpError() << "finds " << found << " elements where " << count << " were expected";
  return success();
}

LogicalResult ReadSizesOp::evaluate(ArrayRef<HostTensor>, SmallVectorImpl<HostTensor> &) { return success(); }

LogicalResult RangeOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  HostTensor &result = results[0];
  const HostTensor start = operandAt(*this, operands, 0), delta = operandAt(*this, operands, 2);
  if (result.shape().size() != 1 || (start && start.numElements() != 1) || (delta && delta.numElements() != 1))
    return emitOpError() << "needs scalars and gives a vector";
  int64_t first = 0;
  if (!start && getStartDim()) {
    std::optional<int64_t> value = constantValue(*getStartDim());
    if (!value)
      return emitOpError() << "depends on a symbol without a value: " << *getStartDim();
    first = *value;
  }
  for (int64_t i = 0, count = result.numElements(); i < count; ++i) {
    if (isFloat(result)) {
      const double from = start ? start.getDouble(0) : static_cast<double>(first);
      const double step = delta ? delta.getDouble(0) : static_cast<double>(getStepValue().value_or(1));
      result.setDouble(i, from + static_cast<double>(i) * step);
      continue;
    }
    const auto from = static_cast<uint64_t>(start ? start.getInt(0) : first);
    const auto step = static_cast<uint64_t>(delta ? delta.getInt(0) : getStepValue().value_or(1));
    result.setInt(i, static_cast<int64_t>(from + static_cast<uint64_t>(i) * step));
  }
  return success();
}

LogicalResult FillOp::evaluate(ArrayRef<HostTensor>, SmallVectorImpl<HostTensor> &results) {
  const HostTensor value = HostTensor::fromElements(getValue());
  if (!value || value.numElements() != 1)
    return emitOpError() << "needs one value to fill with";
  if (failed(sameElementType(*this, {value, results[0]})))
    return failure();
  for (int64_t i = 0, count = results[0].numElements(); i < count; ++i)
    copyElements(results[0], i, value, 0);
  return success();
}
