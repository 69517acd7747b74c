//===- Screen.h - a step that computes few logits -----------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_SCREEN_H
#define TRANSEPT_PASSES_SCREEN_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::transept {

/// Module pass. Makes @step_greedy of a generation program whose logits are a product with a constant f32 matrix: @step
/// whose search head has the attribute `transept.screen`, {weight, scales, errors, norms}: keys in the weight store of
/// the matrix in ui8 (offset 128), the factors of its columns, and for each column the Euclidean norms of what the
/// integers miss and of what they stand for, both rounded up. Fails where that is not so. Does nothing unless
/// `enabled`.
std::unique_ptr<Pass> createScreenPass(bool enabled = false);

constexpr StringLiteral greedyName = "step_greedy";
constexpr StringLiteral screenAttrName = "transept.screen";

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_SCREEN_H
