//===- FuseLinear.cpp - products with constant matrices
//-------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Fuse.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

bool isConstantData(Value value) { return value.getDefiningOp<WeightOp>() || value.getDefiningOp<ConstantOp>(); }

/// The [K, N] constant behind `value`, and whether it is stored as [N, K].
std::pair<Value, bool> constantMatrix(Value value) {
  auto type = rankedType(value);
  if (!type || type.getRank() != 2 || !type.hasStaticShape() || !isa<FloatType>(type.getElementType()))
    return {};
  if (isConstantData(value))
    return {value, false};
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (transpose && transpose.getPermutation() == ArrayRef<int64_t>{1, 0} && isConstantData(transpose.getInput()))
    return {transpose.getInput(), true};
  return {};
}

/// matmul(x, W) → linear(x, W).
struct MatMulToLinear : OpRewritePattern<MatMulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatMulOp op, PatternRewriter &rewriter) const override {
    auto [matrix, transposed] = constantMatrix(op.getRhs());
    auto input = rankedType(op.getLhs());
    if (!matrix || !input || input.getRank() < 1 || !rankedType(op.getResult()))
      return failure();
    rewriter.replaceOpWithNewOp<LinearOp>(op, op.getType(), op.getLhs(), matrix, Value(), transposed);
    return success();
  }
};

/// linear(x, W) + row → linear(x, W, row). `row` is constant, [N] or [1, …, N].
struct AddBias : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    for (auto [product, row] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      auto linear = product.getDefiningOp<LinearOp>();
      auto rowType = rankedType(row), type = rankedType(product);
      if (!linear || linear.getBias() || !linear->hasOneUse() || !isConstantData(row) || !rowType || !type ||
          product.getType() != op.getType())
        continue;
      int64_t columns = type.getShape().back();
      if (rowType.getNumElements() != columns || rowType.getRank() == 0 || rowType.getShape().back() != columns)
        continue;
      Value bias = row;
      if (rowType.getRank() != 1)
        bias = rewriter.create<ReshapeOp>(op.getLoc(), RankedTensorType::get({columns}, rowType.getElementType()), row,
                                          Value(), false);
      rewriter.replaceOpWithNewOp<LinearOp>(op, op.getType(), linear.getInput(), linear.getWeight(), bias,
                                            linear.getTransposed());
      return success();
    }
    return failure();
  }
};

} // namespace

void transept::populateLinearPatterns(RewritePatternSet &patterns) {
  patterns.add<MatMulToLinear, AddBias>(patterns.getContext());
}
