//===- Fold.h - what constants alone decide, and every weight once -----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_FOLD_H
#define TRANSEPT_PASSES_FOLD_H

#include "ir/Transept.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::transept {

struct FoldOptions {
  /// An op is folded if its results are at most this many bytes larger than its constant operands. Transposes and casts
  /// of weights are folded whatever their size.
  int64_t maxGrowthBytes = 1 << 20;
  /// Results of up to this many elements are written out, larger ones go to the weight store.
  int64_t maxWrittenElements = 64;
  /// Float matrices from this size on are looked for transposed, and stay transposed operands of products.
  int64_t minSharedElements = 1024;
};

/// What folding did. Bytes are those of weight contents.
struct FoldReport {
  int64_t foldedOps = 0;
  /// Weights in use afterwards, each content counted once.
  int64_t weights = 0, weightBytes = 0;
  /// Uses beyond the first of equal contents, within and across functions.
  int64_t sharedEqual = 0, sharedEqualBytes = 0;
  /// Contents that were another one's transpose.
  int64_t sharedTransposed = 0, sharedTransposedBytes = 0;
};

/// Module pass. Keeps the report in the module attribute `transept.folding` (so that a dump carries it).
std::unique_ptr<Pass> createFoldPass(const FoldOptions &options = {});

/// Reads the attribute back.
FoldReport foldReport(ModuleOp module);

/// Evaluates pure ops of constants in all functions of `root`, and erases what nothing uses.
void foldConstants(Operation *root, const FoldOptions &options, FoldReport &report);

/// Where one float matrix is the transpose of another one that only products read, the first replaces the second. The
/// one that something else reads (a gather) stays; if there is none, the one with the lower key.
void shareTransposedWeights(Operation *root, const FoldOptions &options, FoldReport &report);

/// Whether `use` takes a constant matrix that may come transposed: the right factor of a product.
bool acceptsTransposed(OpOperand &use);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_FOLD_H
