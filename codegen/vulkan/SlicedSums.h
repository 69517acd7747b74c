//===- SlicedSums.h - products whose k is shared out among teams ---------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_SLICEDSUMS_H
#define TRANSEPT_CODEGEN_VULKAN_SLICEDSUMS_H

#include "codegen/vulkan/ContractSums.h"

namespace mlir::kernel::vulkan {

/// Teams of sixteen invocations, each with four adjacent columns, take a slice of k each. The slices of an element are
/// the same whatever the rows, and their sums are added in order: an element has the same bits in any batch.
class SlicedSums : public ContractSums {
public:
  int64_t rows() const override;
  void compute(const ContractTile &tile) override;
  Value sumOf(Value row, Value column) override;

protected:
  /// `element`: of stored sums, f32 or i32.
  SlicedSums(Shader &shader, int64_t depth, int64_t groupSize, Type element);

  /// By all invocations, before the sums of a tile.
  virtual void prepare(const ContractTile &) {}
  /// Over the invocation's slice, of `height` rows, four columns each. Rows behind the last one hold anything.
  virtual SmallVector<Value> emit(const ContractTile &tile, int64_t height) = 0;
  /// What epilogues get from the sum of all slices.
  virtual Value finish(Value sum, Value) { return sum; }
  /// Four words of the panel: of the invocation's columns, for a group of k.
  Value loadWords(const ContractTile &tile, Value groupIndex, Type element);

  Value slice, slices; // index: of the invocation's team, of how many
  Value column;        // index: the invocation's first one in the panel

private:
  void emitTile(const ContractTile &tile, int64_t height);
  void emitSums(const ContractTile &tile, int64_t height);
  Value sumAt(Value slice, Value row, Value column);

  const Type element;
  Value sums; // shared: [slices, rows, panelColumns]
};

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_SLICEDSUMS_H
