//===- Report.h - what a compilation found and decided ----------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_REPORT_H
#define TRANSEPT_TOOLS_DRIVER_REPORT_H

#include "passes/Fold.h"
#include "passes/Fuse.h"
#include "passes/Quantise.h"
#include "tools/driver/Accuracy.h"
#include "tools/driver/PackArtifact.h"
#include "tools/driver/Phases.h"

namespace mlir::transept {

/// Kernels of one entry, by kind.
struct EntryKernels {
  std::string entry;
  std::map<std::string, unsigned> kinds;
};

/// What is known so far; a member is empty until its phase has run.
struct CompileReport {
  std::string source, output;
  std::optional<TargetOptions> target;
  std::vector<std::string> warnings;
  std::optional<unsigned> shapeOps; ///< left that symbols could say
  std::optional<FoldReport> folding;
  std::optional<FusionReport> fusion;
  std::vector<std::string> staging;
  QuantiseReport quantisation;     ///< without a precision: everything is fp32
  std::vector<std::string> guards; ///< what a call is checked for, as messages
  std::vector<EntryKernels> kernels;
  std::vector<std::pair<std::string, double>> seconds; ///< per phase
  std::optional<PackedSizes> sizes;
  std::optional<AccuracyReport> accuracy;
  std::optional<Failure> failure;
};

/// Notes in the module attribute `transept.report` what only the module after this phase shows, so that a compilation
/// which goes on from a dump reports the same.
void recordFacts(ModuleOp module, const Phase &phase, ArrayRef<std::string> warnings);
/// Reads that attribute, and those that passes left.
void collectFacts(ModuleOp module, CompileReport &report);

/// Indented JSON, ending with a newline.
std::string reportAsJson(const CompileReport &report);
/// A page for a reader, without the failure.
std::string reportAsText(const CompileReport &report);

/// 1234567 as "1.2 MB".
std::string bytesAsText(uint64_t bytes);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_REPORT_H
