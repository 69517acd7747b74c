//===- WindowShape.h - kernel, strides, dilations and padding of a node ---------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_WINDOWSHAPE_H
#define TRANSEPT_FRONTEND_WINDOWSHAPE_H

#include "frontend/NodeImport.h"

namespace mlir::transept {

/// How a convolution or pooling node walks over its spatial axes, which are the last ones of its input.
struct WindowShape {
  SmallVector<int64_t> kernel, strides, dilations;
  SmallVector<int64_t> pads; ///< all begins, then all ends
  enum { Explicit, SameUpper, SameLower } padding = Explicit;
  bool ceil = false; ///< a last window may reach behind the padding

  size_t axes() const { return kernel.size(); }
  /// Elements from the first to the last of a window.
  int64_t reach(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  bool isPadded() const {
    return padding != Explicit || llvm::any_of(pads, [](int64_t amount) { return amount != 0; });
  }

  /// Reads the attributes; `kernel` is what the weight says, or null where only `kernel_shape` does. A failure is
  /// reported.
  static FailureOr<WindowShape> read(NodeImport &node, const SmallVector<int64_t> *kernel);
};

/// Amounts at both ends of the spatial axes, i64 vectors.
struct SpatialPads {
  Value low, high;
  Value behind; ///< what `ceil` adds at the end, or null
};
/// The padding of a node's input, from its sizes where they matter.
SpatialPads padsOf(NodeImport &node, const WindowShape &shape, Value input);
/// The spatial axes of `input` with `low` and `high` more elements of `fill` (0 where null).
Value padSpatial(NodeImport &node, Value input, size_t axes, Value low, Value high, Value fill = {});

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_WINDOWSHAPE_H
