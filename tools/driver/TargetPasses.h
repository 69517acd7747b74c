//===- TargetPasses.h - the phases that are a target's own, as passes -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_TARGETPASSES_H
#define TRANSEPT_TOOLS_DRIVER_TARGETPASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "tools/driver/CompileOptions.h"

namespace mlir::transept {

/// Module attribute: an array of {level, features, object}, where `object` is the key under which the context's weight
/// store holds the bytes of the shared object.
constexpr StringLiteral codeAttrName = "transept.code";

/// Every kernel.func gets its work items, scratch and schedule.
std::unique_ptr<Pass> createSchedulePass(const TargetOptions &options);

/// Adds one module of LLVM dialect functions per level, named like the level.
std::unique_ptr<Pass> createLowerPass(const TargetOptions &options);

/// Replaces those modules by shared objects.
std::unique_ptr<Pass> createEmitPass(const TargetOptions &options);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_TARGETPASSES_H
