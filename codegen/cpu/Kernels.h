//===- Kernels.h - the kernel ops on processors -------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_CPU_KERNELS_H
#define TRANSEPT_CODEGEN_CPU_KERNELS_H

#include "codegen/emit/Emitter.h"

namespace mlir::kernel::cpu {

/// The implementations, one per kernel op. All emit an error and fail on what they do not support.
LogicalResult emitMap(emit::Emitter &emitter, MapOp op);
LogicalResult emitContract(emit::Emitter &emitter, ContractOp op);
LogicalResult emitRows(emit::Emitter &emitter, RowsOp op);
LogicalResult emitSerial(emit::Emitter &emitter, SerialOp op);
LogicalResult emitAttend(emit::Emitter &emitter, AttendOp op);
LogicalResult emitAttendCache(emit::Emitter &emitter, AttendCacheOp op);
LogicalResult emitAttendSource(emit::Emitter &emitter, AttendSourceOp op);
LogicalResult emitCacheAppend(emit::Emitter &emitter, CacheAppendOp op);
LogicalResult emitSearchHead(emit::Emitter &emitter, SearchHeadOp op);
/// One whose logits are approximations.
LogicalResult emitScreenedHead(emit::Emitter &emitter, SearchHeadOp op);
/// One that gives logits of listed tokens.
LogicalResult emitListedHead(emit::Emitter &emitter, SearchHeadOp op);

} // namespace mlir::kernel::cpu

#endif // TRANSEPT_CODEGEN_CPU_KERNELS_H
