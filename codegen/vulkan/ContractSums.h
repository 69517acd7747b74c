//===- ContractSums.h - the sums of products in a shader -----------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_CONTRACTSUMS_H
#define TRANSEPT_CODEGEN_VULKAN_CONTRACTSUMS_H

#include "codegen/emit/ProductKind.h"
#include "codegen/vulkan/Shader.h"

namespace mlir::kernel::vulkan {

/// Rows of x times a panel of weights.
struct ContractTile {
  Value x;       // pointer to [count, depth] of f32, or of i8 where integers are multiplied
  Value count;   // index: at least 1, at most ContractSums::rows()
  Value weights; // pointer to the 4-byte words of the panel
  Value scales;  // where the matrix has scales along k: pointer to those of the panel
};

/// What the sums of a tile are, by kind of product and by what the device offers.
class ContractSums {
public:
  virtual ~ContractSums() = default;
  /// Null, after an error was emitted, where there is no such product. Made before the code of the kernel begins.
  static std::unique_ptr<ContractSums> create(Shader &shader, ContractOp op);

  /// Of a tile, at most.
  virtual int64_t rows() const = 0;
  /// 4-byte words of a panel for one group of adjacent k are 64; elements of k in a group.
  int64_t group() const { return groupSize; }
  /// By all invocations of the workgroup: makes the sums of a tile, which sumOf finds after a barrier.
  virtual void compute(const ContractTile &tile) = 0;
  /// What epilogues get, f32 or of integers i32.
  virtual Value sumOf(Value row, Value column) = 0;

protected:
  ContractSums(Shader &shader, int64_t depth, int64_t groupSize)
      : shader(shader), e(shader.e), f32(e.f32()), i32(e.b.getI32Type()), depth(depth), groupSize(groupSize) {}

  Shader &shader;
  emit::Emitter &e;
  Type f32, i32;
  const int64_t depth, groupSize;
};

/// Elements k to k + count - 1 of row r of a tile of f32 with `depth` columns, zeros behind its end.
SmallVector<Value> rowElements(Shader &shader, const ContractTile &tile, int64_t depth, Value row, Value k,
                               int64_t count);

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_CONTRACTSUMS_H
