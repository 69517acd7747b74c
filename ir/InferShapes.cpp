//===- InferShapes.cpp - constants, and sizes as data ----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/InferSupport.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

LogicalResult ConstantOp::infer(InferContext &, ArrayRef<Fact>, SmallVectorImpl<Fact> &results) {
  auto type = dyn_cast<RankedTensorType>(getValue().getType());
  // C1: the value is a tensor of numbers.
  if (!type || !type.hasStaticShape() || !isa<IntegerType, FloatType>(type.getElementType()))
    return emitOpError() << "holds no tensor of numbers";
  if (type.getNumElements() <= maxConstantElements) {
    results.push_back(constantFact(HostTensor::fromElements(getValue())));
    return success();
  }
  Fact fact;
  fact.type = type;
  results.push_back(std::move(fact));
  return success();
}

LogicalResult WeightOp::infer(InferContext &, ArrayRef<Fact>, SmallVectorImpl<Fact> &results) {
  Fact fact;
  fact.type = getResult().getType();
  WeightStore::Weight weight = WeightStore::of(getContext()).lookup(getKey());
  // C1: the content has the stated type.
  if (weight.type && weight.type != fact.type)
    return emitOpError() << "states " << fact.type << ", but its content is " << weight.type;
  if (weight.type && weight.type.getNumElements() <= maxContentElements)
    fact = constantFact(HostTensor::fromBytes(weight.type, weight.bytes));
  results.push_back(std::move(fact));
  return success();
}

LogicalResult DimValueOp::infer(InferContext &, ArrayRef<Fact>, SmallVectorImpl<Fact> &results) {
  auto type = dyn_cast<RankedTensorType>(getResult().getType());
  // C1: one expression per element of a scalar or vector.
  if (!type || type.getRank() > 1 || !type.hasStaticShape() ||
      type.getNumElements() != static_cast<int64_t>(getDims().size()) ||
      !llvm::all_of(getDims(), llvm::IsaPred<DimAttr>))
    return emitOpError() << "has " << getDims().size() << " expressions for " << getResult().getType();
  Fact fact;
  fact.type = type;
  fact.content.emplace();
  for (Attribute dim : getDims())
    fact.content->push_back(cast<DimAttr>(dim));
  results.push_back(std::move(fact));
  return success();
}

//===- Shape and size
//-----------------------------------------------------------------------------------------------===//

LogicalResult ShapeOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Type element = IntegerType::get(getContext(), 64);
  std::optional<Dims> dims = dimsOf(context, *this, operands[0]);
  if (!dims) {
    // A vector whose length is unknown.
    results.push_back(rankedFact({context.runtimeSymbol(*this, "rank")}, element));
    return success();
  }
  int64_t rank = dims->size();
  auto clamp = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  int64_t start = clamp(getStart() ? static_cast<int64_t>(*getStart()) : 0);
  int64_t end = clamp(getEnd() ? static_cast<int64_t>(*getEnd()) : rank);
  int64_t count = std::max<int64_t>(end - start, 0);
  Fact fact = rankedFact({dimConstant(getContext(), count)}, element);
  fact.content = Content(ArrayRef(*dims).slice(start, count));
  results.push_back(std::move(fact));
  return success();
}

LogicalResult SizeOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Fact fact = rankedFact({}, IntegerType::get(getContext(), 64));
  if (std::optional<Dims> dims = dimsOf(context, *this, operands[0]))
    fact.content = Content{dimProduct(getContext(), *dims)};
  results.push_back(std::move(fact));
  return success();
}

//===- Sizes that only data says
//--------------------------------------------------------------------------------------------------------===//

LogicalResult NonZeroOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &input = operands[0];
  Type element = IntegerType::get(getContext(), 64);
  if (!input.ranked()) {
    results.push_back(unrankedFact(element));
    return success();
  }
  DimAttr count;
  if (input.constant) {
    int64_t found = 0;
    for (int64_t i = 0, e = input.constant.numElements(); i < e; ++i)
      found += input.constant.getDouble(i) != 0;
    count = dimConstant(getContext(), found);
  } else {
    count = context.runtimeSymbol(*this, "nonzero");
  }
  // A scalar counts as a vector of one element.
  int64_t rank = std::max<int64_t>(input.ranked().getRank(), 1);
  results.push_back(rankedFact({dimConstant(getContext(), rank), count}, element));
  return success();
}

LogicalResult ReadSizesOp::infer(InferContext &, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &) {
  RankedTensorType type = operands[0].ranked();
  // C1: one i64 per symbol.
  if (type && (!type.getElementType().isSignlessInteger(64) || type.getRank() != 1 ||
               (type.hasStaticShape() && type.getDimSize(0) != static_cast<int64_t>(getSymbols().size()))))
    return emitOpError() << "reads " << getSymbols().size() << " sizes from " << type;
  return success();
}

//===- Range
//--------------------------------------------------------------------------------------------------------===//

/// max(ceil((limit - start) / step), 0).
static DimAttr rangeLength(DimAttr start, DimAttr limit, int64_t step) {
  MLIRContext *context = start.getContext();
  DimAttr distance = step > 0 ? dimSub(limit, start) : dimSub(start, limit);
  int64_t stride = std::abs(step);
  DimAttr zero = dimConstant(context, 0);
  if (!provablyNonNegative(distance))
    distance = dimMax(distance, zero);
  if (stride == 1)
    return distance;
  return dimFloorDiv(dimAdd(distance, dimConstant(context, stride - 1)), dimConstant(context, stride));
}

/// ceil((limit - start) / delta) of float constants; nullopt where they are unknown or absurd.
static std::optional<int64_t> floatLength(const Fact &start, const Fact &limit, const Fact &delta) {
  for (const Fact *fact : {&start, &limit, &delta})
    if (!fact->constant || fact->constant.numElements() != 1)
      return std::nullopt;
  double length = std::ceil((limit.constant.getDouble(0) - start.constant.getDouble(0)) / delta.constant.getDouble(0));
  if (!(length < 1e9))
    return std::nullopt;
  return std::max<int64_t>(static_cast<int64_t>(std::max(length, 0.0)), 0);
}

static std::optional<Content> rangeContent(const Fact &result, DimAttr start, int64_t step) {
  std::optional<SmallVector<int64_t>> shape = smallShape(result);
  if (!shape)
    return std::nullopt;
  Content content;
  for (int64_t i = 0; i < shape->front(); ++i)
    content.push_back(dimAdd(start, dimConstant(start.getContext(), i * step)));
  return content;
}

LogicalResult RangeOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  if (getStartDim()) {
    // C1: a resolved range has a step and a vector as result.
    auto type = dyn_cast<RankedTensorType>(getResult().getType());
    if (!type || type.getRank() != 1 || !getStepValue())
      return emitOpError() << "has a start but no step or no length";
    Fact result;
    result.type = type;
    result.content = rangeContent(result, *getStartDim(), *getStepValue());
    results.push_back(std::move(result));
    return success();
  }
  // C2: start, limit and step are scalars of one type.
  if (!getStart() || !getLimit() || !getDelta())
    return emitOpError() << "has no start, no limit or no step";
  const Fact &start = factOf(*this, operands, getStart()), &limit = factOf(*this, operands, getLimit()),
             &delta = factOf(*this, operands, getDelta());
  if (failed(requireSameElementType(*this, start, limit)) || failed(requireSameElementType(*this, start, delta)))
    return failure();
  for (const Fact *fact : {&start, &limit, &delta})
    if (fact->ranked() && fact->ranked().hasStaticShape() && fact->ranked().getNumElements() != 1)
      return emitOpError() << "takes scalars, not " << fact->type;
  Type element = elementTypeOf(start);
  std::optional<Content> from = integralContent(start), to = integralContent(limit), by = integralContent(delta);
  std::optional<int64_t> step = by ? constantValue(by->front()) : std::nullopt;
  // C3: the step is not zero.
  if (step == 0)
    return emitOpError() << "steps by zero";
  bool modest = step && std::abs(*step) <= (int64_t(1) << 40) && *step != INT64_MIN;
  if (from && to && modest) {
    Fact result = rankedFact({rangeLength(from->front(), to->front(), *step)}, element);
    result.content = rangeContent(result, from->front(), *step);
    results.push_back(std::move(result));
    return success();
  }
  std::optional<int64_t> length = isa<FloatType>(element) ? floatLength(start, limit, delta) : std::nullopt;
  results.push_back(
      rankedFact({length ? dimConstant(getContext(), *length) : context.runtimeSymbol(*this, "range")}, element));
  return success();
}

//===- Fill
//---------------------------------------------------------------------------------------------------------===//

LogicalResult FillOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  ShapedType valueType = getValue().getShapedType();
  // C1: the value is one number.
  if (!valueType.hasStaticShape() || valueType.getNumElements() != 1 ||
      !isa<IntegerType, FloatType>(valueType.getElementType()))
    return emitOpError() << "fills with " << valueType << ", not with one number";
  Type element = valueType.getElementType();
  Fact result;
  if (!getShape()) {
    // C2: a resolved fill says its result's shape.
    result.type = dyn_cast<RankedTensorType>(getResult().getType());
    if (!result.type)
      return emitOpError() << "has neither a shape nor a ranked result";
  } else if (operands[0].content) {
    // C3: sizes are not negative.
    for (DimAttr size : *operands[0].content)
      if (std::optional<int64_t> value = constantValue(size); value && *value < 0)
        return emitOpError() << "makes a tensor of shape " << toString(*operands[0].content);
    result = rankedFact(*operands[0].content, element);
  } else if (std::optional<int64_t> rank = staticLength(operands[0]); rank && *rank <= 64) {
    Dims dims;
    for (int64_t i = 0; i < *rank; ++i)
      dims.push_back(context.runtimeSymbol(*this, "filled"));
    result = rankedFact(dims, element);
  } else {
    result = unrankedFact(element);
  }
  if (std::optional<SmallVector<int64_t>> shape = smallShape(result); shape && isa<IntegerType>(element)) {
    int64_t value = HostTensor::fromElements(getValue()).getInt(0);
    result.content = Content(ShapedType::getNumElements(*shape), dimConstant(getContext(), value));
  }
  results.push_back(std::move(result));
  return success();
}
