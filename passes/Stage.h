//===- Stage.h - one generation program, whatever was exported ----------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An export's functions become entries over the symbols batch, source, target, prompt and rows. Where there is a
// decoder that takes a whole prefix, it is the source of truth: one position of it is computed from caches where that
// is proved to be the same, otherwise the step recomputes the prefix. Where there is only a decoder with explicit
// caches, these become caches of the session. Module attributes made here: `transept.generation` (a dictionary, see
// generationAttrName) and `transept.staging` (notes for the report).

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

/// Entries of a generation program. `step_alignments` is the step that returns cross-attention weights too; `prefill`
/// computes the caches of a prompt, all positions at once; `advance` continues every row by its best token after a
/// step, `advance_beams` every search by the best continuations of its rows.
constexpr StringLiteral encodeName = "encode", stepName = "step", alignmentsName = "step_alignments",
                        prefillName = "prefill", scoreName = "score", advanceName = "advance",
                        advanceBeamsName = "advance_beams";

/// Stages an export; leaves a plain graph (a module without encoder-decoder roles) as it is.
std::unique_ptr<Pass> createStagePass();

/// Part of the fuse phase: see the pass's description.
std::unique_ptr<Pass> createBindInputsPass();

/// The whole model as one function of encoder inputs and decoder ids, symbols named batch and source.
struct WholeModel {
  func::FuncOp function;
  unsigned decoderIds = 0;                ///< argument index
  std::optional<unsigned> encoderMask;    ///< argument index of the padding mask
  std::optional<unsigned> encoderLengths; ///< argument index of the number of source positions
  std::optional<unsigned> encoderInput;   ///< argument index of ids or features; none without an encoder

  /// With explicit caches, the function computes one new position, `past` is the number of those before it, and the
  /// following hold. Otherwise it computes `target` positions from the first one on.
  bool explicitCaches = false;
  struct Past {
    unsigned argument = 0; ///< [batch, …, past, …]
    unsigned result = 0;   ///< the same with the new position behind
  };
  SmallVector<Past> caches;
  /// What a step hands to the next one, besides caches.
  struct Recurrent {
    unsigned argument = 0, result = 0;
    std::optional<unsigned> initial; ///< result that the first step begins with; none: zeros
  };
  SmallVector<Recurrent> recurrent;
  SmallVector<unsigned> alignments; ///< results that are attention weights over the source, [batch, source]
};

/// Whether staging makes anything of a function: not of an export's decoder with explicit caches beside one that takes
/// a whole prefix, nor of the parts of a model that is there as one graph.
bool isStaged(func::FuncOp function);

/// Whether a decoder that takes a whole prefix is there, so that caches need not be taken from the export.
bool hasPrefixDecoder(ModuleOp module);
/// Makes one out of a decoder with explicit caches that takes several positions: without a past. False where it takes
/// only one position at a time. Emits an error on failure.
FailureOr<bool> makePrefixDecoder(ModuleOp module);

/// Joins encoder and prefix decoder (or takes a monolith, or a decoder alone) into @score. Emits an error on failure.
FailureOr<WholeModel> composeWholeModel(ModuleOp module);
/// Joins encoder and a decoder with explicit caches or recurrent state. Emits an error on failure.
FailureOr<WholeModel> composeExplicitModel(ModuleOp module);

/// What a derivation found out.
struct Derivation {
  bool cached = false;
  bool prefill = false;              ///< @prefill was made
  bool advance = false;              ///< @advance and @advance_beams were made
  unsigned alignments = 0;           ///< layers whose weights @step_alignments returns; 0: there is none
  std::string reason;                ///< if not cached: which node broke the proof, and how
  int64_t layers = 0;                ///< self caches
  int64_t positionLimit = 0;         ///< decoder positions the tables hold; 0: unlimited
  std::optional<int64_t> startToken; ///< where the graph shifts its targets itself
  SmallVector<std::string> notes;
};

/// Makes @encode, @step and its companions from the whole model: one new position per row, computed from caches; where
/// the proof fails, the whole prefix (the reason is kept). With explicit caches a failed proof is an error.
FailureOr<Derivation> deriveStep(ModuleOp module, const WholeModel &model);

/// Largest size of `symbol` that every table looked up by position can serve; 0 where none limits it. With
/// `newPosition`, the function computes the one position behind `symbol` others, and the limit counts that one too.
int64_t positionLimit(func::FuncOp function, StringRef symbol, bool newPosition = false);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_STAGE_H
