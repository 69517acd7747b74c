//===- Kernel.h - the kernel-level dialect -----------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_KERNEL_H
#define TRANSEPT_IR_KERNEL_H

#include "ir/DimExpr.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/KernelDialect.h.inc"

#include "ir/KernelOpInterface.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/KernelTypes.h.inc"

#define GET_OP_CLASSES
#include "ir/KernelOps.h.inc"

namespace mlir::kernel {

/// Columns of a weight panel, tokens of a vocabulary block, positions of a cache block.
constexpr int64_t panelColumns = 64;
constexpr int64_t vocabularyBlock = 2048;
constexpr int64_t cacheBlockPositions = 16;
/// Logical lanes of every vector loop and row reduction: the same on all levels, so that bits agree.
constexpr int64_t lanes = 16;

/// Elements of adjacent k that lie side by side in a panel: as many as fill 4 bytes.
int64_t panelGroup(Type element);
/// The type of matrices of K = `k` in panels: [panels, K, 64], resp. [panels, ceil(K / g), 64, g] for narrow elements.
RankedTensorType panelType(Type element, int64_t panels, int64_t k);

/// The element type of a tensor or buffer.
Type elementTypeOf(Type tensorOrBuffer);

} // namespace mlir::kernel

#endif // TRANSEPT_IR_KERNEL_H
