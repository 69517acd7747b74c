//===- DiagnosticLog.h - what MLIR has to say, as one line ------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_DIAGNOSTICLOG_H
#define TRANSEPT_TOOLS_DRIVER_DIAGNOSTICLOG_H

#include "ir/Diagnostic.h"
#include "mlir/IR/Diagnostics.h"

namespace mlir::transept {

/// Keeps the errors and warnings of a context instead of printing them, while it lives.
class DiagnosticLog {
public:
  explicit DiagnosticLog(MLIRContext *context);

  bool hasError() const { return !errors.empty(); }
  /// The first error as one line that names file and node; the other ones are details. `otherwise` is the message
  /// where there was no error. Locations whose metadata is "unsupported", "invalid" or "limit" decide the exit code,
  /// else it is `code`. Clears the log.
  Failure take(ExitCode code, StringRef otherwise);
  std::vector<std::string> takeWarnings() { return std::move(warnings); }

private:
  struct Error {
    std::string line;
    std::optional<ExitCode> code;
  };
  std::vector<Error> errors;
  std::vector<std::string> warnings;
  ScopedDiagnosticHandler handler;
};

/// "decoder_model.onnx: node '/lm_head/MatMul'" for the first node a location stands for, or "dump.mlir:12:3"; empty
/// where it says nothing.
std::string describeLocation(Location location);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_DIAGNOSTICLOG_H
