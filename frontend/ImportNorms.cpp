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

LogicalResult importLayerNorm(NodeImport &node) {
  bool rms = node.op() == "RMSNormalization" || node.op() == "SimplifiedLayerNormalization";
  int64_t axis = node.integer("axis", -1);
  std::optional<float> epsilon = epsilonOf(node, 1e-5f);
  if (!epsilon || failed(checkStashType(node)))
    return failure();
  Value bias = rms ? Value() : node.input(2);
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

/// With given statistics: (x - mean) / sqrt(variance + epsilon) * scale + bias.
LogicalResult importBatchNorm(NodeImport &node) {
  Value input = node.input(0);
  Type element = node.elementOf(input);
  node.ignore("momentum");
  if (node.integer("training_mode", 0) || (node.has("spatial") && node.integer("spatial", 1) == 0))
    return node.unsupported("BatchNormalization in training mode; export the model in evaluation mode");
  std::optional<float> epsilon = epsilonOf(node, 1e-5f);
  if (!epsilon)
    return failure();
  std::optional<int64_t> rank = node.rank(input);
  if (!rank)
    return node.unsupported("BatchNormalization of an input of unknown rank");
  if (*rank < 2)
    return node.invalid("has an input of " + Twine(*rank) + " axes; it needs 2 or more");
  auto channels = [&](size_t index) { return perChannel(node, node.castTo(node.input(index), element), *rank); };
  Value centred = node.make<SubOp>(element, input, channels(3));
  Value variance = node.make<AddOp>(element, channels(4), node.scalar(element, *epsilon));
  Value normal = node.make<DivOp>(element, centred, node.make<SqrtOp>(element, variance));
  Value scaled = node.make<MulOp>(element, normal, channels(1));
  return node.result(node.make<AddOp>(element, scaled, channels(2)));
}
} // namespace

void mlir::transept::addNormImports(ImportTable &table) {
  table.add("LayerNormalization", importLayerNorm);
  table.add("RMSNormalization", importLayerNorm);
  table.add("InstanceNormalization", importInstanceNorm);
  table.add("BatchNormalization", importBatchNorm);
  table.add(microsoftDomain, "SimplifiedLayerNormalization", importLayerNorm);
  table.add(microsoftDomain, "SkipLayerNormalization", importSkipLayerNorm);
  table.add(microsoftDomain, "SkipSimplifiedLayerNormalization", importSkipLayerNorm);
}
