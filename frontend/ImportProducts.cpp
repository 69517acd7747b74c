//===- ImportProducts.cpp - matrix products --------------------------------------------------------------------===//
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

/// com.microsoft: alpha * A' * B'. With transBatch, the first axis stands behind the batch axes; then, with trans, the
/// last two are exchanged.
LogicalResult importFusedMatMul(NodeImport &node) {
  SmallVector<Value> operands = {node.input(0), node.input(1)};
  constexpr llvm::StringLiteral names[] = {"A", "B"};
  for (auto [operand, name] : llvm::zip(operands, names)) {
    const bool swaps = node.integer(("trans" + name).str(), 0), moves = node.integer(("transBatch" + name).str(), 0);
    if (!swaps && !moves)
      continue;
    std::optional<int64_t> rank = node.rank(operand);
    if (!rank || *rank < 2)
      return node.unsupported("FusedMatMul that transposes an operand " + name + " of unknown rank");
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, *rank));
    if (moves)
      std::rotate(permutation.begin(), permutation.begin() + 1, permutation.end() - 1);
    if (swaps)
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

} // namespace

void mlir::transept::addProductImports(ImportTable &table) {
  table.add("Gemm", importGemm);
  table.add("MatMulInteger", importMatMulInteger);
  table.add(microsoftDomain, "FusedMatMul", importFusedMatMul);
}
