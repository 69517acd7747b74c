//===- Reduce.h - what kernel.row_reduce combines with --------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_EMIT_REDUCE_H
#define TRANSEPT_CODEGEN_EMIT_REDUCE_H

#include "codegen/emit/Emitter.h"

namespace mlir::kernel::emit {

/// The scalar that changes nothing when combined. Fails, with an error, for unknown kinds and element types.
FailureOr<Value> neutralElement(Emitter &emitter, RowReduceOp reduce);

/// Two scalars or vectors combined: "add", "mul", "max" or "min", the last two with NaN if one is NaN.
Value combined(Emitter &emitter, StringRef kind, Value x, Value y);

} // namespace mlir::kernel::emit

#endif // TRANSEPT_CODEGEN_EMIT_REDUCE_H
