//===- RelativeBias.h - a bias of scores that depends on distances ------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_RELATIVEBIAS_H
#define TRANSEPT_PASSES_RELATIVEBIAS_H

#include "passes/MaskDescription.h"

namespace mlir::transept {

/// What is added to the score of key j for query i: table[head, j - i - origin], with the first and the last element of
/// a row for all distances before and behind.
struct RelativeBias {
  HostTensor table; ///< f32 [heads, distances]
  DimAttr origin;   ///< the distance j - i of the first column
};

/// Tabulates a bias that is a function of head and distance, and constant for large distances on both sides. `single`
/// says that there is one query, whose index is 0. On failure, `reason` says in one phrase why there is no table.
FailureOr<RelativeBias> tabulateBias(ArrayRef<std::pair<double, const Elem *>> bias, const ScoreIndices &indices,
                                     int64_t heads, bool single, std::string &reason);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_RELATIVEBIAS_H
