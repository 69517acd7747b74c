//===- FormFusion.h - fewer, larger kernels ----------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_FORMFUSION_H
#define TRANSEPT_PASSES_FORMFUSION_H

#include "ir/Kernel.h"

namespace mlir::transept {

/// Fuses the kernels of an entry, vertically and horizontally, and simplifies their bodies.
void fuseEntry(kernel::EntryOp entry);

/// Folds and shares the scalar code of all bodies; drops kernels, views and constants that nobody uses. Every body
/// holds its own constants afterwards.
void simplifyBodies(kernel::EntryOp entry);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_FORMFUSION_H
