//===- NarrowMatrix.h - matrices in bf16 and in 8-bit integers -----------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_NARROWMATRIX_H
#define TRANSEPT_PASSES_NARROWMATRIX_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace mlir::transept {

/// Every element rounded to bf16, nearest, ties to even; NaN stays NaN.
std::vector<char> roundToBf16(ArrayRef<float> elements);

struct Int8Matrix {
  std::vector<char> elements; ///< offset 128, in the order of the original
  std::vector<float> scales;  ///< per column n of [K, N]: element = (byte - 128) * scale
};
/// Columns of a finite matrix [k, n] (stored [n, k] where `transposed`), each scaled to [-127, 127] and rounded to
/// integers, nearest, ties to even. A column of zeros has the scale 0.
Int8Matrix quantiseColumns(ArrayRef<float> elements, int64_t k, int64_t n, bool transposed);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_NARROWMATRIX_H
