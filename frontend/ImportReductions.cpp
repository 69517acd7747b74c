//===- ImportReductions.cpp - operators along rows -------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
/// Axes were an attribute before opset 18, for ReduceSum before 13.
template <ReduceKind kind> LogicalResult importReduce(NodeImport &node) {
  Value input = node.input(0), axesValue = node.input(1);
  bool keepdims = node.integer("keepdims", 1), noop = node.integer("noop_with_empty_axes", 0);
  std::optional<SmallVector<int64_t>> axes = axesValue ? node.constantIntegers(axesValue) : node.integers("axes");
  if (axes)
    axesValue = {};
  if (!axes && !axesValue)
    axes.emplace();
  DenseI64ArrayAttr attribute = axes ? node.builder.getDenseI64ArrayAttr(*axes) : DenseI64ArrayAttr();
  auto reduce = [&](Value values, ReduceKind how) {
    return node.make<ReduceOp>(node.elementOf(values), values, axesValue, how, attribute, keepdims, noop);
  };
  Type element = node.elementOf(input), f64 = node.builder.getF64Type();
  if (isa<FloatType>(element))
    return node.result(reduce(input, kind));
  // Roots and logarithms of integers are taken of floats, and cut off.
  switch (kind) {
  case ReduceKind::L2:
    return node.result(
        node.castTo(node.make<SqrtOp>(f64, node.castTo(reduce(input, ReduceKind::SumSquare), f64)), element));
  case ReduceKind::LogSum:
    return node.result(node.castTo(node.make<LogOp>(f64, node.castTo(reduce(input, ReduceKind::Sum), f64)), element));
  case ReduceKind::LogSumExp:
    return node.result(node.castTo(reduce(node.castTo(input, f64), kind), element));
  default:
    return node.result(reduce(input, kind));
  }
}

LogicalResult importArgMax(NodeImport &node) {
  int64_t axis = node.integer("axis", 0);
  bool keepdims = node.integer("keepdims", 1), last = node.integer("select_last_index", 0);
  return node.result(node.make<ArgMaxOp>(node.i64(), node.input(0), static_cast<uint64_t>(axis), keepdims, last,
                                         node.op() == "ArgMin"));
}

using AlongAxis = llvm::function_ref<Value(Value input, int64_t axis)>;

/// Before opset 13 all axes from `axis` on counted as one: the input is a matrix for `compute`.
LogicalResult importFlat(NodeImport &node, AlongAxis compute) {
  Value input = node.input(0);
  int64_t axis = node.integer("axis", 1);
  if (axis == -1)
    return node.result(compute(input, -1));
  if (std::optional<int64_t> rank = node.rank(input)) {
    if (axis < -*rank || axis > *rank)
      return node.invalid("has axis " + Twine(axis) + " for " + Twine(*rank) + " axes");
    if (axis == *rank - 1)
      return node.result(compute(input, -1));
  }
  Value rows = node.reduce(node.sizes(input, 0, axis), ReduceKind::Prod, {0}, /*keepdims=*/true);
  Value columns = node.reduce(node.sizes(input, axis), ReduceKind::Prod, {0}, /*keepdims=*/true);
  Value shape = node.make<ConcatOp>(node.i64(), ValueRange{rows, columns}, uint64_t(0));
  return node.result(node.reshape(compute(node.reshape(input, shape), -1), node.sizes(input)));
}

LogicalResult importSoftmax(NodeImport &node) {
  bool logarithm = node.op() == "LogSoftmax";
  auto compute = [&](Value input, int64_t axis) {
    return node.make<SoftmaxOp>(node.elementOf(input), input, static_cast<uint64_t>(axis), logarithm);
  };
  if (node.version < 13)
    return importFlat(node, compute);
  return node.result(compute(node.input(0), node.integer("axis", -1)));
}

/// 1 at the first largest element along the axis, 0 elsewhere.
LogicalResult importHardmax(NodeImport &node) {
  int64_t axis = node.version < 13 ? -1 : node.integer("axis", -1);
  std::optional<int64_t> rank = node.rank(node.input(0));
  if (axis >= 0 && !rank)
    return node.unsupported("Hardmax along an axis of an input of unknown rank");
  if (rank && (axis < -*rank || axis >= *rank))
    return node.invalid("has axis " + Twine(axis) + " for " + Twine(*rank) + " axes");
  auto compute = [&](Value input, int64_t along) {
    int64_t fromEnd = along < 0 ? along : along - *rank;
    Value largest = node.make<ArgMaxOp>(node.i64(), input, static_cast<uint64_t>(fromEnd), /*keepdims=*/true,
                                        /*selectLastIndex=*/false, /*smallest=*/false);
    std::optional<int64_t> end = fromEnd == -1 ? std::nullopt : std::optional<int64_t>(fromEnd + 1);
    Value size = node.reshape(node.sizes(input, fromEnd, end), ArrayRef<int64_t>{});
    Value positions = node.make<RangeOp>(node.i64(), node.scalar(int64_t(0)), size, node.scalar(int64_t(1)), DimAttr(),
                                         IntegerAttr());
    SmallVector<int64_t> shape(static_cast<size_t>(-fromEnd), 1);
    shape[0] = -1;
    Value hot = node.make<EqualOp>(node.i1(), largest, node.reshape(positions, shape));
    return node.castTo(hot, node.elementOf(input));
  };
  return node.version < 13 ? importFlat(node, compute) : node.result(compute(node.input(0), axis));
}

/// CumSum and CumProd.
LogicalResult importCumSum(NodeImport &node) {
  Value input = node.input(0), axisValue = node.input(1);
  IntegerAttr axis;
  if (std::optional<SmallVector<int64_t>> known = node.constantIntegers(axisValue); known && known->size() == 1) {
    axis = node.builder.getI64IntegerAttr((*known)[0]);
    axisValue = {};
  }
  bool exclusive = node.integer("exclusive", 0), reverse = node.integer("reverse", 0);
  bool product = node.op() == "CumProd";
  return node.result(node.make<CumSumOp>(node.elementOf(input), input, axisValue, axis, exclusive, reverse, product));
}

/// The count was an attribute before opset 10. Elements come in order even where `sorted` allows any.
LogicalResult importTopK(NodeImport &node) {
  Value input = node.input(0), count = node.input(1);
  if (node.version < 10) {
    if (!node.has("k"))
      return node.invalid("does not say how many elements");
    count = node.constant({node.integer("k", 0)});
  }
  node.ignore("sorted");
  bool largest = node.integer("largest", 1);
  auto axis = static_cast<uint64_t>(node.integer("axis", -1));
  Type values = UnrankedTensorType::get(node.elementOf(input)), indices = UnrankedTensorType::get(node.i64());
  auto op = node.builder.create<TopKOp>(node.loc, values, indices, input, count, DimAttr(), axis, largest);
  (void)node.result(1, op.getIndices());
  return node.result(op.getValues());
}

LogicalResult importLpNormalization(NodeImport &node) {
  Value input = node.input(0);
  int64_t axis = node.integer("axis", -1), power = node.integer("p", 2);
  if (power != 1 && power != 2)
    return node.invalid("has p " + Twine(power) + "; it must be 1 or 2");
  Value norm = node.reduce(input, power == 1 ? ReduceKind::L1 : ReduceKind::L2, {axis}, /*keepdims=*/true);
  // Zeros stay zeros.
  Type element = node.elementOf(input);
  Value zero = node.make<EqualOp>(node.i1(), norm, node.scalar(element, 0));
  norm = node.make<WhereOp>(element, zero, node.scalar(element, 1), norm);
  return node.result(node.make<DivOp>(element, input, norm));
}
} // namespace

void mlir::transept::addReductionImports(ImportTable &table) {
  table.add("ReduceSum", importReduce<ReduceKind::Sum>);
  table.add("ReduceMean", importReduce<ReduceKind::Mean>);
  table.add("ReduceMax", importReduce<ReduceKind::Max>);
  table.add("ReduceMin", importReduce<ReduceKind::Min>);
  table.add("ReduceProd", importReduce<ReduceKind::Prod>);
  table.add("ReduceSumSquare", importReduce<ReduceKind::SumSquare>);
  table.add("ReduceL1", importReduce<ReduceKind::L1>);
  table.add("ReduceL2", importReduce<ReduceKind::L2>);
  table.add("ReduceLogSum", importReduce<ReduceKind::LogSum>);
  table.add("ReduceLogSumExp", importReduce<ReduceKind::LogSumExp>);
  table.add("ArgMax", importArgMax);
  table.add("ArgMin", importArgMax);
  table.add("Softmax", importSoftmax);
  table.add("LogSoftmax", importSoftmax);
  table.add("Hardmax", importHardmax);
  table.add("CumSum", importCumSum);
  table.add("CumProd", importCumSum);
  table.add("TopK", importTopK);
  table.add("LpNormalization", importLpNormalization);
}
