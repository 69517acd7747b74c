//===- Sampling.h - elements between the elements of images ---------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_SAMPLING_H
#define TRANSEPT_FRONTEND_SAMPLING_H

#include "frontend/NodeImport.h"

namespace mlir::transept {

/// What lies behind the borders of an image.
enum class SampleEdge {
  Zero,          ///< zeros
  Border,        ///< the outermost elements
  Reflect,       ///< the image mirrored at the outer edges of its outermost elements
  ReflectCentre, ///< the image mirrored at the centres of its outermost elements
};

/// One neighbour along an axis: its index, whether it is inside (null: always) and its weight (null: 1).
struct SampleTap {
  Value index, inside, weight;
};
/// The neighbours of positions (floats, in elements) along an axis of `size` elements (an i64 scalar).
SmallVector<SampleTap> nearestTap(NodeImport &node, Value position, Value size, SampleEdge edge);
SmallVector<SampleTap> linearTaps(NodeImport &node, Value position, Value size, SampleEdge edge);
SmallVector<SampleTap> cubicTaps(NodeImport &node, Value position, Value size, SampleEdge edge);
/// Positions behind the borders as positions inside, for the edges that say so.
Value insidePosition(NodeImport &node, Value position, Value size, SampleEdge edge);

/// Elements of images [N, C, space…] at index tensors [N, shape…], one per spatial axis: [N, C, shape…].
Value pickPoints(NodeImport &node, Value images, ArrayRef<Value> indices);
/// The weighted sum over all combinations of one tap per axis: [N, C, shape…]. With `takesMaximum`, the largest of the
/// weighted elements instead.
Value combineTaps(NodeImport &node, Value images, ArrayRef<SmallVector<SampleTap>> taps, bool takesMaximum = false);
/// Linear interpolation of images [N, C, space…] at positions [N, shape…], one per spatial axis.
Value sampleLinear(NodeImport &node, Value images, ArrayRef<Value> positions, SampleEdge edge);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_SAMPLING_H
