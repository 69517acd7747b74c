//===- FormConstants.cpp - constants, weights and computed contents
//-------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contents that are one number, or that follow from the index, are maps without inputs: they are evaluated where they
// are used.

#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

/// Element `index` as a scalar constant.
static Value scalarOf(Body &b, const HostTensor &tensor, int64_t index) {
  Type type = computeType(tensor.elementType());
  if (isa<FloatType>(type))
    return b.number(type, tensor.getDouble(index));
  return b.integer(type, tensor.getInt(index));
}

static bool isSplat(const HostTensor &tensor) {
  size_t width = byteWidth(tensor.elementType());
  ArrayRef<char> bytes = tensor.bytes();
  for (size_t i = width; i < bytes.size(); ++i)
    if (bytes[i] != bytes[i - width])
      return false;
  return tensor.numElements() > 0;
}

std::optional<double> transept::splatValue(Value graphValue) {
  HostTensor tensor;
  if (auto constant = graphValue.getDefiningOp<ConstantOp>()) {
    tensor = HostTensor::fromElements(constant.getValue());
  } else if (auto weight = graphValue.getDefiningOp<WeightOp>()) {
    WeightStore::Weight content = WeightStore::of(weight.getContext()).lookup(weight.getKey());
    if (content.type && content.type.getNumElements() == 1)
      tensor = HostTensor::fromBytes(content.type, content.bytes);
  }
  if (!tensor || !isSplat(tensor))
    return std::nullopt;
  return tensor.getDouble(0);
}

/// Equal elements everywhere.
static Value filled(FormContext &f, Operation *op, const HostTensor &tensor, ArrayRef<DimAttr> domain) {
  return f.map(op->getLoc(), domain, {}, tensor.elementType(),
               [&](Body &b, ValueRange, ValueRange) { return scalarOf(b, tensor, 0); });
}

LogicalResult transept::form(FormContext &f, ConstantOp op) {
  HostTensor tensor = HostTensor::fromElements(op.getValue());
  if (!tensor)
    return emitUnsupported(op) << "has content of type " << op.getType();
  if (isSplat(tensor)) {
    f.define(op, filled(f, op, tensor, graphDims(op)));
    return success();
  }
  std::string key = WeightStore::of(f.context()).add(tensor.getType(), tensor.bytes());
  f.define(op, f.weight(key, tensor.getType()));
  return success();
}

LogicalResult transept::form(FormContext &f, WeightOp op) {
  WeightStore::Weight content = WeightStore::of(f.context()).lookup(op.getKey());
  auto type = cast<RankedTensorType>(op.getType());
  if (!content.type || content.type.getShape() != type.getShape() ||
      content.type.getElementType() != type.getElementType())
    return op.emitOpError() << "has no content for key " << op.getKey();
  f.define(op, f.weight(op.getKey(), type));
  return success();
}

LogicalResult transept::form(FormContext &f, FillOp op) {
  HostTensor tensor = HostTensor::fromElements(op.getValue());
  if (op.getShape())
    return emitUnresolved(op);
  if (!tensor || !isSplat(tensor))
    return emitUnsupported(op) << "fills with " << op.getValue();
  f.define(op, filled(f, op, tensor, graphDims(op)));
  return success();
}

LogicalResult transept::form(FormContext &f, RangeOp op) {
  if (op.getStart() || op.getLimit() || op.getDelta() || !op.getStartDim())
    return emitUnresolved(op);
  Type type = graphElementType(op);
  f.define(op, f.map(op.getLoc(), graphDims(op), {}, type, [&](Body &b, ValueRange indices, ValueRange) {
    Value scaled = b.mul(indices[0], b.index(op.getStepValue().value_or(1)));
    return b.fromIndex(b.add(b.size(*op.getStartDim()), scaled), type);
  }));
  return success();
}

LogicalResult transept::form(FormContext &f, DimValueOp op) {
  Type type = graphElementType(op);
  SmallVector<DimAttr> domain = graphDims(op);
  ArrayAttr dims = op.getDims();
  if (domain.size() > 1 || elementCount(f.context(), domain) != f.constant(dims.size()))
    return op.emitOpError() << "has " << dims.size() << " values for a result of type " << op.getType();
  f.define(op, f.map(op.getLoc(), domain, {}, type, [&](Body &b, ValueRange indices, ValueRange) {
    Value value;
    for (auto [i, dim] : llvm::enumerate(dims)) {
      Value element = b.fromIndex(b.size(cast<DimAttr>(dim)), type);
      value = value ? b.select(b.equal(indices[0], b.index(i)), element, value) : element;
    }
    return value ? value : b.number(computeType(type), 0);
  }));
  return success();
}
