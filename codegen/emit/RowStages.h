//===- RowStages.h - the stages of kernel.rows ----------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_EMIT_ROWSTAGES_H
#define TRANSEPT_CODEGEN_EMIT_ROWSTAGES_H

#include "codegen/emit/Body.h"

namespace mlir::kernel::emit {

/// Emits the stages of a row in order: what lies between reductions and maps on scalars, those by the target. `values`
/// has the row and gets the results. Fails, with an error, for a map to an output that is not there.
LogicalResult forRowStages(Emitter &emitter, RowsOp op, const Body::Buffers &buffers, IRMapping &values,
                           llvm::function_ref<LogicalResult(RowReduceOp)> reduce,
                           llvm::function_ref<LogicalResult(RowMapOp)> map);

/// Stores the outputs of one value per row, which come after those of maps.
LogicalResult storeRowResults(Emitter &emitter, RowsOp op, Value row, IRMapping &values);

/// The scalar that changes nothing when combined. Fails, with an error, for unknown kinds and element types.
FailureOr<Value> neutralElement(Emitter &emitter, RowReduceOp reduce);

/// Two scalars or vectors combined: "add", "mul", "max" or "min", the last two with NaN if one is NaN.
Value combined(Emitter &emitter, StringRef kind, Value x, Value y);

} // namespace mlir::kernel::emit

#endif // TRANSEPT_CODEGEN_EMIT_ROWSTAGES_H
