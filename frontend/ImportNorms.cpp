//===- ImportNorms.cpp - normalisations ------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"
#include "frontend/TensorData.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {
/// The attribute `epsilon`, which must be a number that is not negative.
std::optional<float> epsilonOf(NodeImport &node, float fallback) {
  float epsilon = node.real("epsilon", fallback);
  if (std::isfinite(epsilon) && epsilon >= 0)
    return epsilon;
  (void)node.invalid("has an epsilon that is negative or not finite");
  return std::nullopt;
}

/// Statistics are always taken in 32 bits, which is what stash_type 1 asks for.
LogicalResult checkStashType(NodeImport &node) {
  int64_t type = node.integer("stash_type", 1);
  if (type == 1)
    return success();
  return node.unsupported("stash_type " + dataTypeName(static_cast<int32_t>(type)) + " of " + node.op());
}

Value norm(NodeImport &node, Value input, Value scale, Value bias, int64_t axis, float epsilon, bool rms) {
  return node.make<LayerNormOp>(node.elementOf(input), input, scale, bias, node.builder.getI64IntegerAttr(axis),
                                node.builder.getF32FloatAttr(epsilon), rms ? node.builder.getUnitAttr() : UnitAttr());
}

/// Results 1 and 2 of LayerNormalization: mean and 1 / sqrt(variance + epsilon) in 32 bits, over axes from `axis` on.
LogicalResult statistics(NodeImport &node, int64_t axis, float epsilon) {
  std::optional<int64_t> rank = node.rank(node.input(0));
  if (axis != -1 && !rank)
    return node.unsupported("statistics of LayerNormalization for an input of unknown rank");
  SmallVector<int64_t> axes = {-1};
  if (axis != -1)
    axes = llvm::to_vector(llvm::seq<int64_t>(axis < 0 ? axis + *rank : axis, *rank));
  if (axes.empty() || (rank && axes.front() < -*rank))
    return node.invalid("has axis " + Twine(axis) + " for " + Twine(*rank) + " axes");
  Type f32 = node.builder.getF32Type();
  Value input = node.castTo(node.input(0), f32);
  Value mean = node.reduce(input, ReduceKind::Mean, axes, /*keepdims=*/true);
  (void)node.result(1, mean);
  Value centred = node.make<SubOp>(f32, input, mean);
  Value variance = node.reduce(node.make<MulOp>(f32, centred, centred), ReduceKind::Mean, axes, /*keepdims=*/true);
  Value deviation = node.make<SqrtOp>(f32, node.make<AddOp>(f32, variance, node.scalar(f32, epsilon)));
  return node.result(2, node.make<ReciprocalOp>(f32, deviation));
}

LogicalResult importLayerNorm(NodeImport &node) {
  bool rms = node.op() == "RMSNormalization" || node.op() == "SimplifiedLayerNormalization";
  int64_t axis = node.integer("axis", -1);
  std::optional<float> epsilon = epsilonOf(node, 1e-5f);
  if (!epsilon || failed(checkStashType(node)))
    return failure();
  Value bias = rms ? Value() : node.input(2);
  if ((node.wants(1) || node.wants(2)) && (rms || failed(statistics(node, axis, *epsilon))))
    return rms ? node.unsupported("further results of " + node.op()) : failure();
  return node.result(norm(node, node.input(0), node.input(1), bias, axis, *epsilon, rms));
}

/// com.microsoft: the norm of input + skip + bias; result 3 is that sum.
LogicalResult importSkipLayerNorm(NodeImport &node) {
  bool rms = node.op() == "SkipSimplifiedLayerNormalization";
  std::optional<float> epsilon = epsilonOf(node, 1e-12f);
  if (!epsilon)
    return failure();
  Type element = node.elementOf(node.input(0));
  Value beta = rms ? Value() : node.input(3), bias = node.input(rms ? 3 : 4);
  Value sum = node.make<AddOp>(element, node.input(0), node.input(1));
  if (bias)
    sum = node.make<AddOp>(element, sum, bias);
  (void)node.result(3, sum);
  return node.result(norm(node, sum, node.input(2), beta, -1, *epsilon, rms));
}

/// A vector over channels, with axes of size 1 for the spatial axes that follow.
Value perChannel(NodeImport &node, Value vector, int64_t rank) {
  SmallVector<int64_t> shape(static_cast<size_t>(rank - 1), 1);
  shape[0] = -1;
  return node.reshape(vector, shape);
}

/// Per channel over the spatial axes: (x - mean) / sqrt(variance + epsilon) * scale + bias.
LogicalResult importInstanceNorm(NodeImport &node) {
  Value input = node.input(0);
  Type element = node.elementOf(input);
  std::optional<float> epsilon = epsilonOf(node, 1e-5f);
  if (!epsilon)
    return failure();
  std::optional<int64_t> rank = node.rank(input);
  if (!rank)
    return node.unsupported("InstanceNormalization of an input of unknown rank");
  if (*rank < 3)
    return node.invalid("has an input of " + Twine(*rank) + " axes; it needs 3 or more");
  Value normal = norm(node, input, Value(), Value(), 2, *epsilon, /*rms=*/false);
  Value scaled = node.make<MulOp>(element, normal, perChannel(node, node.input(1), *rank));
  return node.result(node.make<AddOp>(element, scaled, perChannel(node, node.input(2), *rank)));
}

/// (x - mean) / sqrt(variance + epsilon) * scale + bias per channel. In training mode with the statistics of the batch,
/// and results 1 and 2 are what the given ones become.
LogicalResult importBatchNorm(NodeImport &node) {
  Value input = node.input(0);
  Type element = node.elementOf(input);
  float momentum = node.real("momentum", 0.9f);
  bool training = node.integer("training_mode", 0);
  // Before opset 14 the number of results told.
  if ((node.version < 14 && node.wants(1)) || (node.has("spatial") && node.integer("spatial", 1) == 0))
    return node.unsupported("BatchNormalization in training mode before opset 14, or with spatial 0");
  std::optional<float> epsilon = epsilonOf(node, 1e-5f);
  if (!epsilon)
    return failure();
  std::optional<int64_t> rank = node.rank(input);
  if (!rank)
    return node.unsupported("BatchNormalization of an input of unknown rank");
  if (*rank < 2)
    return node.invalid("has an input of " + Twine(*rank) + " axes; it needs 2 or more");
  auto channels = [&](Value vector) { return perChannel(node, node.castTo(vector, element), *rank); };
  Value mean = node.input(3), variance = node.input(4);
  if (training) {
    Type kept = node.elementOf(mean);
    SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(1, *rank));
    axes[0] = 0;
    Value batchMean = node.reduce(input, ReduceKind::Mean, axes, /*keepdims=*/false);
    Value centred = node.make<SubOp>(element, input, channels(batchMean));
    Value squares = node.make<MulOp>(element, centred, centred);
    Value batchVariance = node.reduce(squares, ReduceKind::Mean, axes, /*keepdims=*/false);
    auto updated = [&](Value running, Value batch) {
      Value old = node.make<MulOp>(kept, running, node.scalar(kept, momentum));
      Value fresh = node.make<MulOp>(kept, node.castTo(batch, kept), node.scalar(kept, 1.0 - momentum));
      return node.make<AddOp>(kept, old, fresh);
    };
    (void)node.result(1, updated(mean, batchMean));
    (void)node.result(2, updated(variance, batchVariance));
    mean = batchMean;
    variance = batchVariance;
  }
  Value centred = node.make<SubOp>(element, input, channels(mean));
  Value positive = node.make<AddOp>(element, channels(variance), node.scalar(element, *epsilon));
  Value normal = node.make<DivOp>(element, centred, node.make<SqrtOp>(element, positive));
  Value scaled = node.make<MulOp>(element, normal, channels(node.input(1)));
  return node.result(node.make<AddOp>(element, scaled, channels(node.input(2))));
}

/// x / (bias + alpha / size * sum of squares of the `size` channels around it) ^ beta
LogicalResult importLRN(NodeImport &node) {
  constexpr int64_t most = 1024;
  Value input = node.input(0);
  Type element = node.elementOf(input);
  int64_t size = node.integer("size", 0);
  float alpha = node.real("alpha", 1e-4f), beta = node.real("beta", 0.75f), bias = node.real("bias", 1.0f);
  if (size < 1)
    return node.invalid("has size " + Twine(size));
  if (size > most)
    return node.unsupported("LRN over more than " + Twine(most) + " channels");
  Value squares = node.make<MulOp>(element, input, input);
  Value padded = node.make<PadOp>(element, squares, node.constant({(size - 1) / 2, size / 2}), Value(),
                                  node.constant({1}), PadMode::Constant, ArrayAttr());
  Value channels = node.sizes(input, 1, 2), sum;
  for (int64_t i = 0; i < size; ++i) {
    Value end = node.make<AddOp>(node.i64(), channels, node.constant({i}));
    Value shifted = node.slice(padded, node.constant({i}), end, 1);
    sum = sum ? node.make<AddOp>(element, sum, shifted) : shifted;
  }
  Value scaled = node.make<MulOp>(element, sum, node.scalar(element, static_cast<double>(alpha) / size));
  Value base = node.make<AddOp>(element, scaled, node.scalar(element, bias));
  Value power = node.make<PowOp>(element, base, node.scalar(element, beta));
  return node.result(node.make<DivOp>(element, input, power));
}
} // namespace

void mlir::transept::addNormImports(ImportTable &table) {
  table.add("LayerNormalization", importLayerNorm);
  table.add("RMSNormalization", importLayerNorm);
  table.add("InstanceNormalization", importInstanceNorm);
  table.add("BatchNormalization", importBatchNorm);
  table.add("LRN", importLRN);
  table.add(microsoftDomain, "SimplifiedLayerNormalization", importLayerNorm);
  table.add(microsoftDomain, "SkipLayerNormalization", importSkipLayerNorm);
  table.add(microsoftDomain, "SkipSimplifiedLayerNormalization", importSkipLayerNorm);
}
