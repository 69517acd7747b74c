//===- Stage.h - one generation program, whatever was exported ----------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An export's functions become @encode, @step and @score over the symbols batch, source, target and rows. The decoder
// that takes a whole prefix is the source of truth: one position of it is computed from caches where that is proved to
// be the same, otherwise the step recomputes the prefix. Module attributes made here: `transept.generation` (a
// dictionary, see stageAttrName) and `transept.staging` (notes for the report).

#ifndef TRANSEPT_PASSES_STAGE_H
#define TRANSEPT_PASSES_STAGE_H

#include "ir/Transept.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include <memory>
#include <string>

namespace mlir::transept {

constexpr StringLiteral generationAttrName = "transept.generation";
constexpr StringLiteral stagingNotesAttrName = "transept.staging";

/// Stages an export; leaves a plain graph (a module without encoder-decoder roles) as it is.
std::unique_ptr<Pass> createStagePass();

/// The whole model as one function of encoder inputs and decoder ids, symbols named batch, source and target.
struct WholeModel {
  func::FuncOp function;
  unsigned decoderIds = 0;             ///< argument index
  std::optional<unsigned> encoderMask; ///< argument index of the padding mask
  unsigned encoderInput = 0;           ///< argument index of ids or features
};

/// Joins encoder and prefix decoder (or takes a monolith) into @score. Emits an error on failure.
FailureOr<WholeModel> composeWholeModel(ModuleOp module);

/// What a derivation found out.
struct Derivation {
  bool cached = false;
  std::string reason;                ///< if not cached: which node broke the proof, and how
  int64_t layers = 0;                ///< self caches
  int64_t positionLimit = 0;         ///< decoder positions the tables hold; 0: unlimited
  std::optional<int64_t> startToken; ///< where the graph shifts its targets itself
  SmallVector<std::string> notes;
};

/// Makes @encode and @step from the whole model: one new position per row, computed from caches; where the proof fails,
/// the whole prefix (the reason is kept).
FailureOr<Derivation> deriveStep(ModuleOp module, const WholeModel &model);

/// Largest size of `symbol` that every table looked up by position can serve; 0 where none limits it.
int64_t positionLimit(func::FuncOp function, StringRef symbol);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_STAGE_H
