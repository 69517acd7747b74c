//===- HostMath.h - elementary functions with the same bits everywhere ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Made of IEEE additions, products, quotients and square roots, and of exact functions of the C library (frexp, ldexp,
// rint, fma): the bits depend on no libm. Errors are stated in units in the last place of the double result; rounded to
// float, the results are correctly rounded but for about one argument in 10^8.

#ifndef TRANSEPT_IR_HOSTMATH_H
#define TRANSEPT_IR_HOSTMATH_H

namespace mlir::transept::math {

double exp(double x);  ///< below 1 ulp for normal results
double log(double x);  ///< below 1 ulp; log(0) = -inf, log(negative) = NaN
double sin(double x);  ///< below 1 ulp for all finite arguments
double cos(double x);  ///< below 1 ulp for all finite arguments
double tan(double x);  ///< below 3 ulp for all finite arguments
double tanh(double x); ///< below 2 ulp
double erf(double x);  ///< below 2 ulp
double sigmoid(double x);
double log1p(double x); ///< log(1 + x), below 2 ulp
double asin(double x);  ///< this and the next ones below 4 ulp
double acos(double x);
double atan(double x);
double sinh(double x);
double cosh(double x);
double asinh(double x);
double acosh(double x);
double atanh(double x);
/// Below 0.51 ulp for normal results, exact where the power is a double; special values as in C99 annex F.
double pow(double base, double exponent);

} // namespace mlir::transept::math

#endif // TRANSEPT_IR_HOSTMATH_H
