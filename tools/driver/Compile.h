//===- Compile.h - from a model to an artifact, phase by phase --------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_COMPILE_H
#define TRANSEPT_TOOLS_DRIVER_COMPILE_H

#include "tools/driver/Phases.h"
#include <functional>

namespace mlir::transept {

/// Called before and after each phase.
struct Progress {
  enum Moment { Begin, End };
  std::function<void(const Phase &, Moment, double seconds)> phase;
};

/// Compiles. Nothing is written to `options.output` unless all of it succeeds.
std::optional<Failure> compile(const CompileOptions &options, const Progress &progress);

/// Runs one phase, which must have passes, and checks its post-condition. `after` (may be null) is called with the
/// number and name of every pass that changed something.
std::optional<Failure>
runPhase(ModuleOp module, const Phase &phase, const TargetOptions &options,
         llvm::function_ref<std::optional<Failure>(unsigned number, StringRef pass)> after = nullptr);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_COMPILE_H
