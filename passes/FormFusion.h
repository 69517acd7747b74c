//===- FormFusion.h - fewer, larger kernels ----------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_FORMFUSION_H
#define TRANSEPT_PASSES_FORMFUSION_H

#include "passes/FormBody.h"

namespace mlir::transept {

/// Fuses the kernels of an entry, vertically and horizontally, and simplifies their bodies.
void fuseEntry(kernel::EntryOp entry);

//===- The parts, in the order in which fuseEntry uses them
//---------------------------------------------------------===//

/// Folds and shares the scalar code of all bodies; drops kernels, views and constants that nobody uses. Every body
/// holds its own constants afterwards.
void simplifyBodies(kernel::EntryOp entry);

enum class InlineScope {
  Free,   ///< bodies that read nothing: numbers, positions, sizes
  Single, ///< also maps that one other map uses
  All,    ///< also cheap maps with several users, and into rows
};
/// Inlines maps where their results are loaded, if that repeats no expensive work. True if anything changed.
bool inlineMaps(kernel::EntryOp entry, InlineScope scope);

/// A map that is the only user of a contraction becomes part of its epilogue. True if anything changed.
bool fuseEpilogues(kernel::EntryOp entry);

/// Contractions of the same rows become one with several parts.
void mergeContracts(kernel::EntryOp entry);

/// Maps that compute one number everywhere become constants.
void storeConstantMaps(kernel::EntryOp entry);

/// Weights that a contraction holds in panels are read from there by all bodies, so that they are stored once.
void readFromPanels(ModuleOp module);

/// Kernels of a step whose leading dimension is the rows skip those that are not live.
void limitToLiveRows(kernel::EntryOp step);

//===- Inputs and bodies
//----------------------------------------------------------------------------------------------===//

/// The body arguments of input `input` of a map, rows or contract: one per body; none for a contraction's first two.
SmallVector<BlockArgument> bodyArguments(Operation *kernelOp, unsigned input);
/// All loads from an input of a map, rows or contract.
SmallVector<kernel::LoadOp> loadsOf(Operation *kernelOp, unsigned input);
/// Whether an input of this kernel is read by loads in bodies only.
bool isReadByLoads(Operation *kernelOp, unsigned input);
/// Adds an input to all bodies, unless it is there; returns its number.
unsigned addInput(Operation *kernelOp, Value tensor);
/// Removes an input that no body reads.
void removeInput(Operation *kernelOp, unsigned input);

/// How a view's indices become indices of what it views: only where every run of axes is joined or split, not both.
bool canReindex(ArrayRef<DimAttr> from, ArrayRef<DimAttr> to);
SmallVector<Value> reindex(Body &b, ValueRange indices, ArrayRef<DimAttr> from, ArrayRef<DimAttr> to);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_FORMFUSION_H
