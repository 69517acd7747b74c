//===- Interpreter.h - runs a graph-level function on host tensors -----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_INTERPRETER_H
#define TRANSEPT_IR_INTERPRETER_H

#include "ir/Diagnostic.h"
#include "ir/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace mlir::transept {

/// What outlives a call: the states of a generation session, by name. The host writes step.live, step.token,
/// step.position, step.source, step.block and step.special and reads search.* and logits, as the runtime's host does.
/// Keys and values of the self cache of layer L are kept as cache.key.L and cache.value.L, [blocks, 16, heads, size]:
/// position p of row r lies in block step.block[r, p] at p % 16.
struct InterpreterSession {
  std::map<std::string, HostTensor, std::less<>> states;
  /// Sizes that no input binds: rows, capacity, topk …
  llvm::StringMap<int64_t> symbols;
};

/// Runs `function` (graph ops only) op by op. One tensor per argument; a null one takes the argument's
/// `transept.default`. Symbols are bound by the shapes of the inputs; where a result type says no shape, it is inferred
/// from the values. Failures name the node: exit code 8 for inputs that do not fit and for what data causes, 5 for
/// tensors above `maxTensorBytes`, 3 for a graph that cannot run. Slow; not thread-safe within a context.
Outcome<std::vector<HostTensor>> interpret(func::FuncOp function, ArrayRef<HostTensor> inputs,
                                           InterpreterSession *session = nullptr,
                                           uint64_t maxTensorBytes = uint64_t{1} << 32);

} // namespace mlir::transept

#endif // TRANSEPT_IR_INTERPRETER_H
