//===- ImportQuantization.cpp - linear quantisation, written out -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"
#include "frontend/TensorData.h"
#include "ir/NarrowTypes.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// How scales and zero points belong to the elements of an input.
struct Granularity {
  int64_t axis = 0;
  int64_t blockSize = 0; ///< 0: one parameter for the tensor or per position of the axis
};

Granularity granularityOf(NodeImport &node) { return {node.integer("axis", 1), node.integer("block_size", 0)}; }

/// One parameter per `blockSize` positions of the axis: each is repeated for its block.
Value repeatBlocks(NodeImport &node, Value parameter, Value input, Granularity granularity) {
  std::optional<int64_t> rank = node.rank(input), own = node.rank(parameter);
  if (granularity.blockSize < 0) {
    (void)node.invalid("has block_size " + Twine(granularity.blockSize));
    return {};
  }
  int64_t axis = granularity.axis < 0 && rank ? granularity.axis + *rank : granularity.axis;
  if (!rank || rank != own || axis < 0 || axis >= *rank) {
    (void)node.invalid("has blocks along axis " + Twine(granularity.axis) +
                       ", but a scale of other axes than its input");
    return {};
  }
  Value size = node.reshape(node.sizes(input, axis, axis + 1), ArrayRef<int64_t>{});
  Value positions =
      node.make<RangeOp>(node.i64(), node.scalar(int64_t(0)), size, node.scalar(int64_t(1)), DimAttr(), IntegerAttr());
  Value blocks = node.make<DivOp>(node.i64(), positions, node.scalar(granularity.blockSize));
  return node.make<GatherOp>(node.elementOf(parameter), parameter, blocks, static_cast<uint64_t>(axis));
}

/// A scale or zero point, shaped so that it broadcasts to the input; null (reported) if that fails.
Value alongInput(NodeImport &node, Value parameter, Value input, Granularity granularity) {
  if (granularity.blockSize != 0)
    return repeatBlocks(node, parameter, input, granularity);
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
    (void)node.invalid("has a scale of " + Twine(*parameterRank) + " axes, but no block_size");
    return {};
  }
  int64_t at = granularity.axis < 0 ? granularity.axis + *rank : granularity.axis;
  if (at < 0 || at >= *rank) {
    // Only a vector of one element needs no axis; a run checks that it is one.
    if (dims && !((*dims)[0] && constantValue((*dims)[0])))
      return node.reshape(parameter, ArrayRef<int64_t>{});
    (void)node.invalid("has axis " + Twine(granularity.axis) + " for " + Twine(*rank) + " axes");
    return {};
  }
  SmallVector<int64_t> shape(static_cast<size_t>(*rank - at), 1);
  shape[0] = -1;
  return node.reshape(parameter, shape);
}

/// The element type that the attribute names, else `fallback`; null (reported) for one that the IR does not have.
Type typeAttribute(NodeImport &node, StringRef name, Type fallback) {
  auto type = static_cast<int32_t>(node.integer(name, 0));
  if (type == 0)
    return fallback;
  Type element = elementTypeOf(node.builder.getContext(), type);
  if (!element)
    (void)node.unsupported(name + " " + dataTypeName(type) + " of " + node.op());
  return element;
}

/// (x - zero point) * scale
LogicalResult importDequantize(NodeImport &node) {
  Granularity granularity = granularityOf(node);
  Type element = typeAttribute(node, "output_dtype", node.elementOf(node.input(1)));
  Value scale = alongInput(node, node.input(1), node.input(0), granularity);
  if (!scale || !element)
    return failure();
  // In 32 bits: differences of 8-bit and 16-bit integers are exact there.
  Type wide = node.builder.getF32Type();
  Value value = node.castTo(node.input(0), wide);
  if (Value zero = node.input(2)) {
    zero = alongInput(node, zero, node.input(0), granularity);
    if (!zero)
      return failure();
    value = node.make<SubOp>(wide, value, node.castTo(zero, wide));
  }
  return node.result(node.castTo(node.make<MulOp>(wide, value, node.castTo(scale, wide)), element));
}

/// saturate(round(value) + zero point) in an integer type of at most 16 bits; `value` is f32.
Value roundToInteger(NodeImport &node, Value value, Value zero, IntegerType target) {
  Type wide = node.builder.getF32Type();
  value = node.make<RoundOp>(wide, value);
  if (zero)
    value = node.make<AddOp>(wide, value, node.castTo(zero, wide));
  double low = target.isUnsigned() ? 0 : -static_cast<double>(1u << (target.getWidth() - 1));
  double high = low + static_cast<double>((1u << target.getWidth()) - 1);
  value = node.make<MaxOp>(wide, value, node.scalar(wide, low));
  value = node.make<MinOp>(wide, value, node.scalar(wide, high));
  return node.castTo(value, target);
}

/// Types that are quantised to.
bool isQuantized(Type type) {
  auto integer = dyn_cast_or_null<IntegerType>(type);
  return integer ? integer.getWidth() > 1 && integer.getWidth() <= 16 : narrowFormat(type).has_value();
}

/// round(x / scale) + zero point, saturated, or x / scale as a narrow float.
LogicalResult importQuantize(NodeImport &node) {
  Granularity granularity = granularityOf(node);
  bool saturate = node.integer("saturate", 1);
  Value zero = node.input(2);
  Type byte = IntegerType::get(node.builder.getContext(), 8, IntegerType::Unsigned);
  Type target = typeAttribute(node, "output_dtype", zero ? node.elementOf(zero) : byte);
  Type precision = typeAttribute(node, "precision", node.elementOf(node.input(1)));
  if (!target || !precision)
    return failure();
  if (!isQuantized(target) || (zero && node.elementOf(zero) != target))
    return node.invalid("quantises to " + dataTypeName(dataTypeOf(target)) + (zero ? ", with another zero point" : ""));
  Value scale = alongInput(node, node.input(1), node.input(0), granularity);
  if (!scale)
    return failure();
  Type wide = node.builder.getF32Type();
  Value value = node.make<DivOp>(wide, node.castTo(node.input(0), wide), node.castTo(scale, wide));
  if (precision.isF16() || precision.isBF16())
    value = node.castTo(node.castTo(value, precision), wide);
  if (zero) {
    zero = alongInput(node, zero, node.input(0), granularity);
    if (!zero)
      return failure();
  }
  if (auto integer = dyn_cast<IntegerType>(target))
    return node.result(roundToInteger(node, value, zero, integer));
  if (zero)
    value = node.make<AddOp>(wide, value, node.castTo(zero, wide));
  return node.result(node.make<CastOp>(target, value, target, saturate));
}

/// A parameter of one operand of a product: a scalar, one per row (left) or column (right), or of the operand's rank.
Value alongProduct(NodeImport &node, Value parameter, bool perRow) {
  std::optional<int64_t> rank = node.rank(parameter);
  if (!rank) {
    (void)node.unsupported(node.op() + " with a scale or zero point of unknown rank");
    return {};
  }
  return *rank == 1 && perRow ? node.reshape(parameter, {-1, 1}) : parameter;
}

/// The product of integers, scaled and rounded to the type of the last zero point.
LogicalResult importQLinearMatMul(NodeImport &node) {
  Type wide = node.builder.getF32Type(), i32 = node.builder.getI32Type();
  auto target = dyn_cast<IntegerType>(node.elementOf(node.input(7)));
  auto centred = [&](size_t first, bool perRow) -> Value {
    Value zero = alongProduct(node, node.input(first + 2), perRow);
    if (!zero || !isa<IntegerType>(node.elementOf(node.input(first))))
      return {};
    return node.make<SubOp>(i32, node.castTo(node.input(first), i32), node.castTo(zero, i32));
  };
  if (!target || !isQuantized(target))
    return node.unsupported("QLinearMatMul of other elements than integers");
  Value lhs = centred(0, /*perRow=*/true), rhs = centred(3, /*perRow=*/false);
  Value lhsScale = alongProduct(node, node.input(1), true), rhsScale = alongProduct(node, node.input(4), false);
  Value scale = alongProduct(node, node.input(6), true), zero = alongProduct(node, node.input(7), true);
  if (!lhs || !rhs || !lhsScale || !rhsScale || !scale || !zero)
    return failure();
  // Bytes with one zero point, or one per column, are what products of integers are made for.
  auto isByte = [&](size_t operand) {
    return cast<IntegerType>(node.elementOf(node.input(operand))).getWidth() == 8 &&
           node.rank(node.input(operand + 2)).value_or(2) < 2;
  };
  bool bytes = isByte(0) && isByte(3) && node.rank(node.input(2)) == 0;
  Value integers = bytes ? node.make<MatMulIntegerOp>(i32, node.input(0), node.input(3), node.input(2), node.input(5))
                         : node.make<MatMulOp>(i32, lhs, rhs);
  Value product = node.castTo(integers, wide);
  Value factor = node.make<MulOp>(wide, node.castTo(lhsScale, wide), node.castTo(rhsScale, wide));
  factor = node.make<DivOp>(wide, factor, node.castTo(scale, wide));
  return node.result(roundToInteger(node, node.make<MulOp>(wide, product, factor), zero, target));
}

/// A parameter of the weights of a convolution: a scalar, or one per output channel.
Value alongFilters(NodeImport &node, Value parameter, int64_t rank, int64_t axis) {
  if (node.rank(parameter) == 0)
    return parameter;
  SmallVector<int64_t> shape(static_cast<size_t>(rank - axis), 1);
  shape[0] = -1;
  return node.reshape(parameter, shape);
}

/// Input and weight of a convolution in 32 bits without their zero points: padding is zero there.
LogicalResult importIntegerConvolution(NodeImport &node, Value weight, Value inputZero, Value weightZero, Value bias,
                                       llvm::function_ref<LogicalResult(Value, int64_t rank)> finish) {
  Type i32 = node.builder.getI32Type();
  std::optional<int64_t> rank = node.rank(weight);
  if (!rank)
    rank = node.rank(node.input(0));
  if (!rank)
    return node.unsupported(node.op() + " of operands of unknown rank");
  Value input = node.castTo(node.input(0), i32);
  weight = node.castTo(weight, i32);
  if (inputZero)
    input = node.make<SubOp>(i32, input, node.castTo(node.reshape(inputZero, ArrayRef<int64_t>{}), i32));
  if (weightZero)
    weight = node.make<SubOp>(i32, weight, node.castTo(alongFilters(node, weightZero, *rank, 0), i32));
  return importConvolution(node, input, weight, bias, [&](Value result) { return finish(result, *rank); });
}

LogicalResult importConvInteger(NodeImport &node) {
  return importIntegerConvolution(node, node.input(1), node.input(2), node.input(3), Value(),
                                  [&](Value result, int64_t) { return node.result(result); });
}

/// The convolution of integers, scaled and rounded to the type of the last zero point.
LogicalResult importQLinearConv(NodeImport &node) {
  Type wide = node.builder.getF32Type();
  auto target = dyn_cast<IntegerType>(node.elementOf(node.input(7)));
  if (!target || !isQuantized(target))
    return node.unsupported("QLinearConv of other elements than integers");
  return importIntegerConvolution(
      node, node.input(3), node.input(2), node.input(5), node.input(8), [&](Value result, int64_t rank) {
        auto scalar = [&](size_t index) { return node.reshape(node.input(index), ArrayRef<int64_t>{}); };
        Value factor = node.make<MulOp>(wide, alongFilters(node, node.input(4), rank, 1), scalar(1));
        factor = node.make<DivOp>(wide, factor, scalar(6));
        Value scaled = node.make<MulOp>(wide, node.castTo(result, wide), factor);
        return node.result(roundToInteger(node, scaled, scalar(7), target));
      });
}

/// The operands of com.microsoft's products of quantised factors with a float result. Zero points and bias may be null.
struct QuantisedProduct {
  Value lhs, rhs, lhsScale, rhsScale, lhsZero, rhsZero, bias;
};

/// lhs * rhs without their zero points, times both scales, plus the bias.
LogicalResult importProductToFloat(NodeImport &node, const QuantisedProduct &of) {
  Type wide = node.builder.getF32Type(), i32 = node.builder.getI32Type();
  for (Value operand : {of.lhs, of.rhs})
    if (!node.elementOf(operand).isInteger(8))
      return node.unsupported(node.op() + " of other elements than bytes");
  Value product = node.make<MatMulIntegerOp>(i32, of.lhs, of.rhs, of.lhsZero, of.rhsZero);
  Value scale = node.make<MulOp>(wide, node.castTo(of.lhsScale, wide), node.castTo(of.rhsScale, wide));
  product = node.make<MulOp>(wide, node.castTo(product, wide), scale);
  return node.result(of.bias ? node.make<AddOp>(wide, product, node.castTo(of.bias, wide)) : product);
}

LogicalResult importMatMulIntegerToFloat(NodeImport &node) {
  return importProductToFloat(
      node, {node.input(0), node.input(1), node.input(2), node.input(3), node.input(4), node.input(5), node.input(6)});
}

/// The left factor is quantised first: unsigned bytes, with one scale and zero point from 0 and its extremes.
LogicalResult importDynamicQuantizeMatMul(NodeImport &node) {
  Type wide = node.builder.getF32Type();
  auto byte = IntegerType::get(node.builder.getContext(), 8, IntegerType::Unsigned);
  Value input = node.castTo(node.input(0), wide), none = node.scalar(wide, 0), most = node.scalar(wide, 255);
  Value low = node.make<MinOp>(wide, node.reduce(input, ReduceKind::Min, {}, /*keepdims=*/false), none);
  Value high = node.make<MaxOp>(wide, node.reduce(input, ReduceKind::Max, {}, /*keepdims=*/false), none);
  Value range = node.make<SubOp>(wide, high, low), isEmpty = node.make<EqualOp>(node.i1(), range, none);
  Value scale = node.make<WhereOp>(wide, isEmpty, node.scalar(wide, 1), node.make<DivOp>(wide, range, most));
  Value offset = node.make<DivOp>(wide, node.make<SubOp>(wide, none, low), scale);
  Value zero = roundToInteger(node, offset, Value(), byte);
  Value quantised = roundToInteger(node, node.make<DivOp>(wide, input, scale), zero, byte);
  return importProductToFloat(node,
                              {quantised, node.input(1), scale, node.input(2), zero, node.input(3), node.input(4)});
}

/// Bytes [N, M] that each hold 8 / bits numbers, the first one in the lowest bits: i32 [N, M * 8 / bits].
Value unpackBits(NodeImport &node, Value bytes, int64_t rows, int64_t bits) {
  Type i32 = node.builder.getI32Type();
  Value rest = node.reshape(node.castTo(bytes, i32), {rows, -1, 1}),
        radix = node.scalar(i32, double(int64_t(1) << bits));
  SmallVector<Value> parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    parts.push_back(node.make<ModOp>(i32, rest, radix, int64_t(0)));
    rest = node.make<DivOp>(i32, rest, radix);
  }
  return node.reshape(node.make<ConcatOp>(i32, ValueRange(parts), uint64_t(2)), {rows, -1});
}

/// com.microsoft: A times the transpose of a matrix [N, K] of unsigned integers, with a scale and a zero point per row
/// and block of K.
LogicalResult importMatMulNBits(NodeImport &node) {
  const int64_t k = node.integer("K", 0), n = node.integer("N", 0), bits = node.integer("bits", 4);
  const int64_t block = node.integer("block_size", 0);
  constexpr int64_t largest = int64_t(1) << 31;
  if (k < 1 || n < 1 || block < 1 || k > largest || n > largest || block > largest)
    return node.invalid("has K " + Twine(k) + ", N " + Twine(n) + " and block_size " + Twine(block));
  if (bits != 2 && bits != 4 && bits != 8)
    return node.unsupported("MatMulNBits of " + Twine(bits) + " bits; of 2, 4 and 8 it works");
  if (node.input(4))
    return node.unsupported("MatMulNBits with g_idx, rows in another order");
  if (!node.elementOf(node.input(1)).isUnsignedInteger(8))
    return node.invalid("has a packed matrix of other elements than bytes");
  Type element = node.elementOf(node.input(0)), wide = node.builder.getF32Type();
  const int64_t blocks = (k + block - 1) / block;
  std::optional<SmallVector<DimAttr>> dims = node.dims(node.input(1));
  auto sizeOf = [&](size_t axis) { return dims && (*dims)[axis] ? constantValue((*dims)[axis]) : std::nullopt; };
  if (dims && (dims->size() != 3 || sizeOf(0).value_or(n) != n || sizeOf(1).value_or(blocks) != blocks ||
               sizeOf(2).value_or(block * bits / 8) != block * bits / 8))
    return node.invalid("has a packed matrix that is not [" + Twine(n) + ", " + Twine(blocks) + ", " +
                        Twine(block * bits / 8) + "]");
  auto columns = [&](Value matrix, int64_t count) {
    return node.slice(matrix, node.constant({0}), node.constant({count}), 1);
  };
  // Blocks are filled up to their size.
  Value integers = unpackBits(node, node.input(1), n, bits);
  integers = node.castTo(columns(integers, k), wide);
  auto repeated = [&](Value parameter) { return repeatBlocks(node, parameter, integers, {1, block}); };
  Value scale = repeated(node.castTo(node.reshape(node.input(2), {n, blocks}), wide));
  Value zero = node.scalar(wide, double(int64_t(1) << (bits - 1)));
  if (Value given = node.input(3)) {
    bool packed = node.elementOf(given).isUnsignedInteger(8);
    given = packed ? columns(unpackBits(node, given, n, bits), blocks) : node.reshape(given, {n, blocks});
    zero = repeated(node.castTo(given, wide));
  }
  if (!scale || !zero)
    return failure();
  Value matrix = node.make<MulOp>(wide, node.make<SubOp>(wide, integers, zero), scale);
  Value product = node.make<MatMulOp>(element, node.input(0), node.castTo(node.transpose(matrix, {1, 0}), element));
  if (Value bias = node.input(5))
    product = node.make<AddOp>(element, product, bias);
  return node.result(product);
}
} // namespace

void mlir::transept::addQuantizationImports(ImportTable &table) {
  table.add("DequantizeLinear", importDequantize);
  table.add("QuantizeLinear", importQuantize);
  table.add("QLinearMatMul", importQLinearMatMul);
  table.add("ConvInteger", importConvInteger);
  table.add("QLinearConv", importQLinearConv);
  table.add(microsoftDomain, "MatMulNBits", importMatMulNBits);
  table.add(microsoftDomain, "MatMulIntegerToFloat", importMatMulIntegerToFloat);
  table.add(microsoftDomain, "DynamicQuantizeMatMul", importDynamicQuantizeMatMul);
}
