//===- Kernels.h - the kernel ops as compute shaders ---------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_KERNELS_H
#define TRANSEPT_CODEGEN_VULKAN_KERNELS_H

#include "codegen/emit/Body.h"
#include "codegen/vulkan/Shader.h"

namespace mlir::kernel::vulkan {

/// How the work of a kernel is cut. No items for an op that shaders do not implement.
ShaderWork workOf(Operation *kernel);

/// The implementations, one per kernel op. All emit an error and fail on what they do not support.
LogicalResult emitMap(Shader &shader, MapOp op);
LogicalResult emitSerial(Shader &shader, SerialOp op);
LogicalResult emitContract(Shader &shader, ContractOp op);
LogicalResult emitRows(Shader &shader, RowsOp op);
LogicalResult emitAttend(Shader &shader, AttendOp op);
LogicalResult emitAttendCache(Shader &shader, AttendCacheOp op);
LogicalResult emitAttendSource(Shader &shader, AttendSourceOp op);
LogicalResult emitCacheAppend(Shader &shader, CacheAppendOp op);
LogicalResult emitSearchHead(Shader &shader, SearchHeadOp op);

/// Emits the ops of a body on scalars and returns what it yields. `values` has the block's arguments and gets the rest.
FailureOr<SmallVector<Value>> emitBlock(Shader &shader, Block &block, const emit::Body::Buffers &buffers,
                                        IRMapping &values);

/// Of a contraction: columns that an invocation computes, the invocations of a team that takes a slice of k, and the
/// most rows.
constexpr int64_t contractColumns = 4, contractTeam = panelColumns / contractColumns, contractRows = 4;

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_KERNELS_H
