//===- MaskDescription.h - which keys a query sees, proved from the graph ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_MASKDESCRIPTION_H
#define TRANSEPT_PASSES_MASKDESCRIPTION_H

#include "passes/ElementExpr.h"

namespace mlir::transept {

/// What happens to a score before softmax, as a conjunction of conditions under which a key is visible.
struct MaskDescription {
  double scale = 1.0;                    ///< factor on the score of visible keys
  std::optional<DimAttr> causalOffset;   ///< key j is visible to query i only if j <= i + offset
  Value keyMask;                         ///< key j of batch b is visible only if keyMask[b, j] is non-zero
  EmptyRow emptyRow = EmptyRow::Uniform; ///< what a query without visible keys gives
  /// Added to the scores of visible keys: factors times elements of constant tables.
  SmallVector<std::pair<double, const Elem *>> bias;
  SmallVector<std::string> assumptions; ///< for the report
};

/// The index symbols of a score: batch, head, query, key.
struct ScoreIndices {
  DimAttr batch, head, query, key;
};

/// Describes `element`, an expression over the score `score` (a Load; null for a mask without one, where the score
/// counts as 0) and masks. For boolean masks, `boolean` says that 0 excludes and anything else does not. New ops (a
/// compared key mask) are made with `builder`. On failure, `reason` says in one phrase what broke the description.
FailureOr<MaskDescription> describeMask(ElementExprs &exprs, OpBuilder &builder, Location loc, const Elem *element,
                                        const Elem *score, const ScoreIndices &indices, bool boolean,
                                        std::string &reason);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_MASKDESCRIPTION_H
