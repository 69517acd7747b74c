//===- Compile.h - from a model to an artifact, phase by phase --------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_COMPILE_H
#define TRANSEPT_TOOLS_DRIVER_COMPILE_H

#include "tools/driver/Report.h"
#include <functional>

namespace mlir::transept {

/// Called when a phase begins; may be null.
using Progress = std::function<void(const Phase &)>;

/// Checks options and fills in what they leave open: the output's name, CPU levels. Changes nothing on disk but the
/// temporaries that a killed compilation left. Exit code 2 for what a user wrote, 6 for an output that cannot be
/// written.
std::optional<Failure> completeOptions(CompileOptions &options);

/// Compiles. `options` are complete. The output is not touched unless all of it succeeds. What is known of the
/// compilation is in `report`, also of one that fails.
std::optional<Failure> compile(const CompileOptions &options, const Progress &progress, CompileReport &report);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_COMPILE_H
