//===- EvaluateRows.cpp - evaluation of reductions, norms and scans along axes --------------------------------===//
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

/// The larger one; NaN wins.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// The reduction of the numbers that `next(i)` gives for i below `count`.
template <typename Next> double reduceFloats(ReduceKind kind, int64_t count, Next next) {
  double sum = 0, product = 1, most = -infinity;
  for (int64_t i = 0; i < count; ++i) {
    const double x = next(i);
    switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Mean:
    case ReduceKind::LogSum:
      sum += x;
      break;
    case ReduceKind::SumSquare:
    case ReduceKind::L2:
      sum += x * x;
      break;
    case ReduceKind::L1:
      sum += std::fabs(x);
      break;
    case ReduceKind::Prod:
      product *= x;
      break;
    case ReduceKind::Min:
      most = larger(most, -x);
      break;
    case ReduceKind::Max:
    case ReduceKind::LogSumExp:
      most = larger(most, x);
      break;
    }
  }
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::SumSquare:
  case ReduceKind::L1:
    return sum;
  case ReduceKind::Mean:
    return sum / static_cast<double>(count);
  case ReduceKind::L2:
    return std::sqrt(sum);
  case ReduceKind::LogSum:
    return math::log(sum);
  case ReduceKind::Prod:
    return product;
  case ReduceKind::Max:
    return most;
  case ReduceKind::Min:
    return -most;
  case ReduceKind::LogSumExp:
    break;
  }
  if (std::isinf(most)) // Nothing, only -inf, or +inf: x - max would be NaN.
    return most;
  for (int64_t i = 0; i < count; ++i)
    sum += math::exp(next(i) - most);
  return most + math::log(sum);
}

/// Kinds that are exact on integers; the others go through reduceFloats. nullopt: a mean of nothing.
template <typename Next>
std::optional<int64_t> reduceInts(ReduceKind kind, IntegerType type, int64_t count, Next next) {
  const bool isUnsigned = type.isUnsigned();
  const unsigned width = type.getWidth();
  uint64_t sum = 0, product = 1;
  const uint64_t ones = ~uint64_t{0} >> (64 - width);
  const bool fromZero = isUnsigned || width == 1;
  const auto highest = static_cast<int64_t>(fromZero ? ones : ones >> 1);
  const int64_t lowest = fromZero ? 0 : -highest - 1;
  int64_t most = kind == ReduceKind::Min ? highest : lowest;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t x = next(i);
    const auto word = static_cast<uint64_t>(x);
    const bool greater = isUnsigned ? word > static_cast<uint64_t>(most) : x > most;
    const uint64_t magnitude = x < 0 && !isUnsigned ? -word : word;
    sum += kind == ReduceKind::SumSquare ? word * word : kind == ReduceKind::L1 ? magnitude : word;
    product *= word;
    if (kind == ReduceKind::Min ? !greater : greater)
      most = x;
  }
  switch (kind) {
  case ReduceKind::Mean:
    if (count == 0)
      return std::nullopt;
    return isUnsigned ? static_cast<int64_t>(sum / static_cast<uint64_t>(count)) : static_cast<int64_t>(sum) / count;
  case ReduceKind::Prod:
    return static_cast<int64_t>(product);
  case ReduceKind::Max:
  case ReduceKind::Min:
    return most;
  default:
    return static_cast<int64_t>(sum);
  }
}

bool exactOnInts(ReduceKind kind) {
  return kind != ReduceKind::L2 && kind != ReduceKind::LogSum && kind != ReduceKind::LogSumExp;
}

/// One axis of a shape as [outer, size, inner].
struct AxisView {
  int64_t outer, size, inner;
  int64_t at(int64_t row, int64_t index) const { return (row / inner * size + index) * inner + row % inner; }
  int64_t rows() const { return outer * inner; }
};
FailureOr<AxisView> viewAxis(Operation *op, ArrayRef<int64_t> shape, int64_t axis) {
  std::optional<int64_t> normal = normalizeAxis(axis, shape.size());
  if (!normal)
    return op->emitOpError() << "names axis " << axis << " of a tensor with " << shape.size() << " axes";
  return AxisView{productOf(shape.take_front(*normal)), shape[*normal], productOf(shape.drop_front(*normal + 1))};
}

LogicalResult sameShape(Operation *op, const HostTensor &input, const HostTensor &result) {
  if (input.shape() == result.shape())
    return success();
  return op->emitOpError() << "cannot turn shape " << toText(input.shape()) << " into " << toText(result.shape());
}
} // namespace

LogicalResult ReduceOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  const HostTensor axesValue = operandAt(*this, operands, 1);
  HostTensor &result = results[0];
  if (failed(sameElementType(*this, {input, result})))
    return failure();
  ArrayRef<int64_t> shape = input.shape();
  std::vector<int64_t> axes = axesValue ? toInts(axesValue) : std::vector<int64_t>();
  if (!axesValue && getAxes())
    axes.assign(getAxes()->begin(), getAxes()->end());
  SmallVector<bool> reduced(shape.size(), axes.empty() && !getNoopWithEmptyAxes());
  for (int64_t axis : axes) {
    std::optional<int64_t> normal = normalizeAxis(axis, shape.size());
    if (!normal)
      return emitOpError() << "names axis " << axis << " of a tensor with " << shape.size() << " axes";
    reduced[*normal] = true;
  }
  Sizes kept, folded, keptStrides, foldedStrides, expected, strides = stridesOf(shape);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    (reduced[axis] ? folded : kept).push_back(shape[axis]);
    (reduced[axis] ? foldedStrides : keptStrides).push_back(strides[axis]);
    if (!reduced[axis] || getKeepdims())
      expected.push_back(reduced[axis] ? 1 : shape[axis]);
  }
  if (ArrayRef<int64_t>(expected) != result.shape())
    return emitOpError() << "gives shape " << toText(expected) << " where " << toText(result.shape())
                         << " was expected";
  std::vector<int64_t> members(productOf(folded));
  forEachPosition(folded, {foldedStrides}, [&](int64_t number, ArrayRef<int64_t> offsets) {
    members[number] = offsets[0];
    return true;
  });
  auto integer = dyn_cast<IntegerType>(input.elementType());
  const auto count = static_cast<int64_t>(members.size());
  return success(forEachPosition(kept, {keptStrides}, [&](int64_t number, ArrayRef<int64_t> offsets) {
    if (!integer || !exactOnInts(getKind())) {
      result.setDouble(
          number, reduceFloats(getKind(), count, [&](int64_t i) { return input.getDouble(offsets[0] + members[i]); }));
      return true;
    }
    std::optional<int64_t> value =
        reduceInts(getKind(), integer, count, [&](int64_t i) { return input.getInt(offsets[0] + members[i]); });
    if (!value) {
      emitOpError() << "takes the mean of no integers";
      return false;
    }
    result.setInt(number, *value);
    return true;
  }));
}

LogicalResult ArgMaxOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  FailureOr<AxisView> view = viewAxis(*this, input.shape(), getAxis());
  if (failed(view))
    return failure();
  if (view->rows() != results[0].numElements())
    return emitOpError() << "gives " << view->rows() << " indices where " << results[0].numElements()
                         << " were expected";
  if (view->size == 0 && view->rows() != 0)
    return emitOpError() << "looks for the largest of no elements";
  const bool floating = isFloat(input);
  auto greater = [&](int64_t a, int64_t b) {
    if (floating) { // the first NaN beats everything
      const double x = input.getDouble(a), y = input.getDouble(b);
      return !std::isnan(y) && (std::isnan(x) || (getSmallest() ? x < y : x > y));
    }
    if (getSmallest())
      std::swap(a, b);
    return isUnsigned(input) ? static_cast<uint64_t>(input.getInt(a)) > static_cast<uint64_t>(input.getInt(b))
                             : input.getInt(a) > input.getInt(b);
  };
  auto isNaN = [&](int64_t at) { return floating && std::isnan(input.getDouble(at)); };
  for (int64_t row = 0; row < view->rows(); ++row) {
    int64_t best = 0;
    for (int64_t i = 1; i < view->size; ++i)
      if (getSelectLastIndex() && !isNaN(view->at(row, best)) ? !greater(view->at(row, best), view->at(row, i))
                                                              : greater(view->at(row, i), view->at(row, best)))
        best = i;
    results[0].setInt(row, best);
  }
  return success();
}

LogicalResult SoftmaxOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  HostTensor &result = results[0];
  FailureOr<AxisView> view = viewAxis(*this, input.shape(), getAxis());
  if (failed(view) || failed(sameShape(*this, input, result)) || failed(sameElementType(*this, {input, result})))
    return failure();
  if (!isFloat(input))
    return emitOpError() << "is not defined for elements of type " << input.elementType();
  const std::vector<double> values = toDoubles(input);
  std::vector<double> exps(view->size);
  for (int64_t row = 0; row < view->rows(); ++row) {
    double most = -infinity, sum = 0;
    for (int64_t i = 0; i < view->size; ++i)
      most = larger(most, values[view->at(row, i)]);
    for (int64_t i = 0; i < view->size; ++i) {
      exps[i] = math::exp(values[view->at(row, i)] - most);
      sum += exps[i];
    }
    const double logSum = getLogarithm() ? math::log(sum) : 0;
    for (int64_t i = 0; i < view->size; ++i) {
      const int64_t at = view->at(row, i);
      result.setDouble(at, getLogarithm() ? (values[at] - most) - logSum : exps[i] / sum);
    }
  }
  return success();
}

LogicalResult LayerNormOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  const HostTensor scale = operandAt(*this, operands, 1), bias = operandAt(*this, operands, 2);
  HostTensor &result = results[0];
  std::optional<int64_t> axis = normalizeAxis(getAxis(), input.shape().size());
  if (!axis)
    return emitOpError() << "names axis " << getAxis() << " of a tensor with " << input.shape().size() << " axes";
  if (failed(sameShape(*this, input, result)))
    return failure();
  if (!isFloat(input) || !isFloat(result))
    return emitOpError() << "is not defined for elements of type " << input.elementType();
  const int64_t size = productOf(input.shape().drop_front(*axis)), rows = size ? input.numElements() / size : 0;
  std::vector<double> values = toDoubles(input);
  for (int64_t row = 0; row < rows; ++row) {
    double *x = values.data() + row * size;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < size && !getRms(); ++i)
      mean += x[i];
    mean /= static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i)
      variance += (x[i] - mean) * (x[i] - mean);
    variance /= static_cast<double>(size);
    const double deviation = std::sqrt(variance + static_cast<double>(getEpsilon().convertToFloat()));
    for (int64_t i = 0; i < size; ++i)
      x[i] = (x[i] - mean) / deviation;
  }
  SmallVector<Sizes> strides;
  for (const HostTensor &parameter : {scale, bias}) {
    std::optional<Sizes> own =
        parameter ? broadcastStrides(parameter.shape(), input.shape()) : Sizes(input.shape().size(), 0);
    if (!own)
      return emitOpError() << "cannot broadcast shape " << toText(parameter.shape()) << " to " << toText(input.shape());
    strides.push_back(*own);
  }
  forEachPosition(input.shape(), strides, [&](int64_t number, ArrayRef<int64_t> offsets) {
    double x = values[number];
    if (scale)
      x *= scale.getDouble(offsets[0]);
    if (bias)
      x += bias.getDouble(offsets[1]);
    result.setDouble(number, x);
    return true;
  });
  return success();
}

LogicalResult CumSumOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  const HostTensor axisValue = operandAt(*this, operands, 1);
  HostTensor &result = results[0];
  if (axisValue && axisValue.numElements() != 1)
    return emitOpError() << "needs one axis, but has " << axisValue.numElements();
  const int64_t axis = axisValue ? axisValue.getInt(0) : getAxis().value_or(0);
  FailureOr<AxisView> view = viewAxis(*this, input.shape(), axis);
  if (failed(view) || failed(sameShape(*this, input, result)) || failed(sameElementType(*this, {input, result})))
    return failure();
  for (int64_t row = 0; row < view->rows(); ++row) {
    double sum = getProduct() ? 1 : 0;
    uint64_t words = getProduct() ? 1 : 0;
    for (int64_t i = 0; i < view->size; ++i) {
      const int64_t at = view->at(row, getReverse() ? view->size - 1 - i : i);
      const double before = sum;
      const uint64_t wordsBefore = words;
      if (isFloat(input)) {
        sum = getProduct() ? sum * input.getDouble(at) : sum + input.getDouble(at);
        result.setDouble(at, getExclusive() ? before : sum);
      } else {
        const auto word = static_cast<uint64_t>(input.getInt(at));
        words = getProduct() ? words * word : words + word;
        result.setInt(at, static_cast<int64_t>(getExclusive() ? wordsBefore : words));
      }
    }
  }
  return success();
}

LogicalResult TopKOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  FailureOr<AxisView> view = viewAxis(*this, input.shape(), getAxis()),
                      picked = viewAxis(*this, results[0].shape(), getAxis());
  if (failed(view) || failed(picked) || failed(sameElementType(*this, {input, results[0]})))
    return failure();
  if (view->outer != picked->outer || view->inner != picked->inner || picked->size > view->size)
    return emitOpError() << "picks " << toText(results[0].shape()) << " of " << toText(input.shape());
  auto greater = [&](int64_t a, int64_t b) {
    if (isFloat(input)) {
      const double x = input.getDouble(a), y = input.getDouble(b);
      return x > y || (std::isnan(x) && !std::isnan(y));
    }
    const int64_t x = input.getInt(a), y = input.getInt(b);
    return isUnsigned(input) ? static_cast<uint64_t>(x) > static_cast<uint64_t>(y) : x > y;
  };
  for (int64_t row = 0; row < view->rows(); ++row) {
    std::vector<int64_t> order(view->size);
    for (int64_t i = 0; i < view->size; ++i)
      order[i] = i;
    llvm::stable_sort(order, [&](int64_t a, int64_t b) {
      const int64_t x = view->at(row, a), y = view->at(row, b);
      return getLargest() ? greater(x, y) : greater(y, x);
    });
    for (int64_t i = 0; i < picked->size; ++i) {
      copyElements(results[0], picked->at(row, i), input, view->at(row, order[i]));
      results[1].setInt(picked->at(row, i), order[i]);
    }
  }
  return success();
}
