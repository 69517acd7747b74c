//===- Plan.h - kernels get buffers and an order ------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_PLAN_H
#define TRANSEPT_PASSES_PLAN_H

#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::transept {

/// What planning must know of a target.
struct TargetTraits {
  /// Of every buffer, in bytes.
  int64_t alignment = 256;
};

/// Module pass: every kernel.entry becomes a kernel.program that calls kernel.func ops, equal kernels once each. All
/// offsets and sizes are expressions over the entry's symbols. Texts of run-time checks go to the module attribute
/// `kernel.checks`; check i has the id i + 1.
std::unique_ptr<Pass> createPlanPass(TargetTraits traits = {});

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_PLAN_H
