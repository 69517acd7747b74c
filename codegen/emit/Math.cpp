//===- Math.cpp - elementary functions as code --------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/emit/Math.h"
#include "codegen/emit/Coefficients.h"
#include "codegen/emit/MathParts.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::emit;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

namespace {

const Precision &precisionOf(Num x) { return x.isDouble() ? doublePrecision : singlePrecision; }

Num absolute(Num x) { return x.of(emitAbs(x.e, x.v)); }
Num copySign(Num magnitude, Num sign) { return magnitude.of(emitCopySign(magnitude.e, magnitude.v, sign.v)); }
Num exponential(Num x) { return x.of(emitExp(x.e, x.v)); }
Num logarithm(Num x) { return x.of(emitLog(x.e, x.v)); }
Num squareRoot(Num x) { return x.of(x.e.b.create<math::SqrtOp>(x.e.loc, x.v)); }
Num toDouble(Num x) { return x.of(emitExtend(x.e, x.v, x.element(), x.e.b.getF64Type())); }
Num toType(Num x, Num like) { return x.of(emitTruncate(x.e, x.v, like.element())); }

/// Evaluates `formula` in f64 and rounds to the type of x.
Num inDouble(Num x, llvm::function_ref<Num(Num)> formula) { return toType(formula(toDouble(x)), x); }

/// exp(r) - 1 - r for |r| <= ln 2 / 2.
Num expTail(Num r) { return polynomial(r, r.isDouble() ? ArrayRef<double>(exp64) : ArrayRef<double>(exp32)) * (r * r); }
Num powerOfTwo(Num n, const Precision &p) { return ((n + n.likeInteger(p.bias)) << p.mantissaBits).asFloat(); }

/// Whether functions may be computed in f64.
bool hasDoubles(Num x) { return x.isDouble() || x.e.machine.doubles; }

} // namespace

Reduced emit::reduceByLn2(Num x) {
  const Precision &p = precisionOf(x);
  Num shifted = fma(x, x.like(1.4426950408889634074), x.like(p.rounder));
  Num n = shifted - p.rounder;
  Num r = fma(n, x.like(-p.ln2High), x);
  r = fma(n, x.like(-p.ln2Low), r);
  return {shifted.bits() - x.like(p.rounder).bits(), r};
}

Num emit::expOfReduced(Reduced x) {
  const Precision &p = precisionOf(x.r);
  Num y = (expTail(x.r) + x.r) + 1.0, half = x.n >> 1;
  return y * powerOfTwo(half, p) * powerOfTwo(x.n - half, p);
}

Num emit::expOfNegative(Num x) {
  const Precision &p = singlePrecision;
  constexpr double lowest = -87.3, ln2 = 0.69314718055994530942; // lowest: above 2^-126
  Num shifted = fma(x, x.like(1.4426950408889634074), x.like(p.rounder)), n = shifted - p.rounder;
  // One product of n, unless it is rounded.
  Num r =
      x.e.machine.fusedMultiplyAdd ? fma(n, x.like(-ln2), x) : fma(n, x.like(-p.ln2Low), fma(n, x.like(-p.ln2High), x));
  Num y = fma(polynomial(r, exp32), r * r, r) + 1.0;
  return select(x < lowest, 0.0, y * powerOfTwo(shifted.bits() - x.like(p.rounder).bits(), p));
}

Value emit::emitExp(Emitter &e, Value value) {
  Num x{e, value};
  const Precision &p = precisionOf(x);
  // Two instructions, maximum and minimum, that keep NaN.
  Num zero = x < p.expLow, raised = select(zero, p.expLow, x);
  Num bounded = select(raised > p.expHigh, p.expHigh, raised);
  auto [n, r] = reduceByLn2(bounded);
  Num y = (expTail(r) + r) + 1.0;
  // Two factors, so that results below the normal range are rounded once.
  Num half = n >> 1;
  Num second = select(zero, 0.0, powerOfTwo(n - half, p));
  return (y * powerOfTwo(half, p) * second).v;
}

Value emit::emitExpM1(Emitter &e, Value value) {
  Num x{e, value};
  const Precision &p = precisionOf(x);
  double low = x.isDouble() ? -40 : -20, high = x.isDouble() ? 709 : 88;
  Num bounded = select(x > high, high, select(x < low, low, x));
  auto [n, r] = reduceByLn2(bounded);
  Num scale = powerOfTwo(n, p);
  Num result = fma(expTail(r) + r, scale, scale - 1.0);
  return select(x > high, exponential(x), result).v;
}

Num emit::logOfScaled(Scaled x) {
  auto [f, n] = x;
  const Precision &p = precisionOf(f);
  Num square = f * f;
  if (!f.isDouble()) {
    Num tail = fma(polynomial(f, log32) * f, square, n * p.ln2Low);
    return fma(n, n.like(p.ln2High), f + fma(square, f.like(-0.5), tail));
  }
  Num s = f / (f + 2.0), z = s * s, half = square * 0.5;
  Num tail = fma(s, half + polynomial(z, log64) * z, n * p.ln2Low);
  return fma(n, n.like(p.ln2High), f - (half - tail));
}

Scaled emit::scaleForLog(Num x) {
  auto numberOf = [&](Num integer) { return x.of(x.e.b.create<arith::SIToFPOp>(x.e.loc, x.type(), integer.v)); };
  const Precision &p = precisionOf(x);
  bool isDouble = x.isDouble();
  Num subnormal = x < (isDouble ? 2.2250738585072014e-308 : 1.17549435082228750797e-38);
  // Devices without doubles may take a subnormal number for 0, but not its bits, which are the number times 2^149.
  Num scaled = isDouble ? select(subnormal, x * 18014398509481984.0, x) : select(subnormal, numberOf(x.bits()), x);
  Num bits = scaled.bits();
  Num exponent = (bits - bits.likeInteger(isDouble ? 0x3fe6a09e667f3bcd : 0x3f3504f3)) >> p.mantissaBits;
  Num f = (bits - (exponent << p.mantissaBits)).asFloat() - 1.0;
  exponent = exponent - select(subnormal, bits.likeInteger(isDouble ? 54 : 149), bits.likeInteger(0));
  return {f, numberOf(exponent)};
}

Num emit::logWithLimits(Num x, Num result) {
  Num isZero = equal(x, 0.0), isPositive = x > 0.0;
  if (!x.isDouble()) { // subnormal numbers are no zeros, as above
    Num bits = x.bits(), zero = bits.likeInteger(0);
    isZero = x.of(x.e.compare(arith::CmpIPredicate::eq, (bits & bits.likeInteger(0x7fffffff)).v, zero.v));
    isPositive = x.of(x.e.compare(arith::CmpIPredicate::sgt, bits.v, zero.v));
  }
  Num special = select(isZero, -infinity, select(equal(x, infinity), x, notANumber));
  return select(isPositive & (x < infinity), result, special);
}

Value emit::emitLog(Emitter &e, Value value) {
  Num x{e, value};
  return logWithLimits(x, logOfScaled(scaleForLog(x))).v;
}

Value emit::emitLog1p(Emitter &e, Value value) {
  Num x{e, value};
  Num sum = x + 1.0;
  Num lost = x - (sum - 1.0);
  Num result = logarithm(sum) + select((sum > 0.0) & (x < infinity), lost / sum, 0.0);
  // Keeps tiny arguments, and the sign of zero.
  return select(equal(sum, 1.0), x, result).v;
}

Value emit::emitTanh(Emitter &e, Value value) {
  Num x{e, value};
  Num magnitude = absolute(x), square = x * x;
  Num small = fma(polynomial(square, x.isDouble() ? ArrayRef<double>(tanh64) : ArrayRef<double>(tanh32)) * square,
                  magnitude, magnitude);
  Num large = 1.0 - 2.0 / (exponential(magnitude * 2.0) + 1.0);
  return copySign(select(magnitude < 0.625, small, large), x).v;
}

Value emit::emitErf(Emitter &e, Value value) {
  Num x{e, value};
  Num magnitude = absolute(x), square = x * x;
  bool isDouble = x.isDouble();
  Num small = fma(polynomial(square, isDouble ? ArrayRef<double>(erfSmall64) : ArrayRef<double>(erfSmall32)), x, x);
  // Beyond, erf is 1 in the format.
  double limit = isDouble ? 6.0 : 4.0;
  Num bounded = select(magnitude > limit, limit, magnitude);
  Num logOfComplement = isDouble ? polynomial(bounded - 3.0, erfLarge64) : polynomial(bounded, erfLarge32);
  Num large = copySign(1.0 - exponential(logOfComplement), x);
  return select(magnitude < 1.0, small, large).v;
}

//===- Trigonometric functions
//-------------------------------------------------------------------------------------===//

namespace {

struct Angle {
  Num quadrant; // an integer, the low bits count
  Num r;        // x = quadrant * pi / 2 + r, |r| <= pi / 4; in the type of x
};

/// Of f32, for every finite x, with integers: neither f64 nor fused multiply-adds are there. The mantissa is multiplied
/// with those 96 bits of 2 / pi that decide about the quadrant (what comes before counts whole turns) and the 62 bits
/// of the fraction behind it. r is off by less than two units of its last place.
Angle reduceWithIntegers(Num x) {
  constexpr int64_t twoOverPi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                   0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
  constexpr double quarterTurn = 3.4061216748705226e-19; // pi / 2 * 2^-62
  Emitter &e = x.e;
  using Predicate = arith::CmpIPredicate;
  Num magnitude = absolute(x);
  Num bits{e, e.b.create<arith::ExtUIOp>(e.loc, e.sameShape(x.type(), e.b.getI64Type()), magnitude.bits().v)};
  auto integer = [&](int64_t value) { return bits.likeInteger(value); };
  auto is = [&](Predicate predicate, Num a, Num b) { return bits.of(e.compare(predicate, a.v, b.v)); };
  Num mantissa = (bits & integer(0x7fffff)) | integer(0x800000), exponent = shiftRight(bits, 23);
  Num first = select(is(Predicate::slt, exponent, integer(126)), integer(6), exponent - integer(120));
  Num word = shiftRight(first, 5), shift = first & integer(31);
  auto table = [&](int64_t j) {
    Num value = integer(twoOverPi[4 + j]);
    for (int64_t at = 3; at >= 0; --at)
      value = select(is(Predicate::eq, word, integer(at)), integer(twoOverPi[at + j]), value);
    return value;
  };
  Num words[] = {table(0), table(1), table(2), table(3)};
  auto product = [&](int64_t j) { // with 32 bits from `first` + 32 j on
    Num pair = (words[j] << 32) | words[j + 1];
    return mantissa * shiftRight(bits.of(e.b.create<arith::ShLIOp>(e.loc, pair.v, shift.v)), 32);
  };
  Num angle = (product(0) << 32) + product(1) + shiftRight(product(2), 32);
  angle = select(x < 0.0, integer(0) - angle, angle);
  Num quadrant = shiftRight(angle + integer(int64_t(1) << 61), 62);
  Num rest = angle - (quadrant << 62);
  Num r = x.of(e.b.create<arith::SIToFPOp>(e.loc, x.type(), rest.v)) * quarterTurn;
  Num isSmall = magnitude < 0.785398;
  r = select(isSmall, x, select(magnitude < infinity, r, notANumber));
  return {select(isSmall, integer(0), quadrant), r};
}

/// In f64 where there is one. pi / 2 in three parts of 33, 33 and 53 bits: products are exact for 2^20 quadrants
/// without fused multiply-adds, and for 2^45 with them.
Angle reduceByQuarterTurns(Num x) {
  if (!hasDoubles(x))
    return reduceWithIntegers(x);
  Num wide = toDouble(x);
  Num shifted = fma(wide, wide.like(0.63661977236758134308), wide.like(doublePrecision.rounder));
  Num n = shifted - doublePrecision.rounder;
  Num r = fma(n, n.like(-1.57079632673412561417), wide);
  r = fma(n, n.like(-6.07710050630396597660e-11), r);
  r = fma(n, n.like(-2.02226624879595063154e-21), r);
  r = select(absolute(r) > 1.0, 0.0, r);
  return {shifted.bits(), toType(r, x)};
}

/// The sine of the angle after `quarters` more quarter turns.
Num sineOf(Angle angle, int64_t quarters) {
  Num r = angle.r, square = r * r;
  bool isDouble = r.isDouble();
  Num sine = fma(polynomial(square, isDouble ? ArrayRef<double>(sin64) : ArrayRef<double>(sin32)) * square, r, r);
  Num cosine = polynomial(square, isDouble ? ArrayRef<double>(cos64) : ArrayRef<double>(cos32)) * (square * square);
  cosine = fma(square, r.like(-0.5), cosine) + 1.0;
  Num turns = angle.quadrant + angle.quadrant.likeInteger(quarters);
  auto bit = [&](int64_t mask) {
    Num masked = turns & turns.likeInteger(mask);
    return r.of(r.e.compare(arith::CmpIPredicate::ne, masked.v, turns.likeInteger(0).v));
  };
  Num result = select(bit(1), cosine, sine);
  return select(bit(2), -0.0 - result, result);
}

Num oddInDouble(Num x, double threshold, double cubic, llvm::function_ref<Num(Num)> formula) {
  return inDouble(x, [&](Num wide) {
    Num magnitude = absolute(wide);
    Num small = fma(magnitude * magnitude * cubic, magnitude, magnitude);
    return copySign(select(magnitude < threshold, small, formula(magnitude)), wide);
  });
}

} // namespace

Value emit::emitSin(Emitter &e, Value x) {
  Num result = sineOf(reduceByQuarterTurns({e, x}), 0);
  return select(equal({e, x}, 0.0), Num{e, x}, result).v; // keeps the sign of zero
}
Value emit::emitCos(Emitter &e, Value x) { return sineOf(reduceByQuarterTurns({e, x}), 1).v; }
Value emit::emitTan(Emitter &e, Value x) { return (Num{e, emitSin(e, x)} / Num{e, emitCos(e, x)}).v; }

/// atan of |x| <= 1. In f64, the angle is halved twice before its series is summed.
static Num atanSmall(Num x) {
  if (x.isDouble()) {
    for (int halving = 0; halving < 2; ++halving)
      x = x / (squareRoot(fma(x, x, x.like(1.0))) + 1.0);
    SmallVector<double> series;
    for (int n = 1; n < 12; ++n)
      series.push_back((n % 2 ? -1.0 : 1.0) / (2 * n + 1));
    Num square = x * x;
    return fma(polynomial(square, series) * square, x, x) * 4.0;
  }
  Num square = x * x;
  return fma(polynomial(square, atan32) * square, x, x);
}

Value emit::emitAtan(Emitter &e, Value value) {
  Num x{e, value}, magnitude = absolute(x);
  Num inverted = magnitude > 1.0;
  Num small = atanSmall(select(inverted, 1.0 / magnitude, magnitude));
  return copySign(select(inverted, 1.57079632679489661923 - small, small), x).v;
}

Value emit::emitAtan2(Emitter &e, Value yValue, Value xValue) {
  Num x{e, xValue}, y{e, yValue};
  Num ax = absolute(x), ay = absolute(y);
  Num inverted = ay > ax;
  Num low = select(inverted, ax, ay), high = select(inverted, ay, ax);
  Num ratio = select(equal(high, 0.0), 0.0, select(equal(low, infinity), 1.0, low / high));
  Num angle = atanSmall(ratio);
  angle = select(inverted, 1.57079632679489661923 - angle, angle);
  Num negative = copySign(x.like(1.0), x) < 0.0;
  angle = copySign(select(negative, 3.14159265358979323846 - angle, angle), y);
  return select(equal(x, x) & equal(y, y), angle, x + y).v;
}

Value emit::emitAsin(Emitter &e, Value value) {
  Num x{e, value}, magnitude = absolute(x);
  if (x.isDouble())
    return emitAtan(e, (x / squareRoot((1.0 - x) * (x + 1.0))).v);
  Num outer = magnitude > 0.5;
  Num half = (1.0 - magnitude) * 0.5;
  Num argument = select(outer, squareRoot(half), magnitude), square = argument * argument;
  Num inner = fma(polynomial(square, asin32) * square, argument, argument);
  return copySign(select(outer, 1.57079632679489661923 - inner * 2.0, inner), x).v;
}

Value emit::emitAcos(Emitter &e, Value value) {
  Num x{e, value}, magnitude = absolute(x);
  if (x.isDouble())
    return (Num{e, emitAtan(e, squareRoot((1.0 - x) / (x + 1.0)).v)} * 2.0).v;
  Num half = (1.0 - magnitude) * 0.5;
  Num root = squareRoot(half);
  Num nearOne = fma(polynomial(half, asin32) * half, root, root) * 2.0;
  Num outer = select(x < 0.0, 3.14159265358979323846 - nearOne, nearOne);
  Num inner = 1.57079632679489661923 - Num{e, emitAsin(e, value)};
  return select(magnitude > 0.5, outer, inner).v;
}

//===- By way of exp and log in f64, where there is one
//------------------------------------------------------------===//

Value emit::emitSinh(Emitter &e, Value x) {
  if (!hasDoubles({e, x}))
    return single::sinh({e, x}).v;
  return oddInDouble({e, x}, 1e-3, 1.0 / 6,
                     [](Num a) {
                       Num grown = exponential(a);
                       return (grown - 1.0 / grown) * 0.5;
                     })
      .v;
}
Value emit::emitCosh(Emitter &e, Value x) {
  if (!hasDoubles({e, x}))
    return single::cosh({e, x}).v;
  return inDouble({e, x},
                  [](Num wide) {
                    Num grown = exponential(absolute(wide));
                    return (grown + 1.0 / grown) * 0.5;
                  })
      .v;
}
Value emit::emitAsinh(Emitter &e, Value x) {
  if (!hasDoubles({e, x}))
    return single::asinh({e, x}).v;
  return oddInDouble({e, x}, 1e-3, -1.0 / 6, [](Num a) { return logarithm(a + squareRoot(fma(a, a, a.like(1.0)))); }).v;
}
Value emit::emitAcosh(Emitter &e, Value x) {
  if (!hasDoubles({e, x}))
    return single::acosh({e, x}).v;
  return inDouble({e, x},
                  [](Num a) { return select(a < 1.0, notANumber, logarithm(a + squareRoot((a - 1.0) * (a + 1.0)))); })
      .v;
}
Value emit::emitAtanh(Emitter &e, Value x) {
  if (!hasDoubles({e, x}))
    return single::atanh({e, x}).v;
  return oddInDouble({e, x}, 1e-3, 1.0 / 3, [](Num a) { return logarithm((a + 1.0) / (1.0 - a)) * 0.5; }).v;
}
Value emit::emitExp2(Emitter &e, Value x) {
  if (!hasDoubles({e, x}))
    return single::exp2({e, x}).v;
  return inDouble({e, x}, [](Num wide) { return exponential(wide * 0.69314718055994530942); }).v;
}
Value emit::emitLog2(Emitter &e, Value x) {
  if (!hasDoubles({e, x}))
    return single::log2({e, x}).v;
  return inDouble({e, x}, [](Num wide) { return logarithm(wide) * 1.4426950408889634074; }).v;
}
Value emit::emitLog10(Emitter &e, Value x) {
  if (!hasDoubles({e, x}))
    return single::log10({e, x}).v;
  return inDouble({e, x}, [](Num wide) { return logarithm(wide) * 0.43429448190325182765; }).v;
}

Value emit::emitPow(Emitter &e, Value xValue, Value yValue) {
  const bool wide = hasDoubles({e, xValue});
  Num x{e, xValue}, y{e, yValue};
  if (wide) {
    x = toDouble(x);
    y = toDouble(y);
  }
  Num magnitude = absolute(x), one = x.like(1.0);
  Num result =
      wide ? select(equal(magnitude, 1.0), one, exponential(y * logarithm(magnitude))) : single::power(magnitude, y);
  // Where numbers have no fraction any more, every one is an even integer.
  Num wholeY{e, emitTrunc(e, y.v)}, halfY{e, emitTrunc(e, (y * 0.5).v)};
  Num even = equal(halfY * 2.0, y), integral = equal(wholeY, y);
  Num negative = copySign(one, x) < 0.0;
  Num odd = integral & !even, invalid = (x < 0.0) & (x > -infinity) & !integral;
  result = select(negative & odd, -0.0 - result, result);
  result = select(invalid, notANumber, result);
  result = select(equal(y, 0.0) | equal(x, 1.0), one, result);
  return toType(result, {e, xValue}).v;
}

Value emit::emitRemainder(Emitter &e, Value xValue, Value yValue) {
  Num like{e, xValue};
  if (!hasDoubles(like))
    return copySign(single::remainder(absolute(like), absolute({e, yValue})), like).v;
  Num x = toDouble(like), y = toDouble({e, yValue});
  Num ax = absolute(x), ay = absolute(y);
  Num quotient{e, emitTrunc(e, (ax / ay).v)};
  Num rest = fma(quotient, -0.0 - ay, ax);
  rest = select(rest < 0.0, rest + ay, rest);
  rest = select(equal(rest, ay) | (rest > ay), rest - ay, rest);
  rest = select(equal(ay, infinity) & (ax < infinity), ax, rest);
  return toType(copySign(rest, x), like).v;
}
