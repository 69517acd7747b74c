//===- LaneMatrix.h - several vectors of 16 lanes as a matrix -----------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_CPU_LANEMATRIX_H
#define TRANSEPT_CODEGEN_CPU_LANEMATRIX_H

#include "codegen/emit/Emitter.h"

namespace mlir::kernel::cpu {

/// Rows become columns; 16 vectors.
void emitTranspose(emit::Emitter &emitter, MutableArrayRef<Value> rows);

/// Lane i of the result is what all lanes of vectors[i] combine to, by the tree of Emitter::reduceLanes. 2, 4, 8 or 16
/// vectors; lanes without a vector hold anything.
Value emitLaneTree(emit::Emitter &emitter, ArrayRef<Value> vectors, llvm::function_ref<Value(Value, Value)> combine);
/// Their sums.
Value emitLaneSums(emit::Emitter &emitter, ArrayRef<Value> vectors);

/// Whether `rows` rows of `width` f32, `stride` elements apart, hold no infinity and no NaN.
Value emitAllFinite(emit::Emitter &emitter, Value matrix, Value rows, Value width, Value stride);

} // namespace mlir::kernel::cpu

#endif // TRANSEPT_CODEGEN_CPU_LANEMATRIX_H
