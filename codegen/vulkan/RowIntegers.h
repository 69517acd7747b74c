//===- RowIntegers.h - rows of a product as integers in a shader ---------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_ROWINTEGERS_H
#define TRANSEPT_CODEGEN_VULKAN_ROWINTEGERS_H

#include "codegen/vulkan/ContractSums.h"

namespace mlir::kernel::vulkan {

/// Rows of x are signed 8-bit integers, or scaled to [-127, 127] and rounded: to the integers that code for processors
/// computes.
class RowIntegers {
public:
  /// Of tiles of at most `rows` rows.
  RowIntegers(Shader &shader, int64_t depth, int64_t rows, bool rounds);

  /// By all invocations of the workgroup, before anything else; ends with a barrier where rows are rounded.
  void prepare(const ContractTile &tile);
  /// Words of four integers in a row.
  Value words();
  /// A word of a row, zeros behind its end.
  Value word(const ContractTile &tile, Value row, Value word);
  /// What a sum of products with the row stands for.
  Value finish(Value sum, Value row);

private:
  Value largestOf(const ContractTile &tile, Value row, Value member);
  void storeScale(Value row, Value largestBits);
  Value roundedWord(const ContractTile &tile, Value row, Value word);
  Value integerWord(const ContractTile &tile, Value row, Value word);

  Shader &shader;
  emit::Emitter &e;
  Type f32, i32;
  const int64_t depth;
  const bool rounds;
  Value slots, factors, scales; // shared: of the search for the largest element; of rows
};

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_ROWINTEGERS_H
