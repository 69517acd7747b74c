//===- FuseNorm.cpp - norms and activations from their parts
//---------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Fuse.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {

/// The value of a constant with one element.
std::optional<double> scalar(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant)
    return std::nullopt;
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!elements || !(elements.isSplat() || elements.getNumElements() == 1) || elements.getNumElements() == 0)
    return std::nullopt;
  return HostTensor::fromElements(elements).getDouble(0);
}

bool isScalar(Value value, double expected, double tolerance = 1e-6) {
  std::optional<double> number = scalar(value);
  return number && std::abs(*number - expected) <= tolerance * std::abs(expected);
}

/// The operand beside the one-element constant of a commutative op.
template <typename OpT> std::pair<Value, double> withScalar(Value value) {
  auto op = value.getDefiningOp<OpT>();
  if (!op)
    return {};
  if (std::optional<double> number = scalar(op.getRhs()))
    return {op.getLhs(), *number};
  if (std::optional<double> number = scalar(op.getLhs()))
    return {op.getRhs(), *number};
  return {};
}

/// Mean over the last axis, keeping it.
Value meanOf(Value value) {
  auto reduce = value.getDefiningOp<ReduceOp>();
  if (!reduce || reduce.getKind() != ReduceKind::Mean || !reduce.getAxes() || !reduce.getKeepdims())
    return {};
  auto type = dyn_cast<RankedTensorType>(reduce.getInput().getType());
  if (!type || reduce.getAxes()->size() != 1 || (*reduce.getAxes())[0] != type.getRank() - 1)
    return {};
  return reduce.getInput();
}

/// x * x or x ^ 2.
Value squared(Value value) {
  if (auto mul = value.getDefiningOp<MulOp>(); mul && mul.getLhs() == mul.getRhs())
    return mul.getLhs();
  if (auto pow = value.getDefiningOp<PowOp>(); pow && isScalar(pow.getRhs(), 2))
    return pow.getLhs();
  return {};
}

/// sqrt(mean(square(y)) + epsilon): returns {y, epsilon}.
std::pair<Value, double> deviationOf(Value value) {
  auto sqrt = value.getDefiningOp<SqrtOp>();
  if (!sqrt)
    return {};
  auto [variance, epsilon] = withScalar<AddOp>(sqrt.getInput());
  if (!variance)
    return {};
  Value square = meanOf(variance);
  return {square ? squared(square) : Value(), epsilon};
}

/// y / sqrt(mean(y²) + epsilon), or y times the reciprocal: a norm of y, or, where y = x - mean(x), of x.
template <typename OpT> struct NormFromParts : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    SmallVector<std::pair<Value, Value>> sides{{op.getLhs(), op.getRhs()}};
    if (isa<MulOp>(op))
      sides.push_back({op.getRhs(), op.getLhs()});
    for (auto [value, deviation] : sides) {
      if (isa<MulOp>(op)) {
        if (auto reciprocal = deviation.template getDefiningOp<ReciprocalOp>())
          deviation = reciprocal.getInput();
        else if (auto quotient = deviation.template getDefiningOp<DivOp>(); quotient && isScalar(quotient.getLhs(), 1))
          deviation = quotient.getRhs();
        else
          continue;
      }
      auto [centred, epsilon] = deviationOf(deviation);
      if (!centred || centred.getType() != op.getType())
        continue;
      auto sameCentre = [](Value a, Value b) { // exporters before torch 1.7 subtract twice
        if (a == b)
          return true;
        auto x = a.getDefiningOp<SubOp>(), y = b.getDefiningOp<SubOp>();
        return x && y && x.getLhs() == y.getLhs() && x.getRhs() == y.getRhs();
      };
      if (!sameCentre(centred, value))
        continue;
      Value input = centred;
      bool rms = true;
      if (auto sub = centred.getDefiningOp<SubOp>(); sub && meanOf(sub.getRhs()) == sub.getLhs()) {
        input = sub.getLhs();
        rms = false;
      }
      auto type = cast<RankedTensorType>(op.getType());
      rewriter.replaceOpWithNewOp<LayerNormOp>(op, type, input, Value(), Value(), type.getRank() - 1,
                                               APFloat(static_cast<float>(epsilon)), rms);
      return success();
    }
    return failure();
  }
};

/// The constant row beside a norm, as [N].
Value rowOf(PatternRewriter &rewriter, Location loc, Value value, RankedTensorType type) {
  auto rowType = dyn_cast<RankedTensorType>(value.getType());
  if (!rowType || !(value.getDefiningOp<WeightOp>() || value.getDefiningOp<ConstantOp>()) || rowType.getRank() == 0 ||
      !rowType.hasStaticShape() || rowType.getNumElements() != type.getShape().back() ||
      rowType.getShape().back() != type.getShape().back())
    return {};
  if (rowType.getRank() == 1)
    return value;
  return rewriter.create<ReshapeOp>(loc, RankedTensorType::get({rowType.getNumElements()}, rowType.getElementType()),
                                    value, Value(), false);
}

/// norm(x) * row, then + row.
template <typename OpT> struct NormAffine : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    for (auto [side, other] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      auto norm = side.template getDefiningOp<LayerNormOp>();
      auto type = dyn_cast<RankedTensorType>(op.getType());
      if (!norm || !norm->hasOneUse() || norm.getBias() || side.getType() != op.getType() ||
          norm.getAxis() != static_cast<uint64_t>(type.getRank() - 1) || type.isDynamicDim(type.getRank() - 1))
        continue;
      constexpr bool scales = std::is_same_v<OpT, MulOp>;
      if (scales == static_cast<bool>(norm.getScale()))
        continue;
      Value row = rowOf(rewriter, op.getLoc(), other, type);
      if (!row)
        continue;
      rewriter.replaceOpWithNewOp<LayerNormOp>(op, type, norm.getInput(), scales ? row : norm.getScale(),
                                               scales ? Value() : row, norm.getAxis(), norm.getEpsilon(),
                                               norm.getRms());
      return success();
    }
    return failure();
  }
};

/// x * sigmoid(x).
struct SiluFromParts : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    for (auto [x, gate] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())})
      if (auto sigmoid = gate.getDefiningOp<SigmoidOp>(); sigmoid && sigmoid.getInput() == x) {
        rewriter.replaceOpWithNewOp<SiluOp>(op, op.getType(), x);
        return success();
      }
    return failure();
  }
};

/// 1 + erf(x / sqrt 2), as {x}.
Value erfTerm(Value value) {
  auto [erf, one] = withScalar<AddOp>(value);
  auto op = erf ? erf.getDefiningOp<ErfOp>() : ErfOp();
  if (!op || one != 1)
    return {};
  if (auto div = op.getInput().getDefiningOp<DivOp>(); div && isScalar(div.getRhs(), M_SQRT2))
    return div.getLhs();
  auto [x, factor] = withScalar<MulOp>(op.getInput());
  return x && std::abs(factor - M_SQRT1_2) < 1e-6 ? x : Value();
}

/// x * (1 + erf(x / sqrt 2)) * 0.5, in any order of the products.
struct GeluFromParts : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    auto gelu = [&](Value x) {
      rewriter.replaceOpWithNewOp<GeluOp>(op, op.getType(), x, "none");
      return success();
    };
    auto [product, half] = withScalar<MulOp>(op.getResult());
    if (product && half == 0.5)
      if (auto inner = product.getDefiningOp<MulOp>())
        for (auto [x, term] : {std::pair(inner.getLhs(), inner.getRhs()), std::pair(inner.getRhs(), inner.getLhs())})
          if (Value argument = erfTerm(term); argument && argument == x)
            return gelu(x);
    for (auto [x, term] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      auto [inner, factor] = withScalar<MulOp>(term); // x * (0.5 * (1 + erf))
      if (inner && factor == 0.5)
        if (Value argument = erfTerm(inner); argument && argument == x)
          return gelu(x);
      auto [scaled, scale] = withScalar<MulOp>(x); // (0.5 * x) * (1 + erf)
      if (scaled && scale == 0.5)
        if (Value argument = erfTerm(term); argument && argument == scaled)
          return gelu(scaled);
    }
    return failure();
  }
};

} // namespace

void transept::populateNormPatterns(RewritePatternSet &patterns) {
  patterns.add<NormFromParts<DivOp>, NormFromParts<MulOp>, NormAffine<MulOp>, NormAffine<AddOp>, SiluFromParts,
               GeluFromParts>(patterns.getContext());
}
