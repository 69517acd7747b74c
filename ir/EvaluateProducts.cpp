//===- EvaluateProducts.cpp - evaluation of matrix products and convolutions ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Evaluate.h"

#pragma STDC FP_CONTRACT OFF

using namespace mlir;
using namespace mlir::transept;
using namespace mlir::transept::host;

namespace {
/// One factor as a stack of matrices: [batch…, rows, columns].
struct Matrices {
  Sizes batch;
  int64_t rows, columns;
};

/// NumPy: a vector is a row on the left and a column on the right.
Matrices asMatrices(ArrayRef<int64_t> shape, bool left) {
  if (shape.size() == 1)
    return left ? Matrices{{}, 1, shape[0]} : Matrices{{}, shape[0], 1};
  return {Sizes(shape.drop_back(2)), shape[shape.size() - 2], shape.back()};
}

/// The shape of the product; nullopt (after an error at `op`) if the factors do not fit each other.
std::optional<Sizes> productShape(Operation *op, ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs, Sizes &batch) {
  if (lhs.empty() || rhs.empty()) {
    op->emitOpError() << "multiplies a scalar as if it was a matrix";
    return std::nullopt;
  }
  const Matrices left = asMatrices(lhs, true), right = asMatrices(rhs, false);
  if (left.columns != right.rows) {
    op->emitOpError() << "contracts " << left.columns << " with " << right.rows;
    return std::nullopt;
  }
  batch.assign(std::max(left.batch.size(), right.batch.size()), 1);
  for (const Sizes &own : {left.batch, right.batch})
    for (size_t axis = 0; axis < own.size(); ++axis) {
      int64_t &size = batch[batch.size() - own.size() + axis];
      if (own[axis] != 1 && size != 1 && size != own[axis]) {
        op->emitOpError() << "cannot broadcast the batch axes of " << toText(lhs) << " and " << toText(rhs);
        return std::nullopt;
      }
      if (own[axis] != 1)
        size = own[axis];
    }
  Sizes shape = batch;
  if (lhs.size() > 1)
    shape.push_back(left.rows);
  if (rhs.size() > 1)
    shape.push_back(right.columns);
  return shape;
}

/// result = lhs * rhs on dense row-major numbers, in the arithmetic of T.
template <typename T>
std::vector<T> multiply(const std::vector<T> &lhs, ArrayRef<int64_t> lhsShape, const std::vector<T> &rhs,
                        ArrayRef<int64_t> rhsShape, const Sizes &batch) {
  const Matrices left = asMatrices(lhsShape, true), right = asMatrices(rhsShape, false);
  const int64_t rows = left.rows, inner = left.columns, columns = right.columns;
  std::vector<T> result(productOf(batch) * rows * columns);
  SmallVector<Sizes> strides = {*broadcastStrides(left.batch, batch), *broadcastStrides(right.batch, batch)};
  forEachPosition(batch, strides, [&](int64_t number, ArrayRef<int64_t> offsets) {
    const T *a = lhs.data() + offsets[0] * rows * inner, *b = rhs.data() + offsets[1] * inner * columns;
    T *c = result.data() + number * rows * columns;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < inner; ++k)
        for (int64_t j = 0; j < columns; ++j)
          c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
    return true;
  });
  return result;
}

std::vector<uint64_t> toWords(const HostTensor &tensor) {
  std::vector<uint64_t> words(tensor.numElements());
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<uint64_t>(tensor.getInt(i));
  return words;
}

LogicalResult checkResultShape(Operation *op, ArrayRef<int64_t> computed, const HostTensor &result) {
  if (computed == result.shape())
    return success();
  return op->emitOpError() << "gives shape " << toText(computed) << " where " << toText(result.shape())
                           << " was expected";
}

/// The elements of an 8-bit factor as words with its zero point subtracted. The zero point is one value, or one per
/// row (of the left factor) or per column (of the right one), along `axis`.
FailureOr<std::vector<uint64_t>> centred(Operation *op, const HostTensor &factor, const HostTensor &zeroPoint,
                                         bool left) {
  std::vector<uint64_t> words = toWords(factor);
  if (!zeroPoint)
    return words;
  ArrayRef<int64_t> shape = factor.shape();
  std::optional<Sizes> strides;
  if (zeroPoint.numElements() == 1)
    strides = Sizes(shape.size(), 0);
  else if (left && zeroPoint.shape().size() == 1 && shape.size() >= 2)
    strides = broadcastStrides({zeroPoint.shape()[0], 1}, shape);
  else
    strides = broadcastStrides(zeroPoint.shape(), shape);
  if (!strides)
    return op->emitOpError() << "has a zero point of shape " << toText(zeroPoint.shape()) << " for a factor of shape "
                             << toText(shape);
  forEachPosition(shape, {*strides}, [&](int64_t number, ArrayRef<int64_t> offsets) {
    words[number] -= static_cast<uint64_t>(zeroPoint.getInt(offsets[0]));
    return true;
  });
  return words;
}
} // namespace

LogicalResult MatMulOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &lhs = operands[0], &rhs = operands[1];
  HostTensor &result = results[0];
  Sizes batch;
  std::optional<Sizes> shape = productShape(*this, lhs.shape(), rhs.shape(), batch);
  if (!shape || failed(checkResultShape(*this, *shape, result)) || failed(sameElementType(*this, {lhs, rhs, result})))
    return failure();
  if (isFloat(lhs)) {
    std::vector<double> product = multiply(toDoubles(lhs), lhs.shape(), toDoubles(rhs), rhs.shape(), batch);
    for (size_t i = 0; i < product.size(); ++i)
      result.setDouble(i, product[i]);
    return success();
  }
  std::vector<uint64_t> product = multiply(toWords(lhs), lhs.shape(), toWords(rhs), rhs.shape(), batch);
  for (size_t i = 0; i < product.size(); ++i)
    result.setInt(i, static_cast<int64_t>(product[i]));
  return success();
}

LogicalResult LinearOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0], &weight = operands[1];
  const HostTensor bias = operandAt(*this, operands, 2);
  HostTensor &result = results[0];
  if (failed(sameElementType(*this, {input, weight, bias, result})))
    return failure();
  if (weight.shape().size() != 2 || !isFloat(input))
    return emitOpError() << "needs a float matrix as weight, but has shape " << toText(weight.shape());
  std::vector<double> matrix = toDoubles(weight);
  Sizes matrixShape(weight.shape());
  if (getTransposed()) {
    const int64_t columns = matrixShape[0], inner = matrixShape[1];
    for (int64_t n = 0; n < columns; ++n)
      for (int64_t k = 0; k < inner; ++k)
        matrix[k * columns + n] = weight.getDouble(n * inner + k);
    std::swap(matrixShape[0], matrixShape[1]);
  }
  Sizes batch;
  std::optional<Sizes> shape = productShape(*this, input.shape(), matrixShape, batch);
  if (!shape || failed(checkResultShape(*this, *shape, result)))
    return failure();
  std::optional<Sizes> biasStrides = bias ? broadcastStrides(bias.shape(), *shape) : Sizes(shape->size(), 0);
  if (!biasStrides)
    return emitOpError() << "cannot broadcast the bias of shape " << toText(bias.shape()) << " to " << toText(*shape);
  std::vector<double> product = multiply(toDoubles(input), input.shape(), matrix, matrixShape, batch);
  forEachPosition(*shape, {*biasStrides}, [&](int64_t number, ArrayRef<int64_t> offsets) {
    result.setDouble(number, bias ? product[number] + bias.getDouble(offsets[0]) : product[number]);
    return true;
  });
  return success();
}

LogicalResult MatMulIntegerOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &lhs = operands[0], &rhs = operands[1];
  Sizes batch;
  std::optional<Sizes> shape = productShape(*this, lhs.shape(), rhs.shape(), batch);
  if (!shape || failed(checkResultShape(*this, *shape, results[0])))
    return failure();
  if (isFloat(lhs) || isFloat(rhs))
    return emitOpError() << "multiplies integers, but has " << lhs.elementType() << " and " << rhs.elementType();
  FailureOr<std::vector<uint64_t>> left = centred(*this, lhs, operandAt(*this, operands, 2), true);
  if (failed(left))
    return failure();
  FailureOr<std::vector<uint64_t>> right = centred(*this, rhs, operandAt(*this, operands, 3), false);
  if (failed(right))
    return failure();
  std::vector<uint64_t> product = multiply(*left, lhs.shape(), *right, rhs.shape(), batch);
  for (size_t i = 0; i < product.size(); ++i)
    results[0].setInt(i, static_cast<int64_t>(product[i]));
  return success();
}

LogicalResult ConvOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0], &weight = operands[1];
  const HostTensor bias = operandAt(*this, operands, 2);
  HostTensor &result = results[0];
  if (failed(sameElementType(*this, {input, weight, bias, result})))
    return failure();
  const size_t rank = input.shape().size(), spatial = rank - 2;
  ArrayRef<int64_t> strides = getStrides(), pads = getPads(), dilations = getDilations();
  const int64_t group = getGroup();
  if (rank < 3 || weight.shape().size() != rank || result.shape().size() != rank || strides.size() != spatial ||
      dilations.size() != spatial || pads.size() != 2 * spatial || input.elementType().isInteger(1))
    return emitOpError() << "cannot convolve " << toText(input.shape()) << " with " << toText(weight.shape());
  const int64_t channels = input.shape()[1], filters = weight.shape()[0], depth = weight.shape()[1];
  if (group <= 0 || channels != depth * group || filters % group != 0 || result.shape()[1] != filters ||
      result.shape()[0] != input.shape()[0] || (bias && bias.numElements() != filters))
    return emitOpError() << "has " << channels << " channels, " << group << " groups, filters of shape "
                         << toText(weight.shape()) << " and a result of shape " << toText(result.shape());
  // Far more than any tensor holds; the bound keeps positions in range.
  constexpr int64_t maxAmount = int64_t{1} << 24;
  for (ArrayRef<int64_t> amounts : {strides, pads, dilations})
    for (int64_t amount : amounts)
      if (amount > maxAmount || amount < -maxAmount)
        return emitOpError() << "has a stride, padding or dilation of " << amount;
  const Sizes inputStrides = stridesOf(input.shape());
  ArrayRef<int64_t> kernel = weight.shape().drop_front(2), inputSpace = input.shape().drop_front(2);
  const Sizes kernelStrides = stridesOf(kernel);
  const int64_t kernelSize = productOf(kernel);
  Sizes units = stridesOf(result.shape());
  // Visits the pairs of elements of input and weight whose products make element `number` of the result.
  auto forEachPair = [&](int64_t number, llvm::function_ref<void(int64_t, int64_t)> visit) {
    const int64_t item = number / units[0], filter = number / units[1] % filters;
    const int64_t firstChannel = filter / (filters / group) * depth;
    for (int64_t tap = 0; tap < kernelSize; ++tap) {
      int64_t offset = 0;
      bool inside = true;
      for (size_t axis = 0; axis < spatial; ++axis) {
        const int64_t out = number / units[axis + 2] % result.shape()[axis + 2];
        const int64_t at =
            out * strides[axis] - pads[axis] + tap / kernelStrides[axis] % kernel[axis] * dilations[axis];
        inside &= at >= 0 && at < inputSpace[axis];
        offset += at * inputStrides[axis + 2];
      }
      for (int64_t channel = 0; inside && channel < depth; ++channel)
        visit(item * inputStrides[0] + (firstChannel + channel) * inputStrides[1] + offset,
              (filter * depth + channel) * kernelSize + tap);
    }
  };
  const bool floating = isFloat(input);
  for (int64_t number = 0, count = result.numElements(); number < count; ++number) {
    const int64_t filter = number / units[1] % filters;
    double sum = bias && floating ? bias.getDouble(filter) : 0;
    uint64_t words = bias && !floating ? static_cast<uint64_t>(bias.getInt(filter)) : 0;
    if (floating)
      forEachPair(number, [&](int64_t at, int64_t tap) { sum += input.getDouble(at) * weight.getDouble(tap); });
    else
      forEachPair(number, [&](int64_t at, int64_t tap) {
        words += static_cast<uint64_t>(input.getInt(at)) * static_cast<uint64_t>(weight.getInt(tap));
      });
    floating ? result.setDouble(number, sum) : result.setInt(number, static_cast<int64_t>(words));
  }
  return success();
}

LogicalResult DetOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  ArrayRef<int64_t> shape = input.shape();
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2] || shape.drop_back(2) != results[0].shape())
    return emitOpError() << "takes determinants of " << toText(shape);
  const int64_t n = shape.back();
  for (int64_t number = 0; number < results[0].numElements(); ++number) {
    std::vector<double> matrix(n * n);
    for (int64_t i = 0; i < n * n; ++i)
      matrix[i] = input.getDouble(number * n * n + i);
    double det = 1;
    for (int64_t k = 0; k < n; ++k) {
      int64_t pivot = k;
      for (int64_t row = k + 1; row < n; ++row)
        if (std::fabs(matrix[row * n + k]) > std::fabs(matrix[pivot * n + k]))
          pivot = row;
      for (int64_t j = 0; j < n; ++j)
        std::swap(matrix[k * n + j], matrix[pivot * n + j]);
      const double top = matrix[k * n + k];
      det *= pivot == k ? top : -top;
      for (int64_t row = k + 1; row < n && top != 0; ++row) {
        const double factor = matrix[row * n + k] / top;
        for (int64_t j = k; j < n; ++j)
          matrix[row * n + j] -= factor * matrix[k * n + j];
      }
    }
    results[0].setDouble(number, det);
  }
  return success();
}
