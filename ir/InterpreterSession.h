//===- InterpreterSession.h - generation ops over a session's states ---------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_INTERPRETERSESSION_H
#define TRANSEPT_IR_INTERPRETERSESSION_H

#include "ir/Interpreter.h"
#include "ir/Transept.h"

namespace mlir::transept {

/// Runs state, export, cache and search ops. Errors are emitted at the op. `results` come with their types.
LogicalResult evaluateInSession(Operation *op, ArrayRef<HostTensor> operands, InterpreterSession &session,
                                SmallVectorImpl<HostTensor> &results);

} // namespace mlir::transept

#endif // TRANSEPT_IR_INTERPRETERSESSION_H
