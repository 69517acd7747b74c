//===- Schedule.h - decisions that schedule writes down and lowering reads ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_CPU_SCHEDULE_H
#define TRANSEPT_CODEGEN_CPU_SCHEDULE_H

#include "codegen/emit/WorkItems.h"

namespace mlir::kernel::cpu {

/// Rows of a contraction that one item computes with one panel: whole tiles of 6, and little enough that threads share
/// long inputs.
constexpr int64_t contractRows = 96;
/// Query rows of one attention item, and keys of one block of the online softmax.
constexpr int64_t attendRows = 32;
constexpr int64_t attendKeys = 64;

/// Positions of the innermost dimension that one item of a map computes.
int64_t mapChunk(MapOp op);

} // namespace mlir::kernel::cpu

#endif // TRANSEPT_CODEGEN_CPU_SCHEDULE_H
