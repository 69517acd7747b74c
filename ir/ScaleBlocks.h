//===- ScaleBlocks.h - contractions whose matrix has scales along k -----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_SCALEBLOCKS_H
#define TRANSEPT_IR_SCALEBLOCKS_H

#include "ir/Kernel.h"

namespace mlir::kernel {

/// The attribute `block` of kernel.contract (i64): so many adjacent k of a column have one scale. The third input holds
/// the scales, packed like a matrix [blocks, N] of f32.
constexpr llvm::StringLiteral scaleBlockAttrName = "block";
/// 0 where the matrix has no such scales.
inline int64_t scaleBlockOf(ContractOp op) {
  auto block = op->getAttrOfType<IntegerAttr>(scaleBlockAttrName);
  return block ? block.getInt() : 0;
}

} // namespace mlir::kernel

#endif // TRANSEPT_IR_SCALEBLOCKS_H
