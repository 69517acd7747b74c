//===- FormIntegers.h - contractions of 8-bit integers -------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_FORMINTEGERS_H
#define TRANSEPT_PASSES_FORMINTEGERS_H

#include "passes/FormContext.h"

namespace mlir::transept {

/// A constant matrix [K, N] of integers in the weight store: ui8, element - offset of the column + 128.
struct IntegerMatrix {
  int64_t k = 0, n = 0;
  std::string key;
  std::string sumsKey;    ///< i32 [N]: the sums of the columns
  std::string offsetsKey; ///< i32 [N]; empty where all are 0
};
/// Null where K is more than a contraction sums exactly, or the elements of a column do not fit 8 bits under any
/// offset. (Bytes without their zero point always fit.)
std::optional<IntegerMatrix> integerMatrix(MLIRContext *context, int64_t k, int64_t n,
                                           function_ref<int64_t(int64_t k, int64_t n)> element);

/// A graph value that is bytes minus one zero point.
struct CentredBytes {
  Value bytes;
  Value zero; ///< of any integer type, one number; null: 0
};

/// The scalar of a zero point: a kernel tensor without axes; null where there is none.
Value zeroPointOf(FormContext &f, Location loc, const CentredBytes &input);

/// Kernels multiply signed bytes: what is taken away from unsigned ones first.
int64_t shiftOf(Type elementType);
/// An element (of `elementType`, in its scalar type) without the shift, as i8.
Value toSignedByte(Body &b, Value element, Type elementType);

/// The exact sums over k of (x + shift - zero) * matrix, plus `bias` [N] (i32) or null: i32 [..., N]. `x` [..., K] is
/// i8; `zero` a scalar or null.
Value formIntegerContract(FormContext &f, Location loc, Value x, int64_t shift, Value zero, const IntegerMatrix &matrix,
                          Value bias);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_FORMINTEGERS_H
