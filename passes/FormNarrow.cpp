//===- FormNarrow.cpp - scalar code that codes and decodes narrow floats
//-------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same numbers as decodeNarrow() and encodeNarrow() give (ir/NarrowTypes.h), from bits of f32 and f64.

#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/FormBody.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {

class Coder {
public:
  Coder(Body &b, const NarrowFormat &format) : b(b), format(format) {}

  Value decode(Value code);
  Value encode(Value wide, bool saturate, NarrowRounding rounding);

private:
  Value constant(Type type, int64_t value) { return b.integer(type, value); }
  Value like(Value value, int64_t number) { return constant(value.getType(), number); }
  Value shiftLeft(Value value, unsigned bits) { return b.create<arith::ShLIOp>(value, like(value, bits)); }
  Value shiftRight(Value value, unsigned bits) { return b.create<arith::ShRUIOp>(value, like(value, bits)); }
  Value mask(Value value, int64_t bits) { return b.create<arith::AndIOp>(value, like(value, bits)); }
  Value is(Value value, int64_t number) { return b.equal(value, like(value, number)); }
  Value bitsOf(Value number, Type integer) { return b.create<arith::BitcastOp>(integer, number); }
  Value numberOf(Value bits, Type type) { return b.create<arith::BitcastOp>(type, bits); }

  Value decodeScale(Value code);
  Value encodeScale(Value wide, bool saturate, NarrowRounding rounding);
  /// The magnitude's code of a number that is not NaN; more than largestFinite() where it is too large.
  Value encodeMagnitude(Value magnitude);

  Body &b;
  const NarrowFormat format;
};

/// 2^(code - 127), as bits of f32: the smallest one is subnormal there.
Value Coder::decodeScale(Value code) {
  Value bits = b.select(is(code, 0), constant(code.getType(), 1 << 22), shiftLeft(code, 23));
  return numberOf(b.select(is(code, format.notANumber()), constant(code.getType(), 0x7fc00000), bits), b.getF32Type());
}

Value Coder::decode(Value narrow) {
  Value code = b.create<arith::ExtUIOp>(b.getI32Type(), narrow);
  if (format.isScale)
    return decodeScale(code);
  code = mask(code, (1 << (format.signBit() + 1)) - 1);
  Value magnitude = mask(code, (1 << format.signBit()) - 1);
  Value exponent = shiftRight(magnitude, format.mantissaBits);
  // Exponent and mantissa move to their places in f32; codes without an implicit bit are a multiple of the least
  // number.
  Value moved = b.add(shiftLeft(magnitude, 23 - format.mantissaBits),
                      constant(code.getType(), static_cast<int64_t>(127 - format.bias) << 23));
  Value least = b.number(b.getF32Type(), std::ldexp(1.0, 1 - format.bias - static_cast<int>(format.mantissaBits)));
  Value small = b.mul(b.create<arith::SIToFPOp>(b.getF32Type(), magnitude), least);
  Value value = b.select(is(exponent, 0), small, numberOf(moved, b.getF32Type()));
  Value sign = shiftLeft(shiftRight(code, format.signBit()), 31);
  Value nan = b.number(b.getF32Type(), NAN);
  if (format.specials == NarrowFormat::Infinities || format.specials == NarrowFormat::NaNs) {
    Value isSpecial = b.less(like(magnitude, format.largestFinite()), magnitude);
    Value special = nan;
    if (format.specials == NarrowFormat::Infinities)
      special = b.select(is(magnitude, format.overflow()), b.number(b.getF32Type(), INFINITY), nan);
    value = b.select(isSpecial, special, value);
  }
  value = numberOf(b.create<arith::OrIOp>(bitsOf(value, b.getI32Type()), sign), b.getF32Type());
  if (format.specials == NarrowFormat::NaNForMinusZero)
    value = b.select(is(code, format.notANumber()), nan, value);
  return value;
}

Value Coder::encodeMagnitude(Value magnitude) {
  Type i64 = b.getI64Type();
  // Beyond, everything is too large; below, everything is zero.
  const double bound = std::ldexp(1.0, (1 << format.exponentBits) - format.bias);
  magnitude = b.select(b.less(magnitude, b.number(magnitude.getType(), bound)), magnitude,
                       b.number(magnitude.getType(), bound));
  Value exponent = b.sub(shiftRight(bitsOf(magnitude, i64), 52), constant(i64, 1023));
  exponent = b.create<arith::MaxSIOp>(exponent, constant(i64, 1 - format.bias));
  // Units in the last place of the result; a carry out of the mantissa increments the exponent field by itself.
  Value scale = shiftLeft(b.sub(constant(i64, 1023 + format.mantissaBits), exponent), 52);
  Value scaled = b.mul(magnitude, numberOf(scale, magnitude.getType()));
  Value units = b.create<arith::FPToSIOp>(i64, b.create<math::RoundEvenOp>(scaled));
  Value field = b.add(exponent, constant(i64, format.bias - 1));
  return b.add(units, shiftLeft(field, format.mantissaBits));
}

Value Coder::encodeScale(Value wide, bool saturate, NarrowRounding rounding) {
  Type i64 = b.getI64Type(), f64 = wide.getType();
  Value bits = bitsOf(b.create<math::AbsFOp>(wide), i64);
  Value code = b.add(shiftRight(bits, 52), constant(i64, format.bias - 1023));
  if (rounding != NarrowRounding::Down) {
    // What is left of the mantissa: anything rounds up, or the half of it.
    int64_t least = rounding == NarrowRounding::Up ? 1 : int64_t{1} << 51;
    Value up = b.lessOrEqual(constant(i64, least), mask(bits, (int64_t{1} << 52) - 1));
    code = b.add(code, b.create<arith::ExtUIOp>(i64, up));
  }
  code = b.create<arith::MaxSIOp>(code, constant(i64, 0));
  Value tooLarge = b.less(constant(i64, format.largestFinite()), code);
  code = b.select(tooLarge, constant(i64, saturate ? format.largestFinite() : format.overflow()), code);
  // Also NaN.
  Value isNumber = b.lessOrEqual(b.number(f64, 0), wide);
  return b.select(isNumber, code, constant(i64, format.notANumber()));
}

Value Coder::encode(Value wide, bool saturate, NarrowRounding rounding) {
  Type i64 = b.getI64Type(), f64 = b.getF64Type();
  if (wide.getType() != f64)
    wide = b.create<arith::ExtFOp>(f64, wide);
  if (format.isScale)
    return b.create<arith::TruncIOp>(b.getI8Type(), encodeScale(wide, saturate, rounding));
  Value isNaN = b.different(wide, wide);
  Value code = encodeMagnitude(b.create<math::AbsFOp>(wide));
  Value sign = shiftLeft(shiftRight(bitsOf(wide, i64), 63), format.signBit());
  Value tooLarge = b.less(constant(i64, format.largestFinite()), code);
  const bool clamps = saturate || format.specials == NarrowFormat::None;
  code = b.select(tooLarge, constant(i64, clamps ? format.largestFinite() : format.overflow()), code);
  if (format.specials == NarrowFormat::NaNForMinusZero) {
    Value isUnsigned = is(code, 0);
    if (!clamps)
      isUnsigned = b.create<arith::OrIOp>(isUnsigned, tooLarge);
    sign = b.select(isUnsigned, constant(i64, 0), sign);
  }
  code = b.select(isNaN, constant(i64, format.notANumber()), b.create<arith::OrIOp>(code, sign));
  return b.create<arith::TruncIOp>(b.getI8Type(), code);
}

} // namespace

Value Body::decode(Value code, Type elementType) { return Coder(*this, *narrowFormat(elementType)).decode(code); }

Value Body::encode(Value scalar, Type elementType, bool saturate, NarrowRounding rounding) {
  return Coder(*this, *narrowFormat(elementType)).encode(scalar, saturate, rounding);
}
