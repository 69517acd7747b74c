//===- Passes.h - the passes over graph-level IR ----------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_PASSES_H
#define TRANSEPT_PASSES_PASSES_H

#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::transept {

struct ShapesOptions {
  /// Sizes of inputs that the graph needs to be equal become one symbol (checked at run time like every shared
  /// symbol); otherwise each such need is a guard.
  bool unifySymbols = true;
};

/// Infers symbolic shapes and integer contents of all functions of a module, and rewrites what they say: see
/// passes/Shapes.h. Can run again after symbols were replaced.
std::unique_ptr<Pass> createShapesPass(ShapesOptions options = {});

/// Refuses, as not supported, a module with a value whose rank is not known after the shapes pass.
std::unique_ptr<Pass> createRequireRanksPass();

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_PASSES_H
