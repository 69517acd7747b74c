//===- Body.h - inlining scalar regions, one element or sixteen at a time ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_EMIT_BODY_H
#define TRANSEPT_CODEGEN_EMIT_BODY_H

#include "codegen/emit/Emitter.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::kernel::emit {

/// Inlines the body of a kernel into a loop over its innermost index. What does not depend on that index is emitted
/// before the loop; the rest once per element, or where all accesses are contiguous, once per 16 elements. Both forms
/// execute the same operations on an element and give the same bits.
class Body {
public:
  /// Buffers of a kernel's inputs as body arguments.
  struct Buffer {
    Value pointer;
    transept::DimsAttr shape;
    Type element;
  };
  using Buffers = llvm::DenseMap<Value, Buffer>;

  /// `inner` is the argument that the loop counts, null where there is none; `vectors` are arguments that have one
  /// value per position. Values from outside of `block` must be in `outer` or be buffers.
  Body(Emitter &emitter, Block &block, Value inner, ArrayRef<Value> vectors, const Buffers &buffers, IRMapping &outer);

  bool vectorizable() const { return contiguous && e.machine.hasVectors(); }

  /// Emits what does not depend on the inner index or a vector argument. Before the loop; once.
  LogicalResult emitUniform();
  /// Emits the rest for the 16 positions from `position` on and returns the yielded values, all as vectors.
  FailureOr<SmallVector<Value>> emitVector(Value position, ArrayRef<Value> vectors);
  /// Emits the rest for one position and returns the yielded values.
  FailureOr<SmallVector<Value>> emitScalar(Value position, ArrayRef<Value> vectors);

  /// Emits one op on scalars; `values` has its operands and gets its results.
  static LogicalResult emitOp(Emitter &emitter, Operation &op, const Buffers &buffers, IRMapping &values);

  /// Adds a kernel's inputs: `arguments` are the trailing arguments of a body, one per input from `first` on.
  static void addInputs(Emitter &emitter, Buffers &buffers, KernelOp kernel, ValueRange arguments, unsigned first = 0);
  /// Adds its outputs, one per argument.
  static void addOutputs(Emitter &emitter, Buffers &buffers, KernelOp kernel, ValueRange arguments);

private:
  Body(Emitter &emitter, Block &block, const Buffers &buffers) : e(emitter), block(block), buffers(buffers) {}

  /// How a value depends on the inner index: not at all, as inner + something uniform, or otherwise.
  enum class Lane { Uniform, Contiguous, Vector };
  Lane laneOf(Value value) const { return laneOfValue.lookup(value); }
  void classify(Operation &op);
  /// The place of the only index that is not uniform, if the load reads 16 adjacent elements.
  std::optional<unsigned> contiguousIndex(LoadOp op) const;

  FailureOr<SmallVector<Value>> emitAt(Value position, ArrayRef<Value> vectors, bool vector);
  LogicalResult emitRest(IRMapping &values, bool vector, SmallVectorImpl<Value> &yielded);
  LogicalResult emit(Operation &op, IRMapping &values, bool vector);
  LogicalResult emitNested(Operation &op, IRMapping &values);
  Value elementPointer(Value tensor, ValueRange indices, IRMapping &values);
  Value emitLoad(LoadOp op, IRMapping &values, bool vector);
  Value emitBounded(BoundedOp op, IRMapping &values);
  /// The value of a scalar operand in all lanes.
  Value asVector(Value original, IRMapping &values);

  Emitter &e;
  Block &block;
  Value inner;
  SmallVector<Value> vectorArguments;
  const Buffers &buffers;
  IRMapping uniform;
  llvm::DenseMap<Value, Lane> laneOfValue; // what is missing is uniform
  llvm::DenseSet<Operation *> uniformOps;
  bool contiguous = true;
};

/// Emits a math op, or an arith op that processors do not have as it is, on scalars or vectors. Fails, with an error,
/// for element types without an implementation.
FailureOr<Value> emitScalarOp(Emitter &emitter, Operation &op, ArrayRef<Value> operands);

} // namespace mlir::kernel::emit

#endif // TRANSEPT_CODEGEN_EMIT_BODY_H
