//===- InferRecurrent.cpp - recurrent layers ---------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/InferSupport.h"

using namespace mlir;
using namespace mlir::transept;

static int64_t gatesOf(CellKind kind) { return kind == CellKind::Rnn ? 1 : kind == CellKind::Gru ? 3 : 4; }

/// The operand has these sizes; a null size is any.
static LogicalResult requireDims(InferContext &context, RecurrentOp op, ArrayRef<Fact> operands, Value operand,
                                 ArrayRef<DimAttr> wanted, StringRef what) {
  if (!operand)
    return success();
  std::optional<Dims> dims = dimsOf(context, op, factOf(op, operands, operand));
  if (!dims)
    return success();
  if (dims->size() != wanted.size())
    return op.emitOpError() << "has " << what << " of shape " << toString(*dims) << "; " << wanted.size()
                            << " axes are needed";
  for (auto [given, size] : llvm::zip(*dims, wanted))
    if (size && failed(requireEqual(context, op, size, given, what)))
      return failure();
  return success();
}

LogicalResult RecurrentOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Type element = elementTypeOf(operands[0]);
  unsigned count = getOperation()->getNumResults();
  // C1: a cell state comes out of an LSTM, and of nothing else; coupling and peepholes belong to it.
  bool isLstm = getKind() == CellKind::Lstm;
  if (isLstm != (count == 3) || (!isLstm && (getCell() || getPeephole() || getCoupled())))
    return emitOpError() << "has the operands or results of another kind of cell";
  // C2: a bias of the product belongs to a GRU that multiplies before the reset.
  if ((getHiddenBias() || getLinearBeforeReset()) && (getKind() != CellKind::Gru || !getLinearBeforeReset()))
    return emitOpError() << "has a hidden bias without a GRU that is linear before the reset";
  // C3: there is one activation with its parameters per function of the cell.
  size_t functions = getKind() == CellKind::Rnn ? 1 : getKind() == CellKind::Gru ? 2 : 3;
  static constexpr StringLiteral known[] = {
      "Relu",       "Tanh",        "Sigmoid", "Affine",   "LeakyRelu", "ThresholdedRelu",
      "ScaledTanh", "HardSigmoid", "Elu",     "Softsign", "Softplus"};
  if (getActivations().size() != functions || getAlpha().size() != functions || getBeta().size() != functions)
    return emitOpError() << "has " << getActivations().size() << " activations; " << functions << " are needed";
  for (auto name : getActivations().getAsRange<StringAttr>())
    if (!llvm::is_contained(known, name.getValue()))
      return emitOpError() << "has the unknown activation " << name;
  // C4: elements are of one type.
  for (Value operand :
       {Value(getWeight()), Value(getHidden()), Value(getCell()), Value(getPeephole()), Value(getHiddenBias())})
    if (operand && failed(requireSameElementType(*this, operands[0], factOf(*this, operands, operand))))
      return failure();
  std::optional<Dims> input = dimsOf(context, *this, operands[0]), weight = dimsOf(context, *this, operands[1]);
  if (!input || !weight) {
    results.append(count, unrankedFact(element));
    return success();
  }
  // C5: [positions, batch, gates] and [hidden, gates].
  if (input->size() != 3 || weight->size() != 2)
    return emitOpError() << "runs over " << toString(*input) << " with a weight of " << toString(*weight);
  DimAttr batch = (*input)[1], size = weight->front();
  DimAttr gates = dimMul(size, dimConstant(getContext(), gatesOf(getKind())));
  for (DimAttr given : {input->back(), weight->back()})
    if (failed(requireEqual(context, *this, gates, given, "has gates")))
      return failure();
  // C6: lengths are one per row, states one vector per row, parameters as long as the state.
  if (failed(requireDims(context, *this, operands, getLengths(), {batch}, "lengths")) ||
      failed(requireDims(context, *this, operands, getHidden(), {batch, size}, "a hidden state")) ||
      failed(requireDims(context, *this, operands, getCell(), {batch, size}, "a cell state")) ||
      failed(requireDims(context, *this, operands, getPeephole(), {dimMul(size, dimConstant(getContext(), 3))},
                         "peepholes")) ||
      failed(requireDims(context, *this, operands, getHiddenBias(), {size}, "a hidden bias")))
    return failure();
  results.push_back(rankedFact({input->front(), batch, size}, element));
  results.append(count - 1, rankedFact({batch, size}, element));
  return success();
}
