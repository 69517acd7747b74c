//===- ImportQuantization.cpp - linear quantisation, written out -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"
#include "frontend/TensorData.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
/// A scale or zero point of one axis, shaped so that it broadcasts along the others; null (reported) if that fails.
Value alongAxis(NodeImport &node, Value parameter, Value input, int64_t axis) {
  std::optional<int64_t> parameterRank = node.rank(parameter);
  if (parameterRank == 0)
    return parameter;
  // A vector of one element is a scalar, whatever the axis.
  std::optional<SmallVector<DimAttr>> dims = node.dims(parameter);
  if (dims && dims->size() == 1 && (*dims)[0] && constantValue((*dims)[0]) == 1)
    return node.reshape(parameter, ArrayRef<int64_t>{});
  std::optional<int64_t> rank = node.rank(input);
  if (!rank || !parameterRank) {
    (void)node.unsupported(node.op() + " with a scale or input of unknown rank");
    return {};
  }
  if (*parameterRank != 1) {
    (void)node.unsupported("blocked quantisation in " + node.op());
    return {};
  }
  int64_t at = axis < 0 ? axis + *rank : axis;
  if (at < 0 || at >= *rank) {
    (void)node.invalid("has axis " + Twine(axis) + " for " + Twine(*rank) + " axes");
    return {};
  }
  SmallVector<int64_t> shape(static_cast<size_t>(*rank - at), 1);
  shape[0] = -1;
  return node.reshape(parameter, shape);
}

LogicalResult checkBlock(NodeImport &node) {
  if (node.integer("block_size", 0) != 0)
    return node.unsupported("attribute 'block_size' of " + node.op());
  return success();
}

/// (x - zero point) * scale
LogicalResult importDequantize(NodeImport &node) {
  int64_t axis = node.integer("axis", 1);
  if (failed(checkBlock(node)))
    return failure();
  Type element = node.elementOf(node.input(1));
  if (int64_t type = node.integer("output_dtype", 0))
    element = elementTypeOf(node.builder.getContext(), static_cast<int32_t>(type));
  if (!element)
    return node.unsupported("attribute 'output_dtype' of DequantizeLinear");
  Value scale = alongAxis(node, node.input(1), node.input(0), axis);
  if (!scale)
    return failure();
  // In 32 bits: differences of 8-bit and 16-bit integers are exact there.
  Type wide = node.builder.getF32Type();
  Value value = node.castTo(node.input(0), wide);
  if (Value zero = node.input(2)) {
    zero = alongAxis(node, zero, node.input(0), axis);
    if (!zero)
      return failure();
    value = node.make<SubOp>(wide, value, node.castTo(zero, wide));
  }
  return node.result(node.castTo(node.make<MulOp>(wide, value, node.castTo(scale, wide)), element));
}

/// saturate(round(x / scale) + zero point)
LogicalResult importQuantize(NodeImport &node) {
  int64_t axis = node.integer("axis", 1);
  node.ignore("saturate"); // about 8-bit floats
  if (failed(checkBlock(node)))
    return failure();
  if (node.integer("precision", 0) > 1)
    return node.unsupported("attribute 'precision' of QuantizeLinear");
  MLIRContext *context = node.builder.getContext();
  Value zero = node.input(2);
  Type target = zero ? node.elementOf(zero) : Type(IntegerType::get(context, 8, IntegerType::Unsigned));
  if (int64_t type = node.integer("output_dtype", 0))
    target = elementTypeOf(context, static_cast<int32_t>(type));
  auto integer = dyn_cast_or_null<IntegerType>(target);
  if (!integer || (integer.getWidth() != 8 && integer.getWidth() != 16))
    return node.unsupported("QuantizeLinear to another type than 8-bit or 16-bit integers");
  Value scale = alongAxis(node, node.input(1), node.input(0), axis);
  if (!scale)
    return failure();
  Type wide = node.builder.getF32Type();
  Value value = node.make<DivOp>(wide, node.castTo(node.input(0), wide), node.castTo(scale, wide));
  value = node.make<RoundOp>(wide, value);
  if (zero) {
    zero = alongAxis(node, zero, node.input(0), axis);
    if (!zero)
      return failure();
    value = node.make<AddOp>(wide, value, node.castTo(zero, wide));
  }
  double low = integer.isUnsigned() ? 0 : -static_cast<double>(1u << (integer.getWidth() - 1));
  double high = low + static_cast<double>((1u << integer.getWidth()) - 1);
  value = node.make<MaxOp>(wide, value, node.scalar(wide, low));
  value = node.make<MinOp>(wide, value, node.scalar(wide, high));
  return node.result(node.castTo(value, target));
}
} // namespace

void mlir::transept::addQuantizationImports(ImportTable &table) {
  table.add("DequantizeLinear", importDequantize);
  table.add("QuantizeLinear", importQuantize);
}
