//===- InferSlice.h - what a slice takes of each axis -----------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_INFERSLICE_H
#define TRANSEPT_IR_INFERSLICE_H

#include "ir/InferSupport.h"

namespace mlir::transept {

/// `count` elements from `start` on, every `step`-th; all in range. `start` is null where only a run can say.
struct AxisSlice {
  DimAttr start;
  int64_t step;
  DimAttr count;
};

/// One entry per axis of `input`. nullopt: either which axes are sliced is unknown, or (`invalid`) an error was
/// emitted.
std::optional<SmallVector<AxisSlice>> sliceAxes(InferContext &context, SliceOp op, ArrayRef<Fact> operands,
                                                ArrayRef<DimAttr> input, bool &invalid);

} // namespace mlir::transept

#endif // TRANSEPT_IR_INFERSLICE_H
