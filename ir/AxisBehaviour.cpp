//===- AxisBehaviour.cpp - how every op treats an axis of an operand -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only thing staging and batching reason from. Where an op is not understood along an axis, the answer is Mixing.
// `axis` counts from the front; operands and results are ranked.

#include "ir/Elementwise.h"
#include "ir/InferSupport.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

int64_t rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : -1;
}

/// The size of an axis; null where the rank is unknown.
DimAttr sizeOf(Value value, int64_t axis) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || axis < 0 || axis >= type.getRank())
    return {};
  return dimsOf(type)[axis];
}

AxisBehaviour mixing(int64_t &resultAxis, int64_t axis = -1) {
  resultAxis = axis;
  return AxisBehaviour::Mixing;
}

AxisBehaviour become(int64_t &resultAxis, int64_t axis, AxisBehaviour behaviour = AxisBehaviour::Pointwise) {
  resultAxis = axis;
  return behaviour;
}

AxisBehaviour along(int64_t axis, int64_t special, int64_t rank, int64_t &resultAxis) {
  int64_t normal = special < 0 ? special + rank : special;
  return axis == normal ? mixing(resultAxis, axis) : become(resultAxis, axis);
}

/// Batch axes align; rows of the left and columns of the right operand stay; the contracted axis disappears.
AxisBehaviour product(Operation *op, unsigned operand, int64_t axis, int64_t &resultAxis) {
  if (operand > 1)
    return mixing(resultAxis);
  int64_t lhs = rankOf(op->getOperand(0)), rhs = rankOf(op->getOperand(1)), result = rankOf(op->getResult(0));
  if (lhs < 1 || rhs < 1 || result < 0)
    return mixing(resultAxis);
  int64_t rank = operand == 0 ? lhs : rhs, fromEnd = rank - axis;
  bool row = lhs == 1, column = rhs == 1;
  bool contracted = operand == 0 ? fromEnd == 1 : fromEnd == (column ? 1 : 2);
  if (contracted)
    return mixing(resultAxis);
  // Axes behind the batch axes of the result: rows and columns, unless the operand is a vector.
  int64_t behind = (row ? 0 : 1) + (column ? 0 : 1);
  if (operand == 0 && fromEnd == 2)
    return become(resultAxis, result - behind);
  if (operand == 1 && !column && fromEnd == 1)
    return become(resultAxis, result - 1);
  int64_t target = result - behind - (fromEnd - 2);
  DimAttr size = sizeOf(op->getOperand(operand), axis), whole = sizeOf(op->getResult(0), target);
  if (size && size != whole && (constantValue(size) == 1 || (whole && mayRepeat(op, size, whole))))
    return mixing(resultAxis, target);
  return become(resultAxis, target);
}

/// A reduction over `axes`.
AxisBehaviour reduced(ArrayRef<int64_t> axes, bool keep, int64_t axis, int64_t &resultAxis) {
  if (llvm::is_contained(axes, axis))
    return mixing(resultAxis, keep ? axis : -1);
  int64_t dropped = keep ? 0 : llvm::count_if(axes, [&](int64_t other) { return other < axis; });
  return become(resultAxis, axis - dropped);
}

/// An axis survives a reshape if as many elements lie before it as before an axis of the same size of the result.
AxisBehaviour reshaped(Value input, Value result, int64_t axis, int64_t &resultAxis) {
  if (rankOf(input) < 0 || rankOf(result) < 0)
    return mixing(resultAxis);
  MLIRContext *context = input.getContext();
  Dims from = dimsOf(cast<RankedTensorType>(input.getType())), to = dimsOf(cast<RankedTensorType>(result.getType()));
  if (llvm::is_contained(from, DimAttr()) || llvm::is_contained(to, DimAttr()))
    return mixing(resultAxis);
  DimAttr before = dimProduct(context, ArrayRef(from).take_front(axis)), prefix = dimConstant(context, 1);
  std::optional<int64_t> found;
  for (auto [target, size] : llvm::enumerate(to)) {
    if (prefix == before && size == from[axis])
      found = target;
    prefix = dimMul(prefix, size);
  }
  return found ? become(resultAxis, *found) : mixing(resultAxis);
}

} // namespace

/// An axis of size 1 that the result repeats has no positions of its own.
AxisBehaviour elementwise::alignedAxis(Operation *op, unsigned operand, int64_t axis, int64_t &resultAxis) {
  int64_t from = rankOf(op->getOperand(operand)), to = rankOf(op->getResult(0));
  if (from < 0 || to < from)
    return mixing(resultAxis);
  int64_t target = axis + to - from;
  DimAttr size = sizeOf(op->getOperand(operand), axis), whole = sizeOf(op->getResult(0), target);
  if (size && size != whole && (constantValue(size) == 1 || (whole && mayRepeat(op, size, whole))))
    return mixing(resultAxis, target);
  return become(resultAxis, target);
}

#define BEHAVIOUR(OP) AxisBehaviour OP::axisBehaviour(unsigned operand, int64_t axis, int64_t &resultAxis)

//===- Products
//-----------------------------------------------------------------------------------------------------===//

BEHAVIOUR(MatMulOp) { return product(*this, operand, axis, resultAxis); }
BEHAVIOUR(MatMulIntegerOp) { return product(*this, operand, axis, resultAxis); }

BEHAVIOUR(LinearOp) {
  if (operand == 0)
    return axis == rankOf(getInput()) - 1 ? mixing(resultAxis) : become(resultAxis, axis);
  bool column = operand == 2 || axis == (getTransposed() ? 0 : 1);
  return column ? become(resultAxis, rankOf(getResult()) - 1) : mixing(resultAxis);
}

BEHAVIOUR(ConvOp) {
  if (operand != 0)
    return operand == 1 && axis == 0 ? become(resultAxis, 1) : mixing(resultAxis);
  if (axis == 0)
    return become(resultAxis, 0);
  DimAttr size = axis >= 2 ? sizeOf(getWeight(), axis) : DimAttr();
  std::optional<int64_t> kernel = size ? constantValue(size) : std::nullopt;
  // With all of its reach padded in front and steps of one, position i sees i - reach … i.
  int64_t spatial = axis - 2;
  if (kernel && getStrides()[spatial] == 1 && getPads()[spatial] == (*kernel - 1) * getDilations()[spatial])
    return become(resultAxis, axis, AxisBehaviour::FiniteHistory);
  return mixing(resultAxis, axis == 1 ? -1 : axis);
}

BEHAVIOUR(DetOp) { return axis < rankOf(getInput()) - 2 ? become(resultAxis, axis) : mixing(resultAxis); }

//===- Along rows
//---------------------------------------------------------------------------------------------------===//

BEHAVIOUR(ReduceOp) {
  if (operand != 0 || !getAxes())
    return mixing(resultAxis);
  int64_t rank = rankOf(getInput());
  SmallVector<int64_t> axes(*getAxes());
  for (int64_t &reducedAxis : axes)
    if (reducedAxis < 0)
      reducedAxis += rank;
  if (axes.empty() && !getNoopWithEmptyAxes())
    axes = llvm::to_vector(llvm::seq<int64_t>(0, std::max<int64_t>(rank, 0)));
  return reduced(axes, getKeepdims(), axis, resultAxis);
}

BEHAVIOUR(ArgMaxOp) {
  int64_t reducedAxis = getAxis();
  if (reducedAxis < 0)
    reducedAxis += rankOf(getInput());
  return reduced(reducedAxis, getKeepdims(), axis, resultAxis);
}

BEHAVIOUR(SoftmaxOp) { return along(axis, getAxis(), rankOf(getInput()), resultAxis); }

BEHAVIOUR(LayerNormOp) {
  if (operand != 0)
    return elementwise::alignedAxis(*this, operand, axis, resultAxis);
  int64_t first = getAxis(), rank = rankOf(getInput());
  if (first < 0)
    first += rank;
  return axis >= first ? mixing(resultAxis, axis) : become(resultAxis, axis);
}

BEHAVIOUR(CumSumOp) {
  if (operand != 0 || !getAxis())
    return mixing(resultAxis);
  int64_t running = static_cast<int64_t>(*getAxis());
  if (running < 0)
    running += rankOf(getInput());
  if (axis != running)
    return become(resultAxis, axis);
  return getReverse() || getProduct() ? mixing(resultAxis, axis) : become(resultAxis, axis, AxisBehaviour::CausalScan);
}

BEHAVIOUR(TopKOp) { return operand == 0 ? along(axis, getAxis(), rankOf(getInput()), resultAxis) : mixing(resultAxis); }

/// Rows of the batch stay apart. Forwards, a position depends on those before it through the state.
BEHAVIOUR(RecurrentOp) {
  Value which = getOperation()->getOperand(operand);
  if (operand == 0 && axis < 2) {
    bool scans = axis == 0 && !getReverse() && !getLengths();
    return axis == 1 ? become(resultAxis, 1)
           : scans   ? become(resultAxis, 0, AxisBehaviour::CausalScan)
                     : mixing(resultAxis, 0);
  }
  bool isPerRow = which == getLengths() || which == getHidden() || which == getCell();
  return isPerRow && axis == 0 ? become(resultAxis, 1) : mixing(resultAxis);
}

//===- Movement of elements
//-----------------------------------------------------------------------------------------===//

BEHAVIOUR(ReshapeOp) { return operand == 0 ? reshaped(getInput(), getResult(), axis, resultAxis) : mixing(resultAxis); }
BEHAVIOUR(SqueezeOp) { return operand == 0 ? reshaped(getInput(), getResult(), axis, resultAxis) : mixing(resultAxis); }
BEHAVIOUR(UnsqueezeOp) {
  return operand == 0 ? reshaped(getInput(), getResult(), axis, resultAxis) : mixing(resultAxis);
}

BEHAVIOUR(TransposeOp) {
  ArrayRef<int64_t> permutation = getPermutation();
  const int64_t *target = llvm::find(permutation, axis);
  return target == permutation.end() ? mixing(resultAxis) : become(resultAxis, target - permutation.begin());
}

BEHAVIOUR(BroadcastOp) {
  return operand == 0 ? elementwise::alignedAxis(*this, operand, axis, resultAxis) : mixing(resultAxis);
}

BEHAVIOUR(TileOp) {
  DimAttr size = sizeOf(getInput(), axis);
  bool once = operand == 0 && size && size == sizeOf(getResult(), axis);
  return once ? become(resultAxis, axis) : mixing(resultAxis, operand == 0 ? axis : -1);
}

BEHAVIOUR(SliceOp) {
  if (operand != 0 || !getStarts())
    return mixing(resultAxis, operand == 0 ? axis : -1);
  // A prefix; anything else moves positions.
  bool prefix = constantValue(cast<DimAttr>((*getStarts())[axis])) == 0 && (*getSteps())[axis] == 1;
  return prefix ? become(resultAxis, axis) : mixing(resultAxis, axis);
}

BEHAVIOUR(ConcatOp) {
  int64_t joined = static_cast<int64_t>(getAxis());
  if (joined < 0)
    joined += rankOf(getResult());
  if (axis != joined)
    return become(resultAxis, axis);
  // Behind operands of constant size, position i holds what was at i - offset.
  for (unsigned earlier = 0; earlier < operand; ++earlier)
    if (DimAttr size = sizeOf(getInputs()[earlier], axis); !size || !constantValue(size))
      return mixing(resultAxis, axis);
  return become(resultAxis, axis, operand == 0 ? AxisBehaviour::Pointwise : AxisBehaviour::FiniteHistory);
}

BEHAVIOUR(PadOp) {
  if (operand != 0 || !getLow())
    return mixing(resultAxis, operand == 0 ? axis : -1);
  std::optional<int64_t> low = constantValue(cast<DimAttr>((*getLow())[axis]));
  if (low == 0 && sizeOf(getInput(), axis) == sizeOf(getResult(), axis))
    return become(resultAxis, axis);
  bool shifts = low && *low >= 0 && getMode() == PadMode::Constant;
  return shifts ? become(resultAxis, axis, AxisBehaviour::FiniteHistory) : mixing(resultAxis, axis);
}

BEHAVIOUR(GatherOp) {
  int64_t picked = static_cast<int64_t>(getAxis()), data = rankOf(getData()), indices = rankOf(getIndices());
  if (data < 0 || indices < 0)
    return mixing(resultAxis);
  if (picked < 0)
    picked += data;
  if (operand == 1)
    return become(resultAxis, picked + axis);
  if (axis == picked)
    return mixing(resultAxis);
  return become(resultAxis, axis < picked ? axis : axis + indices - 1);
}

BEHAVIOUR(GatherElementsOp) {
  int64_t picked = static_cast<int64_t>(getAxis());
  if (picked < 0)
    picked += rankOf(getData());
  if (operand == 1)
    return become(resultAxis, axis);
  bool kept = axis != picked && sizeOf(getData(), axis) && sizeOf(getData(), axis) == sizeOf(getIndices(), axis);
  return kept ? become(resultAxis, axis) : mixing(resultAxis, axis);
}

BEHAVIOUR(GatherNDOp) {
  int64_t batch = getBatchDims(), indices = rankOf(getIndices());
  DimAttr last = sizeOf(getIndices(), indices - 1);
  std::optional<int64_t> tuple = last ? constantValue(last) : std::nullopt;
  if (!tuple)
    return mixing(resultAxis);
  if (operand == 1)
    return axis == indices - 1 ? mixing(resultAxis) : become(resultAxis, axis);
  if (axis < batch)
    return become(resultAxis, axis);
  return axis < batch + *tuple ? mixing(resultAxis) : become(resultAxis, axis - batch - *tuple + indices - 1);
}

BEHAVIOUR(ScatterElementsOp) {
  int64_t placed = static_cast<int64_t>(getAxis());
  if (placed < 0)
    placed += rankOf(getData());
  Value which = getOperation()->getOperand(operand);
  bool kept = axis != placed && sizeOf(getData(), axis) && sizeOf(getData(), axis) == sizeOf(getIndices(), axis) &&
              sizeOf(which, axis) == sizeOf(getData(), axis);
  return kept ? become(resultAxis, axis) : mixing(resultAxis, axis);
}

BEHAVIOUR(ScatterNDOp) {
  int64_t indices = rankOf(getIndices());
  DimAttr last = sizeOf(getIndices(), indices - 1);
  std::optional<int64_t> tuple = last ? constantValue(last) : std::nullopt;
  if (!tuple || operand == 1)
    return mixing(resultAxis);
  if (operand == 0)
    return axis < *tuple ? mixing(resultAxis, axis) : become(resultAxis, axis);
  int64_t slice = axis - (indices - 1);
  return slice < 0 ? mixing(resultAxis) : become(resultAxis, slice + *tuple);
}

BEHAVIOUR(WindowsOp) {
  int64_t first = rankOf(getInput()) - static_cast<int64_t>(getKernel().size());
  return axis < first ? become(resultAxis, axis) : mixing(resultAxis, axis);
}

BEHAVIOUR(TriluOp) {
  if (operand != 0)
    return mixing(resultAxis);
  bool triangular = axis >= rankOf(getInput()) - 2;
  return become(resultAxis, axis, triangular ? AxisBehaviour::Positions : AxisBehaviour::Pointwise);
}

//===- Shapes, attention, state
//-------------------------------------------------------------------------------------===//

#define MIXING(OP)                                                                                                     \
  BEHAVIOUR(OP) { return mixing(resultAxis); }
MIXING(ConstantOp)
MIXING(WeightOp)
MIXING(ShapeOp)
MIXING(SizeOp)
MIXING(DimValueOp)
MIXING(RangeOp)
MIXING(FillOp)
MIXING(IfOp)
MIXING(LoopOp)
MIXING(StateOp)
MIXING(ExportOp)
MIXING(NonZeroOp)
MIXING(ReadSizesOp)
MIXING(CacheAppendOp)
MIXING(SearchHeadOp)
#undef MIXING

/// Query positions and heads stay; keys are mixed (what a causal mask allows, staging knows); batches stay apart.
BEHAVIOUR(AttentionOp) {
  bool isKey = operand == 1 || operand == 2;
  Value which = getOperation()->getOperand(operand);
  if (operand == 0)
    return axis == 3 ? mixing(resultAxis) : become(resultAxis, axis);
  if (isKey) {
    if (axis == 0 || (axis == 2 && sizeOf(which, 2) == sizeOf(getQuery(), 2)))
      return become(resultAxis, axis);
    return axis == 3 && operand == 2 ? become(resultAxis, 3) : mixing(resultAxis);
  }
  if (which == getKeyMask() && rankOf(which) == 2)
    return axis == 0 ? become(resultAxis, 0) : mixing(resultAxis);
  if (which == getRelative())
    return axis == 0 && sizeOf(which, 0) == sizeOf(getQuery(), 2) ? become(resultAxis, 2) : mixing(resultAxis);
  // Bias and mask are read as [batch, heads, queries, keys].
  constexpr int64_t resultAxes[] = {0, 2, 1};
  int64_t scoreAxis = axis + 4 - rankOf(which);
  DimAttr size = sizeOf(which, axis);
  if (scoreAxis < 0 || scoreAxis > 2 || !size || constantValue(size) == 1)
    return mixing(resultAxis);
  return become(resultAxis, resultAxes[scoreAxis]);
}

BEHAVIOUR(CacheAttentionOp) {
  return operand == 0 && (axis == 0 || axis == 2) ? become(resultAxis, axis) : mixing(resultAxis);
}

BEHAVIOUR(CrossAttentionOp) {
  return operand == 0 && (axis == 0 || axis == 2) ? become(resultAxis, axis) : mixing(resultAxis);
}
