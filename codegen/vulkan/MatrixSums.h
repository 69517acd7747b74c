//===- MatrixSums.h - products of integers by matrices of subgroups ------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_MATRIXSUMS_H
#define TRANSEPT_CODEGEN_VULKAN_MATRIXSUMS_H

#include "codegen/vulkan/RowIntegers.h"

namespace mlir::kernel::vulkan {

/// Integers times integers where subgroups multiply matrices of them (SPV_KHR_cooperative_matrix) of any size that
/// divides the tile. Sums are exact: they are those of Int8Sums.
class MatrixSums : public ContractSums {
public:
  MatrixSums(Shader &shader, int64_t depth, bool rounds);

  int64_t rows() const override { return matrixTileRows; }
  void compute(const ContractTile &tile) override;
  Value sumOf(Value row, Value column) override;

private:
  void emitTile(const ContractTile &tile, int64_t height);
  void emitSums(const ContractTile &tile, int64_t height);
  void fillRows(const ContractTile &tile, Value from);
  void fillWeights(const ContractTile &tile, Value from);
  Value load(Type matrix, Value word, bool rowsAreAdjacent);
  Value pointerTo(Value word);
  Value rowOf(int64_t i);

  RowIntegers integers;
  Value shared;            // words: rows and columns of the chunk, then the sums [rows, panelColumns]
  Value matrices;          // index: of rows, in the tile
  Value column, row, step; // index: of the subgroup's matrices; `step` rows of matrices are between two of them
  Value height;            // index: the most matrices of sums that a subgroup of the workgroup has
};

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_MATRIXSUMS_H
