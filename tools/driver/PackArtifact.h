//===- PackArtifact.h - the last phase: one file ----------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_PACKARTIFACT_H
#define TRANSEPT_TOOLS_DRIVER_PACKARTIFACT_H

#include "ir/Diagnostic.h"
#include "mlir/IR/BuiltinOps.h"
#include "tools/driver/CompileOptions.h"

namespace mlir::transept {

struct PackedSizes {
  uint64_t artifact = 0, weights = 0, code = 0;
};

/// Writes the artifact of an emitted module. `path` shows the old content or the whole new one.
Outcome<PackedSizes> packArtifact(ModuleOp module, const TargetOptions &options, const std::string &path);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_PACKARTIFACT_H
