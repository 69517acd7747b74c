//===- InferProducts.cpp - matrix products and convolution -----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/InferSupport.h"

using namespace mlir;
using namespace mlir::transept;

/// NumPy rules: vectors take part as a row (left) or a column (right) that the result lacks.
static LogicalResult inferMatMul(InferContext &context, Operation *op, const Fact &lhs, const Fact &rhs, Type element,
                                 SmallVectorImpl<Fact> &results) {
  std::optional<Dims> a = dimsOf(context, op, lhs), b = dimsOf(context, op, rhs);
  if (!a || !b) {
    results.push_back(unrankedFact(element));
    return success();
  }
  // C2: operands have at least one axis.
  if (a->empty() || b->empty())
    return op->emitOpError() << "multiplies " << toString(*a) << " by " << toString(*b) << "; scalars have no axis";
  bool row = a->size() == 1, column = b->size() == 1;
  // C3: the contracted dimensions agree.
  DimAttr contracted = column ? b->back() : (*b)[b->size() - 2];
  if (failed(requireEqual(context, op, a->back(), contracted, "contracts")))
    return failure();
  // C4: the leading dimensions broadcast.
  Dims leadingA(ArrayRef(*a).drop_back(row ? 1 : 2)), leadingB(ArrayRef(*b).drop_back(column ? 1 : 2));
  FailureOr<Dims> dims = broadcastDims(context, op, {leadingA, leadingB});
  if (failed(dims))
    return failure();
  if (!row)
    dims->push_back((*a)[a->size() - 2]);
  if (!column)
    dims->push_back(b->back());
  results.push_back(rankedFact(*dims, element));
  return success();
}

LogicalResult MatMulOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  // C1: operands have one element type.
  if (failed(requireSameElementType(*this, operands[0], operands[1])))
    return failure();
  return inferMatMul(context, *this, operands[0], operands[1], elementTypeOf(operands[0]), results);
}

/// A size that is repeated or has a position for each of `whole`.
static LogicalResult requireOneOr(InferContext &context, Operation *op, DimAttr size, DimAttr whole, StringRef what) {
  DimAttr one = dimConstant(op->getContext(), 1);
  if (size == one || size == whole)
    return success();
  if (decideEqual(size, one) == false)
    return failed(requireEqual(context, op, size, whole, what)) ? failure() : success();
  if (decideEqual(size, whole) == false)
    return failed(requireEqual(context, op, size, one, what)) ? failure() : success();
  DimAttr choice = dimMul(dimSub(size, one), dimSub(size, whole));
  context.guard(op, choice, GuardRelation::Equal, dimConstant(op->getContext(), 0),
                nodeLabel(op) + " " + what.str() + ": " + toString(size) + " must be 1 or " + toString(whole));
  return success();
}

/// A zero point of a factor: one, one per row (of the left one) or column (of the right one), or broadcast to it.
static LogicalResult requireZeroPoint(InferContext &context, Operation *op, const Fact &factor, const Fact &zeroPoint,
                                      bool left) {
  std::optional<Dims> whole = dimsOf(context, op, factor), own = dimsOf(context, op, zeroPoint);
  if (!whole || !own)
    return success();
  constexpr StringLiteral what = "subtracts a zero point";
  if (own->size() == 1 && left && whole->size() > 1)
    return requireOneOr(context, op, own->front(), (*whole)[whole->size() - 2], what);
  if (own->size() > whole->size())
    return op->emitOpError() << what << " of shape " << toString(*own) << " from a factor of " << toString(*whole);
  for (auto [size, target] : llvm::zip(llvm::reverse(*own), llvm::reverse(*whole)))
    if (failed(requireOneOr(context, op, size, target, what)))
      return failure();
  return success();
}

LogicalResult MatMulIntegerOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  // C1: operands are 8-bit integers.
  for (const Fact &operand : operands)
    if (!elementTypeOf(operand).isInteger(8))
      return emitOpError() << "multiplies 8-bit integers, not " << elementTypeOf(operand);
  // C5: zero points fit their factors.
  if (getLhsZeroPoint() &&
      failed(requireZeroPoint(context, *this, operands[0], factOf(*this, operands, getLhsZeroPoint()), true)))
    return failure();
  if (getRhsZeroPoint() &&
      failed(requireZeroPoint(context, *this, operands[1], factOf(*this, operands, getRhsZeroPoint()), false)))
    return failure();
  return inferMatMul(context, *this, operands[0], operands[1], IntegerType::get(getContext(), 32), results);
}

LogicalResult LinearOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  std::optional<Dims> input = dimsOf(context, *this, operands[0]), weight = dimsOf(context, *this, operands[1]);
  Type element = elementTypeOf(operands[0]);
  // C1: the weight is a matrix, the input has an axis to contract.
  if (!weight || weight->size() != 2 || (input && input->empty()))
    return emitOpError() << "needs an input with at least one axis and a weight with two";
  if (!input) {
    results.push_back(unrankedFact(element));
    return success();
  }
  // C2: the contracted dimensions agree.
  DimAttr k = (*weight)[getTransposed() ? 1 : 0], n = (*weight)[getTransposed() ? 0 : 1];
  if (failed(requireEqual(context, *this, input->back(), k, "contracts")))
    return failure();
  // C3: the bias has one value per column.
  if (getBias()) {
    std::optional<Dims> bias = dimsOf(context, *this, operands[2]);
    if (!bias || bias->size() != 1 || failed(requireEqual(context, *this, n, bias->front(), "adds a bias")))
      return bias && bias->size() == 1 ? failure() : emitOpError() << "needs a bias with one axis";
  }
  input->back() = n;
  results.push_back(rankedFact(*input, element));
  return success();
}

LogicalResult ConvOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  std::optional<Dims> input = dimsOf(context, *this, operands[0]), weight = dimsOf(context, *this, operands[1]);
  Type element = elementTypeOf(operands[0]);
  if (!input || !weight) {
    results.push_back(unrankedFact(element));
    return success();
  }
  // C1: input and weight have the same number (at least one) of spatial axes, and the attributes one entry for each.
  size_t rank = input->size(), spatial = rank - 2;
  if (rank < 3 || weight->size() != rank || getStrides().size() != spatial || getDilations().size() != spatial ||
      getPads().size() != 2 * spatial)
    return emitOpError() << "convolves " << toString(*input) << " with " << toString(*weight) << ", strides for "
                         << getStrides().size() << ", dilations for " << getDilations().size() << " and pads for "
                         << getPads().size() / 2 << " axes";
  int64_t group = getGroup();
  // C2: groups, strides and dilations are positive, pads are not negative.
  if (group < 1 ||
      llvm::any_of(
          getStrides(), [](int64_t s) { return s < 1; }) ||
      llvm::any_of(
          getDilations(), [](int64_t d) { return d < 1; }) ||
      llvm::any_of(getPads(), [](int64_t p) { return p < 0; }))
    return emitOpError() << "needs positive strides, dilations and groups, and pads that are not negative";
  // C3: every group sees its share of the channels.
  DimAttr channels = dimMul((*weight)[1], dimConstant(getContext(), group));
  if (failed(requireEqual(context, *this, (*input)[1], channels, "reads channels")))
    return failure();
  // C4: the kernel fits into the padded input.
  Dims dims{(*input)[0], (*weight)[0]};
  auto constant = [&](int64_t value) { return dimConstant(getContext(), value); };
  for (size_t axis = 0; axis < spatial; ++axis) {
    DimAttr padded = dimAdd((*input)[axis + 2], constant(getPads()[axis] + getPads()[axis + spatial]));
    DimAttr reach = dimMul(dimSub((*weight)[axis + 2], constant(1)), constant(getDilations()[axis]));
    if (failed(requireLessOrEqual(context, *this, dimAdd(reach, constant(1)), padded, "slides a kernel")))
      return failure();
    DimAttr steps = dimFloorDiv(dimSub(padded, dimAdd(reach, constant(1))), constant(getStrides()[axis]));
    dims.push_back(dimAdd(steps, constant(1)));
  }
  results.push_back(rankedFact(dims, element));
  return success();
}

LogicalResult DetOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Type element = elementTypeOf(operands[0]);
  // C1: elements are floats.
  if (!isa<FloatType>(element))
    return emitOpError() << "takes determinants of " << element;
  std::optional<Dims> dims = dimsOf(context, *this, operands[0]);
  if (!dims) {
    results.push_back(unrankedFact(element));
    return success();
  }
  // C2: the matrices are square.
  if (dims->size() < 2)
    return emitOpError() << "takes a determinant of " << toString(*dims);
  if (failed(requireEqual(context, *this, (*dims)[dims->size() - 2], dims->back(), "takes determinants")))
    return failure();
  results.push_back(rankedFact(ArrayRef(*dims).drop_back(2), element));
  return success();
}
