//===- FormAttention.cpp - attention over dense keys and values
//----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/ElementExpr.h"
#include "passes/FormOps.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::transept;

/// A boolean of every element: whether it is not zero.
static Value asBoolean(FormContext &f, Location loc, Value tensor) {
  return f.cast(loc, tensor, f.builder.getI1Type());
}

/// The tensor with axes of size 1 in front, up to four.
static Value asFourAxes(FormContext &f, Location loc, Value tensor) {
  ArrayRef<DimAttr> dims = shapeOf(tensor).getDims();
  SmallVector<DimAttr> padded(4 - std::min<size_t>(dims.size(), 4), f.constant(1));
  llvm::append_range(padded, dims);
  return f.view(loc, tensor, padded);
}

/// A mask of keys under the shape [batch, keys], in a type that kernels take.
Value transept::formKeyMask(FormContext &f, Location loc, Value mask, ArrayRef<DimAttr> shape) {
  if (isa<FloatType>(kernel::elementTypeOf(mask.getType())))
    mask = asBoolean(f, loc, mask);
  ArrayRef<DimAttr> dims = shapeOf(mask).getDims();
  if (dims == shape)
    return mask;
  return f.map(loc, shape, {mask}, kernel::elementTypeOf(mask.getType()),
               [&](Body &b, ValueRange at, ValueRange sources) {
                 return b.load(sources[0], broadcastIndices(b, at, dims, shape));
               });
}

FailureOr<Value> transept::formRelative(FormContext &f, Operation *op, Value table) {
  HostTensor content = constantContent(table);
  if (!content || content.shape().size() != 2)
    return emitUnsupported(op) << "has a relative bias that is no constant matrix";
  const int64_t rows = content.shape()[0], columns = content.shape()[1];
  auto type = RankedTensorType::get({rows, columns + 2 * relativeMargin}, f.builder.getF32Type());
  HostTensor padded = HostTensor::make(type);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < type.getDimSize(1); ++column)
      padded.setDouble(row * type.getDimSize(1) + column,
                       content.getDouble(row * columns + std::clamp<int64_t>(column - relativeMargin, 0, columns - 1)));
  return f.weight(WeightStore::of(f.context()).add(type, padded.bytes()), type);
}

LogicalResult transept::form(FormContext &f, AttentionOp op) {
  Location loc = op.getLoc();
  Type f32 = f.builder.getF32Type(), type = graphElementType(op.getResult());
  SmallVector<DimAttr> query = graphDims(op.getQuery()), key = graphDims(op.getKey()), value = graphDims(op.getValue());
  if (query.size() != 4 || key.size() != 4 || value.size() != 4)
    return op.emitOpError() << "has operands of other rank than 4";
  SmallVector<Value> inputs;
  for (Value operand : {op.getQuery(), op.getKey(), op.getValue()})
    inputs.push_back(f.cast(loc, f.tensor(operand), f32));
  if (op.getKeyMask())
    inputs.push_back(formKeyMask(f, loc, f.tensor(op.getKeyMask()), {key[0], key[1]}));
  if (op.getBias())
    inputs.push_back(asFourAxes(f, loc, f.cast(loc, f.tensor(op.getBias()), f32)));
  if (op.getMask())
    inputs.push_back(asFourAxes(f, loc, asBoolean(f, loc, f.tensor(op.getMask()))));

  DimAttr relativeOrigin;
  if (op.getRelative()) {
    FailureOr<Value> table = formRelative(f, op, op.getRelative());
    if (failed(table))
      return failure();
    inputs.push_back(*table);
    relativeOrigin = dimSub(*op.getRelativeOrigin(), f.constant(relativeMargin));
  }

  SmallVector<DimsAttr> outputs = {f.dims({query[0], query[1], query[2], value[3]})};
  SmallVector<Type> types = {plainType(outputs[0].getDims(), f32)};
  if (op.getProbabilities()) {
    outputs.push_back(f.dims({query[0], query[2], query[1], key[1]}));
    types.push_back(plainType(outputs[1].getDims(), f32));
  }
  DimAttr causalOffset;
  if (op.getCausal())
    causalOffset = op.getCausalOffset() ? *op.getCausalOffset() : f.constant(0);
  auto attend = f.builder.create<kernel::AttendOp>(
      loc, types, inputs, ValueRange{}, Value(), f.shapes(inputs, outputs), op.getScaleAttr(), causalOffset,
      op.getSoftcapAttr(), f.builder.getI64IntegerAttr(static_cast<int64_t>(op.getEmptyRow())),
      op.getKeyMask() ? f.builder.getUnitAttr() : UnitAttr(), op.getBias() ? f.builder.getUnitAttr() : UnitAttr(),
      op.getMask() ? f.builder.getUnitAttr() : UnitAttr(), relativeOrigin);
  f.define(op.getResult(), f.cast(loc, attend.getResult(0), type));
  if (op.getProbabilities())
    f.define(op.getProbabilities(), f.cast(loc, attend.getResult(1), graphElementType(op.getProbabilities())));
  return success();
}
