//===- RowAttention.h - one query row over its keys, by a workgroup ------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_ROWATTENTION_H
#define TRANSEPT_CODEGEN_VULKAN_ROWATTENTION_H

#include "codegen/vulkan/Kernels.h"
#include "ir/Kernel.h"

namespace mlir::kernel::vulkan {

/// A query row and what it attends to.
struct RowAttention {
  Value keySize, valueSize; // index
  /// Whether queries and keys begin at multiples of 16 bytes and have a multiple of four elements.
  bool fourAtOnce = false;
  transept::EmptyRow emptyRow = transept::EmptyRow::Uniform;
  Value query;                            // pointer to keySize floats
  Value keys;                             // index: how many there are
  Value end;                              // index: none from here on is visible
  std::function<Value(Value)> key, value; // pointers of key and value j
  /// The score of key j from its product with the query, -inf where hidden.
  std::function<Value(Value j, Value product)> score;
  Value output;        // pointer to valueSize floats
  Value probabilities; // pointer to `keys` floats; null: not asked for
};

/// Emits attention of rows; its shared arrays are made once for the function.
class RowAttentionEmitter {
public:
  explicit RowAttentionEmitter(Shader &shader);
  /// By all invocations of the workgroup.
  void emit(const RowAttention &row);

private:
  Value product(const RowAttention &row, Value j);
  emit::Emitter::Carried emitBlock(const RowAttention &row, Value from, ValueRange state);
  void addValues(const RowAttention &row, Value from, Value count, Value factor);
  void finish(const RowAttention &row, Value maximum, Value total);
  void emptyRow(const RowAttention &row);

  Shader &shader;
  emit::Emitter &e;
  Type f32;
  Value scores, weights; // shared: of the keys of a block
  Value maxima, sums;    // shared: of invocations
};

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_ROWATTENTION_H
