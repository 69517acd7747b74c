//===- InferSlice.cpp - slices --------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX clamps starts and ends into the axis. Where symbols leave open which side of a bound they are on, the bound is
// either written as min/max (it may take effect in a correct run) or guarded (it would only hide a mistake).

#include "ir/InferSlice.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// Constants of this size and above mean "to the end" (or, negative, "before the beginning").
constexpr int64_t unbounded = int64_t(1) << 30;

/// Constants far outside of any axis, nearer: arithmetic with them must not overflow.
DimAttr modest(DimAttr bound) {
  std::optional<int64_t> value = constantValue(bound);
  constexpr int64_t limit = int64_t(1) << 40;
  return value ? dimConstant(bound.getContext(), std::clamp(*value, -limit, limit)) : bound;
}

struct AxisSlicer {
  InferContext &context;
  SliceOp op;
  DimAttr size;
  bool constantData;

  DimAttr constant(int64_t value) const { return dimConstant(size.getContext(), value); }

  /// `bound` counted from the front: negative values count from the end. A sign that symbols leave open is guarded.
  DimAttr fromFront(DimAttr bound, StringRef what) {
    if (std::optional<int64_t> value = constantValue(bound))
      return *value < 0 ? dimAdd(size, bound) : bound;
    if (provablyNonNegative(bound))
      return bound;
    if (provablyNonNegative(dimSub(constant(0), bound))) {
      // 0 is not "from the end" in ONNX.
      context.guard(op, dimSub(constant(0), bound), GuardRelation::GreaterOrEqual, constant(1),
                    nodeLabel(op) + " " + what.str() + " " + toString(bound) + ", which must be negative");
      return dimAdd(size, bound);
    }
    context.guard(op, bound, GuardRelation::GreaterOrEqual, constant(0),
                  nodeLabel(op) + " " + what.str() + " " + toString(bound) + ", which must not be negative");
    return bound;
  }

  /// At least 0: an axis too short for a bound counted from its end is a guard.
  DimAttr notNegative(DimAttr bound) {
    if (constantValue(bound))
      return dimMax(bound, constant(0));
    if (!provablyNonNegative(bound))
      context.guard(op, bound, GuardRelation::GreaterOrEqual, constant(0),
                    nodeLabel(op) + " takes elements counted from the end of an axis of size " + toString(size) +
                        ", which is too short");
    return bound;
  }

  /// At most the axis: a table that is too short is a guard, as clamping there hides a position out of range.
  DimAttr notBeyond(DimAttr bound) {
    if (provablyLessOrEqual(bound, size))
      return bound;
    if (constantData && constantValue(size) && !constantValue(bound)) {
      context.guard(op, bound, GuardRelation::LessOrEqual, size,
                    nodeLabel(op) + " reads position " + toString(bound) + " of a table that ends at " +
                        toString(size));
      return bound;
    }
    return dimMin(bound, size);
  }

  FailureOr<AxisSlice> forward(DimAttr start, DimAttr end, int64_t step) {
    std::optional<int64_t> first = constantValue(start), last = constantValue(end);
    DimAttr from = first && *first <= -unbounded ? constant(0) : notNegative(fromFront(start, "starts at"));
    bool toEnd = last && *last >= unbounded;
    DimAttr to = toEnd ? size : last && *last <= -unbounded ? constant(0) : notNegative(fromFront(end, "ends at"));
    // An end is not negative: proved or guarded.
    bool ordered = constantValue(from) == 0 || provablyLessOrEqual(from, to);
    if (first && *first >= unbounded)
      from = size;
    to = notBeyond(to);
    // A start before an end that is in range is in range.
    if (!ordered || !provablyLessOrEqual(from, to))
      from = notBeyond(from);
    DimAttr count = dimSub(to, from);
    if (!ordered && !provablyLessOrEqual(from, to))
      count = dimMax(count, constant(0));
    if (step > 1)
      count = dimFloorDiv(dimAdd(count, constant(step - 1)), constant(step));
    return AxisSlice{from, step, count};
  }

  /// From `start` down to, but without, `end`.
  FailureOr<AxisSlice> backward(DimAttr start, DimAttr end, int64_t step) {
    std::optional<int64_t> first = constantValue(start), last = constantValue(end);
    DimAttr top = dimSub(size, constant(1));
    DimAttr from = first && *first >= unbounded ? top : dimMin(fromFront(start, "starts at"), top);
    if (std::optional<int64_t> value = constantValue(from); value && *value < 0 && constantValue(size) != 0)
      from = constant(0);
    DimAttr to = last && *last <= -unbounded ? constant(-1) : dimMax(fromFront(end, "ends at"), constant(-1));
    DimAttr count = dimSub(from, to);
    if (!provablyLessOrEqual(to, from))
      count = dimMax(count, constant(0));
    if (step < -1)
      count = dimFloorDiv(dimAdd(count, constant(-step - 1)), constant(-step));
    return AxisSlice{from, step, count};
  }
};

} // namespace

std::optional<SmallVector<AxisSlice>> transept::sliceAxes(InferContext &context, SliceOp op, ArrayRef<Fact> operands,
                                                          ArrayRef<DimAttr> input, bool &invalid) {
  MLIRContext *mlir = op.getContext();
  invalid = true;
  SmallVector<AxisSlice> slices;
  if (op.getStarts()) {
    // C1: a resolved slice has one start and one step per axis of operand and result.
    auto type = dyn_cast<RankedTensorType>(op.getResult().getType());
    if (!type || type.getRank() != static_cast<int64_t>(input.size()) || op.getStarts()->size() != input.size() ||
        !op.getSteps() || op.getSteps()->size() != input.size() ||
        !llvm::all_of(*op.getStarts(), llvm::IsaPred<DimAttr>))
      return op.emitOpError() << "does not name a start and a step for each axis of " << toString(input), std::nullopt;
    invalid = false;
    for (auto [start, step, count] : llvm::zip(*op.getStarts(), *op.getSteps(), dimsOf(type)))
      slices.push_back({cast<DimAttr>(start), step, count ? count : context.runtimeSymbol(op, "sliced")});
    return slices;
  }
  // C2: starts and ends are given.
  if (!op.getStartsValue() || !op.getEndsValue())
    return op.emitOpError() << "has no starts or no ends", std::nullopt;
  const Fact &starts = factOf(op, operands, op.getStartsValue()), &ends = factOf(op, operands, op.getEndsValue());
  std::optional<int64_t> count = staticLength(starts);
  std::optional<SmallVector<int64_t>> axes, steps;
  if (op.getAxesValue())
    axes = constantInts(factOf(op, operands, op.getAxesValue()));
  else if (count && *count <= static_cast<int64_t>(input.size()))
    axes = llvm::to_vector(llvm::seq<int64_t>(0, *count));
  if (op.getStepsValue())
    steps = constantInts(factOf(op, operands, op.getStepsValue()));
  else if (axes)
    steps = SmallVector<int64_t>(axes->size(), 1);
  if (!axes) {
    invalid = false;
    return std::nullopt;
  }
  // C3: starts, ends, axes and steps have one length.
  if ((count && *count != static_cast<int64_t>(axes->size())) ||
      (staticLength(ends) && *staticLength(ends) != static_cast<int64_t>(axes->size())) ||
      (steps && steps->size() != axes->size()))
    return op.emitOpError() << "slices " << axes->size() << " axes with other numbers of starts, ends or steps",
           std::nullopt;
  FailureOr<SmallVector<int64_t>> normal = normalizeAxes(op, *axes, input.size());
  if (failed(normal))
    return std::nullopt;
  for (DimAttr size : input)
    slices.push_back({dimConstant(mlir, 0), 1, size});
  bool constantData = isConstantData(op.getInput());
  for (auto [i, axis] : llvm::enumerate(*normal)) {
    if (!starts.content || !ends.content || !steps) {
      slices[axis] = {DimAttr(), 1, context.runtimeSymbol(op, "sliced")};
      continue;
    }
    // C4: no step is zero (or so large that it is none).
    int64_t step = (*steps)[i];
    if (step == 0 || step > unbounded || step < -unbounded)
      return op.emitOpError() << "steps by " << step << " on axis " << axis, std::nullopt;
    AxisSlicer slicer{context, op, input[axis], constantData};
    DimAttr start = modest((*starts.content)[i]), end = modest((*ends.content)[i]);
    FailureOr<AxisSlice> slice = step > 0 ? slicer.forward(start, end, step) : slicer.backward(start, end, step);
    if (failed(slice))
      return std::nullopt;
    slices[axis] = *slice;
  }
  invalid = false;
  return slices;
}

/// Elements the slices take, where all starts are constant.
static std::optional<Content> sliceContent(const Fact &input, const Fact &result, ArrayRef<AxisSlice> slices) {
  std::optional<SmallVector<int64_t>> shape = smallShape(result);
  if (!shape || !input.content)
    return std::nullopt;
  ArrayRef<int64_t> inputShape = input.ranked().getShape();
  Content content;
  for (int64_t i = 0, e = ShapedType::getNumElements(*shape); i < e; ++i) {
    SmallVector<int64_t> position = coordinates(i, *shape);
    for (auto [coordinate, slice, size] : llvm::zip(position, slices, inputShape)) {
      std::optional<int64_t> start = slice.start ? constantValue(slice.start) : std::nullopt;
      if (!start)
        return std::nullopt;
      coordinate = *start + coordinate * slice.step;
      if (coordinate < 0 || coordinate >= size)
        return std::nullopt;
    }
    content.push_back((*input.content)[linearIndex(position, inputShape)]);
  }
  return content;
}

LogicalResult SliceOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &input = operands[0];
  std::optional<Dims> dims = dimsOf(context, *this, input);
  if (!dims) {
    results.push_back(unrankedFact(elementTypeOf(input)));
    return success();
  }
  bool invalid;
  std::optional<SmallVector<AxisSlice>> slices = sliceAxes(context, *this, operands, *dims, invalid);
  if (!slices && invalid)
    return failure();
  if (!slices) {
    // Which axes are sliced is not known: any of them may be.
    for (DimAttr &dim : *dims)
      dim = context.runtimeSymbol(*this, "sliced");
    results.push_back(rankedFact(*dims, elementTypeOf(input)));
    return success();
  }
  Dims counts;
  for (const AxisSlice &slice : *slices)
    counts.push_back(slice.count);
  Fact result = rankedFact(counts, elementTypeOf(input));
  result.content = sliceContent(input, result, *slices);
  results.push_back(std::move(result));
  return success();
}
