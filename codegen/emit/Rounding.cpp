//===- Rounding.cpp - integral values, signs and conversions between float types ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/emit/Math.h"
#include "codegen/emit/Num.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::emit;

Value emit::emitAbs(Emitter &e, Value x) { return e.b.create<math::AbsFOp>(e.loc, x); }
Value emit::emitCopySign(Emitter &e, Value magnitude, Value sign) {
  return e.b.create<math::CopySignOp>(e.loc, magnitude, sign);
}

//===- Integral values
//---------------------------------------------------------------------------------------------===//

// From here on, every number is integral.
static double allIntegral(Num x) { return x.isDouble() ? 4503599627370496.0 : 8388608.0; }

/// Nearest, ties to even, of 0 <= x < allIntegral.
static Num nearestOfPositive(Num x) { return (x + allIntegral(x)) - allIntegral(x); }

/// `formula` of the magnitude; the sign and what is integral anyway (and NaN) are kept.
static Value byMagnitude(Emitter &e, Value value, llvm::function_ref<Num(Num)> formula) {
  Num x{e, value}, magnitude{e, emitAbs(e, value)};
  Num result{e, emitCopySign(e, formula(magnitude).v, value)};
  return select(magnitude < allIntegral(x), result, x).v;
}

Value emit::emitTrunc(Emitter &e, Value value) {
  if (e.machine.roundInstruction)
    return e.b.create<math::TruncOp>(e.loc, value);
  return byMagnitude(e, value, [](Num a) {
    Num nearest = nearestOfPositive(a);
    return nearest - select(nearest > a, a.like(1.0), a.like(0.0));
  });
}

Value emit::emitFloor(Emitter &e, Value value) {
  if (e.machine.roundInstruction)
    return e.b.create<math::FloorOp>(e.loc, value);
  Num x{e, value}, whole{e, emitTrunc(e, value)};
  return select(whole > x, whole - 1.0, whole).v;
}

Value emit::emitCeil(Emitter &e, Value value) {
  if (e.machine.roundInstruction)
    return e.b.create<math::CeilOp>(e.loc, value);
  Num x{e, value}, whole{e, emitTrunc(e, value)};
  // -0.5 becomes -0.0.
  return emitCopySign(e, select(whole < x, whole + 1.0, whole).v, value);
}

Value emit::emitRoundEven(Emitter &e, Value value) {
  if (e.machine.roundInstruction)
    return e.b.create<math::RoundEvenOp>(e.loc, value);
  return byMagnitude(e, value, nearestOfPositive);
}

Value emit::emitRound(Emitter &e, Value value) {
  return byMagnitude(e, value, [](Num a) {
    Num whole = a.of(emitTrunc(a.e, a.v));
    return whole + select((a - whole) < 0.5, a.like(0.0), a.like(1.0));
  });
}

//===- Conversions
//-------------------------------------------------------------------------------------------------===//

static Value castInteger(Emitter &e, Value x, Type element) {
  Type to = e.sameShape(x.getType(), element);
  unsigned from = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
  if (from < element.getIntOrFloatBitWidth())
    return e.b.create<arith::ExtUIOp>(e.loc, to, x);
  return e.b.create<arith::TruncIOp>(e.loc, to, x);
}

/// f16 bits (as i32) of an f32 that is no double rounding away from the original.
static Num halfBits(Num x) {
  Num bits = x.bits(), sign = bits & bits.likeInteger(0x80000000);
  Num magnitude = bits ^ sign;
  auto atLeast = [&](Num value, int64_t bound) {
    return value.of(value.e.compare(arith::CmpIPredicate::sge, value.v, value.likeInteger(bound).v));
  };
  // Subnormal results: adding 0.5 aligns the mantissa so that the addition rounds.
  Num subnormal = (magnitude.asFloat() + 0.5).bits() - bits.likeInteger(0x3f000000);
  Num odd = shiftRight(magnitude, 13) & bits.likeInteger(1);
  Num normal = shiftRight(magnitude + odd + bits.likeInteger(0xfff - (112 << 23)), 13);
  Num result = select(atLeast(magnitude, 113 << 23), normal, subnormal);
  result = select(atLeast(magnitude, 0x477ff000), bits.likeInteger(0x7c00), result);
  Num quiet = shiftRight(magnitude & bits.likeInteger(0x7fffff), 13) | bits.likeInteger(0x7e00);
  result = select(atLeast(magnitude, 0x7f800001), quiet, result);
  return result | shiftRight(sign, 16);
}

/// f32 of f16 bits (as i32).
static Num halfValue(Num bits) {
  Num magnitude = (bits & bits.likeInteger(0x7fff)) << 13;
  Num exponent = magnitude & bits.likeInteger(0x7c00 << 13);
  auto equals = [&](int64_t value) {
    return bits.of(bits.e.compare(arith::CmpIPredicate::eq, exponent.v, bits.likeInteger(value).v));
  };
  Num normal = magnitude + bits.likeInteger(112 << 23);
  Num subnormal = ((magnitude + bits.likeInteger(113 << 23)).asFloat() - 6.103515625e-05).bits();
  Num special = magnitude + bits.likeInteger(224 << 23);
  Num result = select(equals(0), subnormal, select(equals(0x7c00 << 13), special, normal));
  return (result | ((bits & bits.likeInteger(0x8000)) << 16)).asFloat();
}

Value emit::emitExtend(Emitter &e, Value x, Type from, Type to) {
  Type i32 = e.b.getI32Type();
  if (from.isBF16()) {
    x = (Num{e, castInteger(e, x, i32)} << 16).asFloat().v;
  } else if (from.isF16() && !e.machine.halfConversion) {
    x = halfValue({e, castInteger(e, x, i32)}).v;
  } else if (from.isF16()) {
    Value half = e.b.create<arith::BitcastOp>(e.loc, e.sameShape(x.getType(), from), x);
    x = e.b.create<arith::ExtFOp>(e.loc, e.sameShape(x.getType(), e.f32()), half);
  }
  if (to.isF64() && !from.isF64())
    x = e.b.create<arith::ExtFOp>(e.loc, e.sameShape(x.getType(), to), x);
  return x;
}

/// f64 to f32 such that a second rounding to a shorter type is right: to the odd neighbour where it is inexact.
static Value truncateToOdd(Emitter &e, Value value) {
  Num nearest{e, e.b.create<arith::TruncFOp>(e.loc, e.sameShape(value.getType(), e.f32()), value)};
  Num back{e, e.b.create<arith::ExtFOp>(e.loc, value.getType(), nearest.v)};
  Num bits = nearest.bits();
  Num absoluteBack{e, emitAbs(e, back.v)}, absoluteWide{e, emitAbs(e, value)};
  // Towards zero, then the lowest bit says that something was cut off.
  Num down = bits - select(absoluteBack > absoluteWide, bits.likeInteger(1), bits.likeInteger(0));
  Num inexact = (absoluteBack > absoluteWide) | (absoluteBack < absoluteWide);
  return select(inexact, down | bits.likeInteger(1), bits).asFloat().v;
}

Value emit::emitTruncate(Emitter &e, Value x, Type to) {
  Type from = getElementTypeOrSelf(x.getType()), i16 = e.b.getI16Type();
  if (from == to)
    return x;
  if (to.isF32())
    return e.b.create<arith::TruncFOp>(e.loc, e.sameShape(x.getType(), to), x);
  if (from.isF64())
    x = truncateToOdd(e, x);
  if (to.isF16() && e.machine.halfConversion) {
    Value half = e.b.create<arith::TruncFOp>(e.loc, e.sameShape(x.getType(), to), x);
    return e.b.create<arith::BitcastOp>(e.loc, e.sameShape(x.getType(), i16), half);
  }
  Num value{e, x}, bits = value.bits();
  if (to.isBF16()) {
    Num odd = shiftRight(bits, 16) & bits.likeInteger(1);
    Num rounded = shiftRight(bits + odd + bits.likeInteger(0x7fff), 16);
    Num quiet = shiftRight(bits, 16) | bits.likeInteger(0x40);
    bits = select(equal(value, value), rounded, quiet);
  } else {
    bits = halfBits(value);
  }
  return castInteger(e, bits.v, i16);
}
