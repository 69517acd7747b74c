//===- EvaluateMovement.cpp - evaluation of ops that move elements --------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Evaluate.h"
#include <limits>

using namespace mlir;
using namespace mlir::transept;
using namespace mlir::transept::host;

namespace {
/// The same elements in the same order.
LogicalResult copyAll(Operation *op, const HostTensor &input, HostTensor &result) {
  if (failed(sameElementType(op, {input, result})))
    return failure();
  if (input.numElements() != result.numElements())
    return op->emitOpError() << "cannot view " << toText(input.shape()) << " as " << toText(result.shape()) << ": "
                             << input.numElements() << " elements are no " << result.numElements();
  copyElements(result, 0, input, 0, input.numElements());
  return success();
}

LogicalResult expectShape(Operation *op, ArrayRef<int64_t> computed, const HostTensor &result) {
  if (computed == result.shape())
    return success();
  return op->emitOpError() << "gives shape " << toText(computed) << " where " << toText(result.shape())
                           << " was expected";
}

/// Copies input[first + sum of position * strides] for every position of the result.
void copyStrided(const HostTensor &input, int64_t first, const Sizes &strides, HostTensor &result) {
  forEachPosition(result.shape(), {strides}, [&](int64_t number, ArrayRef<int64_t> offsets) {
    copyElements(result, number, input, first + offsets[0]);
    return true;
  });
}

/// Dim expressions that are constants by now.
FailureOr<Sizes> constants(Operation *op, ArrayAttr dims) {
  Sizes values;
  for (Attribute dim : dims) {
    auto expression = dyn_cast<DimAttr>(dim);
    std::optional<int64_t> value = expression ? constantValue(expression) : std::nullopt;
    if (!value)
      return op->emitOpError() << "depends on a symbol without a value: " << dim;
    values.push_back(*value);
  }
  return values;
}

/// The axes named by an optional operand (absent: 0, 1, …), normalised and each at most once.
FailureOr<Sizes> namedAxes(Operation *op, const HostTensor &axesValue, int64_t count, int64_t rank) {
  Sizes axes;
  SmallVector<bool> seen(rank, false);
  if (axesValue)
    count = axesValue.numElements();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t given = axesValue ? axesValue.getInt(i) : i;
    std::optional<int64_t> axis = normalizeAxis(given, rank);
    if (!axis || seen[*axis])
      return op->emitOpError() << "names axis " << given << (axis ? " twice" : "") << " of a tensor with " << rank
                               << " axes";
    seen[*axis] = true;
    axes.push_back(*axis);
  }
  return axes;
}

int64_t floorMod(int64_t a, int64_t b) { return ((a % b) + b) % b; }

/// The input index that padding shows at `at` (which may lie outside [0, size)); -1: the fill value.
int64_t paddedIndex(PadMode mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size)
    return at;
  switch (mode) {
  case PadMode::Constant:
    return -1;
  case PadMode::Edge:
    return at < 0 ? 0 : size - 1;
  case PadMode::Wrap:
    return floorMod(at, size);
  case PadMode::Reflect:
    break;
  }
  if (size == 1)
    return 0;
  const int64_t phase = floorMod(at, 2 * (size - 1));
  return phase < size ? phase : 2 * (size - 1) - phase;
}
} // namespace

LogicalResult ReshapeOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  const HostTensor shape = operandAt(*this, operands, 1);
  if (!shape)
    return copyAll(*this, input, results[0]);
  std::vector<int64_t> sizes = toInts(shape);
  int64_t known = 1, inferred = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && !getAllowZero()) {
      if (i >= input.shape().size())
        return emitOpError() << "copies the size of axis " << i << ", which " << toText(input.shape()) << " lacks";
      sizes[i] = input.shape()[i];
    }
    if (sizes[i] < -1 || (sizes[i] == -1 && inferred >= 0))
      return emitOpError() << "has an invalid shape operand " << toText(sizes);
    if (sizes[i] == -1)
      inferred = static_cast<int64_t>(i);
    else if (llvm::MulOverflow(known, sizes[i], known))
      return emitOpError() << "has a shape operand of too many elements: " << toText(sizes);
  }
  if (inferred >= 0) {
    if (known == 0 || input.numElements() % known != 0)
      return emitOpError() << "cannot reshape " << toText(input.shape()) << " to " << toText(sizes);
    sizes[inferred] = input.numElements() / known;
  }
  if (productOf(sizes) != input.numElements())
    return emitOpError() << "cannot reshape " << toText(input.shape()) << " to " << toText(sizes);
  if (failed(expectShape(*this, sizes, results[0])))
    return failure();
  return copyAll(*this, input, results[0]);
}

LogicalResult SqueezeOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  return copyAll(*this, operands[0], results[0]);
}
LogicalResult UnsqueezeOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  return copyAll(*this, operands[0], results[0]);
}

LogicalResult TransposeOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  const size_t rank = input.shape().size();
  if (failed(sameElementType(*this, {input, results[0]})))
    return failure();
  if (getPermutation().size() != rank)
    return emitOpError() << "permutes " << getPermutation().size() << " axes of a tensor with " << rank;
  Sizes shape(rank), strides(rank), own = stridesOf(input.shape());
  SmallVector<bool> seen(rank, false);
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t from = getPermutation()[axis];
    if (from < 0 || from >= static_cast<int64_t>(rank) || seen[from])
      return emitOpError() << "is no permutation of " << rank << " axes: " << toText(getPermutation());
    seen[from] = true;
    shape[axis] = input.shape()[from];
    strides[axis] = own[from];
  }
  if (failed(expectShape(*this, shape, results[0])))
    return failure();
  copyStrided(input, 0, strides, results[0]);
  return success();
}

LogicalResult BroadcastOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  std::optional<Sizes> strides = broadcastStrides(input.shape(), results[0].shape());
  if (failed(sameElementType(*this, {input, results[0]})))
    return failure();
  if (!strides)
    return emitOpError() << "cannot broadcast shape " << toText(input.shape()) << " to " << toText(results[0].shape());
  copyStrided(input, 0, *strides, results[0]);
  return success();
}

LogicalResult TileOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  HostTensor &result = results[0];
  const size_t rank = input.shape().size();
  if (failed(sameElementType(*this, {input, result})))
    return failure();
  if (const HostTensor repeats = operandAt(*this, operands, 1)) {
    if (repeats.numElements() != static_cast<int64_t>(rank))
      return emitOpError() << "has " << repeats.numElements() << " repeats for " << rank << " axes";
    Sizes shape(rank);
    for (size_t axis = 0; axis < rank; ++axis)
      if (repeats.getInt(axis) < 0 || llvm::MulOverflow(input.shape()[axis], repeats.getInt(axis), shape[axis]))
        return emitOpError() << "repeats axis " << axis << " " << repeats.getInt(axis) << " times";
    if (failed(expectShape(*this, shape, result)))
      return failure();
  }
  bool fits = result.shape().size() == rank;
  for (size_t axis = 0; fits && axis < rank; ++axis)
    fits = input.shape()[axis] != 0 ? result.shape()[axis] % input.shape()[axis] == 0 : result.shape()[axis] == 0;
  if (!fits)
    return emitOpError() << "cannot tile " << toText(input.shape()) << " to " << toText(result.shape());
  const Sizes strides = stridesOf(input.shape()), units = stridesOf(result.shape());
  for (int64_t number = 0, count = result.numElements(); number < count; ++number) {
    int64_t from = 0;
    for (size_t axis = 0; axis < rank; ++axis)
      from += number / units[axis] % result.shape()[axis] % input.shape()[axis] * strides[axis];
    copyElements(result, number, input, from);
  }
  return success();
}

/// ONNX: start and end count from the end if negative, and are clamped to what the step can reach.
static int64_t clampStart(int64_t start, int64_t step, int64_t size) {
  start = start < 0 ? start + size : start;
  return std::clamp<int64_t>(start, 0, step > 0 ? size : std::max<int64_t>(size - 1, 0));
}
static int64_t clampEnd(int64_t end, int64_t step, int64_t size) {
  end = end < 0 ? end + size : end;
  return step > 0 ? std::clamp<int64_t>(end, 0, size) : std::clamp<int64_t>(end, -1, std::max<int64_t>(size - 1, 0));
}

LogicalResult SliceOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  HostTensor &result = results[0];
  ArrayRef<int64_t> shape = input.shape();
  const size_t rank = shape.size();
  if (failed(sameElementType(*this, {input, result})))
    return failure();
  Sizes starts(rank, 0), steps(rank, 1), sizes(shape);
  if (const HostTensor startsValue = operandAt(*this, operands, 1)) {
    const HostTensor ends = operandAt(*this, operands, 2), stepsValue = operandAt(*this, operands, 4);
    FailureOr<Sizes> axes = namedAxes(*this, operandAt(*this, operands, 3), startsValue.numElements(), rank);
    if (failed(axes))
      return failure();
    const auto count = static_cast<int64_t>(axes->size());
    if (!ends || startsValue.numElements() != count || ends.numElements() != count ||
        (stepsValue && stepsValue.numElements() != count))
      return emitOpError() << "has " << startsValue.numElements() << " starts for " << count << " axes";
    for (int64_t i = 0; i < count; ++i) {
      const int64_t axis = (*axes)[i], step = stepsValue ? stepsValue.getInt(i) : 1;
      if (step == 0)
        return emitOpError() << "has step 0 along axis " << axis;
      const int64_t size = shape[axis];
      const int64_t start = clampStart(startsValue.getInt(i), step, size);
      const int64_t distance = clampEnd(ends.getInt(i), step, size) - start;
      starts[axis] = start;
      // A longer step than the axis takes one element; the bound keeps the arithmetic in range.
      steps[axis] = std::clamp<int64_t>(step, -size - 1, size + 1);
      sizes[axis] = size == 0 || (distance > 0) != (step > 0) || distance == 0
                        ? 0
                        : (std::abs(distance) - 1) / std::abs(steps[axis]) + 1;
    }
  } else {
    if (!getStarts() || !getSteps() || getStarts()->size() != rank || getSteps()->size() != rank ||
        result.shape().size() != rank)
      return emitOpError() << "has not one start and one step per axis";
    FailureOr<Sizes> resolved = constants(*this, *getStarts());
    if (failed(resolved))
      return failure();
    starts = *resolved;
    steps.assign(getSteps()->begin(), getSteps()->end());
    sizes.assign(result.shape().begin(), result.shape().end());
  }
  if (failed(expectShape(*this, sizes, result)))
    return failure();
  Sizes own = stridesOf(shape), strides(rank);
  int64_t first = 0;
  for (size_t axis = 0; axis < rank && result.numElements() != 0; ++axis) {
    int64_t last;
    if (llvm::MulOverflow(sizes[axis] - 1, steps[axis], last) || llvm::AddOverflow(last, starts[axis], last) ||
        std::min(starts[axis], last) < 0 || std::max(starts[axis], last) >= shape[axis])
      return emitOpError() << "reads elements " << starts[axis] << " to " << last << " of axis " << axis << " of size "
                           << shape[axis];
    first += starts[axis] * own[axis];
    strides[axis] = sizes[axis] == 1 ? 0 : steps[axis] * own[axis];
  }
  copyStrided(input, first, strides, result);
  return success();
}

LogicalResult ConcatOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  HostTensor &result = results[0];
  if (operands.empty())
    return emitOpError() << "has no operands";
  if (failed(sameElementType(*this, operands)) || failed(sameElementType(*this, {operands[0], result})))
    return failure();
  const size_t rank = operands[0].shape().size();
  std::optional<int64_t> axis = normalizeAxis(getAxis(), rank);
  if (!axis)
    return emitOpError() << "names axis " << getAxis() << " of a tensor with " << rank << " axes";
  Sizes shape(operands[0].shape());
  shape[*axis] = 0;
  for (const HostTensor &operand : operands) {
    Sizes own(operand.shape());
    if (own.size() == rank) {
      shape[*axis] += own[*axis];
      own[*axis] = shape[*axis];
    }
    if (own != shape)
      return emitOpError() << "cannot join " << toText(operands[0].shape()) << " and " << toText(operand.shape())
                           << " along axis " << *axis;
  }
  if (failed(expectShape(*this, shape, result)))
    return failure();
  const int64_t outer = productOf(ArrayRef<int64_t>(shape).take_front(*axis));
  int64_t to = 0;
  for (int64_t row = 0; row < outer; ++row)
    for (const HostTensor &operand : operands) {
      const int64_t run = operand.numElements() / outer;
      copyElements(result, to, operand, row * run, run);
      to += run;
    }
  return success();
}

LogicalResult PadOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  const HostTensor padsValue = operandAt(*this, operands, 1), fill = operandAt(*this, operands, 2);
  HostTensor &result = results[0];
  const size_t rank = input.shape().size();
  if (failed(sameElementType(*this, {input, fill, result})))
    return failure();
  if (fill && fill.numElements() != 1)
    return emitOpError() << "has a fill value of " << fill.numElements() << " elements";
  Sizes low(rank, 0);
  if (padsValue) {
    FailureOr<Sizes> axes = namedAxes(*this, operandAt(*this, operands, 3), rank, rank);
    if (failed(axes))
      return failure();
    const auto count = static_cast<int64_t>(axes->size());
    if (padsValue.numElements() != 2 * count)
      return emitOpError() << "has " << padsValue.numElements() << " amounts for " << count << " axes";
    Sizes shape(input.shape());
    for (int64_t i = 0; i < count; ++i) {
      int64_t &size = shape[(*axes)[i]];
      low[(*axes)[i]] = padsValue.getInt(i);
      if (llvm::AddOverflow(size, padsValue.getInt(i), size) ||
          llvm::AddOverflow(size, padsValue.getInt(i + count), size) || size < 0)
        return emitOpError() << "pads axis " << (*axes)[i] << " of size " << input.shape()[(*axes)[i]] << " by "
                             << padsValue.getInt(i) << " and " << padsValue.getInt(i + count);
    }
    if (failed(expectShape(*this, shape, result)))
      return failure();
  } else {
    if (!getLow() || getLow()->size() != rank || result.shape().size() != rank)
      return emitOpError() << "has not one amount per axis";
    FailureOr<Sizes> resolved = constants(*this, *getLow());
    if (failed(resolved))
      return failure();
    low = *resolved;
  }
  // Far more than any tensor holds; the bound keeps positions in range.
  constexpr int64_t maxAmount = int64_t{1} << 48;
  for (size_t axis = 0; axis < rank && result.numElements() != 0; ++axis) {
    if (low[axis] > maxAmount || low[axis] < -maxAmount)
      return emitOpError() << "pads axis " << axis << " by " << low[axis];
    if (input.shape()[axis] == 0 && getMode() != PadMode::Constant)
      return emitOpError() << "repeats elements of axis " << axis << ", which has none";
  }
  const Sizes strides = stridesOf(input.shape()), units = stridesOf(result.shape());
  for (int64_t number = 0, count = result.numElements(); number < count; ++number) {
    int64_t from = 0;
    bool filled = false;
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t at = number / units[axis] % result.shape()[axis] - low[axis];
      const int64_t index = paddedIndex(getMode(), at, input.shape()[axis]);
      filled |= index < 0;
      from += index * strides[axis];
    }
    if (!filled)
      copyElements(result, number, input, from);
    else if (fill)
      copyElements(result, number, fill, 0);
  }
  return success();
}

LogicalResult TriluOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  const HostTensor kValue = operandAt(*this, operands, 1);
  if (failed(sameElementType(*this, {input, results[0]})) || failed(expectShape(*this, input.shape(), results[0])))
    return failure();
  if (input.shape().size() < 2 || (kValue && kValue.numElements() != 1))
    return emitOpError() << "needs matrices and one diagonal, but has shape " << toText(input.shape());
  const int64_t rows = input.shape()[input.shape().size() - 2], columns = input.shape().back();
  const int64_t k =
      std::clamp(kValue ? kValue.getInt(0) : static_cast<int64_t>(getK().value_or(0)), -rows - 1, columns + 1);
  for (int64_t i = 0, count = input.numElements(); i < count; ++i) {
    const int64_t row = i / columns % rows, column = i % columns;
    if (getUpper() ? column >= row + k : column <= row + k)
      copyElements(results[0], i, input, i);
  }
  return success();
}

LogicalResult WindowsOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  HostTensor &result = results[0];
  const size_t count = getKernel().size(), rank = input.shape().size();
  if (count > rank || failed(sameElementType(*this, {input, result})))
    return emitOpError() << "takes windows over " << count << " axes of " << toText(input.shape());
  Sizes shape(input.shape().drop_back(count)), strides = stridesOf(input.shape());
  for (size_t i = 0; i < count; ++i) {
    const int64_t reach = (getKernel()[i] - 1) * getDilations()[i] + 1, size = input.shape()[rank - count + i];
    if (size < reach)
      return emitOpError() << "takes windows of " << reach << " elements of an axis of " << size;
    shape.push_back((size - reach) / getStrides()[i] + 1);
    strides.push_back(strides[rank - count + i] * getDilations()[i]);
  }
  for (size_t i = 0; i < count; ++i)
    strides[rank - count + i] *= getStrides()[i];
  shape.append(getKernel().begin(), getKernel().end());
  if (ArrayRef<int64_t>(shape) != result.shape())
    return emitOpError() << "gives shape " << toText(shape) << " where " << toText(result.shape()) << " was expected";
  forEachPosition(shape, {strides}, [&](int64_t number, ArrayRef<int64_t> offsets) {
    copyElements(result, number, input, offsets[0]);
    return true;
  });
  return success();
}
