//===- PhaseChecks.h - what holds after each phase --------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each emits one error, at the first op that breaks the rule.

#ifndef TRANSEPT_TOOLS_DRIVER_PHASECHECKS_H
#define TRANSEPT_TOOLS_DRIVER_PHASECHECKS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::transept {

/// Guards are what ir/Guard.h says, wherever they are.
LogicalResult checkGuards(ModuleOp module);
/// Every result has a rank and a size expression per axis.
LogicalResult checkShapes(ModuleOp module);
/// That, and the report of attention sites is there.
LogicalResult checkFuse(ModuleOp module);
/// That, and a generation program consists of its entries; the step works on states only.
LogicalResult checkStage(ModuleOp module);
/// Entries only, and no type has an encoding.
LogicalResult checkForm(ModuleOp module);
/// Programs and kernel functions only; no tensors; buffers of the arena have offsets; sizes use the program's symbols.
LogicalResult checkPlan(ModuleOp module);
/// That, and every kernel function has items and scratch.
LogicalResult checkSchedule(ModuleOp module);
/// That, and one module per level with one function per kernel.
LogicalResult checkLower(ModuleOp module);
/// As after schedule, and one object per level.
LogicalResult checkEmit(ModuleOp module);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_PHASECHECKS_H
