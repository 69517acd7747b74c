//===- Layout.cpp - movement of elements, out of the way
//---------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row-wise op does the same to every row (the last axis), so transposes and reshapes that keep rows intact commute
// with it. They move down, past linear layers, norms and element-wise ops, until they meet their inverse.

#include "passes/ElementExpr.h"
#include "passes/Fuse.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

RankedTensorType typeOf(ArrayRef<DimAttr> dims, RankedTensorType like) { return makeType(dims, like.getElementType()); }

Value makeReshape(OpBuilder &builder, Location loc, Value value, ArrayRef<DimAttr> dims) {
  RankedTensorType type = typeOf(dims, rankedType(value));
  return type == value.getType() ? value : builder.create<ReshapeOp>(loc, type, value, Value(), false).getResult();
}

Value makeTranspose(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> permutation) {
  SmallVector<DimAttr> dims = dimsOf(rankedType(value)), moved;
  bool identity = true;
  for (auto [axis, from] : llvm::enumerate(permutation)) {
    identity &= static_cast<int64_t>(axis) == from;
    moved.push_back(dims[from]);
  }
  return identity ? value
                  : builder.create<TransposeOp>(loc, typeOf(moved, rankedType(value)), value, permutation).getResult();
}

bool isResolved(ReshapeOp op) {
  return op && !op.getShape() && rankedType(op.getInput()) && rankedType(op.getResult());
}

/// A reshape or transpose, with what is needed to do the same to another value.
struct Movement {
  Operation *op = nullptr;
  Value input() const { return op->getOperand(0); }

  static Movement of(Value value) {
    Operation *op = value.getDefiningOp();
    if (op && rankedType(value) &&
        ((isa<TransposeOp>(op) && rankedType(op->getOperand(0))) || isResolved(dyn_cast<ReshapeOp>(op))))
      return {op};
    return {};
  }
  explicit operator bool() const { return op; }

  /// Whether both move equally shaped values in the same way.
  bool sameAs(const Movement &other) const {
    if (!other || op->getName() != other.op->getName())
      return false;
    auto a = rankedType(input()), b = rankedType(other.input());
    if (a.getShape() != b.getShape() || a.getEncoding() != b.getEncoding())
      return false;
    if (auto transpose = dyn_cast<TransposeOp>(op))
      return transpose.getPermutation() == cast<TransposeOp>(other.op).getPermutation();
    auto x = rankedType(op->getResult(0)), y = rankedType(other.op->getResult(0));
    return x.getShape() == y.getShape() && x.getEncoding() == y.getEncoding();
  }

  bool keepsLastAxis() const {
    auto from = rankedType(input()), to = rankedType(op->getResult(0));
    if (from.getRank() == 0 || to.getRank() == 0)
      return false;
    if (auto transpose = dyn_cast<TransposeOp>(op))
      return transpose.getPermutation().back() == to.getRank() - 1;
    return dimsOf(from).back() == dimsOf(to).back();
  }

  /// The same movement of `value`, whose shape is that of the input.
  Value apply(OpBuilder &builder, Value value) const {
    if (auto transpose = dyn_cast<TransposeOp>(op))
      return makeTranspose(builder, op->getLoc(), value, transpose.getPermutation());
    return makeReshape(builder, op->getLoc(), value, dimsOf(rankedType(op->getResult(0))));
  }
};

bool hasOneElement(Value value) {
  auto type = rankedType(value);
  return type && type.hasStaticShape() && type.getNumElements() == 1;
}

/// A constant [N], or [1, …, 1, N].
bool isRow(Value value) {
  auto type = rankedType(value);
  return type && type.hasStaticShape() && type.getRank() > 0 && type.getNumElements() == type.getShape().back() &&
         (value.getDefiningOp<WeightOp>() || value.getDefiningOp<ConstantOp>());
}

/// linear(move(x)) → move(linear(x)) and norm likewise, for movements that keep the last axis; a reshape that also
/// merges the last axes does the merging first.
template <typename OpT> struct SinkBelowRowwise : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    Movement movement = Movement::of(op.getInput());
    auto resultType = rankedType(op.getResult());
    if (!movement || !resultType || resultType.getRank() == 0)
      return failure();
    if (auto norm = dyn_cast<LayerNormOp>(op.getOperation()))
      if (norm.getAxis() != static_cast<uint64_t>(resultType.getRank() - 1))
        return failure();
    Value input = movement.input();
    if (!movement.keepsLastAxis()) {
      auto reshape = dyn_cast<ReshapeOp>(movement.op);
      if (!reshape)
        return failure();
      // Merge trailing axes until the row is whole; leading axes stay apart.
      SmallVector<DimAttr> dims = dimsOf(rankedType(input));
      DimAttr row = dimsOf(rankedType(op.getInput())).back();
      DimAttr merged = dimConstant(op.getContext(), 1);
      while (!dims.empty() && merged != row)
        merged = dimMul(merged, dims.pop_back_val());
      // Only where leading axes are merged too; otherwise the reshape is the row itself.
      if (merged != row || dims.size() + 1 == dimsOf(rankedType(op.getInput())).size() || dims.empty())
        return failure();
      dims.push_back(row);
      input = makeReshape(rewriter, movement.op->getLoc(), input, dims);
    }
    if (rankedType(input).getRank() < 2)
      return failure();
    SmallVector<DimAttr> dims = dimsOf(rankedType(input));
    dims.back() = dimsOf(resultType).back();
    IRMapping mapping;
    mapping.map(op.getInput(), input);
    Operation *below = rewriter.clone(*op.getOperation(), mapping);
    below->getResult(0).setType(typeOf(dims, resultType));
    if (isa<LayerNormOp>(below))
      below->setAttr("axis", rewriter.getI64IntegerAttr(dims.size() - 1));
    Value result = below->getResult(0);
    if (auto transpose = dyn_cast<TransposeOp>(movement.op))
      result = makeTranspose(rewriter, movement.op->getLoc(), result, transpose.getPermutation());
    else
      result = makeReshape(rewriter, movement.op->getLoc(), result, dimsOf(resultType));
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// f(move(x), …) → move(f(x, …)) for element-wise f, where the other operands are single elements, rows under a kept
/// last axis, or moved in the same way.
struct SinkBelowElementwise : RewritePattern {
  explicit SinkBelowElementwise(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<Elementwise>() || op->getNumResults() != 1 || !rankedType(op->getResult(0)))
      return failure();
    Movement movement;
    for (Value operand : op->getOperands())
      if (Movement candidate = Movement::of(operand); candidate && !hasOneElement(operand)) {
        movement = candidate;
        break;
      }
    auto resultType = rankedType(op->getResult(0));
    if (!movement)
      return failure();
    auto movedType = rankedType(movement.op->getResult(0));
    if (movedType.getShape() != resultType.getShape() || movedType.getEncoding() != resultType.getEncoding())
      return failure();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      Movement other = Movement::of(operand);
      if (other && movement.sameAs(other)) {
        operands.push_back(other.input());
      } else if (hasOneElement(operand) && rankedType(operand).getRank() <= rankedType(movement.input()).getRank()) {
        operands.push_back(operand);
      } else if (movement.keepsLastAxis() && isRow(operand) &&
                 rankedType(operand).getRank() <= rankedType(movement.input()).getRank()) {
        operands.push_back(operand);
      } else {
        return failure();
      }
    }
    Operation *below = rewriter.clone(*op);
    below->setOperands(operands);
    below->getResult(0).setType(typeOf(dimsOf(rankedType(movement.input())), resultType));
    rewriter.replaceOp(op, movement.apply(rewriter, below->getResult(0)));
    return success();
  }
};

/// reshape(transpose(x)), where the transpose permutes leading axes only and the reshape keeps these, exchanges both.
struct SinkTransposeBelowReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<TransposeOp>();
    if (!isResolved(op) || !transpose || !rankedType(transpose.getInput()))
      return failure();
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    size_t leading = permutation.size();
    while (leading > 0 && permutation[leading - 1] == static_cast<int64_t>(leading - 1))
      --leading;
    SmallVector<DimAttr> before = dimsOf(rankedType(op.getInput())), after = dimsOf(rankedType(op.getResult()));
    if (leading == 0 || leading == permutation.size() || after.size() < leading ||
        !std::equal(before.begin(), before.begin() + leading, after.begin()))
      return failure();
    SmallVector<DimAttr> dims = dimsOf(rankedType(transpose.getInput()));
    dims.truncate(leading);
    dims.append(after.begin() + leading, after.end());
    SmallVector<int64_t> extended(permutation.begin(), permutation.begin() + leading);
    for (size_t axis = leading; axis < after.size(); ++axis)
      extended.push_back(axis);
    Value reshaped = makeReshape(rewriter, op.getLoc(), transpose.getInput(), dims);
    rewriter.replaceOp(op, makeTranspose(rewriter, op.getLoc(), reshaped, extended));
    return success();
  }
};

struct ComposeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    if (!isResolved(op))
      return failure();
    if (op.getInput().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<ReshapeOp>();
    if (!inner || !isResolved(inner))
      return failure();
    rewriter.replaceOp(op, makeReshape(rewriter, op.getLoc(), inner.getInput(), dimsOf(rankedType(op.getResult()))));
    return success();
  }
};

struct ComposeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> outer = op.getPermutation();
    if (llvm::all_of(llvm::enumerate(outer), [](auto it) { return static_cast<int64_t>(it.index()) == it.value(); })) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<TransposeOp>();
    if (!inner || !rankedType(inner.getInput()))
      return failure();
    SmallVector<int64_t> composed;
    for (int64_t axis : outer)
      composed.push_back(inner.getPermutation()[axis]);
    rewriter.replaceOp(op, makeTranspose(rewriter, op.getLoc(), inner.getInput(), composed));
    return success();
  }
};

/// Rows of a table at flattened indices, given the shape of the indices again.
struct GatherAtIndices : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto gather = op.getInput().getDefiningOp<GatherOp>();
    auto flat = gather && gather.getAxis() == 0 ? gather.getIndices().getDefiningOp<ReshapeOp>() : ReshapeOp();
    if (!flat || !isResolved(op) || !isResolved(flat) || rankedType(flat.getResult()).getRank() != 1 ||
        !rankedType(gather.getData()))
      return failure();
    RankedTensorType result = rankedType(op.getResult());
    SmallVector<DimAttr> dims = dimsOf(rankedType(flat.getInput())), table = dimsOf(rankedType(gather.getData()));
    dims.append(table.begin() + 1, table.end());
    if (dims != dimsOf(result))
      return failure();
    rewriter.replaceOpWithNewOp<GatherOp>(op, result, gather.getData(), flat.getInput(), gather.getAxis());
    return success();
  }
};

} // namespace

void transept::populateLayoutPatterns(RewritePatternSet &patterns) {
  patterns.add<GatherAtIndices, SinkBelowRowwise<LinearOp>, SinkBelowRowwise<LayerNormOp>, SinkBelowElementwise,
               SinkTransposeBelowReshape, ComposeReshapes, ComposeTransposes>(patterns.getContext());
}

/// Terms of an index: stride times one index symbol each, plus an offset.
namespace {
struct IndexTerm {
  DimAttr stride, symbol;
};
} // namespace

static bool isIndexSymbol(DimAttr dim) { return symbolName(dim).starts_with("$"); }

/// Reads `index` as sum of stride * symbol + constant offset; false where it is anything else.
static bool readTerms(DimAttr index, SmallVectorImpl<IndexTerm> &terms, int64_t &offset) {
  MLIRContext *context = index.getContext();
  SmallVector<StringRef> symbols;
  collectSymbols(index, symbols);
  DimAttr rest = index, zero = dimConstant(context, 0), one = dimConstant(context, 1);
  for (StringRef name : symbols) {
    if (!name.starts_with("$"))
      continue;
    DimAttr symbol = dimSymbol(context, name);
    DimAttr stride = dimSub(substitute(rest, name, one), substitute(rest, name, zero));
    if (dimSub(rest, dimMul(stride, symbol)) != substitute(rest, name, zero))
      return false;
    rest = substitute(rest, name, zero);
    terms.push_back({stride, symbol});
  }
  std::optional<int64_t> constant = constantValue(rest);
  offset = constant.value_or(0);
  return constant && llvm::none_of(terms, [](const IndexTerm &term) { return isIndexSymbol(term.stride); });
}

Value transept::normalizeMovement(OpBuilder &builder, Value value) {
  auto type = rankedType(value);
  if (!type)
    return value;
  MLIRContext *context = builder.getContext();
  ElementExprs exprs(context);
  SmallVector<DimAttr> dims = dimsOf(type);
  SmallVector<const Elem *> indices;
  SmallVector<DimAttr> symbols; // null for axes of size 1
  llvm::StringMap<DimAttr> extentOf;
  for (auto [axis, dim] : llvm::enumerate(dims)) {
    bool unit = constantValue(dim) == 1;
    symbols.push_back(unit ? DimAttr() : exprs.indexSymbol(std::to_string(axis), dim));
    if (!unit)
      extentOf[symbolName(symbols.back())] = dim;
    indices.push_back(unit ? exprs.number(0) : exprs.index(symbols.back()));
  }
  ElementExprs::Moved moved = exprs.moved(value, indices);
  auto rootType = rankedType(moved.root);
  if (moved.root == value || !rootType)
    return value;

  // Each root axis: strides of a mixed radix over result axes, inside [offset, offset + size).
  SmallVector<DimAttr> rootDims = dimsOf(rootType), sliceDims, factors;
  SmallVector<Attribute> starts;
  SmallVector<DimAttr> order; // symbols in the root's order
  bool slices = false;
  for (auto [axis, elem] : llvm::enumerate(moved.indices)) {
    SmallVector<IndexTerm> terms;
    int64_t offset = 0;
    if (elem->kind == Elem::Kind::Number) {
      offset = static_cast<int64_t>(elem->number);
    } else if (elem->kind != Elem::Kind::Index || !readTerms(elem->index, terms, offset)) {
      return value;
    }
    llvm::sort(terms, [&](const IndexTerm &a, const IndexTerm &b) {
      return a.stride != b.stride && dimExactDiv(a.stride, b.stride) && !dimExactDiv(b.stride, a.stride);
    });
    DimAttr size = dimConstant(context, 1);
    for (const IndexTerm &term : llvm::reverse(terms)) {
      if (term.stride != size)
        return value;
      size = dimMul(size, extentOf[symbolName(term.symbol)]);
    }
    for (const IndexTerm &term : terms) {
      if (llvm::is_contained(order, term.symbol))
        return value;
      order.push_back(term.symbol);
      factors.push_back(extentOf[symbolName(term.symbol)]);
    }
    slices |= size != rootDims[axis];
    if (size == rootDims[axis] && offset != 0)
      return value;
    sliceDims.push_back(size);
    starts.push_back(dimConstant(context, offset));
  }
  SmallVector<DimAttr> wanted;
  for (DimAttr symbol : symbols)
    if (symbol)
      wanted.push_back(symbol);
  if (wanted.size() != order.size())
    return value;
  SmallVector<int64_t> permutation;
  for (DimAttr symbol : wanted)
    permutation.push_back(llvm::find(order, symbol) - order.begin());
  bool transposes = !llvm::is_sorted(permutation);

  Location loc = value.getLoc();
  Value result = moved.root;
  auto linear = result.getDefiningOp<LinearOp>();
  if (slices && linear && std::equal(sliceDims.begin(), sliceDims.end() - 1, rootDims.begin())) {
    // Columns of a linear layer are a linear layer: the weight is sliced at compile time.
    auto columns = [&](Value matrix, int64_t axis) {
      SmallVector<DimAttr> sizes = dimsOf(rankedType(matrix));
      SmallVector<Attribute> from(sizes.size(), dimConstant(context, 0));
      sizes[axis] = sliceDims.back();
      from[axis] = starts.back();
      return builder
          .create<SliceOp>(loc, typeOf(sizes, rankedType(matrix)), matrix, Value(), Value(), Value(), Value(),
                           builder.getArrayAttr(from),
                           builder.getDenseI64ArrayAttr(SmallVector<int64_t>(sizes.size(), 1)))
          .getResult();
    };
    Value weight = columns(linear.getWeight(), linear.getTransposed() ? 0 : 1);
    Value bias = linear.getBias() ? columns(linear.getBias(), 0) : Value();
    result = builder.create<LinearOp>(linear.getLoc(), typeOf(sliceDims, rootType), linear.getInput(), weight, bias,
                                      linear.getTransposed());
  } else if (slices) {
    result = builder.create<SliceOp>(loc, typeOf(sliceDims, rootType), result, Value(), Value(), Value(), Value(),
                                     builder.getArrayAttr(starts),
                                     builder.getDenseI64ArrayAttr(SmallVector<int64_t>(starts.size(), 1)));
  }
  if (transposes) {
    result = makeReshape(builder, loc, result, factors);
    result = makeTranspose(builder, loc, result, permutation);
  }
  return makeReshape(builder, loc, result, dims);
}
