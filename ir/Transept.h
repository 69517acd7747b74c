//===- Transept.h - the graph-level dialect ---------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_TRANSEPT_H
#define TRANSEPT_IR_TRANSEPT_H

#include "ir/DimExpr.h"
#include "ir/GraphOp.h"
#include "ir/WeightStore.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::transept {
/// Result element i depends on operand elements i alone, with NumPy broadcasting.
template <typename ConcreteType> class Elementwise : public OpTrait::TraitBase<ConcreteType, Elementwise> {};
/// Defined for elements that are floats, and for no others.
template <typename ConcreteType> class FloatsOnly : public OpTrait::TraitBase<ConcreteType, FloatsOnly> {};
} // namespace mlir::transept

#include "ir/TranseptDialect.h.inc"

#include "ir/GraphOpInterface.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/TranseptTypes.h.inc"

#define GET_OP_CLASSES
#include "ir/TranseptOps.h.inc"

#endif // TRANSEPT_IR_TRANSEPT_H
