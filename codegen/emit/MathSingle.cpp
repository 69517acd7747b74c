//===- MathSingle.cpp - functions of f32 where there is no f64 ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/emit/Coefficients.h"
#include "codegen/emit/Math.h"
#include "codegen/emit/MathParts.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::emit;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();
static constexpr double ln2 = 0.69314718055994530942;
/// Above, 1 is nothing beside the square of a number.
static constexpr double large = 1e4;

namespace {

Num absolute(Num x) { return x.of(emitAbs(x.e, x.v)); }
Num copySign(Num magnitude, Num sign) { return magnitude.of(emitCopySign(magnitude.e, magnitude.v, sign.v)); }
Num log1p(Num x) { return x.of(emitLog1p(x.e, x.v)); }
Num squareRoot(Num x) { return x.of(x.e.b.create<math::SqrtOp>(x.e.loc, x.v)); }
Num clamped(Num x, double low, double high) { return select(x < low, low, select(x > high, high, x)); } // keeps NaN

/// exp(a) / 2 for a >= 0, finite where that is. a - ln2High is exact where it matters.
Num halfOfExp(Num a) {
  Num grown{a.e, emitExp(a.e, (a - singlePrecision.ln2High).v)};
  return grown - grown * singlePrecision.ln2Low;
}

/// log(2 a) for a above `large`, else `formula` of a.
Num unlessLarge(Num a, llvm::function_ref<Num(Num)> formula) {
  Num isLarge = a > large;
  Num small = formula(select(isLarge, 1.0, a));
  return select(isLarge, Num{a.e, emitLog(a.e, a.v)} + ln2, small);
}

} // namespace

Num single::sinh(Num x) {
  Num a = absolute(x), bounded = select(a > 1.0, 1.0, a);
  Num t{x.e, emitExpM1(x.e, bounded.v)}, half = halfOfExp(a);
  return copySign(select(a < 1.0, (t + t / (t + 1.0)) * 0.5, half - 0.25 / half), x);
}

Num single::cosh(Num x) {
  Num half = halfOfExp(absolute(x));
  return half + 0.25 / half;
}

Num single::asinh(Num x) {
  Num result = unlessLarge(absolute(x), [](Num a) {
    Num square = a * a;
    return log1p(a + square / (squareRoot(square + 1.0) + 1.0));
  });
  return copySign(result, x);
}

Num single::acosh(Num x) {
  Num result = unlessLarge(x, [](Num a) {
    Num over = a - 1.0;
    return log1p(over + squareRoot(over * (over + 2.0)));
  });
  return select(x < 1.0, notANumber, result);
}

Num single::atanh(Num x) {
  Num a = absolute(x);
  return copySign(log1p((a + a) / (1.0 - a)) * 0.5, x);
}

Num single::exp2(Num x) {
  Num bounded = clamped(x, -151, 129);
  Num shifted = bounded + singlePrecision.rounder;
  Num rest = bounded - (shifted - singlePrecision.rounder);
  return expOfReduced({shifted.bits() - x.like(singlePrecision.rounder).bits(), rest * ln2});
}

Num single::log2(Num x) {
  auto [f, n] = scaleForLog(x);
  return logWithLimits(x, n + logOfScaled({f, n.like(0)}) * 1.4426950408889634074);
}

Num single::log10(Num x) {
  constexpr double high = 0.30078125, low = 0.30102999566398119521 - high; // n * high is exact
  auto [f, n] = scaleForLog(x);
  Num rest = fma(n, n.like(low), logOfScaled({f, n.like(0)}) * 0.43429448190325182765);
  return logWithLimits(x, fma(n, n.like(high), rest));
}

//===- Powers
//------------------------------------------------------------------------------------------------------===//

namespace {

/// A sum of two numbers, of which the second one is what rounding took from the first.
struct Pair {
  Num high, low;
};

Pair exactSum(Num a, Num b) {
  Num sum = a + b, other = sum - a;
  return {sum, (a - (sum - other)) + (b - other)};
}
/// Where |a| >= |b|, or a is 0.
Pair exactSumOrdered(Num a, Num b) {
  Num sum = a + b;
  return {sum, b - (sum - a)};
}
/// By halves of twelve bits: not every device multiplies and adds in one.
Pair exactProduct(Num a, Num b) {
  auto split = [](Num x) {
    Num spread = x * 4097.0, high = spread - (spread - x);
    return Pair{high, x - high};
  };
  Num product = a * b;
  Pair x = split(a), y = split(b);
  return {product, ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

/// log((1 + f) * 2^n) with an error of 2^-40 or so: 2 s + s^3 P(s^2), s = f / (2 + f).
Pair preciseLog(Scaled x) {
  Num f = x.f, n = x.n;
  Pair sum = exactSumOrdered(f.like(2.0), f);
  Num s = f / sum.high;
  Pair back = exactProduct(s, sum.high);
  Num sLow = (((f - back.high) - back.low) - s * sum.low) / sum.high;
  Pair square = exactProduct(s, s);
  square.low = square.low + (s + s) * sLow;
  Num first = f.like(logOfRatio32[0]);
  Pair series =
      exactSumOrdered(first, square.high * polynomial(square.high, ArrayRef<double>(logOfRatio32).drop_front()));
  series.low = series.low + (logOfRatio32[0] - static_cast<float>(logOfRatio32[0]));
  Pair cube = exactProduct(s, square.high);
  cube.low = cube.low + (s * square.low + square.high * sLow);
  Pair tail = exactProduct(cube.high, series.high);
  tail.low = tail.low + (cube.high * series.low + cube.low * series.high);
  Pair total = exactSum(n * singlePrecision.ln2High, s + s), whole = exactSum(total.high, tail.high);
  Num low = (total.low + whole.low) + (n * singlePrecision.ln2Low + ((sLow + sLow) + tail.low));
  return exactSumOrdered(whole.high, low);
}

} // namespace

Num single::power(Num magnitude, Num y) {
  // Beyond 2^40 the power of every number but 1 is 0 or infinite.
  constexpr double most = 1099511627776.0;
  Num bounded = clamped(y, -most, most);
  Pair log = preciseLog(scaleForLog(magnitude)), exponent = exactProduct(bounded, log.high);
  exponent = exactSumOrdered(exponent.high, exponent.low + bounded * log.low);
  auto [n, r] = reduceByLn2(clamped(exponent.high, -110, 90));
  Num result = expOfReduced({n, r + clamped(exponent.low, -1, 1)});
  // At the ends of the range there is no logarithm.
  Num grows = (magnitude > 1.0) & (y > 0.0), shrinks = (magnitude < 1.0) & (y < 0.0);
  Num atEnd = select(grows | shrinks, infinity, magnitude.like(0.0));
  result = select(equal(magnitude, 0.0) | equal(magnitude, infinity), atEnd, result);
  result = select(equal(magnitude, 1.0), 1.0, result);
  return select(equal(magnitude, magnitude) & equal(y, y), result, notANumber);
}

//===- Remainders
//--------------------------------------------------------------------------------------------------===//

/// Long division: the mantissa of x by that of y, so many bits at once as 64 hold.
Num single::remainder(Num x, Num y) {
  constexpr int64_t bitsAtOnce = 39, rounds = 7; // 253 bits at most
  Emitter &e = x.e;
  Type i64 = e.sameShape(x.type(), e.b.getI64Type());
  auto wide = [&](Num number) { return Num{e, e.b.create<arith::ExtUIOp>(e.loc, i64, number.v)}; };
  auto is = [&](arith::CmpIPredicate predicate, Num a, Num b) { return a.of(e.compare(predicate, a.v, b.v)); };
  auto divided = [&](Num a, Num b) { return a.of(e.b.create<arith::RemUIOp>(e.loc, a.v, b.v)); };
  struct Parts {
    Num mantissa, exponent; // of numbers below the normal range the exponent of the smallest normal one
  };
  auto partsOf = [&](Num number) -> Parts {
    Num bits = wide(number.bits()), exponent = shiftRight(bits, 23), mantissa = bits & bits.likeInteger(0x7fffff);
    Num isNormal = is(arith::CmpIPredicate::ne, exponent, bits.likeInteger(0));
    return {select(isNormal, mantissa | bits.likeInteger(0x800000), mantissa),
            select(isNormal, exponent, bits.likeInteger(1))};
  };
  Parts of = partsOf(x), by = partsOf(y);
  Num zero = of.mantissa.likeInteger(0);
  Num divisor = select(is(arith::CmpIPredicate::eq, by.mantissa, zero), of.mantissa.likeInteger(1), by.mantissa);
  Num left = of.exponent - by.exponent, rest = divided(of.mantissa, divisor);
  for (int64_t round = 0; round < rounds; ++round) {
    Num most = zero.likeInteger(bitsAtOnce);
    Num bits = select(is(arith::CmpIPredicate::slt, left, most), left, most);
    bits = select(is(arith::CmpIPredicate::slt, bits, zero), zero, bits);
    rest = divided(rest.of(e.b.create<arith::ShLIOp>(e.loc, rest.v, bits.v)), divisor);
    left = left - bits;
  }
  Type i32 = e.sameShape(x.type(), e.b.getI32Type());
  Num scale{e, e.b.create<arith::TruncIOp>(e.loc, i32, (by.exponent - by.exponent.likeInteger(150)).v)};
  Num half = scale >> 1, bias = scale.likeInteger(singlePrecision.bias);
  Num result = x.of(e.b.create<arith::SIToFPOp>(e.loc, x.type(), rest.v));
  result = result * ((half + bias) << 23).asFloat() * ((scale - half + bias) << 23).asFloat();
  result = select(x < y, x, result);
  return select((x < infinity) & (y > 0.0), result, notANumber);
}
