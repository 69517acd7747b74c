//===- Int8Sums.h - products of integers in a shader ---------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_INT8SUMS_H
#define TRANSEPT_CODEGEN_VULKAN_INT8SUMS_H

#include "codegen/vulkan/RowIntegers.h"
#include "codegen/vulkan/SlicedSums.h"

namespace mlir::kernel::vulkan {

/// The four bytes of words of weights, from low to high, without their offset of 128: integers of the words' type.
SmallVector<Value> signedBytes(emit::Emitter &emitter, Value words);
/// The same four bytes in their words.
Value withoutOffset(emit::Emitter &emitter, Value words);

/// Integers times integers, on any device. Sums are exact.
class Int8Sums : public SlicedSums {
public:
  Int8Sums(Shader &shader, int64_t depth, bool rounds);

protected:
  void prepare(const ContractTile &tile) override { integers.prepare(tile); }
  SmallVector<Value> emit(const ContractTile &tile, int64_t height) override;
  Value finish(Value sum, Value row) override { return integers.finish(sum, row); }

private:
  void fillChunk(const ContractTile &tile, Value from);
  Value addProducts(Value sum, Value x, Value w);

  const bool hasDot; // one instruction multiplies and adds four bytes
  RowIntegers integers;
  Value chunk; // shared: [rows, words of a chunk]
};

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_INT8SUMS_H
