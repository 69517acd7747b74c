//===- Elementwise.h - what element-wise ops have in common ------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the definitions that are generated from ir/TranseptOps.td, and those in ir/{Infer,Evaluate}Elementwise.cpp.

#ifndef TRANSEPT_IR_ELEMENTWISE_H
#define TRANSEPT_IR_ELEMENTWISE_H

#include "ir/Transept.h"

namespace mlir::transept::elementwise {

/// One element of a content from one element of each operand's; nullopt where symbols do not decide it.
using Combine = llvm::function_ref<std::optional<DimAttr>(ArrayRef<DimAttr>)>;

/// The operand's shape and element type. `combine` may be null: contents are then unknown.
LogicalResult inferUnary(InferContext &context, Operation *op, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results,
                         Combine combine = nullptr);

using FloatUnary = double (*)(double);
using IntUnary = int64_t (*)(int64_t value, bool isUnsigned);
/// Element by element; a null function: not defined for such elements.
LogicalResult evaluateUnary(Operation *op, ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results,
                            FloatUnary onFloat, IntUnary onInt);

/// NumPy alignment: axes count from the end.
AxisBehaviour alignedAxis(Operation *op, unsigned operand, int64_t axis, int64_t &resultAxis);

} // namespace mlir::transept::elementwise

#endif // TRANSEPT_IR_ELEMENTWISE_H
