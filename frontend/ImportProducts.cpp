//===- ImportProducts.cpp - matrix products and convolutions ---------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
Value scaled(NodeImport &node, Value value, float factor) {
  Type element = node.elementOf(value);
  return factor == 1.0f ? value : node.make<MulOp>(element, value, node.scalar(element, factor));
}

/// alpha * A' * B' + beta * C
LogicalResult importGemm(NodeImport &node) {
  Value lhs = node.input(0), rhs = node.input(1), bias = node.input(2);
  Type element = node.elementOf(lhs);
  float alpha = node.real("alpha", 1.0f), beta = node.real("beta", 1.0f);
  if (!isa<FloatType>(element) && (alpha != 1.0f || beta != 1.0f))
    return node.unsupported("Gemm of integers with alpha or beta");
  if (node.integer("transA", 0))
    lhs = node.transpose(lhs, {1, 0});
  if (node.integer("transB", 0))
    rhs = node.transpose(rhs, {1, 0});
  Value product = scaled(node, node.make<MatMulOp>(element, lhs, rhs), alpha);
  if (bias && beta != 0.0f)
    product = node.make<AddOp>(element, product, scaled(node, bias, beta));
  return node.result(product);
}

/// com.microsoft: alpha * A' * B' where the last two axes may be exchanged.
LogicalResult importFusedMatMul(NodeImport &node) {
  for (StringRef name : {"transBatchA", "transBatchB"})
    if (node.integer(name, 0))
      return node.unsupported("attribute " + quoted(name) + " of FusedMatMul");
  SmallVector<Value> operands = {node.input(0), node.input(1)};
  for (auto [operand, name] : llvm::zip(operands, ArrayRef<StringRef>{"transA", "transB"})) {
    if (!node.integer(name, 0))
      continue;
    std::optional<int64_t> rank = node.rank(operand);
    if (!rank || *rank < 2)
      return node.unsupported("FusedMatMul with " + name + " of an operand of unknown rank");
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, *rank));
    std::swap(permutation[*rank - 1], permutation[*rank - 2]);
    operand = node.transpose(operand, permutation);
  }
  Value product = node.make<MatMulOp>(node.elementOf(operands[0]), operands[0], operands[1]);
  return node.result(scaled(node, product, node.real("alpha", 1.0f)));
}

LogicalResult importMatMulInteger(NodeImport &node) {
  return node.result(node.make<MatMulIntegerOp>(node.builder.getI32Type(), node.input(0), node.input(1), node.input(2),
                                                node.input(3)));
}

LogicalResult importConv(NodeImport &node) {
  Value input = node.input(0), weight = node.input(1);
  // The number of spatial axes follows from the attributes, or from the weight.
  std::optional<SmallVector<int64_t>> kernel = node.integers("kernel_shape"), strides = node.integers("strides"),
                                      pads = node.integers("pads"), dilations = node.integers("dilations");
  std::optional<int64_t> rank = node.rank(weight);
  if (!rank)
    rank = node.rank(input);
  if (!rank)
    return node.unsupported("Conv of operands of unknown rank");
  if (*rank < 3)
    return node.invalid("has a weight of " + Twine(*rank) + " axes; a convolution needs 3 or more");
  size_t spatial = static_cast<size_t>(*rank - 2);
  if (kernel && kernel->size() != spatial)
    return node.invalid("has a kernel_shape of " + Twine(kernel->size()) + " axes, but a weight of " + Twine(spatial));
  std::string autoPad = node.text("auto_pad", "NOTSET");
  if (autoPad != "NOTSET" && autoPad != "VALID")
    return node.unsupported("auto_pad " + quoted(autoPad) + " of Conv");
  auto orElse = [](const std::optional<SmallVector<int64_t>> &values, size_t count, int64_t fallback) {
    return values ? *values : SmallVector<int64_t>(count, fallback);
  };
  SmallVector<int64_t> stride = orElse(strides, spatial, 1), dilation = orElse(dilations, spatial, 1);
  SmallVector<int64_t> padding = orElse(autoPad == "VALID" ? std::nullopt : pads, 2 * spatial, 0);
  if (stride.size() != spatial || dilation.size() != spatial || padding.size() != 2 * spatial)
    return node.invalid("has strides, dilations or pads for another number of axes than " + Twine(spatial));
  auto positive = [](int64_t value) { return value > 0; };
  if (!llvm::all_of(stride, positive) || !llvm::all_of(dilation, positive))
    return node.invalid("has a stride or dilation that is not positive");
  if (llvm::any_of(padding, [](int64_t value) { return value < 0; }))
    return node.unsupported("negative pads of Conv");
  int64_t group = node.integer("group", 1);
  if (group < 1)
    return node.invalid("has group " + Twine(group));
  return node.result(node.make<ConvOp>(node.elementOf(input), input, weight, node.input(2), stride, padding, dilation,
                                       static_cast<uint64_t>(group)));
}
} // namespace

void mlir::transept::addProductImports(ImportTable &table) {
  table.add("Gemm", importGemm);
  table.add("MatMulInteger", importMatMulInteger);
  table.add("Conv", importConv);
  table.add(microsoftDomain, "FusedMatMul", importFusedMatMul);
}
