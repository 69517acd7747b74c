//===- IntegerProducts.h - products of dequantised integers are products of integers ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_INTEGERPRODUCTS_H
#define TRANSEPT_PASSES_INTEGERPRODUCTS_H

#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::transept {

/// The product of a tensor and a constant matrix that are (q - zero point) * scale of 8-bit integers, with one scale
/// for the tensor and one for the matrix or for each of its columns, becomes the exact product of the integers times
/// the scales. So does a convolution, with one scale for the weight or for each of its filters. Before folding, which
/// would turn the matrix into floats.
std::unique_ptr<Pass> createIntegerProductsPass();

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_INTEGERPRODUCTS_H
