//===- Shortlist.h - a step that computes the logits of some tokens -----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_SHORTLIST_H
#define TRANSEPT_PASSES_SHORTLIST_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::transept {

/// Module pass. Makes @step_listed of a generation program whose logits are a product with a constant f32 matrix: @step
/// whose search head has the attribute `transept.listed` and gives the logits of tokens that the host lists. Does
/// nothing to others, or unless `enabled`.
std::unique_ptr<Pass> createShortlistPass(bool enabled = false);

constexpr StringLiteral listedName = "step_listed";
constexpr StringLiteral listedAttrName = "transept.listed";

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_SHORTLIST_H
