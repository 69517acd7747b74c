//===- EvaluateAttention.cpp - evaluation of attention --------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Evaluate.h"
#include "ir/HostMath.h"
#include <cmath>
#include <limits>

#pragma STDC FP_CONTRACT OFF

using namespace mlir;
using namespace mlir::transept;
using namespace mlir::transept::host;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
/// A bias of this much or less is a mask in disguise.
constexpr double exclusion = -1e4;

/// What a weight is where no key is visible.
double emptyWeight(EmptyRow policy, int64_t keys) {
  switch (policy) {
  case EmptyRow::Uniform:
    return 1 / static_cast<double>(keys);
  case EmptyRow::Zero:
    return 0;
  case EmptyRow::NaN:
    break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// Fills `weights` (one per key) with the softmax of query i's scores over its visible keys.
void attentionWeights(const AttentionProblem &p, int64_t b, int64_t h, int64_t i, std::vector<double> &weights) {
  const int64_t keyHead = h / (p.heads / p.keyHeads);
  double most = -infinity, sum = 0;
  bool any = false;
  for (int64_t j = 0; j < p.keys; ++j) {
    const double bias = p.bias ? p.bias(b, h, i, j) : 0;
    weights[j] = -infinity;
    if ((p.visible && !p.visible(b, h, i, j)) || bias <= exclusion)
      continue;
    double score = 0;
    for (int64_t d = 0; d < p.size; ++d)
      score += p.query(b, i, h, d) * p.key(b, j, keyHead, d);
    score *= p.scale;
    weights[j] = (p.softcap > 0 ? p.softcap * math::tanh(score / p.softcap) : score) + bias;
    most = std::isnan(most) || most > weights[j] ? most : weights[j];
    any = true;
  }
  if (!any) {
    std::fill(weights.begin(), weights.end(), emptyWeight(p.emptyRow, p.keys));
    return;
  }
  for (double &weight : weights) {
    // An invisible key has weight zero whatever the largest score is.
    weight = weight == -infinity ? 0 : math::exp(weight - most);
    sum += weight;
  }
  for (double &weight : weights)
    weight /= sum;
}

/// Strides of a tensor broadcast to [B, H, T, S]; an error at `op` where it does not.
LogicalResult scoreStrides(Operation *op, const HostTensor &tensor, StringRef what, ArrayRef<int64_t> scores,
                           Sizes &strides) {
  std::optional<Sizes> own = tensor ? broadcastStrides(tensor.shape(), scores) : Sizes(4, 0);
  if (!own)
    return op->emitOpError() << "cannot broadcast the " << what << " of shape " << toText(tensor.shape()) << " to "
                             << toText(scores);
  strides = *own;
  return success();
}
} // namespace

void host::attend(const AttentionProblem &p, HostTensor &result, HostTensor *probabilities) {
  std::vector<double> weights(p.keys);
  const int64_t group = p.heads / p.keyHeads;
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t i = 0; i < p.queries; ++i)
      for (int64_t h = 0; h < p.heads; ++h) {
        attentionWeights(p, b, h, i, weights);
        for (int64_t d = 0; d < p.valueSize; ++d) {
          double sum = 0;
          for (int64_t j = 0; j < p.keys; ++j)
            if (weights[j] != 0) // A hidden key's value must not matter, not even if it is NaN.
              sum += weights[j] * p.value(b, j, h / group, d);
          result.setDouble(((b * p.queries + i) * p.heads + h) * p.valueSize + d, sum);
        }
        for (int64_t j = 0; probabilities && j < p.keys; ++j)
          probabilities->setDouble(((b * p.heads + h) * p.queries + i) * p.keys + j, weights[j]);
      }
}

bool host::isRelativeTable(const HostTensor &table, int64_t heads) {
  return table.shape().size() == 2 && (table.shape()[0] == heads || table.shape()[0] == 1) && table.shape()[1] > 0;
}

double host::relativeBias(const HostTensor &table, int64_t head, int64_t column) {
  const int64_t columns = table.shape()[1], row = table.shape()[0] == 1 ? 0 : head;
  return table.getDouble(row * columns + std::clamp<int64_t>(column, 0, columns - 1));
}

LogicalResult AttentionOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &query = operands[0], &key = operands[1], &value = operands[2];
  const HostTensor keyMask = operandAt(*this, operands, 3), bias = operandAt(*this, operands, 4),
                   mask = operandAt(*this, operands, 5), relative = operandAt(*this, operands, 6);
  if (query.shape().size() != 4 || key.shape().size() != 4 || value.shape().size() != 4)
    return emitOpError() << "needs operands of four axes";
  const int64_t batch = query.shape()[0], queries = query.shape()[1], heads = query.shape()[2];
  const int64_t keys = key.shape()[1], keyHeads = key.shape()[2], size = query.shape()[3], valueSize = value.shape()[3];
  if (key.shape()[0] != batch || key.shape()[3] != size || keyHeads == 0 || heads % keyHeads != 0 ||
      value.shape().take_front(3) != key.shape().take_front(3))
    return emitOpError() << "cannot attend from " << toText(query.shape()) << " to keys " << toText(key.shape())
                         << " and values " << toText(value.shape());
  HostTensor &result = results[0];
  HostTensor *probabilities = results.size() > 1 ? &results[1] : nullptr;
  const Sizes scores = {batch, heads, queries, keys}, resultShape = {batch, queries, heads, valueSize};
  if (result.shape() != ArrayRef<int64_t>(resultShape) ||
      (probabilities && probabilities->shape() != ArrayRef<int64_t>(scores)))
    return emitOpError() << "gives shape " << toText(resultShape) << " where " << toText(result.shape())
                         << " was expected";
  if (keyMask && keyMask.shape() != ArrayRef<int64_t>({batch, keys}))
    return emitOpError() << "has a key mask of shape " << toText(keyMask.shape()) << " for " << batch << " rows of "
                         << keys << " keys";
  Sizes biasStrides, maskStrides;
  if (failed(scoreStrides(*this, bias, "bias", scores, biasStrides)) ||
      failed(scoreStrides(*this, mask, "mask", scores, maskStrides)))
    return failure();
  std::optional<int64_t> offset = getCausalOffset() ? constantValue(*getCausalOffset()) : 0;
  if (!offset)
    return emitOpError() << "depends on a symbol without a value: " << *getCausalOffset();

  std::optional<int64_t> origin = getRelativeOrigin() ? constantValue(*getRelativeOrigin()) : 0;
  if (!origin)
    return emitOpError() << "depends on a symbol without a value: " << *getRelativeOrigin();
  if (relative && !isRelativeTable(relative, heads))
    return emitOpError() << "has a relative bias of shape " << toText(relative.shape()) << " for " << heads << " heads";

  const std::vector<double> q = toDoubles(query), k = toDoubles(key), v = toDoubles(value);
  AttentionProblem problem;
  problem.batch = batch;
  problem.queries = queries;
  problem.keys = keys;
  problem.heads = heads;
  problem.keyHeads = keyHeads;
  problem.size = size;
  problem.valueSize = valueSize;
  problem.scale = getScale().convertToFloat();
  problem.softcap = getSoftcap().convertToFloat();
  problem.emptyRow = getEmptyRow();
  problem.query = [&](int64_t b, int64_t i, int64_t h, int64_t d) {
    return q[((b * queries + i) * heads + h) * size + d];
  };
  problem.key = [&](int64_t b, int64_t j, int64_t h, int64_t d) {
    return k[((b * keys + j) * keyHeads + h) * size + d];
  };
  problem.value = [&](int64_t b, int64_t j, int64_t h, int64_t d) {
    return v[((b * keys + j) * keyHeads + h) * valueSize + d];
  };
  problem.visible = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return (!getCausal() || j <= i + *offset) && (!keyMask || keyMask.getDouble(b * keys + j) != 0) &&
           (!mask ||
            mask.getInt(b * maskStrides[0] + h * maskStrides[1] + i * maskStrides[2] + j * maskStrides[3]) != 0);
  };
  if (bias || relative)
    problem.bias = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
      double given =
          bias ? bias.getDouble(b * biasStrides[0] + h * biasStrides[1] + i * biasStrides[2] + j * biasStrides[3]) : 0;
      return given > exclusion && relative ? given + relativeBias(relative, h, j - i - *origin) : given;
    };
  attend(problem, result, probabilities);
  return success();
}
