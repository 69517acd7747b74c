//===- IntegerProducts.cpp - products of dequantised integers are products of integers ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/IntegerProducts.h"
#include "ir/Transept.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// Sums of products of two bytes without their zero points stay below 2^31.
constexpr int64_t longest = 1 << 15;

RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

bool isByte(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  return element.isInteger(8);
}

bool isOneNumber(Value value) {
  auto type = rankedType(value);
  return type && type.hasStaticShape() && type.getNumElements() == 1;
}

bool isConstant(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getInput();
  return isa_and_nonnull<ConstantOp, WeightOp>(value.getDefiningOp());
}

/// (quantised - zero) * scale; no zero point: a null value.
struct Dequantised {
  Value quantised, zero, scale;
};

std::optional<Dequantised> dequantised(Value value) {
  auto product = value.getDefiningOp<MulOp>();
  if (!product || !getElementTypeOrSelf(value.getType()).isF32())
    return std::nullopt;
  Dequantised result;
  result.scale = product.getRhs();
  Value integers = product.getLhs();
  if (auto difference = integers.getDefiningOp<SubOp>()) {
    auto zero = difference.getRhs().getDefiningOp<CastOp>();
    if (!zero)
      return std::nullopt;
    result.zero = zero.getInput();
    integers = difference.getLhs();
  }
  auto cast = integers.getDefiningOp<CastOp>();
  if (!cast || !isByte(cast.getInput()) ||
      (result.zero && getElementTypeOrSelf(result.zero.getType()) != getElementTypeOrSelf(cast.getInput().getType())))
    return std::nullopt;
  result.quantised = cast.getInput();
  // Nothing but the integers has more than one element per column, so shapes are theirs.
  return rankedType(result.quantised) && rankedType(value) == rankedType(cast.getResult()) ? std::optional(result)
                                                                                           : std::nullopt;
}

struct ProductOfDequantised : OpRewritePattern<MatMulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatMulOp op, PatternRewriter &rewriter) const override {
    std::optional<Dequantised> lhs = dequantised(op.getLhs()), rhs = dequantised(op.getRhs());
    auto transposed = op.getRhs().getDefiningOp<TransposeOp>();
    if (transposed && transposed.getPermutation() == ArrayRef<int64_t>{1, 0})
      rhs = dequantised(transposed.getInput());
    auto result = rankedType(op.getResult());
    if (!lhs || !rhs || !result || !isConstant(rhs->quantised) || !isOneNumber(lhs->scale) ||
        (lhs->zero && !isOneNumber(lhs->zero)))
      return failure();
    auto matrix = rankedType(rhs->quantised);
    if (matrix.getRank() != 2 || !matrix.hasStaticShape())
      return failure();
    const int64_t n = matrix.getDimSize(transposed ? 0 : 1), k = matrix.getDimSize(transposed ? 1 : 0);
    if (k > longest || !belongsToColumns(rhs->scale, n, transposed) ||
        (rhs->zero && (!belongsToColumns(rhs->zero, n, transposed) || !isConstant(rhs->zero))))
      return failure();
    Location loc = op.getLoc();
    Value integers = rhs->quantised;
    if (transposed)
      integers = rewriter.create<TransposeOp>(loc, RankedTensorType::get({k, n}, matrix.getElementType()), integers,
                                              ArrayRef<int64_t>{1, 0});
    Type i32 = rewriter.getI32Type(), f32 = rewriter.getF32Type();
    auto typed = [&](Type element) { return makeType(dimsOf(result), element); };
    Value product = rewriter.create<MatMulIntegerOp>(loc, typed(i32), lhs->quantised, integers,
                                                     alone(rewriter, loc, lhs->zero), alone(rewriter, loc, rhs->zero));
    product = rewriter.create<CastOp>(loc, typed(f32), product, TypeAttr::get(f32));
    Value columnScale = alone(rewriter, loc, rhs->scale), rowScale = alone(rewriter, loc, lhs->scale);
    Value scale = rewriter.create<MulOp>(loc, columnScale.getType(), rowScale, columnScale);
    rewriter.replaceOpWithNewOp<MulOp>(op, result, product, scale);
    return success();
  }

private:
  /// One number, or one per column of the matrix: [n], of a matrix that is transposed [n, 1].
  static bool belongsToColumns(Value parameter, int64_t n, bool transposed) {
    auto type = rankedType(parameter);
    if (isOneNumber(parameter))
      return true;
    return type && type.hasStaticShape() && type.getNumElements() == n &&
           (transposed ? type.getRank() == 2 && type.getDimSize(0) == n
                       : type.getRank() >= 1 && type.getDimSize(type.getRank() - 1) == n);
  }

  /// The same numbers as a scalar or vector.
  static Value alone(PatternRewriter &rewriter, Location loc, Value parameter) {
    if (!parameter)
      return {};
    auto type = rankedType(parameter);
    SmallVector<int64_t> shape;
    if (!isOneNumber(parameter))
      shape.push_back(type.getNumElements());
    auto wanted = RankedTensorType::get(shape, type.getElementType());
    return wanted == type ? parameter : rewriter.create<ReshapeOp>(loc, wanted, parameter, Value(), false).getResult();
  }
};

class IntegerProductsPass : public PassWrapper<IntegerProductsPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(IntegerProductsPass)
  StringRef getArgument() const override { return "transept-integer-products"; }
  StringRef getDescription() const override { return "Products of dequantised integers become products of integers"; }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ProductOfDequantised>(&getContext());
    if (failed(applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> transept::createIntegerProductsPass() { return std::make_unique<IntegerProductsPass>(); }
