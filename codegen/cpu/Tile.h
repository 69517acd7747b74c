//===- Tile.h - the inner loop of matrix products -----------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_CPU_TILE_H
#define TRANSEPT_CODEGEN_CPU_TILE_H

#include "codegen/cpu/PanelAhead.h"
#include "codegen/emit/Emitter.h"

namespace mlir::kernel::cpu {

/// A product of f32 matrices, x [rows, depth] times w [depth, columns]. Strides count elements.
struct Product {
  Value x, xStride; // row-major
  Value w, wStride;
  Value depth;
  /// Where the sums go: [rows, columns].
  Value sums, sumsStride;
  /// Sums continue from what `sums` holds instead of from 0.
  bool accumulate = false;
  /// One byte per k; where it is 0, row k of w counts as zeros, whatever it holds. Null: all count.
  Value present;
  /// What is fetched meanwhile: w is then a panel of 64 columns.
  AheadPanel ahead;
};

/// Computes `columns` columns, a multiple of 16, of the first `rows` rows of the product, in register tiles of that
/// many rows. Per element one chain of multiply-adds over ascending k, whatever the tile.
void emitProductRows(emit::Emitter &emitter, const Product &product, int64_t rows, Value columns);

/// Walks `rows` rows in tiles of at most `highest` rows: `tile` emits the code for a height, `after` what follows for
/// any height.
void forRowTiles(emit::Emitter &emitter, Value rows, int64_t highest,
                 llvm::function_ref<void(Value row, int64_t height)> tile,
                 llvm::function_ref<void(Value row, Value height)> after = nullptr);

} // namespace mlir::kernel::cpu

#endif // TRANSEPT_CODEGEN_CPU_TILE_H
