//===- HostMath.cpp - elementary functions with the same bits everywhere --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/HostMath.h"
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#pragma STDC FP_CONTRACT OFF

using namespace mlir::transept;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

constexpr double log2OfE = 0x1.71547652b82fep+0;
// ln 2 in two pieces: multiples of the first one by up to 2^20 are exact.
constexpr double ln2Head = 0x1.62e42feep-1, ln2Tail = 0x1.a39ef35793c76p-33;
constexpr double twoOverSqrtPi = 0x1.20dd750429b6dp+0;

/// sum of coefficients[i] * x^i
template <int N> double polynomial(double x, const double (&coefficients)[N]) {
  double sum = coefficients[N - 1];
  for (int i = N - 2; i >= 0; --i)
    sum = sum * x + coefficients[i];
  return sum;
}

/// exp(r) - 1 for |r| <= 0.35, where the argument is r + correction and |correction| is below an ulp of r.
/// Taylor's series to r^14; the next term is below 2^-60.
double expMinusOneNearZero(double r, double correction) {
  static constexpr double taylor[] = {
      1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,          1.0 / 5040,         1.0 / 40320,
      1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0, 1.0 / 87178291200.0};
  return r + (correction + r * r * polynomial(r, taylor));
}

/// x = k ln 2 + r, |r| <= ln 2 / 2. Returns exp(r) - 1.
double reduceExp(double x, int &k) {
  const double multiple = std::rint(x * log2OfE);
  k = static_cast<int>(multiple);
  const double head = x - multiple * ln2Head, tail = -multiple * ln2Tail;
  const double r = head + tail;
  return expMinusOneNearZero(r, (head - r) + tail);
}

/// |x| below 700.
double expMinusOne(double x) {
  int k;
  const double fraction = reduceExp(x, k);
  if (k == 0)
    return fraction;
  return std::ldexp(fraction, k) + (std::ldexp(1.0, k) - 1);
}

//===- Sine and cosine ------------------------------------------------------------------------------------------===//

// 2 / pi, the first 1280 bits after the binary point.
constexpr uint64_t twoOverPi[20] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
                                    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
                                    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
                                    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
                                    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};

/// 64 bits of 2 / pi from bit `position` after the binary point on; bits before the point are zero.
uint64_t twoOverPiBits(int position) {
  auto word = [](int index) { return index < 0 || index >= 20 ? uint64_t{0} : twoOverPi[index]; };
  const int index = position >= 0 ? position / 64 : -((-position + 63) / 64);
  const int shift = position - index * 64;
  return shift == 0 ? word(index) : word(index) << shift | word(index + 1) >> (64 - shift);
}

/// x = quadrant * pi / 2 + r + correction modulo 2 pi, |r| <= pi / 4. After Payne and Hanek: of the product of x with
/// 2 / pi, only the bits are computed that are no multiple of four and matter for the fraction.
int reduceToQuadrant(double x, double &r, double &correction) {
  constexpr double halfPiHead = 0x1.921fb54442d18p+0, halfPiTail = 0x1.1a62633145c07p-54;
  int exponent;
  const auto mantissa = static_cast<uint64_t>(std::ldexp(std::frexp(std::fabs(x), &exponent), 53));
  const int first = exponent - 53 - 2;
  using Wide = unsigned __int128;
  // The product modulo 4 in units of 2^-190: three words, most significant first.
  Wide low = Wide{mantissa} * twoOverPiBits(first + 128);
  Wide middle = Wide{mantissa} * twoOverPiBits(first + 64) + static_cast<uint64_t>(low >> 64);
  uint64_t high = mantissa * twoOverPiBits(first) + static_cast<uint64_t>(middle >> 64);
  int quadrant = static_cast<int>(high >> 62);
  Wide fraction = Wide{high << 2 | static_cast<uint64_t>(middle) >> 62} << 64 |
                  (static_cast<uint64_t>(middle) << 2 | static_cast<uint64_t>(low) >> 62);
  uint64_t rest = static_cast<uint64_t>(low) << 2;
  const bool above = fraction >> 127;
  if (above) { // Nearer to the next quadrant: one minus the fraction, negative.
    ++quadrant;
    rest = ~rest + 1;
    fraction = ~fraction + (rest == 0);
  }
  int scale = -128;
  if (fraction >> 64 == 0) { // Close to a multiple of pi / 2: bring in the third word.
    fraction = fraction << 64 | rest;
    scale -= 64;
  }
  while (fraction != 0 && !(fraction >> 127)) {
    fraction <<= 1;
    --scale;
  }
  const double head = std::ldexp(static_cast<double>(static_cast<uint64_t>(fraction >> 75)), 75 + scale);
  const double tail =
      std::ldexp(static_cast<double>(static_cast<uint64_t>(fraction >> 22 & ((uint64_t{1} << 53) - 1))), 22 + scale);
  const double product = head * halfPiHead;
  const double error = std::fma(head, halfPiHead, -product) + (head * halfPiTail + tail * halfPiHead);
  r = product + error;
  correction = (product - r) + error;
  if (above != (x < 0)) {
    r = -r;
    correction = -correction;
  }
  return x < 0 ? -quadrant & 3 : quadrant & 3;
}

/// Taylor's series to r^19, |r| <= pi / 4.
double sinNearZero(double r, double correction) {
  static constexpr double taylor[] = {-1.0 / 6,
                                      1.0 / 120,
                                      -1.0 / 5040,
                                      1.0 / 362880,
                                      -1.0 / 39916800,
                                      1.0 / 6227020800.0,
                                      -1.0 / 1307674368000.0,
                                      1.0 / 355687428096000.0,
                                      -1.0 / 121645100408832000.0};
  const double square = r * r;
  return r + (r * square * polynomial(square, taylor) + correction * (1 - 0.5 * square));
}

/// Taylor's series to r^18, |r| <= pi / 4.
double cosNearZero(double r, double correction) {
  static constexpr double taylor[] = {1.0 / 24,
                                      -1.0 / 720,
                                      1.0 / 40320,
                                      -1.0 / 3628800,
                                      1.0 / 479001600,
                                      -1.0 / 87178291200.0,
                                      1.0 / 20922789888000.0,
                                      -1.0 / 6402373705728000.0};
  const double square = r * r, half = 0.5 * square, head = 1 - half;
  return head + (((1 - head) - half) + (square * square * polynomial(square, taylor) - r * correction));
}

double sinOfQuadrant(int quadrant, double r, double correction) {
  const double magnitude = quadrant & 1 ? cosNearZero(r, correction) : sinNearZero(r, correction);
  return quadrant & 2 ? -magnitude : magnitude;
}

//===- Inverse functions ----------------------------------------------------------------------------------------===//

/// x >= 0. atan x = atan c + atan((x - c) / (1 + x c)) for the nearest multiple c of 1/8; beyond 1 the complement.
double atanOfPositive(double x) {
  // atan(i / 8)
  static constexpr double table[] = {0x0p+0,
                                     0x1.fd5ba9aac2f6ep-4,
                                     0x1.f5b75f92c80ddp-3,
                                     0x1.6f61941e4def1p-2,
                                     0x1.dac670561bb4fp-2,
                                     0x1.1e00babdefeb4p-1,
                                     0x1.4978fa3269ee1p-1,
                                     0x1.700a7c5784634p-1,
                                     0x1.921fb54442d18p-1};
  static constexpr double series[] = {-1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11, 1.0 / 13, -1.0 / 15, 1.0 / 17};
  constexpr double halfPi = 0x1.921fb54442d18p+0, halfPiTail = 0x1.1a62633145c07p-54;
  if (x > 1)
    return halfPi - (atanOfPositive(1 / x) - halfPiTail);
  const int eighths = static_cast<int>(std::rint(x * 8));
  const double centre = eighths / 8.0, t = (x - centre) / (1 + x * centre), square = t * t;
  return table[eighths] + (t + t * square * polynomial(square, series));
}

double withSign(double magnitude, double sign) { return std::signbit(sign) ? -magnitude : magnitude; }

//===- Twice the precision of a double, for powers ----------------------------------------------------------------===//

/// The unevaluated sum head + tail, |tail| at most half an ulp of head.
struct Pair {
  double head, tail;
};
Pair fastSum(double large, double small) {
  const double sum = large + small;
  return {sum, small - (sum - large)};
}
Pair sum(double a, double b) {
  const double total = a + b, part = total - a;
  return {total, (a - (total - part)) + (b - part)};
}
Pair add(Pair a, Pair b) {
  const Pair heads = sum(a.head, b.head), tails = sum(a.tail, b.tail);
  const Pair inner = fastSum(heads.head, heads.tail + tails.head);
  return fastSum(inner.head, inner.tail + tails.tail);
}
Pair multiply(Pair a, Pair b) {
  const double product = a.head * b.head;
  return fastSum(product, std::fma(a.head, b.head, -product) + (a.head * b.tail + a.tail * b.head));
}
Pair divide(Pair a, Pair b) {
  const double quotient = a.head / b.head;
  const Pair back = multiply({quotient, 0}, b);
  const Pair rest = add(a, {-back.head, -back.tail});
  return fastSum(quotient, (rest.head + rest.tail) / b.head);
}

constexpr Pair ln2Pair = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

/// log x = e ln 2 + 2 artanh((m - 1) / (m + 1)), x = m 2^e positive and finite, m between sqrt(1/2) and sqrt(2).
Pair logPair(double x) {
  int exponent;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  const Pair ratio = divide({mantissa - 1, 0}, sum(mantissa, 1));
  const Pair square = multiply(ratio, ratio);
  Pair series = {0, 0}; // sum of square^n / (2 n + 1); square is below 0.0295.
  for (int n = 24; n >= 0; --n)
    series = add(multiply(series, square), divide({1, 0}, {2.0 * n + 1, 0}));
  const Pair half = multiply(ratio, series);
  return add(multiply(ln2Pair, {static_cast<double>(exponent), 0}), {2 * half.head, 2 * half.tail});
}

/// |x| below 800.
double expPair(Pair x) {
  const double multiple = std::rint(x.head * log2OfE);
  const Pair r = add(x, multiply(ln2Pair, {-multiple, 0}));
  Pair series = {1, 0}; // Taylor's series, from the last term: 1 + r/1 (1 + r/2 (1 + …
  for (int n = 26; n >= 1; --n)
    series = add(divide(multiply(series, r), {static_cast<double>(n), 0}), {1, 0});
  return std::ldexp(series.head, static_cast<int>(multiple));
}

double powPositive(double base, double exponent) {
  const Pair logarithm = logPair(base);
  const double estimate = logarithm.head * exponent;
  if (estimate > 710)
    return infinity;
  if (estimate < -746)
    return 0;
  return expPair(multiply(logarithm, {exponent, 0}));
}

bool isInteger(double x) { return std::rint(x) == x; }
bool isOddInteger(double x) { return isInteger(x) && std::fabs(x) < 0x1p53 && !isInteger(x / 2); }
} // namespace

double math::exp(double x) {
  if (std::isnan(x))
    return x;
  if (x > 709.79)
    return infinity;
  if (x < -745.2)
    return 0;
  int k;
  const double fraction = reduceExp(x, k);
  return std::ldexp(1 + fraction, k);
}

double math::log(double x) {
  if (std::isnan(x) || x == infinity)
    return x;
  if (x == 0)
    return -infinity;
  if (x < 0)
    return notANumber;
  int k;
  double mantissa = std::frexp(x, &k);
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --k;
  }
  // log(1 + f) = 2 artanh(s) with s = f / (2 + f); arranged so that f enters last and unrounded.
  static constexpr double artanh[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                                      2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  const double f = mantissa - 1, s = f / (2 + f), square = s * s, half = 0.5 * f * f;
  const double rest = square * polynomial(square, artanh);
  return k * ln2Head - ((half - (s * (half + rest) + k * ln2Tail)) - f);
}

double math::sin(double x) {
  if (!std::isfinite(x))
    return notANumber;
  if (std::fabs(x) < 0.785)
    return x == 0 ? x : sinNearZero(x, 0);
  double r, correction;
  const int quadrant = reduceToQuadrant(x, r, correction);
  return sinOfQuadrant(quadrant, r, correction);
}

double math::cos(double x) {
  if (!std::isfinite(x))
    return notANumber;
  if (std::fabs(x) < 0.785)
    return cosNearZero(x, 0);
  double r, correction;
  const int quadrant = reduceToQuadrant(x, r, correction);
  return sinOfQuadrant(quadrant + 1, r, correction);
}

double math::tan(double x) { return x == 0 ? x : sin(x) / cos(x); }

double math::log1p(double x) {
  const double sum = 1 + x;
  if (sum == 1 || std::isnan(x) || x == infinity)
    return x; // tiny arguments, and the sign of zero
  if (sum <= 0)
    return log(sum);
  return log(sum) - ((sum - 1) - x) / sum;
}

double math::atan(double x) { return std::isnan(x) || x == 0 ? x : withSign(atanOfPositive(std::fabs(x)), x); }

double math::asin(double x) {
  if (std::isnan(x) || x == 0)
    return x;
  const double magnitude = std::fabs(x), root = std::sqrt((1 - magnitude) * (1 + magnitude));
  return magnitude > 1 ? notANumber : withSign(atanOfPositive(magnitude / root), x);
}

double math::acos(double x) {
  if (std::isnan(x) || std::fabs(x) > 1)
    return notANumber;
  return 2 * atanOfPositive(std::sqrt((1 - x) / (1 + x)));
}

double math::sinh(double x) {
  const double magnitude = std::fabs(x);
  if (magnitude < 700) {
    const double grown = expMinusOne(magnitude);
    return x == 0 ? x : withSign(0.5 * (grown + grown / (grown + 1)), x);
  }
  const double root = exp(0.5 * magnitude);
  return std::isnan(x) ? x : withSign(0.5 * root * root, x);
}

double math::cosh(double x) {
  const double root = exp(0.5 * std::fabs(x)), grown = exp(std::fabs(x));
  return std::fabs(x) < 700 ? 0.5 * (grown + 1 / grown) : 0.5 * root * root;
}

double math::asinh(double x) {
  if (!std::isfinite(x) || x == 0)
    return x;
  const double a = std::fabs(x);
  return withSign(a < 0x1p500 ? log1p(a + a * a / (1 + std::sqrt(a * a + 1))) : log(a) + log(2), x);
}

double math::acosh(double x) {
  if (std::isnan(x) || x < 1)
    return notANumber;
  const double above = x - 1;
  return x < 0x1p500 ? log1p(above + std::sqrt(2 * above + above * above)) : log(x) + log(2);
}

double math::atanh(double x) {
  if (std::isnan(x) || x == 0)
    return x;
  const double a = std::fabs(x);
  return a > 1 ? notANumber : withSign(0.5 * log1p(2 * a / (1 - a)), x);
}

double math::tanh(double x) {
  if (std::isnan(x) || x == 0)
    return x;
  const double magnitude = std::fabs(x);
  double result = 1;
  if (magnitude < 1) {
    const double t = expMinusOne(-2 * magnitude);
    result = -t / (t + 2);
  } else if (magnitude < 22) {
    result = 1 - 2 / (expMinusOne(2 * magnitude) + 2);
  }
  return std::signbit(x) ? -result : result;
}

double math::erf(double x) {
  if (std::isnan(x) || x == 0)
    return x;
  const double a = std::fabs(x), square = a * a;
  double result = 1;
  if (a < 1) {
    // 2 / sqrt(pi) sum of (-1)^n a^(2n+1) / (n! (2n+1))
    double term = a, sum = 0;
    for (int n = 1; n < 24; ++n) {
      term *= -square / n;
      sum += term / (2 * n + 1);
    }
    result = twoOverSqrtPi * (a + sum);
  } else if (a < 6) {
    // 1 - erf(a) = exp(-a^2) / sqrt(pi) / (a + (1/2) / (a + (2/2) / (a + (3/2) / (a + …; exp(-a^2) needs the rounding
    // error of the square, too: it is a relative error of the result. n levels leave about exp(-2 a sqrt(2 n)).
    double fraction = a;
    for (int n = static_cast<int>(400 / square) + 1; n >= 1; --n)
      fraction = a + 0.5 * n / fraction;
    const double gauss = exp(-square) * (1 - std::fma(a, a, -square));
    result = 1 - 0.5 * twoOverSqrtPi * gauss / fraction;
  }
  return std::signbit(x) ? -result : result;
}

double math::sigmoid(double x) { return 1 / (1 + exp(-x)); }

double math::pow(double base, double exponent) {
  if (exponent == 0 || base == 1)
    return 1;
  if (std::isnan(base) || std::isnan(exponent))
    return notANumber;
  const double magnitude = std::fabs(base);
  if (std::isinf(exponent)) {
    if (magnitude == 1)
      return 1;
    return (magnitude > 1) == (exponent > 0) ? infinity : 0;
  }
  if (base < 0 && std::isfinite(base) && !isInteger(exponent))
    return notANumber;
  double result;
  if (magnitude == 0 || std::isinf(magnitude))
    result = (magnitude == 0) == (exponent < 0) ? infinity : 0;
  else
    result = powPositive(magnitude, exponent);
  return std::signbit(base) && isOddInteger(exponent) ? -result : result;
}
