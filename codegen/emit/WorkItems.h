//===- WorkItems.h - what targets share in cutting work ------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_EMIT_WORKITEMS_H
#define TRANSEPT_CODEGEN_EMIT_WORKITEMS_H

#include "ir/Kernel.h"

namespace mlir::kernel::emit {

/// ceil(size / chunk).
transept::DimAttr chunksOf(transept::DimAttr size, int64_t chunk);

/// Merges adjacent dimensions of the domain that every access treats as one.
void mergeMapDimensions(MapOp op);

} // namespace mlir::kernel::emit

#endif // TRANSEPT_CODEGEN_EMIT_WORKITEMS_H
