//===- EvaluateElementwise.cpp - evaluation of element-wise ops -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Elementwise.h"
#include "ir/Evaluate.h"
#include "ir/HostMath.h"
#include "ir/NarrowTypes.h"
#include <cmath>
#include <limits>

#pragma STDC FP_CONTRACT OFF

using namespace mlir;
using namespace mlir::transept;
using namespace mlir::transept::host;
using mlir::transept::elementwise::evaluateUnary;

namespace {
using FloatBinary = double (*)(double, double);
using IntBinary = int64_t (*)(int64_t, int64_t, bool isUnsigned);
using FloatRelation = bool (*)(double, double);
using IntRelation = bool (*)(int64_t, int64_t, bool isUnsigned);

uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }
int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

/// The strides of all operands under the shape of the result; an error where one does not broadcast.
FailureOr<SmallVector<Sizes>> operandStrides(Operation *op, ArrayRef<HostTensor> operands, const HostTensor &result) {
  SmallVector<Sizes> strides;
  for (const HostTensor &operand : operands) {
    std::optional<Sizes> own = broadcastStrides(operand.shape(), result.shape());
    if (!own)
      return op->emitOpError() << "cannot broadcast shape " << toText(operand.shape()) << " to "
                               << toText(result.shape());
    strides.push_back(*own);
  }
  return strides;
}

/// Calls `compute(number, lhs offset, rhs offset)` for every element of the result.
template <typename Compute>
LogicalResult broadcastBinary(Operation *op, ArrayRef<HostTensor> operands, HostTensor &result, Compute compute) {
  FailureOr<SmallVector<Sizes>> strides = operandStrides(op, operands, result);
  if (failed(strides))
    return failure();
  return success(forEachPosition(result.shape(), *strides, [&](int64_t number, ArrayRef<int64_t> offsets) {
    return compute(number, offsets[0], offsets[1]);
  }));
}

LogicalResult binary(Operation *op, ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results,
                     FloatBinary onFloat, IntBinary onInt) {
  HostTensor &result = results[0];
  const HostTensor &lhs = operands[0], &rhs = operands[1];
  if (failed(sameElementType(op, {lhs, rhs, result})))
    return failure();
  const bool floating = isFloat(lhs);
  if (floating ? !onFloat : !onInt)
    return op->emitOpError() << "is not defined for elements of type " << lhs.elementType();
  return broadcastBinary(op, operands, result, [&](int64_t number, int64_t left, int64_t right) {
    if (floating)
      result.setDouble(number, onFloat(lhs.getDouble(left), rhs.getDouble(right)));
    else
      result.setInt(number, onInt(lhs.getInt(left), rhs.getInt(right), isUnsigned(lhs)));
    return true;
  });
}

/// A binary op on integers that has no result where the right element is zero.
LogicalResult dividing(Operation *op, ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results,
                       FloatBinary onFloat, IntBinary onInt) {
  const HostTensor &rhs = operands[1];
  if (!isFloat(rhs) && results[0].numElements() != 0)
    for (int64_t i = 0, count = rhs.numElements(); i < count; ++i)
      if (rhs.getInt(i) == 0)
        return op->emitOpError() << "divides an integer by zero (element " << i << " of the divisor)";
  return binary(op, operands, results, onFloat, onInt);
}

LogicalResult compare(Operation *op, ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results,
                      FloatRelation onFloat, IntRelation onInt) {
  HostTensor &result = results[0];
  const HostTensor &lhs = operands[0], &rhs = operands[1];
  if (failed(sameElementType(op, {lhs, rhs})))
    return failure();
  return broadcastBinary(op, operands, result, [&](int64_t number, int64_t left, int64_t right) {
    result.setInt(number, isFloat(lhs) ? onFloat(lhs.getDouble(left), rhs.getDouble(right))
                                       : onInt(lhs.getInt(left), rhs.getInt(right), isUnsigned(lhs)));
    return true;
  });
}

int64_t divideInts(int64_t a, int64_t b, bool isUnsigned) {
  if (isUnsigned)
    return wrap(bits(a) / bits(b));
  return b == -1 ? wrap(-bits(a)) : a / b;
}
/// The remainder with the sign of the dividend.
int64_t remainderOfInts(int64_t a, int64_t b, bool isUnsigned) {
  if (isUnsigned)
    return wrap(bits(a) % bits(b));
  return b == -1 ? 0 : a % b;
}
/// The remainder with the sign of the divisor.
int64_t moduloOfInts(int64_t a, int64_t b, bool isUnsigned) {
  const int64_t rest = remainderOfInts(a, b, isUnsigned);
  return !isUnsigned && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
double moduloOfFloats(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && std::signbit(rest) != std::signbit(b) ? rest + b : rest;
}

/// IEEE 754-2019 maximum and minimum: NaN wins, -0 is below +0.
double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
double minimum(double a, double b) { return -maximum(-a, -b); }
bool lessInts(int64_t a, int64_t b, bool isUnsigned) { return isUnsigned ? bits(a) < bits(b) : a < b; }

/// Exact, wrapping; exponent >= 0.
int64_t powerOfInts(int64_t base, uint64_t exponent) {
  uint64_t result = 1, square = bits(base);
  for (; exponent != 0; exponent >>= 1, square *= square)
    if (exponent & 1)
      result *= square;
  return wrap(result);
}

double gelu(double x) { return 0.5 * x * (1 + math::erf(x * 0x1.6a09e667f3bcdp-1)); }
double geluTanh(double x) {
  constexpr double sqrtTwoOverPi = 0x1.9884533d43651p-1;
  return 0.5 * x * (1 + math::tanh(sqrtTwoOverPi * (x + 0.044715 * x * x * x)));
}

/// A double that rounds to every shorter format as `value` does: where 53 bits do not hold it, the last one is sticky.
double roundToOdd(int64_t value, bool isUnsigned) {
  const bool negative = !isUnsigned && value < 0;
  uint64_t magnitude = negative ? -bits(value) : bits(value);
  if (magnitude >> 53 != 0)
    magnitude = (magnitude & ~uint64_t{0x7ff}) | (magnitude & 0x7ff ? 0x800 : 0);
  return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

/// Truncates to an integer of the given type: NaN gives 0, values out of range the nearest bound.
int64_t truncate(double value, IntegerType type) {
  if (std::isnan(value))
    return 0;
  const unsigned width = type.getWidth();
  const double low = type.isUnsigned() ? 0 : -std::ldexp(1.0, width - 1);
  const double high = std::ldexp(1.0, type.isUnsigned() ? width : width - 1);
  const uint64_t most = type.isUnsigned() ? ~uint64_t{0} >> (64 - width) : (uint64_t{1} << (width - 1)) - 1;
  if (value >= high)
    return wrap(most);
  if (value <= low)
    return type.isUnsigned() ? 0 : wrap(-(most + 1));
  return type.isUnsigned() ? wrap(static_cast<uint64_t>(value)) : static_cast<int64_t>(value);
}
} // namespace

LogicalResult elementwise::evaluateUnary(Operation *op, ArrayRef<HostTensor> operands,
                                         SmallVectorImpl<HostTensor> &results, FloatUnary onFloat, IntUnary onInt) {
  const HostTensor &input = operands[0];
  HostTensor &result = results[0];
  if (failed(sameElementType(op, {input, result})))
    return failure();
  if (input.shape() != result.shape())
    return op->emitOpError() << "cannot turn shape " << toText(input.shape()) << " into " << toText(result.shape());
  const bool floating = isFloat(input);
  if (floating ? !onFloat : !onInt)
    return op->emitOpError() << "is not defined for elements of type " << input.elementType();
  for (int64_t i = 0, count = input.numElements(); i < count; ++i)
    if (floating)
      result.setDouble(i, onFloat(input.getDouble(i)));
    else
      result.setInt(i, onInt(input.getInt(i), isUnsigned(input)));
  return success();
}

#define EVALUATE(Op, family, ...)                                                                                      \
  LogicalResult Op::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {                    \
    return family(*this, operands, results, __VA_ARGS__);                                                              \
  }

EVALUATE(NegOp, evaluateUnary, [](double x) { return -x; }, [](int64_t x, bool) { return wrap(-bits(x)); })
EVALUATE(
    AbsOp, evaluateUnary, [](double x) { return std::fabs(x); },
    [](int64_t x, bool isUnsigned) { return x < 0 && !isUnsigned ? wrap(-bits(x)) : x; })
EVALUATE(
    SignOp, evaluateUnary, [](double x) { return std::isnan(x) ? x : double((x > 0) - (x < 0)); },
    [](int64_t x, bool isUnsigned) { return isUnsigned ? int64_t{x != 0} : int64_t{x > 0} - int64_t{x < 0}; })
EVALUATE(
    ReluOp, evaluateUnary, [](double x) { return maximum(x, 0); },
    [](int64_t x, bool isUnsigned) { return x < 0 && !isUnsigned ? int64_t{0} : x; })
EVALUATE(FloorOp, evaluateUnary, [](double x) { return std::floor(x); }, nullptr)
EVALUATE(CeilOp, evaluateUnary, [](double x) { return std::ceil(x); }, nullptr)
EVALUATE(RoundOp, evaluateUnary, [](double x) { return std::nearbyint(x); }, nullptr)
EVALUATE(NotOp, evaluateUnary, nullptr, [](int64_t x, bool) { return int64_t{x == 0}; })
EVALUATE(BitwiseNotOp, evaluateUnary, nullptr, [](int64_t x, bool) { return ~x; })
EVALUATE(GeluOp, evaluateUnary, getApproximate() == "tanh" ? geluTanh : gelu, nullptr)

EVALUATE(
    AddOp, binary, [](double a, double b) { return a + b; },
    [](int64_t a, int64_t b, bool) { return wrap(bits(a) + bits(b)); })
EVALUATE(
    SubOp, binary, [](double a, double b) { return a - b; },
    [](int64_t a, int64_t b, bool) { return wrap(bits(a) - bits(b)); })
EVALUATE(
    MulOp, binary, [](double a, double b) { return a * b; },
    [](int64_t a, int64_t b, bool) { return wrap(bits(a) * bits(b)); })
EVALUATE(DivOp, dividing, [](double a, double b) { return a / b; }, divideInts)
EVALUATE(ModOp, dividing, getFmod() ? +[](double a, double b) { return std::fmod(a, b); } : moduloOfFloats,
         getFmod() ? remainderOfInts : moduloOfInts)
EVALUATE(MinOp, binary, minimum,
         [](int64_t a, int64_t b, bool isUnsigned) { return lessInts(a, b, isUnsigned) ? a : b; })
EVALUATE(MaxOp, binary, maximum,
         [](int64_t a, int64_t b, bool isUnsigned) { return lessInts(a, b, isUnsigned) ? b : a; })
EVALUATE(AndOp, binary, nullptr, [](int64_t a, int64_t b, bool) { return int64_t{a && b}; })
EVALUATE(OrOp, binary, nullptr, [](int64_t a, int64_t b, bool) { return int64_t{a || b}; })
EVALUATE(XorOp, binary, nullptr, [](int64_t a, int64_t b, bool) { return int64_t{!a != !b}; })
EVALUATE(BitwiseAndOp, binary, nullptr, [](int64_t a, int64_t b, bool) { return a & b; })
EVALUATE(BitwiseOrOp, binary, nullptr, [](int64_t a, int64_t b, bool) { return a | b; })
EVALUATE(BitwiseXorOp, binary, nullptr, [](int64_t a, int64_t b, bool) { return a ^ b; })
EVALUATE(EqualOp, compare, [](double a, double b) { return a == b; }, [](int64_t a, int64_t b, bool) { return a == b; })
EVALUATE(LessOp, compare, [](double a, double b) { return a < b; }, lessInts)
EVALUATE(
    LessOrEqualOp, compare, [](double a, double b) { return a <= b; },
    [](int64_t a, int64_t b, bool isUnsigned) { return !lessInts(b, a, isUnsigned); })
EVALUATE(
    GreaterOp, compare, [](double a, double b) { return a > b; },
    [](int64_t a, int64_t b, bool isUnsigned) { return lessInts(b, a, isUnsigned); })
EVALUATE(
    GreaterOrEqualOp, compare, [](double a, double b) { return a >= b; },
    [](int64_t a, int64_t b, bool isUnsigned) { return !lessInts(a, b, isUnsigned); })

#undef EVALUATE

LogicalResult IsNaNOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  if (operands[0].shape() != results[0].shape())
    return emitOpError() << "cannot turn shape " << toText(operands[0].shape()) << " into "
                         << toText(results[0].shape());
  for (int64_t i = 0, count = operands[0].numElements(); i < count; ++i)
    results[0].setInt(i, isFloat(operands[0]) && std::isnan(operands[0].getDouble(i)));
  return success();
}

LogicalResult CastOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  HostTensor &result = results[0];
  if (input.shape() != result.shape())
    return emitOpError() << "cannot turn shape " << toText(input.shape()) << " into " << toText(result.shape());
  auto integer = dyn_cast<IntegerType>(result.elementType());
  const bool toDouble = isa<Float64Type>(result.elementType());
  const std::optional<NarrowFormat> narrow = narrowFormat(result.elementType());
  const bool fromFloat = !isa<IntegerType>(input.elementType());
  const NarrowRounding rounding = getRound() == "up"     ? NarrowRounding::Up
                                  : getRound() == "down" ? NarrowRounding::Down
                                                         : NarrowRounding::Nearest;
  const auto i32 = IntegerType::get(getContext(), 32);
  for (int64_t i = 0, count = input.numElements(); i < count; ++i) {
    if (narrow)
      result.data<uint8_t>()[i] =
          static_cast<uint8_t>(encodeNarrow(*narrow, input.getDouble(i), getSaturate(), rounding));
    else if (fromFloat && integer && isNarrow(integer)) // integers below a byte wrap
      result.setInt(i, truncate(input.getDouble(i), i32));
    else if (fromFloat && integer && integer.getWidth() > 1)
      result.setInt(i, truncate(input.getDouble(i), integer));
    else if (fromFloat)
      result.setDouble(i, input.getDouble(i));
    else if (integer)
      result.setInt(i, input.getInt(i));
    else
      result.setDouble(i, toDouble ? input.getDouble(i) : roundToOdd(input.getInt(i), isUnsigned(input)));
  }
  return success();
}

LogicalResult BitCastOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &input = operands[0];
  HostTensor &result = results[0];
  if (input.shape() != result.shape() || input.bytes().size() != result.bytes().size())
    return emitOpError() << "cannot turn " << input.getType() << " into " << result.getType();
  llvm::copy(input.bytes(), result.data());
  if (result.elementType().isInteger(1))
    for (int64_t i = 0, count = result.numElements(); i < count; ++i)
      result.data()[i] = result.data()[i] != 0;
  return success();
}

LogicalResult BitShiftOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  HostTensor &result = results[0];
  const HostTensor &lhs = operands[0], &rhs = operands[1];
  if (failed(sameElementType(*this, {lhs, rhs, result})))
    return failure();
  const unsigned width = lhs.elementType().getIntOrFloatBitWidth();
  return broadcastBinary(*this, operands, result, [&](int64_t number, int64_t left, int64_t right) {
    const uint64_t value = bits(lhs.getInt(left)) & (~uint64_t{0} >> (64 - width)), count = bits(rhs.getInt(right));
    result.setInt(number, count >= width ? 0 : wrap(getRight() ? value >> count : value << count));
    return true;
  });
}

LogicalResult PowOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  HostTensor &result = results[0];
  const HostTensor &lhs = operands[0], &rhs = operands[1];
  if (failed(sameElementType(*this, {lhs, result})))
    return failure();
  auto integer = dyn_cast<IntegerType>(lhs.elementType());
  return broadcastBinary(*this, operands, result, [&](int64_t number, int64_t left, int64_t right) {
    if (!integer || isFloat(rhs)) {
      const double power = math::pow(lhs.getDouble(left), rhs.getDouble(right));
      if (integer)
        result.setInt(number, truncate(power, integer));
      else
        result.setDouble(number, power);
      return true;
    }
    const int64_t base = lhs.getInt(left), exponent = rhs.getInt(right);
    if (exponent >= 0 || isUnsigned(rhs)) {
      result.setInt(number, powerOfInts(base, bits(exponent)));
      return true;
    }
    if (base == 0) {
      emitOpError() << "raises the integer 0 to the power " << exponent << " (element " << number << ")";
      return false;
    }
    // 1 / base^n truncated: nothing is left unless base is 1 or -1.
    result.setInt(number, base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0);
    return true;
  });
}

LogicalResult WhereOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  HostTensor &result = results[0];
  const HostTensor &condition = operands[0], &onTrue = operands[1], &onFalse = operands[2];
  if (failed(sameElementType(*this, {onTrue, onFalse, result})))
    return failure();
  FailureOr<SmallVector<Sizes>> strides = operandStrides(*this, operands, result);
  if (failed(strides))
    return failure();
  forEachPosition(result.shape(), *strides, [&](int64_t number, ArrayRef<int64_t> offsets) {
    if (condition.getInt(offsets[0]))
      copyElements(result, number, onTrue, offsets[1]);
    else
      copyElements(result, number, onFalse, offsets[2]);
    return true;
  });
  return success();
}
