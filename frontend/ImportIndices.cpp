//===- ImportIndices.cpp - operators that read or write at computed positions ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
template <typename Op> LogicalResult importGather(NodeImport &node) {
  uint64_t axis = static_cast<uint64_t>(node.integer("axis", 0));
  return node.result(node.make<Op>(node.elementOf(node.input(0)), node.input(0), node.input(1), axis));
}

LogicalResult importGatherND(NodeImport &node) {
  int64_t batch = node.integer("batch_dims", 0);
  if (batch < 0)
    return node.invalid("has batch_dims " + Twine(batch));
  return node.result(
      node.make<GatherNDOp>(node.elementOf(node.input(0)), node.input(0), node.input(1), static_cast<uint64_t>(batch)));
}

/// The attribute `reduction`; nullopt after a reported failure.
std::optional<ScatterKind> reductionOf(NodeImport &node) {
  std::string reduction = node.text("reduction", "none");
  std::optional<ScatterKind> kind = reduction == "none" ? ScatterKind::Replace : symbolizeScatterKind(reduction);
  if (kind && reduction != "replace")
    return kind;
  (void)node.invalid("has the unknown reduction " + quoted(reduction));
  return std::nullopt;
}

/// Scatter is the name before opset 11.
LogicalResult importScatterElements(NodeImport &node) {
  std::optional<ScatterKind> kind = reductionOf(node);
  uint64_t axis = static_cast<uint64_t>(node.integer("axis", 0));
  if (!kind)
    return failure();
  return node.result(node.make<ScatterElementsOp>(node.elementOf(node.input(0)), node.input(0), node.input(1),
                                                  node.input(2), axis, *kind));
}

LogicalResult importScatterND(NodeImport &node) {
  std::optional<ScatterKind> kind = reductionOf(node);
  if (!kind)
    return failure();
  return node.result(
      node.make<ScatterNDOp>(node.elementOf(node.input(0)), node.input(0), node.input(1), node.input(2), *kind));
}

LogicalResult importNonZero(NodeImport &node) { return node.result(node.make<NonZeroOp>(node.i64(), node.input(0))); }

/// Gathers at the coordinates of the condition that are not zero.
LogicalResult importCompress(NodeImport &node) {
  Value data = node.input(0);
  int64_t axis = node.integer("axis", 0);
  if (!node.has("axis"))
    data = node.reshape(data, {-1});
  Value places = node.reshape(node.make<NonZeroOp>(node.i64(), node.input(1)), {-1});
  return node.result(node.make<GatherOp>(node.elementOf(data), data, places, static_cast<uint64_t>(axis)));
}

/// Compares a new axis with the positions 0 … depth - 1. Indices may count from the end; others out of range are off
/// everywhere.
LogicalResult importOneHot(NodeImport &node) {
  Value indices = node.input(0), depth = node.input(1), values = node.input(2);
  int64_t axis = node.integer("axis", -1);
  std::optional<int64_t> rank = node.rank(indices);
  if (axis != -1 && !rank)
    return node.unsupported("OneHot along another axis than the last of indices of unknown rank");
  if (rank && (axis < -*rank - 1 || axis > *rank))
    return node.invalid("has axis " + Twine(axis) + " for " + Twine(*rank) + " axes");
  Type element = node.elementOf(values);
  Value count = node.castTo(node.make<ReshapeOp>(node.elementOf(depth), depth, node.constant({}), false), node.i64());
  Value positions =
      node.make<RangeOp>(node.i64(), node.scalar(int64_t(0)), count, node.scalar(int64_t(1)), DimAttr(), IntegerAttr());
  int64_t behind = axis == -1 ? 0 : axis < 0 ? -1 - axis : *rank - axis; // axes that follow the new one
  if (behind) {
    SmallVector<int64_t> shape(static_cast<size_t>(behind) + 1, 1);
    shape[0] = -1;
    positions = node.reshape(positions, shape);
  }
  Value wide = node.castTo(indices, node.i64());
  Value negative = node.make<LessOp>(node.i1(), wide, node.scalar(int64_t(0)));
  wide = node.make<WhereOp>(node.i64(), negative, node.make<AddOp>(node.i64(), wide, count), wide);
  wide = node.make<UnsqueezeOp>(node.i64(), wide, Value(), node.builder.getDenseI64ArrayAttr({axis}));
  Value hot = node.make<EqualOp>(node.i1(), wide, positions);
  auto pick = [&](int64_t index) { return node.make<GatherOp>(element, values, node.scalar(index), uint64_t(0)); };
  return node.result(node.make<WhereOp>(element, hot, pick(1), pick(0)));
}

/// Elements of the last axis at the given positions; a vector counts as one row.
LogicalResult importArrayFeatureExtractor(NodeImport &node) {
  Value input = node.input(0);
  std::optional<int64_t> rank = node.rank(input);
  if (!rank)
    return node.unsupported("ArrayFeatureExtractor of an input of unknown rank");
  Value positions = node.reshape(node.input(1), {-1});
  Value picked = node.make<GatherOp>(node.elementOf(input), input, positions, static_cast<uint64_t>(int64_t(-1)));
  return node.result(*rank == 1 ? node.reshape(picked, {1, -1}) : picked);
}
} // namespace

void mlir::transept::addIndexImports(ImportTable &table) {
  table.add("Gather", importGather<GatherOp>);
  table.add("GatherElements", importGather<GatherElementsOp>);
  table.add("GatherND", importGatherND);
  table.add("Scatter", importScatterElements);
  table.add("ScatterElements", importScatterElements);
  table.add("ScatterND", importScatterND);
  table.add("NonZero", importNonZero);
  table.add("Compress", importCompress);
  table.add("OneHot", importOneHot);
  table.add("ai.onnx.ml", "ArrayFeatureExtractor", importArrayFeatureExtractor);
}
