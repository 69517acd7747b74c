//===- Quantise.h - products with narrow weights -----------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_QUANTISE_H
#define TRANSEPT_PASSES_QUANTISE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>
#include <string>
#include <vector>

namespace mlir::transept {

/// The precisions a module can be given; the first one leaves everything as it is.
constexpr StringLiteral precisionNames[] = {"fp32", "bf16", "int8", "int8-weights"};

struct QuantiseOptions {
  std::string precision = "fp32";
  /// Globs over names of nodes ("/decoder/lm_head/MatMul") and weights: a weight that one of them names in any of its
  /// uses stays as it is in all of them.
  std::vector<std::string> keepFp32;
};

/// Module pass. Decides for every weight that products pack into panels whether it becomes narrow, and gives the ops
/// that multiply with it the attribute `transept.narrow`: {weight, scales, activations}, where `weight` is the key of
/// the bf16 or ui8 (offset 128) matrix in the weight store, `scales` that of the factors of its columns (ui8 only), and
/// `activations` "int8" where the other factor is rounded, too. Weights that the model itself holds as integers
/// (passes/NarrowWeights.h) stay them in fp32 and int8-weights; their scales are [blocks, N], stored the way the matrix
/// is, one per `block` adjacent k. Keeps the report in the module attribute
/// `transept.quantisation`. Fails where a glob is malformed or names nothing.
std::unique_ptr<Pass> createQuantisePass(const QuantiseOptions &options = {});

constexpr StringLiteral narrowAttrName = "transept.narrow";

/// What the pass did.
struct QuantiseReport {
  std::string precision;
  /// Weights of products; narrow ones and bytes of both.
  int64_t weights = 0, narrow = 0, bytes = 0, narrowBytes = 0;
  /// Those that also something else reads (a gather), which are therefore stored in f32 as well.
  int64_t alsoRead = 0, alsoReadBytes = 0;
  struct Kept {
    std::string node, reason;
  };
  std::vector<Kept> kept;
};
/// Reads the attribute back; an empty precision where there is none.
QuantiseReport quantiseReport(ModuleOp module);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_QUANTISE_H
