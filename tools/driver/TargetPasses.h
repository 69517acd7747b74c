//===- TargetPasses.h - the phases that are a target's own, as passes -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_TARGETPASSES_H
#define TRANSEPT_TOOLS_DRIVER_TARGETPASSES_H

#include "codegen/Codegen.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "tools/driver/CompileOptions.h"

namespace mlir::transept {

/// Module attribute: an array of {target, level, features, object}, where `object` is the key under which the context's
/// weight store holds the bytes of the shared object, or of the shaders; then `shaders` lists the variants of each.
constexpr StringLiteral codeAttrName = "transept.code";

/// Name of the module of SPIR-V modules. As a level of its target, their code has the name of the precision.
constexpr StringLiteral shadersName = "shaders";

/// The attribute `shaders` of code, and back; what is malformed in it is left out.
ArrayAttr shadersToAttribute(MLIRContext *context, ArrayRef<kernel::VulkanCode::Shader> shaders);
std::vector<kernel::VulkanCode::Shader> shadersFromAttribute(ArrayAttr attribute);

/// Every kernel.func gets its work items, scratch and schedule.
std::unique_ptr<Pass> createSchedulePass(const TargetOptions &options);

/// Adds one module of LLVM dialect functions per CPU level, named like the level, and one of SPIR-V modules.
std::unique_ptr<Pass> createLowerPass(const TargetOptions &options);

/// Replaces those modules by shared objects and shaders.
std::unique_ptr<Pass> createEmitPass(const TargetOptions &options);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_TARGETPASSES_H
