//===- ContractSums.h - the inner loop of products in a shader -----------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_CONTRACTSUMS_H
#define TRANSEPT_CODEGEN_VULKAN_CONTRACTSUMS_H

#include "codegen/emit/ProductKind.h"
#include "codegen/vulkan/Shader.h"

namespace mlir::kernel::vulkan {

/// Rows of x times four columns of a panel of weights, over the invocation's slice of k.
struct ContractTile {
  Value x;             // pointer to [count, depth] of f32, or of i8 where integers are multiplied
  Value count;         // index
  Value weights;       // pointer to the 4 bytes of the first column and group of k
  Value slice, slices; // index: which one of how many
  Value scales;        // where the matrix has scales along k: pointer to the first column's, of the first block
};

/// What the sums of a tile are, by kind of product.
class ContractSums {
public:
  virtual ~ContractSums() = default;
  /// Null, after an error was emitted, where there is no such product. Made before the code of the kernel begins.
  static std::unique_ptr<ContractSums> create(Shader &shader, ContractOp op);

  /// Of stored sums: f32 or i32.
  virtual Type element() = 0;
  /// 4-byte words of a panel for one group of adjacent k are 64; elements of k in a group.
  int64_t group() const { return groupSize; }
  /// By all invocations of the workgroup, before the sums of a tile.
  virtual void prepare(const ContractTile &) {}
  /// Of `height` rows, four columns each. Rows behind the last one hold anything.
  virtual SmallVector<Value> emit(const ContractTile &tile, int64_t height) = 0;
  /// What epilogues get, f32 or of integers i32, from the sum of all slices.
  virtual Value finish(Value sum, Value) { return sum; }

protected:
  ContractSums(Shader &shader, int64_t depth, int64_t groupSize)
      : shader(shader), e(shader.e), f32(e.f32()), i32(e.b.getI32Type()), depth(depth), groupSize(groupSize) {}
  /// Elements k to k + count - 1 of row r, zeros behind its end.
  SmallVector<Value> rowElements(const ContractTile &tile, Value row, Value k, int64_t count);
  /// Four words of a panel: of the tile's columns, for a group of k.
  Value loadWords(const ContractTile &tile, Value groupIndex, Type element);

  Shader &shader;
  emit::Emitter &e;
  Type f32, i32;
  const int64_t depth, groupSize;
};

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_CONTRACTSUMS_H
