//===- Schedule.h - decisions that schedule writes down and lowering reads ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_CPU_SCHEDULE_H
#define TRANSEPT_CODEGEN_CPU_SCHEDULE_H

#include "codegen/emit/WorkItems.h"
#include "ir/ListedTokens.h"

namespace mlir::kernel::cpu {

/// Rows of a contraction that one item computes with one panel: whole tiles of 6, and little enough that threads share
/// long inputs.
constexpr int64_t contractRows = 96;
/// Scratch of a contraction, in bytes: sums of a tile of 6 rows on their way to the epilogue; with narrow weights also
/// scales and corrections of the item's rows, then the rows themselves.
constexpr int64_t contractScales = 6 * panelColumns * 4;
constexpr int64_t contractCorrections = contractScales + contractRows * 4;
constexpr int64_t contractNarrowRows = contractCorrections + contractRows * 4;
/// Query rows of one attention item: whole tiles of 6, and whole groups of 16.
constexpr int64_t attendRows = 48;
/// Items of the same keys that a call computes at once: for them, a block of keys is transposed once.
constexpr int64_t attendTogether = 8;
constexpr int64_t attendRowsHeld = attendRows * attendTogether;
/// Keys of one block of the online softmax.
constexpr int64_t attendKeys = 64;

/// Whether logits are computed of listed tokens alone, or are approximations, with what bounds them behind.
inline bool isListed(SearchHeadOp op) { return op->hasAttr(listedAttrName); }
inline bool isScreened(SearchHeadOp op) { return !isListed(op) && op.getInputs().size() > 3; }

/// Positions of the innermost dimension that one item of a map computes.
int64_t mapChunk(MapOp op);

/// Rows whose attention to cached keys is computed head by head: those of a sentence share keys, which then come from a
/// cache of the processor for all rows but the first.
constexpr int64_t attendRowsTogether = 8;

} // namespace mlir::kernel::cpu

#endif // TRANSEPT_CODEGEN_CPU_SCHEDULE_H
