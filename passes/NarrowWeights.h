//===- NarrowWeights.h - weights that a model holds as integers and scales -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_NARROWWEIGHTS_H
#define TRANSEPT_PASSES_NARROWWEIGHTS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::transept {

/// Module pass, before folding. A constant matrix of a product that is integers times scales, with at most one scale
/// per column and `block` adjacent rows, becomes a weight of the same floats, and the module remembers what it was made
/// of. Numbers decide, not how they are spelled.
std::unique_ptr<Pass> createNarrowWeightsPass();

/// What the weight was made of, as an attribute `transept.narrow` (passes/Quantise.h): {weight, scales, block}. Null
/// where it is not known. `transposed`: the matrix is stored [N, K].
DictionaryAttr narrowOrigin(ModuleOp module, StringRef key, bool transposed);
/// Where nobody asks any more.
void forgetNarrowOrigins(ModuleOp module);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_NARROWWEIGHTS_H
