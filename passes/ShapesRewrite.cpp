//===- ShapesRewrite.cpp - ops rewritten by what is known of their operands ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/InferSlice.h"
#include "ir/NarrowTypes.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Shapes.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// Facts are final here: guards are recorded, and no new symbols may come up.
class FinalContext : public InferContext {
public:
  explicit FinalContext(MLIRContext *mlirContext) { context = mlirContext; }
  void guard(Operation *, DimAttr, GuardRelation, DimAttr, StringRef) override {}
  DimAttr runtimeSymbol(Operation *, StringRef) override { return dimSymbol(context, "unknown"); }
};

class FactRewriter {
public:
  FactRewriter(func::FuncOp function, ShapePropagation &propagation)
      : builder(function.getContext()), final(function.getContext()), propagation(propagation) {}

  void rewrite(Operation *op) {
    builder.setInsertionPoint(op);
    if (replaceByValue(op))
      return;
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      resolveReshape(reshape);
    else if (auto broadcast = dyn_cast<BroadcastOp>(op))
      resolveBroadcast(broadcast);
    else if (auto tile = dyn_cast<TileOp>(op))
      resolveTile(tile);
    else if (isa<SqueezeOp, UnsqueezeOp>(op))
      becomeReshape(op);
    else if (auto slice = dyn_cast<SliceOp>(op))
      resolveSlice(slice);
    else if (auto pad = dyn_cast<PadOp>(op))
      resolvePad(pad);
    else if (auto range = dyn_cast<RangeOp>(op))
      resolveRange(range);
    else if (auto fill = dyn_cast<FillOp>(op))
      resolveFill(fill);
    else if (auto reduce = dyn_cast<ReduceOp>(op))
      resolveReduce(reduce);
    else if (auto cumsum = dyn_cast<CumSumOp>(op))
      resolveCumSum(cumsum);
    else if (auto topK = dyn_cast<TopKOp>(op))
      resolveTopK(topK);
    else if (auto trilu = dyn_cast<TriluOp>(op))
      resolveTrilu(trilu);
  }

private:
  const Fact &fact(Value value) { return propagation.facts[value]; }
  bool knownContent(Value value) { return value && fact(value).content.has_value(); }

  void replace(Operation *op, Value value) {
    Fact known = fact(op->getResult(0));
    propagation.facts[value] = std::move(known);
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }

  /// Known values become constants or symbolic sizes.
  bool replaceByValue(Operation *op) {
    if (op->getNumResults() != 1 || op->getNumRegions() != 0 || !isPure(op) ||
        isa<ConstantOp, DimValueOp, WeightOp>(op) || op->use_empty())
      return false;
    Fact known = fact(op->getResult(0));
    RankedTensorType type = known.ranked();
    if (!type || !type.hasStaticShape())
      return false;
    if (known.constant) {
      if (known.constant.numElements() > maxContentElements || isNarrow(type.getElementType()))
        return false;
      replace(op, builder.create<ConstantOp>(op->getLoc(), type, known.constant.toElements()));
      return true;
    }
    // A value that only moves what is known stays such a movement.
    if (!known.content || op->getNumOperands() == 0)
      return false;
    SmallVector<Attribute> dims(known.content->begin(), known.content->end());
    auto flat = type.getRank() <= 1 ? type : RankedTensorType::get({type.getNumElements()}, type.getElementType());
    Value value = builder.create<DimValueOp>(op->getLoc(), flat, builder.getArrayAttr(dims));
    if (flat != type) {
      Fact vector = known;
      vector.type = flat;
      propagation.facts[value] = vector;
      value = builder.create<ReshapeOp>(op->getLoc(), type, value, Value(), false);
    }
    replace(op, value);
    return true;
  }

  void resolveReshape(ReshapeOp op) {
    if (!knownContent(op.getShape()) || !isa<RankedTensorType>(op.getType()))
      return;
    op.getShapeMutable().clear();
    op.setAllowZero(false);
  }

  void resolveBroadcast(BroadcastOp op) {
    if (knownContent(op.getShape()) && isa<RankedTensorType>(op.getType()))
      op.getShapeMutable().clear();
  }

  /// Repeating axes of size 1 is a broadcast.
  void resolveTile(TileOp op) {
    auto input = dyn_cast<RankedTensorType>(op.getInput().getType()), type = dyn_cast<RankedTensorType>(op.getType());
    if (!input || !type || (op.getRepeats() && !knownContent(op.getRepeats())))
      return;
    bool broadcasts = llvm::all_of(llvm::zip(dimsOf(input), dimsOf(type)), [](auto pair) {
      auto [from, to] = pair;
      return from == to || (from && constantValue(from) == 1);
    });
    if (broadcasts)
      replace(op, builder.create<BroadcastOp>(op.getLoc(), type, op.getInput(), Value()));
    else if (op.getRepeats())
      op.getRepeatsMutable().clear();
  }

  void becomeReshape(Operation *op) {
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    bool known = op->getNumOperands() == 1 || constantInts(fact(op->getOperand(1)));
    if (known && type && isa<RankedTensorType>(op->getOperand(0).getType()))
      replace(op, builder.create<ReshapeOp>(op->getLoc(), type, op->getOperand(0), Value(), false));
  }

  void resolveSlice(SliceOp op) {
    auto input = dyn_cast<RankedTensorType>(op.getInput().getType());
    if (!input || op.getStarts())
      return;
    SmallVector<Fact> operands;
    for (Value operand : op->getOperands())
      operands.push_back(fact(operand));
    bool invalid;
    std::optional<SmallVector<AxisSlice>> slices = sliceAxes(final, op, operands, dimsOf(input), invalid);
    if (!slices || llvm::any_of(*slices, [](const AxisSlice &slice) { return !slice.start; }))
      return;
    SmallVector<Attribute> starts;
    SmallVector<int64_t> steps;
    for (const AxisSlice &slice : *slices) {
      starts.push_back(slice.start);
      steps.push_back(slice.step);
    }
    op.setStartsAttr(builder.getArrayAttr(starts));
    op.setStepsAttr(builder.getDenseI64ArrayAttr(steps));
    op.getStartsValueMutable().clear();
    op.getEndsValueMutable().clear();
    op.getAxesValueMutable().clear();
    op.getStepsValueMutable().clear();
  }

  void resolvePad(PadOp op) {
    auto input = dyn_cast<RankedTensorType>(op.getInput().getType());
    if (!input || op.getLow() || !knownContent(op.getPadsValue()))
      return;
    const Content pads = *fact(op.getPadsValue()).content;
    std::optional<SmallVector<int64_t>> axes;
    if (op.getAxesValue())
      axes = constantInts(fact(op.getAxesValue()));
    else
      axes = llvm::to_vector(llvm::seq<int64_t>(0, input.getRank()));
    if (!axes)
      return;
    SmallVector<Attribute> low(input.getRank(), dimConstant(op.getContext(), 0));
    for (auto [i, axis] : llvm::enumerate(*axes))
      low[axis < 0 ? axis + input.getRank() : axis] = pads[i];
    op.setLowAttr(builder.getArrayAttr(low));
    op.getPadsValueMutable().clear();
    op.getAxesValueMutable().clear();
  }

  /// Float ranges of whole numbers are converted integer ranges.
  void resolveRange(RangeOp op) {
    if (op.getStartDim() || !op.getStart())
      return;
    std::optional<Content> start = integralContent(fact(op.getStart())), limit = integralContent(fact(op.getLimit())),
                           delta = integralContent(fact(op.getDelta()));
    std::optional<int64_t> step = delta ? constantValue(delta->front()) : std::nullopt;
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!start || !limit || !step || !type)
      return;
    bool isFloat = isa<FloatType>(type.getElementType());
    auto integers = isFloat ? makeType(dimsOf(type), builder.getI64Type()) : type;
    Value value = builder.create<RangeOp>(op.getLoc(), integers, Value(), Value(), Value(), start->front(),
                                          builder.getI64IntegerAttr(*step));
    if (isFloat) {
      Fact &range = propagation.facts[value];
      range.type = integers;
      value = builder.create<CastOp>(op.getLoc(), type, value, type.getElementType());
    }
    replace(op, value);
  }

  void resolveFill(FillOp op) {
    if (knownContent(op.getShape()))
      op.getShapeMutable().clear();
  }

  void resolveReduce(ReduceOp op) {
    auto input = dyn_cast<RankedTensorType>(op.getInput().getType());
    std::optional<SmallVector<int64_t>> axes;
    if (op.getAxes())
      axes = SmallVector<int64_t>(*op.getAxes());
    else if (op.getAxesValue())
      axes = constantInts(fact(op.getAxesValue()));
    else
      axes.emplace();
    if (!input || !axes)
      return;
    for (int64_t &axis : *axes)
      axis += axis < 0 ? input.getRank() : 0;
    if (axes->empty() && !op.getNoopWithEmptyAxes())
      axes = llvm::to_vector(llvm::seq<int64_t>(0, input.getRank()));
    llvm::sort(*axes);
    op.setAxesAttr(builder.getDenseI64ArrayAttr(*axes));
    op.getAxesValueMutable().clear();
  }

  void resolveCumSum(CumSumOp op) {
    auto input = dyn_cast<RankedTensorType>(op.getInput().getType());
    if (!input)
      return;
    std::optional<int64_t> axis;
    if (op.getAxis())
      axis = *op.getAxis();
    else if (std::optional<SmallVector<int64_t>> value = constantInts(fact(op.getAxisValue())))
      axis = value->front();
    if (!axis)
      return;
    op.setAxisAttr(builder.getI64IntegerAttr(*axis < 0 ? *axis + input.getRank() : *axis));
    op.getAxisValueMutable().clear();
  }

  void resolveTopK(TopKOp op) {
    if (!knownContent(op.getKValue()))
      return;
    op.setKAttr(fact(op.getKValue()).content->front());
    op.getKValueMutable().clear();
  }

  void resolveTrilu(TriluOp op) {
    if (op.getK())
      return;
    std::optional<int64_t> k = 0;
    if (op.getKValue()) {
      std::optional<SmallVector<int64_t>> value = constantInts(fact(op.getKValue()));
      k = value ? std::optional<int64_t>(value->front()) : std::nullopt;
    }
    if (!k)
      return;
    op.setKAttr(builder.getI64IntegerAttr(*k));
    op.getKValueMutable().clear();
  }

  OpBuilder builder;
  FinalContext final;
  ShapePropagation &propagation;
};

} // namespace

/// A negative axis counts from the end; once the rank is known it counts from the front.
static void resolveAxis(Operation *op) {
  auto axis = op->getAttrOfType<IntegerAttr>("axis");
  if (!axis || axis.getInt() >= 0 || op->getNumOperands() == 0)
    return;
  if (auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType()))
    op->setAttr("axis", IntegerAttr::get(axis.getType(), axis.getInt() + type.getRank()));
}

void transept::rewriteByFacts(func::FuncOp function, ShapePropagation &propagation) {
  SmallVector<Operation *> ops;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<GraphOp>(op))
      ops.push_back(op);
  });
  FactRewriter rewriter(function, propagation);
  for (Operation *op : ops) {
    resolveAxis(op);
    rewriter.rewrite(op);
  }
  eraseDeadOps(function);
}

void transept::eraseDeadOps(func::FuncOp function) {
  function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
  });
}
