//===- EvaluateRecurrent.cpp - evaluation of recurrent layers ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Evaluate.h"
#include "ir/HostMath.h"
#include <cmath>

#pragma STDC FP_CONTRACT OFF

using namespace mlir;
using namespace mlir::transept;
using namespace mlir::transept::host;

namespace {
double activate(StringRef name, double alpha, double beta, double x) {
  if (name == "Tanh")
    return math::tanh(x);
  if (name == "Sigmoid")
    return math::sigmoid(x);
  if (name == "Relu")
    return x < 0 ? 0 : x;
  if (name == "Affine")
    return alpha * x + beta;
  if (name == "LeakyRelu")
    return x < 0 ? alpha * x : x;
  if (name == "ThresholdedRelu")
    return x > alpha ? x : 0;
  if (name == "ScaledTanh")
    return alpha * math::tanh(beta * x);
  if (name == "HardSigmoid")
    return std::fmax(0, std::fmin(1, alpha * x + beta));
  if (name == "Elu")
    return x < 0 ? alpha * (math::exp(x) - 1) : x;
  if (name == "Softsign")
    return x / (1 + std::fabs(x));
  return std::fmax(x, 0) + math::log(1 + math::exp(-std::fabs(x)));
}

class Recurrence {
public:
  Recurrence(RecurrentOp op, ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results)
      : op(op), input(toDoubles(operands[0])), weight(toDoubles(operands[1])), results(results),
        positions(operands[0].shape()[0]), batch(operands[0].shape()[1]), width(operands[0].shape()[2]),
        size(operands[1].shape()[0]), gates(width) {
    if (HostTensor given = operandAt(op, operands, 2))
      lengths = toInts(given);
    hidden = state(operandAt(op, operands, 3));
    cell = state(operandAt(op, operands, 4));
    if (HostTensor given = operandAt(op, operands, 5))
      peephole = toDoubles(given);
    hiddenBias.assign(size, 0);
    if (HostTensor given = operandAt(op, operands, 6))
      hiddenBias = toDoubles(given);
  }

  void run() {
    for (int64_t row = 0; row < batch; ++row) {
      const int64_t count =
          lengths.empty() ? positions : std::max<int64_t>(0, std::min<int64_t>(lengths[row], positions));
      for (int64_t i = 0; i < count; ++i) {
        const int64_t time = op.getReverse() ? count - 1 - i : i;
        visit(row, &input[(time * batch + row) * width]);
        for (int64_t j = 0; j < size; ++j)
          results[0].setDouble((time * batch + row) * size + j, hidden[row * size + j]);
      }
      for (int64_t j = 0; j < size; ++j) {
        results[1].setDouble(row * size + j, hidden[row * size + j]);
        if (results.size() > 2)
          results[2].setDouble(row * size + j, cell[row * size + j]);
      }
    }
  }

private:
  std::vector<double> state(const HostTensor &given) {
    return given ? toDoubles(given) : std::vector<double>(batch * size, 0);
  }
  double apply(size_t function, double x) {
    // The cell is no gate.
    if (const double clip = op.getClip().convertToFloat(); clip != 0 && function < 2)
      x = std::fmax(-clip, std::fmin(clip, x));
    return activate(cast<StringAttr>(op.getActivations()[function]).getValue(), op.getAlpha()[function],
                    op.getBeta()[function], x);
  }
  /// Column `column` of the product of a state and the weight.
  double product(const double *of, int64_t column) const {
    double sum = 0;
    for (int64_t k = 0; k < size; ++k)
      sum += of[k] * weight[k * width + column];
    return sum;
  }
  /// The state after one position, which gives `x` to the gates.
  void visit(int64_t row, const double *x) {
    double *h = &hidden[row * size], *c = &cell[row * size];
    for (int64_t j = 0; j < width; ++j)
      gates[j] = x[j] + product(h, j);
    std::vector<double> next(size);
    if (op.getKind() == CellKind::Rnn)
      for (int64_t j = 0; j < size; ++j)
        next[j] = apply(0, gates[j]);
    else if (op.getKind() == CellKind::Gru)
      next = gru(x, h);
    else
      for (int64_t j = 0; j < size; ++j)
        next[j] = lstm(j, c[j]);
    std::copy(next.begin(), next.end(), h);
  }
  std::vector<double> gru(const double *x, const double *h) {
    std::vector<double> reset(size), resetState(size), next(size);
    for (int64_t j = 0; j < size; ++j) {
      reset[j] = apply(0, gates[size + j]);
      resetState[j] = reset[j] * h[j];
    }
    for (int64_t j = 0; j < size; ++j) {
      const int64_t column = 2 * size + j;
      const double recurrent = op.getLinearBeforeReset() ? reset[j] * (product(h, column) + hiddenBias[j])
                                                         : product(resetState.data(), column);
      const double candidate = apply(1, x[column] + recurrent), update = apply(0, gates[j]);
      next[j] = (1 - update) * candidate + update * h[j];
    }
    return next;
  }
  double lstm(int64_t j, double &c) {
    auto gate = [&](int64_t number, double seen) {
      const double held = peephole.empty() ? 0 : peephole[number * size + j] * seen;
      return apply(0, gates[number * size + j] + held);
    };
    const double in = gate(0, c), forget = op.getCoupled() ? 1 - in : gate(2, c);
    c = forget * c + in * apply(1, gates[3 * size + j]);
    return gate(1, c) * apply(2, c);
  }

  RecurrentOp op;
  std::vector<double> input, weight;
  SmallVectorImpl<HostTensor> &results;
  int64_t positions, batch, width, size;
  std::vector<double> gates, hidden, cell, peephole, hiddenBias;
  std::vector<int64_t> lengths;
};
} // namespace

LogicalResult RecurrentOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  ArrayRef<int64_t> input = operands[0].shape(), weight = operands[1].shape();
  const int64_t gates = getKind() == CellKind::Rnn ? 1 : getKind() == CellKind::Gru ? 3 : 4;
  if (input.size() != 3 || weight.size() != 2 || input[2] != gates * weight[0] || weight[1] != input[2])
    return emitOpError() << "runs over " << toText(input) << " with a weight of " << toText(weight);
  const int64_t batch = input[1], size = weight[0];
  const SmallVector<int64_t> states[] = {{batch}, {batch, size}, {batch, size}, {3 * size}, {size}};
  for (unsigned i = 0; i < 5; ++i)
    if (HostTensor given = operandAt(*this, operands, 2 + i); given && given.shape() != ArrayRef<int64_t>(states[i]))
      return emitOpError() << "has an operand of shape " << toText(given.shape()) << " where " << toText(states[i])
                           << " is needed";
  const SmallVector<int64_t> whole = {input[0], batch, size};
  for (auto [i, result] : llvm::enumerate(results))
    if (result.shape() != ArrayRef<int64_t>(i == 0 ? whole : states[1]))
      return emitOpError() << "has a result of shape " << toText(result.shape());
  Recurrence(*this, operands, results).run();
  return success();
}
