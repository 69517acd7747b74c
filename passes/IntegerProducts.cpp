//===- IntegerProducts.cpp - products of dequantised integers are products of integers ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/IntegerProducts.h"
#include "ir/HostTensor.h"
#include "ir/Transept.h"
#include "ir/WeightStore.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/ElementExpr.h"
#include <cmath>

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

/// What is subtracted from bytes: bytes of their type, or numbers that are such bytes (where they were folded).
class ZeroPoint {
public:
  ZeroPoint() = default;
  /// Null where `subtracted`, a tensor of floats or 32-bit integers, is something else.
  static ZeroPoint of(Value subtracted, Type byte);

  explicit operator bool() const { return bytes || numbers; }
  RankedTensorType type() const { return bytes ? rankedType(bytes) : numbers.getType(); }
  bool isOneNumber() const { return type() && type().hasStaticShape() && type().getNumElements() == 1; }
  bool isConstant() const { return numbers || ::isConstant(bytes); }
  /// As bytes.
  Value make(PatternRewriter &rewriter, Location loc) const {
    if (bytes)
      return bytes;
    std::string key = WeightStore::of(rewriter.getContext()).add(numbers.getType(), numbers.bytes());
    return rewriter.create<WeightOp>(loc, numbers.getType(), rewriter.getStringAttr(key), StringAttr());
  }

private:
  Value bytes;
  HostTensor numbers;
};

ZeroPoint ZeroPoint::of(Value subtracted, Type byte) {
  ZeroPoint zero;
  if (auto cast = subtracted.getDefiningOp<CastOp>()) {
    if (getElementTypeOrSelf(cast.getInput().getType()) == byte && rankedType(cast.getInput()))
      zero.bytes = cast.getInput();
    return zero;
  }
  HostTensor content = constantContent(subtracted);
  if (!content)
    return zero;
  HostTensor numbers = HostTensor::make(RankedTensorType::get(content.shape(), byte));
  for (int64_t i = 0; i < content.numElements(); ++i) {
    double number = content.getDouble(i);
    if (!(std::abs(number) <= 255))
      return zero;
    numbers.setInt(i, static_cast<int64_t>(number));
    if (numbers.getDouble(i) != number)
      return zero;
  }
  zero.numbers = numbers;
  return zero;
}

/// (quantised - zero) * scale; there may be no zero point.
struct Dequantised {
  Value quantised, scale;
  ZeroPoint zero;
};

std::optional<Dequantised> dequantised(Value value) {
  auto product = value.getDefiningOp<MulOp>();
  if (!product || !getElementTypeOrSelf(value.getType()).isF32())
    return std::nullopt;
  Dequantised result;
  result.scale = product.getRhs();
  Value integers = product.getLhs();
  auto difference = integers.getDefiningOp<SubOp>();
  if (difference)
    integers = difference.getLhs();
  auto cast = integers.getDefiningOp<CastOp>();
  if (!cast || !isByte(cast.getInput()))
    return std::nullopt;
  if (difference &&
      !(result.zero = ZeroPoint::of(difference.getRhs(), getElementTypeOrSelf(cast.getInput().getType()))))
    return std::nullopt;
  result.quantised = cast.getInput();
  // Nothing but the integers has more than one element per column, so shapes are theirs.
  return rankedType(result.quantised) && rankedType(value) == rankedType(cast.getResult()) ? std::optional(result)
                                                                                           : std::nullopt;
}

/// Numbers times the scale of the tensor or of its columns; a null scale: 1.
Value scaled(PatternRewriter &rewriter, Location loc, Value integers, Value scale) {
  return scale ? rewriter.create<MulOp>(loc, integers.getType(), integers, scale).getResult() : integers;
}

/// The same numbers under another shape.
Value reshaped(PatternRewriter &rewriter, Location loc, Value parameter, ArrayRef<int64_t> shape) {
  auto type = rankedType(parameter);
  auto wanted = RankedTensorType::get(shape, type.getElementType());
  return wanted == type ? parameter : rewriter.create<ReshapeOp>(loc, wanted, parameter, Value(), false).getResult();
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
        (lhs->zero && !lhs->zero.isOneNumber()))
      return failure();
    auto matrix = rankedType(rhs->quantised);
    if (matrix.getRank() != 2 || !matrix.hasStaticShape())
      return failure();
    const int64_t n = matrix.getDimSize(transposed ? 0 : 1), k = matrix.getDimSize(transposed ? 1 : 0);
    if (k > longest || !belongsToColumns(rankedType(rhs->scale), n, transposed) ||
        (rhs->zero && (!belongsToColumns(rhs->zero.type(), n, transposed) || !rhs->zero.isConstant())))
      return failure();
    Location loc = op.getLoc();
    Value integers = rhs->quantised;
    if (transposed)
      integers = rewriter.create<TransposeOp>(loc, RankedTensorType::get({k, n}, matrix.getElementType()), integers,
                                              ArrayRef<int64_t>{1, 0});
    Type i32 = rewriter.getI32Type(), f32 = rewriter.getF32Type();
    auto typed = [&](Type element) { return makeType(dimsOf(result), element); };
    auto zeroOf = [&](const ZeroPoint &zero) {
      return zero ? alone(rewriter, loc, zero.make(rewriter, loc)) : Value();
    };
    Value product = rewriter.create<MatMulIntegerOp>(loc, typed(i32), lhs->quantised, integers, zeroOf(lhs->zero),
                                                     zeroOf(rhs->zero));
    product = rewriter.create<CastOp>(loc, typed(f32), product, TypeAttr::get(f32));
    Value columnScale = alone(rewriter, loc, rhs->scale), rowScale = alone(rewriter, loc, lhs->scale);
    Value scale = rewriter.create<MulOp>(loc, columnScale.getType(), rowScale, columnScale);
    rewriter.replaceOpWithNewOp<MulOp>(op, result, product, scale);
    return success();
  }

private:
  /// One number, or one per column of the matrix: [n], of a matrix that is transposed [n, 1].
  static bool belongsToColumns(RankedTensorType type, int64_t n, bool transposed) {
    if (!type || !type.hasStaticShape())
      return false;
    if (type.getNumElements() == 1)
      return true;
    return type.getNumElements() == n && (transposed ? type.getRank() == 2 && type.getDimSize(0) == n
                                                     : type.getRank() >= 1 && type.getDimSize(type.getRank() - 1) == n);
  }

  /// The same numbers as a scalar or vector.
  static Value alone(PatternRewriter &rewriter, Location loc, Value parameter) {
    if (!parameter)
      return {};
    SmallVector<int64_t> shape;
    if (!isOneNumber(parameter))
      shape.push_back(rankedType(parameter).getNumElements());
    return reshaped(rewriter, loc, parameter, shape);
  }
};

/// Zeros around a tensor with one zero point are the zero point around its bytes. Where only convolutions read them.
struct PaddingOfBytes : OpRewritePattern<PadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PadOp op, PatternRewriter &rewriter) const override {
    auto result = rankedType(op.getResult());
    HostTensor fill = op.getFill() ? constantContent(op.getFill()) : HostTensor();
    bool isZero = fill && fill.numElements() == 1 && fill.getDouble(0) == 0;
    if (!result || op.getMode() != PadMode::Constant || (op.getFill() && !isZero) ||
        !llvm::all_of(op->getUsers(), [](Operation *user) { return isa<ConvOp>(user); }))
      return failure();
    Value integers = op.getInput(), scale, subtracted;
    if (auto product = integers.getDefiningOp<MulOp>()) {
      scale = product.getRhs();
      integers = product.getLhs();
    }
    if (auto difference = integers.getDefiningOp<SubOp>()) {
      subtracted = difference.getRhs();
      integers = difference.getLhs();
    }
    auto cast = integers.getDefiningOp<CastOp>();
    if (!cast || !isByte(cast.getInput()) || rankedType(integers) != rankedType(op.getInput()) ||
        (scale && !isOneNumber(scale)))
      return failure();
    ZeroPoint zero =
        subtracted ? ZeroPoint::of(subtracted, getElementTypeOrSelf(cast.getInput().getType())) : ZeroPoint();
    if (subtracted && (!zero || !zero.isOneNumber()))
      return failure();
    Location loc = op.getLoc();
    Value outside = zero ? reshaped(rewriter, loc, zero.make(rewriter, loc), {}) : Value();
    Value padded =
        rewriter.create<PadOp>(loc, makeType(dimsOf(result), getElementTypeOrSelf(cast.getInput())), cast.getInput(),
                               op.getPadsValue(), outside, op.getAxesValue(), op.getMode(), op.getLowAttr());
    padded = rewriter.create<CastOp>(loc, result, padded, cast.getToAttr());
    if (zero)
      padded = rewriter.create<SubOp>(loc, result, padded, subtracted);
    rewriter.replaceOp(op, scaled(rewriter, loc, padded, scale));
    return success();
  }
};

/// What a contraction does not take (groups, long sums) stays as it is: as integers, it would be slower.
struct ConvolutionOfDequantised : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    std::optional<Dequantised> input = dequantised(op.getInput()), weight = dequantised(op.getWeight());
    auto result = rankedType(op.getResult());
    if (!input || !weight || !result || op.getGroup() != 1 || !isConstant(weight->quantised) ||
        !isOneNumber(input->scale) || (input->zero && !input->zero.isOneNumber()))
      return failure();
    auto filters = rankedType(weight->quantised);
    if (!filters.hasStaticShape() || filters.getRank() < 3 || filters.getNumElements() == 0)
      return failure();
    const int64_t n = filters.getDimSize(0);
    auto bias = op.getBias() ? rankedType(op.getBias()) : RankedTensorType();
    if ((op.getBias() && (!bias || bias.getShape() != ArrayRef(n))) || filters.getNumElements() / n > longest ||
        !belongsToFilters(rankedType(weight->scale), filters) ||
        (weight->zero && (!belongsToFilters(weight->zero.type(), filters) || !weight->zero.isConstant())))
      return failure();
    Location loc = op.getLoc();
    Type i32 = rewriter.getI32Type(), f32 = rewriter.getF32Type();
    auto typed = [&](Type element) { return makeType(dimsOf(result), element); };
    Value convolution = rewriter.create<ConvOp>(loc, typed(i32), centred(rewriter, loc, *input),
                                                centred(rewriter, loc, *weight), Value(), op.getStridesAttr(),
                                                op.getPadsAttr(), op.getDilationsAttr(), op.getGroupAttr());
    Value numbers = rewriter.create<CastOp>(loc, typed(f32), convolution, TypeAttr::get(f32));
    // One number per channel: [N, 1, …].
    SmallVector<int64_t> channels(filters.getRank() - 1, 1), single;
    channels[0] = n;
    Value scale = reshaped(rewriter, loc, weight->scale, isOneNumber(weight->scale) ? single : channels);
    scale = rewriter.create<MulOp>(loc, scale.getType(), reshaped(rewriter, loc, input->scale, {}), scale);
    numbers = scaled(rewriter, loc, numbers, scale);
    if (op.getBias())
      numbers = rewriter.create<AddOp>(loc, result, numbers, reshaped(rewriter, loc, op.getBias(), channels));
    rewriter.replaceOp(op, numbers);
    return success();
  }

private:
  /// One number, or one per filter: [n, 1, …].
  static bool belongsToFilters(RankedTensorType type, RankedTensorType filters) {
    if (!type || !type.hasStaticShape())
      return false;
    const int64_t n = filters.getDimSize(0), count = type.getNumElements();
    return count == 1 || (count == n && type.getRank() == filters.getRank() && type.getDimSize(0) == n);
  }

  /// The bytes without their zero point, in 32 bits.
  static Value centred(PatternRewriter &rewriter, Location loc, const Dequantised &value) {
    auto widened = [&](Value bytes) -> Value {
      auto type = makeType(dimsOf(rankedType(bytes)), rewriter.getI32Type());
      return rewriter.create<CastOp>(loc, type, bytes, TypeAttr::get(type.getElementType()));
    };
    Value integers = widened(value.quantised);
    if (!value.zero)
      return integers;
    Value zero = value.zero.make(rewriter, loc);
    if (value.zero.isOneNumber())
      zero = reshaped(rewriter, loc, zero, {});
    return rewriter.create<SubOp>(loc, integers.getType(), integers, widened(zero));
  }
};

class IntegerProductsPass : public PassWrapper<IntegerProductsPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(IntegerProductsPass)
  StringRef getArgument() const override { return "transept-integer-products"; }
  StringRef getDescription() const override {
    return "Products and convolutions of dequantised integers become those of integers";
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ProductOfDequantised, ConvolutionOfDequantised, PaddingOfBytes>(&getContext());
    if (failed(applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> transept::createIntegerProductsPass() { return std::make_unique<IntegerProductsPass>(); }
