//===- ImportEmbeddings.cpp - embeddings of com.microsoft
//------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/MicrosoftAttention.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {
/// T5's buckets of distances: [1, heads, queries, keys] of a table [buckets, heads].
LogicalResult importRelativePositionBias(NodeImport &node) {
  AttentionParts p(node);
  Value table = node.input(0);
  int64_t furthest = node.integer("max_distance", 0);
  bool bidirectional = node.integer("is_bidirectional", 0) != 0;
  std::optional<int64_t> buckets = knownSize(node, table, 0);
  if (!buckets)
    return node.unsupported("RelativePositionBias of a table of unknown size");
  int64_t half = bidirectional ? *buckets / 2 : *buckets, exact = half / 2;
  if (exact < 1 || furthest <= exact)
    return node.invalid("has max_distance " + Twine(furthest) + " for " + Twine(*buckets) + " buckets");
  auto length = [&](size_t index) { return node.reshape(node.castTo(node.input(index), p.i64), ArrayRef<int64_t>{}); };
  auto number = [&](int64_t value) { return node.scalar(value); };
  Value distance = p.sub(node.reshape(p.countTo(length(1)), {-1, 1}), p.countTo(length(2))); // query - key
  Value isAhead = p.less(distance, number(0)), base;
  if (bidirectional) {
    base = node.make<WhereOp>(p.i64, isAhead, number(half), number(0));
    distance = node.make<AbsOp>(p.i64, distance);
  } else {
    base = number(0);
    distance = node.make<MaxOp>(p.i64, distance, number(0));
  }
  Type f32 = node.builder.getF32Type();
  auto real = [&](double value) { return node.scalar(f32, value); };
  Value isExact = p.less(distance, number(exact));
  Value safe = node.castTo(node.make<MaxOp>(p.i64, distance, number(exact)), f32);
  Value ratio = node.make<LogOp>(f32, node.make<DivOp>(f32, safe, real(static_cast<double>(exact))));
  ratio = node.make<DivOp>(f32, ratio, real(std::log(static_cast<double>(furthest) / static_cast<double>(exact))));
  Value steps = node.castTo(p.mul(ratio, real(static_cast<double>(half - exact))), p.i64);
  Value coarse = node.make<MinOp>(p.i64, p.add(steps, number(exact)), number(half - 1));
  Value bucket = p.add(base, node.make<WhereOp>(p.i64, isExact, distance, coarse));
  Value picked = node.make<GatherOp>(p.element, table, bucket, uint64_t(0)); // [queries, keys, heads]
  picked = node.transpose(picked, {2, 0, 1});
  return node.result(node.make<UnsqueezeOp>(p.element, picked, Value(), node.builder.getDenseI64ArrayAttr({0})));
}

/// The norm of the sum of word, position and segment embeddings.
LogicalResult importEmbedLayerNorm(NodeImport &node) {
  Value ids = node.input(0), segments = node.input(1), words = node.input(2), places = node.input(3),
        kinds = node.input(4), mask = node.input(7), positions = node.input(8);
  Type element = node.elementOf(words);
  float epsilon = node.real("epsilon", 1e-12f);
  node.ignore("mask_index_type");
  if (!(std::isfinite(epsilon) && epsilon >= 0))
    return node.invalid("has an epsilon that is negative or not finite");
  if (!positions) {
    Value count = node.reshape(node.sizes(ids, 1, 2), ArrayRef<int64_t>{});
    positions = node.make<RangeOp>(node.i64(), node.scalar(int64_t(0)), count, node.scalar(int64_t(1)), DimAttr(),
                                   IntegerAttr());
  }
  auto rows = [&](Value table, Value at) { return node.make<GatherOp>(element, table, at, uint64_t(0)); };
  Value sum = node.make<AddOp>(element, rows(words, ids), rows(places, positions));
  if (segments && kinds)
    sum = node.make<AddOp>(element, sum, rows(kinds, segments));
  if (node.wants(1)) {
    Type i32 = node.builder.getI32Type();
    Value used = mask ? node.castTo(mask, i32) : node.castTo(node.make<SubOp>(node.elementOf(ids), ids, ids), i32);
    (void)node.result(1, node.reduce(used, ReduceKind::Sum, {1}, /*keepdims=*/false));
  }
  (void)node.result(2, sum);
  return node.result(node.make<LayerNormOp>(element, sum, node.input(5), node.input(6),
                                            node.builder.getI64IntegerAttr(-1), node.builder.getF32FloatAttr(epsilon),
                                            UnitAttr()));
}
} // namespace

void mlir::transept::addEmbeddingImports(ImportTable &table) {
  table.add(microsoftDomain, "RelativePositionBias", importRelativePositionBias);
  table.add(microsoftDomain, "EmbedLayerNormalization", importEmbedLayerNorm);
}
