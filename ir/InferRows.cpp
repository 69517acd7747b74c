//===- InferRows.cpp - reductions, softmax, norms, running sums ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/InferSupport.h"

using namespace mlir;
using namespace mlir::transept;

//===- Reduce
//-------------------------------------------------------------------------------------------------------===//

/// The axes a reduction names: nullopt if only a run can say.
static FailureOr<std::optional<SmallVector<int64_t>>> reducedAxes(ReduceOp op, ArrayRef<Fact> operands, int64_t rank) {
  std::optional<SmallVector<int64_t>> axes;
  if (op.getAxes())
    axes = SmallVector<int64_t>(*op.getAxes());
  else if (op.getAxesValue())
    axes = constantInts(factOf(op, operands, op.getAxesValue()));
  else
    axes.emplace();
  if (!axes)
    return std::optional<SmallVector<int64_t>>();
  // C1: axes exist and are named once.
  FailureOr<SmallVector<int64_t>> normal = normalizeAxes(op, *axes, rank);
  if (failed(normal))
    return failure();
  if (normal->empty() && !op.getNoopWithEmptyAxes())
    normal->append(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  llvm::sort(*normal);
  return std::optional(std::move(*normal));
}

static std::optional<DimAttr> reduceTwo(ReduceKind kind, DimAttr lhs, DimAttr rhs) {
  switch (kind) {
  case ReduceKind::Sum:
    return dimAdd(lhs, rhs);
  case ReduceKind::Prod:
    return dimMul(lhs, rhs);
  case ReduceKind::Max:
    return dimMax(lhs, rhs);
  case ReduceKind::Min:
    return dimMin(lhs, rhs);
  default:
    return std::nullopt;
  }
}

/// Contents of an integer reduction; elements outside the range of sizes are left alone.
static std::optional<Content> reduceContent(ReduceOp op, const Fact &input, ArrayRef<int64_t> axes) {
  if (!input.content || !isa<IntegerType>(elementTypeOf(input)))
    return std::nullopt;
  ArrayRef<int64_t> shape = input.ranked().getShape();
  SmallVector<int64_t> reduced(shape);
  for (int64_t axis : axes)
    reduced[axis] = 1;
  SmallVector<std::optional<DimAttr>> slots(ShapedType::getNumElements(reduced));
  for (auto [i, element] : llvm::enumerate(*input.content)) {
    if (std::optional<int64_t> value = constantValue(element); value && std::abs(*value / 2) > (int64_t(1) << 40))
      return std::nullopt;
    SmallVector<int64_t> position = coordinates(i, shape);
    for (int64_t axis : axes)
      position[axis] = 0;
    std::optional<DimAttr> &slot = slots[linearIndex(position, reduced)];
    slot = slot ? reduceTwo(op.getKind(), *slot, element) : element;
    if (!slot)
      return std::nullopt;
  }
  Content content;
  for (std::optional<DimAttr> &slot : slots) {
    if (!slot || (op.getKind() != ReduceKind::Sum && op.getKind() != ReduceKind::Prod &&
                  op.getKind() != ReduceKind::Max && op.getKind() != ReduceKind::Min))
      return std::nullopt;
    content.push_back(*slot);
  }
  return content;
}

LogicalResult ReduceOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Type element = elementTypeOf(operands[0]);
  std::optional<Dims> input = dimsOf(context, *this, operands[0]);
  if (!input) {
    results.push_back(unrankedFact(element));
    return success();
  }
  FailureOr<std::optional<SmallVector<int64_t>>> axes = reducedAxes(*this, operands, input->size());
  if (failed(axes))
    return failure();
  if (!*axes) {
    // Which sizes stay is not known; how many do, where the number of axes is.
    std::optional<int64_t> count = staticLength(factOf(*this, operands, getAxesValue()));
    const auto rank = static_cast<int64_t>(input->size());
    if (count == 0)
      count = getNoopWithEmptyAxes() ? 0 : rank;
    if (!getKeepdims() && (!count || *count > rank)) {
      results.push_back(unrankedFact(element));
      return success();
    }
    Dims dims;
    for (int64_t i = 0, e = getKeepdims() ? rank : rank - *count; i < e; ++i)
      dims.push_back(context.runtimeSymbol(*this, "reduced"));
    results.push_back(rankedFact(dims, element));
    return success();
  }
  Dims dims;
  for (auto [axis, dim] : llvm::enumerate(*input))
    if (!llvm::is_contained(**axes, static_cast<int64_t>(axis)))
      dims.push_back(dim);
    else if (getKeepdims())
      dims.push_back(dimConstant(getContext(), 1));
  Fact result = rankedFact(dims, element);
  result.content = reduceContent(*this, operands[0], **axes);
  results.push_back(std::move(result));
  return success();
}

LogicalResult ArgMaxOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Type element = IntegerType::get(getContext(), 64);
  std::optional<Dims> dims = dimsOf(context, *this, operands[0]);
  if (!dims) {
    results.push_back(unrankedFact(element));
    return success();
  }
  // C1: the axis exists.
  FailureOr<int64_t> axis = normalizeAxis(*this, getAxis(), dims->size());
  if (failed(axis))
    return failure();
  if (getKeepdims())
    (*dims)[*axis] = dimConstant(getContext(), 1);
  else
    dims->erase(dims->begin() + *axis);
  results.push_back(rankedFact(*dims, element));
  return success();
}

LogicalResult TopKOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Type element = elementTypeOf(operands[0]), index = IntegerType::get(getContext(), 64);
  std::optional<Dims> dims = dimsOf(context, *this, operands[0]);
  if (!dims) {
    results.append({unrankedFact(element), unrankedFact(index)});
    return success();
  }
  // C1: the axis exists.
  FailureOr<int64_t> axis = normalizeAxis(*this, getAxis(), dims->size());
  if (failed(axis))
    return failure();
  DimAttr count = getKAttr();
  if (!count) {
    if (!getKValue())
      return emitOpError() << "does not say how many elements";
    // C2: there is one count.
    const std::optional<Content> &content = operands[1].content;
    if (content && content->size() != 1)
      return emitOpError() << "has " << content->size() << " counts";
    count = content ? content->front() : context.runtimeSymbol(*this, "k");
  }
  // C3: the axis has as many elements.
  if (std::optional<int64_t> value = constantValue(count); value && *value < 0)
    return emitOpError() << "asks for " << *value << " elements";
  if (failed(requireLessOrEqual(context, *this, count, (*dims)[*axis], "picks elements")))
    return failure();
  (*dims)[*axis] = count;
  results.append({rankedFact(*dims, element), rankedFact(*dims, index)});
  return success();
}

//===- Ops that keep their shape
//------------------------------------------------------------------------------------===//

/// The operand's type; C1: the axis exists.
static LogicalResult inferAlongAxis(InferContext &context, Operation *op, const Fact &input,
                                    std::optional<int64_t> axis, SmallVectorImpl<Fact> &results) {
  std::optional<Dims> dims = dimsOf(context, op, input);
  if (!dims) {
    results.push_back(unrankedFact(elementTypeOf(input)));
    return success();
  }
  if (axis && failed(normalizeAxis(op, *axis, dims->size())))
    return failure();
  results.push_back(rankedFact(*dims, elementTypeOf(input)));
  return success();
}

LogicalResult SoftmaxOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  return inferAlongAxis(context, *this, operands[0], getAxis(), results);
}

LogicalResult CumSumOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  std::optional<int64_t> axis;
  if (getAxis()) {
    axis = *getAxis();
  } else if (getAxisValue()) {
    std::optional<SmallVector<int64_t>> value = constantInts(factOf(*this, operands, getAxisValue()));
    // C2: there is one axis.
    if (value && value->size() != 1)
      return emitOpError() << "runs along one axis, not " << value->size();
    if (value)
      axis = value->front();
    else if (std::optional<Dims> dims = dimsOf(context, *this, factOf(*this, operands, getAxisValue())))
      if (failed(requireEqual(context, *this, dimProduct(getContext(), *dims), dimConstant(getContext(), 1),
                              "has one axis")))
        return failure();
  } else {
    return emitOpError() << "names no axis";
  }
  return inferAlongAxis(context, *this, operands[0], axis, results);
}

LogicalResult LayerNormOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  if (failed(inferAlongAxis(context, *this, operands[0], getAxis(), results)))
    return failure();
  std::optional<Dims> input = dimsOf(context, *this, operands[0]);
  for (Value parameter : {Value(getScale()), Value(getBias())}) {
    if (!parameter || !input)
      continue;
    std::optional<Dims> dims = dimsOf(context, *this, factOf(*this, operands, parameter));
    if (!dims)
      continue;
    // C2: scale and bias broadcast to the input without enlarging it.
    if (failed(requireBroadcastTo(context, *this, *dims, *input, "scales its input")))
      return failure();
  }
  return success();
}
