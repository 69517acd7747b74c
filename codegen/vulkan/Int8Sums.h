//===- Int8Sums.h - products of integers in a shader ---------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_INT8SUMS_H
#define TRANSEPT_CODEGEN_VULKAN_INT8SUMS_H

#include "codegen/vulkan/ContractSums.h"

namespace mlir::kernel::vulkan {

/// The four bytes of words of weights, from low to high, without their offset of 128: integers of the words' type.
SmallVector<Value> signedBytes(emit::Emitter &emitter, Value words);

/// Rows of x are integers, or scaled to [-127, 127] and rounded: to the integers that code for processors computes.
/// Sums are exact.
class Int8Sums : public ContractSums {
public:
  Int8Sums(Shader &shader, int64_t depth, bool rounds);

  Type element() override { return i32; }
  void prepare(const ContractTile &tile) override;
  SmallVector<Value> emit(const ContractTile &tile, int64_t height) override;
  Value finish(Value sum, Value row) override;

private:
  Value words() const { return e.index((depth + groupSize - 1) / groupSize); }
  void fillChunk(const ContractTile &tile, Value from);
  /// Four integers of a row, in a word; zeros behind its end.
  Value roundedWord(const ContractTile &tile, Value row, Value word);
  Value integerWord(const ContractTile &tile, Value row, Value word);
  Value addProducts(Value sum, Value x, Value w);

  const bool rounds;
  bool hasDot;                  // one instruction multiplies and adds four bytes
  Value slots, factors, scales; // shared: of the search for the largest element; of rows
  Value rounded;                // shared: [rows, words of a chunk]
};

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_INT8SUMS_H
