//===- MathParts.h - what elementary functions are made of --------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_EMIT_MATHPARTS_H
#define TRANSEPT_CODEGEN_EMIT_MATHPARTS_H

#include "codegen/emit/Num.h"

namespace mlir::kernel::emit {

/// What depends on the precision in exp and log. ln 2 is split so that n * high is exact for every exponent n.
struct Precision {
  double rounder;             // adding it leaves the nearest integer in the low bits
  int64_t mantissaBits, bias; // of the format
  double ln2High, ln2Low;
  double expLow, expHigh; // outside, exp is 0 or infinite
};
constexpr Precision singlePrecision = {12582912.0, 23, 127, 0.693359375, -2.12194440054690583e-4, -104.0, 89.0};
constexpr Precision doublePrecision = {6755399441055744.0,         52,     1023, 6.93147180369123816490e-01,
                                       1.90821492927058770002e-10, -745.2, 710.0};

struct Reduced {
  Num n, r; // x = n * ln 2 + r; n as an integer
};
Reduced reduceByLn2(Num x);
/// exp(r) * 2^n, rounded once where it is below the normal range, for |r| <= ln 2 / 2 and an integer |n| <= 2 * bias.
Num expOfReduced(Reduced x);
/// exp(x) for x <= 0 in f32, where it is below the normal range 0. Half of what exp costs; its error stays below 2
/// units in the last place down to 2^-20 and grows to 4 at the end of the range.
Num expOfNegative(Num x);

struct Scaled {
  Num f, n; // x = (1 + f) * 2^n, 1 + f between the square roots of 1/2 and 2; n as a float
};
/// Of finite x above 0.
Scaled scaleForLog(Num x);
/// log(1 + f) + n * ln 2.
Num logOfScaled(Scaled x);
/// `result` where x is finite and above 0; else what a logarithm is there.
Num logWithLimits(Num x, Num result);

/// Functions of f32 in f32 alone. Error below 3.5 units in the last place, pow below 1.5, as long as quotients and
/// square roots are rounded correctly; remainders are exact.
namespace single {
Num sinh(Num x);
Num cosh(Num x);
Num asinh(Num x);
Num acosh(Num x);
Num atanh(Num x);
Num exp2(Num x);
Num log2(Num x);
Num log10(Num x);
/// magnitude^y for a magnitude >= 0; NaN where one of them is.
Num power(Num magnitude, Num y);
/// For x, y >= 0.
Num remainder(Num x, Num y);
} // namespace single

} // namespace mlir::kernel::emit

#endif // TRANSEPT_CODEGEN_EMIT_MATHPARTS_H
