//===- Fuse.h - attention, norms, activations and linear layers from their parts ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_FUSE_H
#define TRANSEPT_PASSES_FUSE_H

#include "ir/Transept.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include <memory>
#include <string>
#include <vector>

namespace mlir::transept {

/// What became of the attention sites of a module. A site is a softmax between two products in the imported graph, or
/// an Attention operator.
struct FusionReport {
  struct Unfused {
    std::string node;
    std::string reason;
  };
  unsigned sites = 0;
  unsigned fused = 0;
  std::vector<Unfused> unfused;
  std::vector<std::string> assumptions;
};

/// Fuses, and keeps the report in the module attribute `transept.fusion` (so that a dump carries it).
std::unique_ptr<Pass> createFusePass();

/// Reads the attribute back.
FusionReport fusionReport(ModuleOp module);

/// x times a constant matrix (plus a constant row) becomes transept.linear.
void populateLinearPatterns(RewritePatternSet &patterns);
/// Decomposed norms and activations become one op each.
void populateNormPatterns(RewritePatternSet &patterns);
/// Transposes and reshapes that leave the rows of a row-wise op intact move below it, where they meet and cancel.
void populateLayoutPatterns(RewritePatternSet &patterns);

/// Rewrites the chain of moving ops that makes `value` as (slice) → reshape → transpose → reshape of the first value
/// that is not moved, if it is not that already. Returns the new value, or `value`.
Value normalizeMovement(OpBuilder &builder, Value value);

/// Fuses the attention sites of `root` (a function). Sites already fused by the exporter get their masks described.
void fuseAttention(Operation *root, FusionReport &report);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_FUSE_H
