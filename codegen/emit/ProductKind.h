//===- ProductKind.h - what a contraction multiplies ---------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_EMIT_PRODUCTKIND_H
#define TRANSEPT_CODEGEN_EMIT_PRODUCTKIND_H

#include "ir/Kernel.h"

namespace mlir::kernel::emit {

/// What a contraction multiplies: f32 with f32, bf16 with bf16, f32 scaled to integers with integers, f32 with
/// integers, or integers with integers.
enum class ProductKind { Float, Bf16, Int8, Int8Weights, Integers };
/// Fails, with an error, where the matrix has elements of another type or another shape than a packed one.
FailureOr<ProductKind> productKindOf(ContractOp op);

} // namespace mlir::kernel::emit

#endif // TRANSEPT_CODEGEN_EMIT_PRODUCTKIND_H
