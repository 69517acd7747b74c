//===- NarrowCaches.h - keys and values are kept in bf16 ---------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_NARROWCACHES_H
#define TRANSEPT_PASSES_NARROWCACHES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::transept {

/// The element types that caches can have; the first one leaves them as they are.
constexpr StringLiteral cacheTypeNames[] = {"fp32", "bf16"};

/// Module pass, for staged modules. With `type` bf16, rounds what is appended to the self cache to bf16, and what
/// entries export to states that nothing but cross attention reads, as keys or values; the module gets the attribute
/// `transept.narrow_caches`. Attention multiplies and adds in f32 as before.
std::unique_ptr<Pass> createNarrowCachesPass(StringRef type = cacheTypeNames[0]);

constexpr StringLiteral narrowCachesAttrName = "transept.narrow_caches";

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_NARROWCACHES_H
