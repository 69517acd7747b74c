//===- NarrowTile.h - the inner loop of products with narrow weights ----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_CPU_NARROWTILE_H
#define TRANSEPT_CODEGEN_CPU_NARROWTILE_H

#include "codegen/cpu/PanelAhead.h"
#include "codegen/emit/Emitter.h"
#include "codegen/emit/ProductKind.h"

namespace mlir::kernel::cpu {

using emit::ProductKind;

/// x [rows, depth] times one panel of narrow weights.
struct NarrowProduct {
  ProductKind kind;
  int64_t depth;
  /// Rows of bf16 or i8, filled with zeros to whole vectors; for Int8Weights of f32. The stride counts elements.
  Value x, xStride;
  Value panel;
  /// Int8Weights: so many adjacent k have one scale per column, f32 [blocks, 64], by which weights are multiplied
  /// first. A multiple of 4; 0: weights are integers.
  int64_t block = 0;
  Value blockScales;
  /// Where the sums go, f32 [rows, 64]; i32 for Integers.
  Value sums;
  /// Int8: f32 and i32 per row of x. The integer sum minus `corrections` is multiplied by `scales`. Integers have no
  /// scales.
  Value scales, corrections;
  /// What is fetched meanwhile.
  AheadPanel ahead;
};

/// Computes the first `rows` rows of the product in register tiles. Per element one chain over ascending k.
void emitNarrowRows(emit::Emitter &emitter, const NarrowProduct &product, int64_t rows);

/// The most rows of a register tile.
int64_t narrowTileRows(emit::Emitter &emitter, const NarrowProduct &product);

/// Elements of a row of x as emitNarrowRow writes it.
int64_t narrowStride(int64_t depth);
/// Bf16: rounds `depth` floats at `x` to bf16 at `target`.
void emitBf16Row(emit::Emitter &emitter, Value x, int64_t depth, Value target);
/// Int8: what a row whose largest magnitude is `largest` is multiplied with before it is rounded, and what a group of
/// it, f32 [16], then becomes: i32 [16].
Value emitInt8Factor(emit::Emitter &emitter, Value largest);
Value emitInt8Group(emit::Emitter &emitter, Value group, Value factor);
/// Int8: scales the floats to [-127, 127] and rounds them to i8 at `target`; stores what turns a sum of their products
/// with weights offset by 128 into the product: its scale and its correction. Rows whose largest magnitude is below
/// 1e-35 become zeros; one with an infinity or NaN gives infinities or NaN only.
void emitInt8Row(emit::Emitter &emitter, Value x, int64_t depth, Value target, Value scale, Value correction);

/// Integers: copies `depth` i8 to `target` and stores their correction.
void emitIntegerRow(emit::Emitter &emitter, Value x, int64_t depth, Value target, Value correction);

} // namespace mlir::kernel::cpu

#endif // TRANSEPT_CODEGEN_CPU_NARROWTILE_H
