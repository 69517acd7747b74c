//===- NormalForms.cpp - chains of ops that move elements, in one form -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every rewrite here is exact: the result has the same bits for every element type and every value of the symbols.

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Shapes.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// Dims of a ranked type whose axes are all named; nullopt otherwise.
std::optional<Dims> namedDims(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return std::nullopt;
  Dims dims = dimsOf(type);
  if (llvm::is_contained(dims, DimAttr()))
    return std::nullopt;
  return dims;
}

bool isResolved(ReshapeOp op) { return !op.getShape() && namedDims(op.getResult()); }
bool isResolved(BroadcastOp op) { return !op.getShape() && namedDims(op.getResult()); }
bool isResolved(SliceOp op) { return op.getStarts() && op.getSteps() && namedDims(op.getResult()); }

/// An op whose result is its first operand.
template <typename Op> struct DropIdentity : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!namedDims(op->getResult(0)) || op->getOperand(0).getType() != op->getResult(0).getType() || !isIdentity(op))
      return failure();
    rewriter.replaceOp(op, op->getOperand(0));
    return success();
  }

  // Operand and result have one type; does the op then keep every element in place?
  static bool isIdentity(Operation *op) {
    if (auto transpose = dyn_cast<TransposeOp>(op))
      return llvm::equal(transpose.getPermutation(), llvm::seq<int64_t>(0, transpose.getPermutation().size()));
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return reduce.getAxes() && reduce.getAxes()->empty() && reduce.getNoopWithEmptyAxes() &&
             llvm::is_contained({ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod},
                                reduce.getKind());
    if (auto slice = dyn_cast<SliceOp>(op))
      return isResolved(slice) && llvm::all_of(*slice.getSteps(), [](int64_t step) { return step == 1; });
    if (auto concat = dyn_cast<ConcatOp>(op))
      return concat.getInputs().size() == 1;
    if (auto pad = dyn_cast<PadOp>(op))
      return pad.getLow() &&
             llvm::all_of(*pad.getLow(), [](Attribute low) { return constantValue(cast<DimAttr>(low)) == 0; });
    return true;
  }
};

struct ComposeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<TransposeOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> permutation;
    for (int64_t axis : op.getPermutation())
      permutation.push_back(inner.getPermutation()[axis]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getInput(), permutation);
    return success();
  }
};

/// A transpose that keeps the order of all axes but those of size 1 moves no element.
struct TransposeOfOnes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    std::optional<Dims> dims = namedDims(op.getInput());
    if (!dims || !namedDims(op.getResult()))
      return failure();
    int64_t last = -1;
    for (int64_t axis : op.getPermutation()) {
      if (constantValue((*dims)[axis]) == 1)
        continue;
      if (axis < last)
        return failure();
      last = axis;
    }
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput(), Value(), false);
    return success();
  }
};

struct ComposeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<ReshapeOp>();
    if (!inner || !isResolved(op) || !isResolved(inner) || !namedDims(inner.getInput()))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getInput(), Value(), false);
    return success();
  }
};

struct ComposeBroadcasts : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<BroadcastOp>();
    if (!inner || !isResolved(op) || !isResolved(inner))
      return failure();
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getInput(), Value());
    return success();
  }
};

struct ComposeSlices : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<SliceOp>();
    if (!inner || !isResolved(op) || !isResolved(inner))
      return failure();
    SmallVector<Attribute> starts;
    SmallVector<int64_t> steps;
    for (auto [a, b, first, second] :
         llvm::zip(*inner.getStarts(), *op.getStarts(), *inner.getSteps(), *op.getSteps())) {
      DimAttr offset = dimMul(cast<DimAttr>(b), dimConstant(op.getContext(), first));
      starts.push_back(dimAdd(cast<DimAttr>(a), offset));
      steps.push_back(first * second);
    }
    rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), inner.getInput(), Value(), Value(), Value(), Value(),
                                         rewriter.getArrayAttr(starts), rewriter.getDenseI64ArrayAttr(steps));
    return success();
  }
};

/// Parts without elements add nothing.
struct DropEmptyParts : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    if (!namedDims(op.getResult()))
      return failure();
    int64_t axis = op.getAxis();
    SmallVector<Value> parts;
    for (Value part : op.getInputs()) {
      std::optional<Dims> dims = namedDims(part);
      if (!dims)
        return failure();
      if (constantValue((*dims)[axis < 0 ? axis + dims->size() : axis]) != 0)
        parts.push_back(part);
    }
    if (parts.empty() || parts.size() == op.getInputs().size())
      return failure();
    rewriter.replaceOpWithNewOp<ConcatOp>(op, op.getType(), parts, op.getAxisAttr());
    return success();
  }
};

/// A value repeated to a larger shape: what is repeated, or (a fill) the number.
struct Repeated {
  BroadcastOp broadcast;
  FillOp fill;
  Dims dims; ///< before repetition

  static std::optional<Repeated> match(Value value) {
    if (auto broadcast = value.getDefiningOp<BroadcastOp>(); broadcast && isResolved(broadcast))
      if (std::optional<Dims> dims = namedDims(broadcast.getInput()))
        return Repeated{broadcast, {}, *dims};
    if (auto fill = value.getDefiningOp<FillOp>(); fill && !fill.getShape())
      if (std::optional<Dims> dims = namedDims(value); dims && !dims->empty())
        return Repeated{{}, fill, {}};
    return std::nullopt;
  }

  Value source(PatternRewriter &rewriter) {
    if (broadcast)
      return broadcast.getInput();
    auto type = RankedTensorType::get({}, cast<RankedTensorType>(fill.getType()).getElementType());
    HostTensor one = HostTensor::fromElements(fill.getValue());
    return rewriter.create<ConstantOp>(fill.getLoc(), type, HostTensor::fromBytes(type, one.bytes()).toElements());
  }
};

/// An element-wise op repeats its operands anyway: a broadcast (or a fill) in front of it goes, where the other
/// operands still give the result its shape.
struct DropBroadcastOperand : OpTraitRewritePattern<Elementwise> {
  using OpTraitRewritePattern::OpTraitRewritePattern;
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    std::optional<Dims> result = namedDims(op->getResult(0));
    SmallVector<Dims> shapes;
    for (Value operand : op->getOperands()) {
      std::optional<Dims> dims = namedDims(operand);
      if (!dims)
        return failure();
      shapes.push_back(*dims);
    }
    if (!result)
      return failure();
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      std::optional<Repeated> repeated = Repeated::match(operand);
      if (!repeated)
        continue;
      Dims before = std::exchange(shapes[index], repeated->dims);
      if (provablyBroadcast(shapes) == result) {
        Value source = repeated->source(rewriter);
        rewriter.modifyOpInPlace(op, [&, index = index] { op->setOperand(index, source); });
        return success();
      }
      shapes[index] = before;
    }
    return failure();
  }
};

/// f(broadcast(x), y) = broadcast(f(x, y)) where y is no larger than x: what was repeated is computed once.
struct SinkBroadcast : OpTraitRewritePattern<Elementwise> {
  using OpTraitRewritePattern::OpTraitRewritePattern;
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    std::optional<Dims> result = namedDims(op->getResult(0));
    SmallVector<Dims> shapes;
    SmallVector<std::optional<Repeated>> repeated;
    for (Value operand : op->getOperands()) {
      repeated.push_back(Repeated::match(operand));
      std::optional<Dims> dims = repeated.back() ? repeated.back()->dims : namedDims(operand);
      if (!dims)
        return failure();
      shapes.push_back(*dims);
    }
    if (!result || llvm::none_of(repeated, [](const auto &operand) { return operand.has_value(); }))
      return failure();
    std::optional<Dims> smaller = provablyBroadcast(shapes);
    if (!smaller || *smaller == *result || provablyBroadcast({*smaller, *result}) != result)
      return failure();
    IRMapping mapping;
    for (auto [operand, source] : llvm::zip(op->getOperands(), repeated))
      if (source && !mapping.contains(operand))
        mapping.map(operand, source->source(rewriter));
    Operation *once = rewriter.clone(*op, mapping);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    once->getResult(0).setType(makeType(*smaller, type.getElementType()));
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, type, once->getResult(0), Value());
    return success();
  }
};

/// Repeating one constant number is a fill, and so is a fill under another shape.
struct BroadcastOfNumber : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto constant = op.getInput().getDefiningOp<ConstantOp>();
    if (!constant || !isResolved(op) || constant.getValue().getNumElements() != 1)
      return failure();
    auto type = RankedTensorType::get({}, cast<RankedTensorType>(op.getType()).getElementType());
    HostTensor one = HostTensor::fromElements(constant.getValue());
    rewriter.replaceOpWithNewOp<FillOp>(op, op.getType(), Value(),
                                        HostTensor::fromBytes(type, one.bytes()).toElements());
    return success();
  }
};

template <typename Op> struct MoveFill : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto fill = op->getOperand(0).template getDefiningOp<FillOp>();
    if (!fill || fill.getShape() || op->getNumOperands() != 1 || !namedDims(op->getResult(0)))
      return failure();
    rewriter.replaceOpWithNewOp<FillOp>(op, op->getResult(0).getType(), Value(), fill.getValue());
    return success();
  }
};

/// x * 1 and x / 1 are x, NaN and zeros included; so are x + 0 and x - 0 of integers.
template <typename Op> struct DropNeutralOperand : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    constexpr bool additive = std::is_same_v<Op, AddOp> || std::is_same_v<Op, SubOp>;
    constexpr bool commutes = std::is_same_v<Op, AddOp> || std::is_same_v<Op, MulOp>;
    if (!namedDims(op.getResult()))
      return failure();
    if (additive && !isa<IntegerType>(cast<RankedTensorType>(op.getType()).getElementType()))
      return failure();
    for (auto [value, other] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      if (value.getType() == op.getType() && isEverywhere(other, additive ? 0 : 1)) {
        rewriter.replaceOp(op, value);
        return success();
      }
      if (!commutes)
        break;
    }
    return failure();
  }

  static bool isEverywhere(Value value, double number) {
    auto constant = value.template getDefiningOp<ConstantOp>();
    if (!constant || constant.getValue().getNumElements() != 1)
      return false;
    return HostTensor::fromElements(constant.getValue()).getDouble(0) == number;
  }
};

} // namespace

void transept::populateNormalFormPatterns(RewritePatternSet &patterns) {
  patterns
      .add<DropIdentity<TransposeOp>, DropIdentity<ReshapeOp>, DropIdentity<BroadcastOp>, DropIdentity<TileOp>,
           DropIdentity<CastOp>, DropIdentity<SliceOp>, DropIdentity<ConcatOp>, DropIdentity<PadOp>,
           DropIdentity<ReduceOp>, ComposeTransposes, TransposeOfOnes, ComposeReshapes, ComposeBroadcasts,
           ComposeSlices, DropEmptyParts, DropBroadcastOperand, SinkBroadcast, BroadcastOfNumber, MoveFill<ReshapeOp>,
           MoveFill<BroadcastOp>, MoveFill<TransposeOp>, MoveFill<SliceOp>, DropNeutralOperand<MulOp>,
           DropNeutralOperand<DivOp>, DropNeutralOperand<AddOp>, DropNeutralOperand<SubOp>>(patterns.getContext());
}
