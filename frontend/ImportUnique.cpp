//===- ImportUnique.cpp - the different elements or slices of a tensor ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equal ones are neighbours once they are sorted. Sorting keeps the order among equals, so the first of each group is
// the one that comes first in the input.

#include "frontend/NodeImport.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
/// Positions of the elements of a vector in ascending order.
Value sortedOrder(NodeImport &node, Value vector) {
  Type values = UnrankedTensorType::get(node.elementOf(vector)), indices = UnrankedTensorType::get(node.i64());
  return node.builder
      .create<TopKOp>(node.loc, values, indices, vector, node.sizes(vector), DimAttr(), uint64_t(0), /*largest=*/false)
      .getIndices();
}

Value gather(NodeImport &node, Value data, Value indices, int64_t axis = 0) {
  return node.make<GatherOp>(node.elementOf(data), data, indices, static_cast<uint64_t>(axis));
}

/// The order that sorts the rows of a matrix: by the last column first, each sort keeping what the one before did among
/// equals.
Value rowOrder(NodeImport &node, Value rows) {
  Type i64 = node.i64();
  auto size = [&](int64_t axis) { return node.reshape(node.sizes(rows, axis, axis + 1), ArrayRef<int64_t>()); };
  Value columns = size(1), last = node.make<SubOp>(i64, columns, node.scalar(int64_t(1)));
  FailureOr<SmallVector<Value>> sorted =
      node.loop(columns, Value(), {node.countTo(size(0))}, [&](Block &block, SmallVectorImpl<Value> &yielded) {
        Value order = block.getArgument(2), column = node.make<SubOp>(i64, last, block.getArgument(0));
        Value keys = gather(node, gather(node, rows, column, 1), order);
        yielded.assign({block.getArgument(1), gather(node, order, sortedOrder(node, keys))});
        return success();
      });
  return sorted->front();
}

LogicalResult importUnique(NodeImport &node) {
  Type i64 = node.i64(), i1 = node.i1();
  Value input = node.input(0), data = input, rows, order;
  int64_t axis = node.integer("axis", 0);
  if (node.has("axis")) {
    std::optional<int64_t> rank = node.rank(input);
    if (!rank)
      return node.unsupported("Unique along an axis of an input of unknown rank");
    if (axis < -*rank || axis >= *rank)
      return node.invalid("has axis " + Twine(axis) + " for " + Twine(*rank) + " axes");
    axis += axis < 0 ? *rank : 0;
    SmallVector<int64_t> front = {axis};
    for (int64_t other = 0; other < *rank; ++other)
      if (other != axis)
        front.push_back(other);
    rows = node.reshape(node.transpose(input, front), {0, -1});
    order = rowOrder(node, rows);
  } else {
    data = node.reshape(input, {-1});
    rows = node.reshape(data, {-1, 1});
    order = sortedOrder(node, data);
  }
  // Where a group of equal ones begins, and the number of the group that each belongs to.
  Value zero = node.scalar(int64_t(0)), one = node.scalar(int64_t(1));
  Value place = node.countTo(node.reshape(node.sizes(order), ArrayRef<int64_t>()));
  Value before = node.make<MaxOp>(i64, node.make<SubOp>(i64, place, one), zero), sorted = gather(node, rows, order);
  Value same = node.castTo(node.make<EqualOp>(i1, sorted, gather(node, sorted, before)), i64);
  same = node.castTo(node.reduce(same, ReduceKind::Min, {1}, /*keepdims=*/false), i1);
  Value begins = node.make<OrOp>(i1, node.make<NotOp>(i1, same), node.make<EqualOp>(i1, place, zero));
  Value number = node.make<CumSumOp>(i64, node.castTo(begins, i64), Value(), node.builder.getI64IntegerAttr(0),
                                     /*exclusive=*/false, /*reverse=*/false);
  number = node.make<SubOp>(i64, number, one);
  Value starts = node.reshape(node.make<NonZeroOp>(i64, begins), {-1});
  Value behind = node.slice(starts, node.constant({1}), node.constant({INT64_MAX}), 0);
  Value ends = node.make<ConcatOp>(i64, ValueRange{behind, node.sizes(order)}, uint64_t(0));
  Value first = gather(node, order, starts), counts = node.make<SubOp>(i64, ends, starts);
  auto scatter = [&](Value at, Value values) {
    return node.make<ScatterElementsOp>(i64, at, at, values, uint64_t(0), ScatterKind::Replace);
  };
  Value inverse = scatter(order, number);
  if (node.integer("sorted", 1) == 0) {
    Value groups = sortedOrder(node, first);
    Value newPlace = scatter(groups, node.countTo(node.reshape(node.sizes(groups), ArrayRef<int64_t>())));
    first = gather(node, first, groups);
    counts = gather(node, counts, groups);
    inverse = gather(node, newPlace, inverse);
  }
  (void)node.result(1, first);
  (void)node.result(2, inverse);
  (void)node.result(3, counts);
  return node.result(gather(node, data, first, axis));
}
} // namespace

void mlir::transept::addUniqueImports(ImportTable &table) { table.add("Unique", importUnique); }
