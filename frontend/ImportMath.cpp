//===- ImportMath.cpp - element-wise operators with attributes or several forms --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"
#include "frontend/TensorData.h"
#include "ir/NarrowTypes.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {
/// The attributes say how narrow floats are rounded; they change nothing for other types.
LogicalResult convertTo(NodeImport &node, Type element) {
  bool saturate = node.integer("saturate", 1);
  std::string round = node.text("round_mode", "up");
  if (round != "up" && round != "down" && round != "nearest")
    return node.invalid("has the unknown round_mode " + quoted(round));
  std::optional<NarrowFormat> format = narrowFormat(element);
  if (!format || node.elementOf(node.input(0)) == element)
    return node.result(node.castTo(node.input(0), element));
  return node.result(node.make<CastOp>(element, node.input(0), element, saturate,
                                       format->isScale ? StringRef(round) : StringRef("nearest")));
}

LogicalResult importCast(NodeImport &node) {
  auto to = static_cast<int32_t>(node.integer("to", 0));
  Type element = elementTypeOf(node.builder.getContext(), to);
  return element ? convertTo(node, element) : node.unsupported("Cast to " + dataTypeName(to));
}

LogicalResult importCastLike(NodeImport &node) { return convertTo(node, node.elementOf(node.input(1))); }

LogicalResult importBitCast(NodeImport &node) {
  auto to = static_cast<int32_t>(node.integer("to", 0));
  Type element = elementTypeOf(node.builder.getContext(), to), from = node.elementOf(node.input(0));
  if (!element || isNarrow(element) || isNarrow(from))
    return node.unsupported("BitCast from " + dataTypeName(dataTypeOf(from)) + " to " + dataTypeName(to));
  return node.result(node.make<BitCastOp>(element, node.input(0), element));
}

LogicalResult importBitShift(NodeImport &node) {
  std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return node.invalid("has the unknown direction " + quoted(direction));
  return node.result(
      node.make<BitShiftOp>(node.elementOf(node.input(0)), node.input(0), node.input(1), direction == "RIGHT"));
}

LogicalResult importIdentity(NodeImport &node) { return node.result(node.input(0)); }

/// A tensor that is there; optional values are no tensors and do not get here.
LogicalResult importHasElement(NodeImport &node) { return node.result(node.scalar(node.i1(), node.input(0) ? 1 : 0)); }

/// 1 above the threshold, else 0.
LogicalResult importBinarizer(NodeImport &node) {
  Type element = node.elementOf(node.input(0));
  Value threshold = node.scalar(element, node.real("threshold", 0.0f));
  return node.result(node.castTo(node.make<GreaterOp>(node.i1(), node.input(0), threshold), element));
}

/// Outside of training nothing is dropped, nor where the ratio is zero.
LogicalResult importDropout(NodeImport &node) {
  node.ignore("seed");
  node.ignore("is_test");
  if (Value training = node.input(2)) {
    std::optional<SmallVector<int64_t>> value = node.constantIntegers(training);
    if ((!value || value->empty() || (*value)[0] != 0))
      return node.unsupported("Dropout in training mode; export the model in evaluation mode");
  }
  node.ignore("ratio");
  Value input = node.input(0);
  if (node.wants(1)) {
    // The mask had the type of the input before opset 10.
    Type element = node.version < 10 ? node.elementOf(input) : node.i1();
    HostTensor kept = HostTensor::make(RankedTensorType::get({}, element));
    kept.setInt(0, 1);
    (void)node.result(1, node.make<FillOp>(element, node.sizes(input), kept.toElements()));
  }
  return node.result(input);
}

/// log(1 + exp(x)), without overflow: max(x, 0) + log(1 + exp(-|x|))
LogicalResult importSoftplus(NodeImport &node) {
  Value input = node.input(0);
  Type element = node.elementOf(input);
  Value power = node.make<ExpOp>(element, node.make<NegOp>(element, node.make<AbsOp>(element, input)));
  Value positive = node.make<MaxOp>(element, input, node.scalar(element, 0));
  return node.result(node.make<AddOp>(element, positive, node.make<Log1pOp>(element, power)));
}

LogicalResult importGelu(NodeImport &node) {
  std::string approximate = node.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return node.invalid("has the unknown approximation " + quoted(approximate));
  return node.result(node.make<GeluOp>(node.elementOf(node.input(0)), node.input(0), StringRef(approximate)));
}

/// com.microsoft Gelu, FastGelu and BiasGelu: an optional bias is added first.
LogicalResult importBiasedGelu(NodeImport &node) {
  Value input = node.input(0);
  Type element = node.elementOf(input);
  if (Value bias = node.input(1))
    input = node.make<AddOp>(element, input, bias);
  StringRef approximate = node.op() == "FastGelu" ? "tanh" : "none";
  return node.result(node.make<GeluOp>(element, input, approximate));
}

/// x * sigmoid(alpha * x)
LogicalResult importSwish(NodeImport &node) {
  Value input = node.input(0);
  Type element = node.elementOf(input);
  float alpha = node.real("alpha", node.op() == "QuickGelu" ? 1.702f : 1.0f);
  if (alpha == 1.0f)
    return node.result(node.make<SiluOp>(element, input));
  Value scaled = node.make<MulOp>(element, input, node.scalar(element, alpha));
  return node.result(node.make<MulOp>(element, input, node.make<SigmoidOp>(element, scaled)));
}

LogicalResult importMod(NodeImport &node) {
  int64_t fmod = node.integer("fmod", 0);
  return node.result(node.make<ModOp>(node.elementOf(node.input(0)), node.input(0), node.input(1), fmod));
}

/// Min, Max, Sum and Mean take any number of inputs.
template <typename Op> Value foldInputs(NodeImport &node) {
  Value all = node.input(0);
  for (size_t index = 1; index < node.inputCount(); ++index)
    all = node.make<Op>(node.elementOf(all), all, node.input(index));
  return all;
}
template <typename Op> LogicalResult importVariadic(NodeImport &node) { return node.result(foldInputs<Op>(node)); }

LogicalResult importMean(NodeImport &node) {
  Value sum = foldInputs<AddOp>(node);
  Type element = node.elementOf(sum);
  Value count = node.scalar(element, static_cast<double>(node.inputCount()));
  return node.result(node.make<DivOp>(element, sum, count));
}

/// min(max(x, low), high); the bounds were attributes before opset 11.
LogicalResult importClip(NodeImport &node) {
  Value value = node.input(0);
  Type element = node.elementOf(value);
  Value low = node.input(1), high = node.input(2);
  if (node.version < 11) {
    if (node.has("min"))
      low = node.scalar(element, node.real("min", 0));
    if (node.has("max"))
      high = node.scalar(element, node.real("max", 0));
  }
  if (low)
    value = node.make<MaxOp>(element, value, low);
  if (high)
    value = node.make<MinOp>(element, value, high);
  return node.result(value);
}

/// x where x >= 0, else slope * x.
LogicalResult slopedRelu(NodeImport &node, Value slope) {
  Value input = node.input(0);
  Type element = node.elementOf(input);
  Value negative = node.make<LessOp>(node.i1(), input, node.scalar(element, 0));
  Value scaled = node.make<MulOp>(element, slope, input);
  return node.result(node.make<WhereOp>(element, negative, scaled, input));
}
LogicalResult importLeakyRelu(NodeImport &node) {
  float alpha = node.real("alpha", 0.01f);
  return slopedRelu(node, node.scalar(node.elementOf(node.input(0)), alpha));
}
LogicalResult importPRelu(NodeImport &node) { return slopedRelu(node, node.input(1)); }

LogicalResult importIsInf(NodeImport &node) {
  Value input = node.input(0);
  Type element = node.elementOf(input);
  bool negative = node.integer("detect_negative", 1), positive = node.integer("detect_positive", 1);
  if (!isa<FloatType>(element))
    return node.unsupported("IsInf of other elements than floats");
  if (negative == positive)
    input = node.make<AbsOp>(element, input);
  // No magnitude is negative: nothing is detected.
  double bound = positive ? HUGE_VAL : -HUGE_VAL;
  return node.result(node.make<EqualOp>(node.i1(), input, node.scalar(element, bound)));
}
} // namespace

void mlir::transept::addMathImports(ImportTable &table) {
  table.add("Cast", importCast);
  table.add("CastLike", importCastLike);
  table.add("Identity", importIdentity);
  table.add("OptionalGetElement", importIdentity);
  table.add("OptionalHasElement", importHasElement);
  table.add("ai.onnx.ml", "Binarizer", importBinarizer);
  table.add("Dropout", importDropout);
  table.add("Gelu", importGelu);
  table.add("Swish", importSwish);
  table.add("Mod", importMod);
  table.add("Min", importVariadic<MinOp>);
  table.add("Max", importVariadic<MaxOp>);
  table.add("Sum", importVariadic<AddOp>);
  table.add("Mean", importMean);
  table.add("Clip", importClip);
  table.add("LeakyRelu", importLeakyRelu);
  table.add("PRelu", importPRelu);
  table.add("IsInf", importIsInf);
  table.add("BitCast", importBitCast);
  table.add("BitShift", importBitShift);
  table.add("Softplus", importSoftplus);
  for (StringRef op : {"Gelu", "FastGelu", "BiasGelu"})
    table.add(microsoftDomain, op, importBiasedGelu);
  table.add(microsoftDomain, "QuickGelu", importSwish);
}
