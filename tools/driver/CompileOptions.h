//===- CompileOptions.h - what a user asks of the compiler ------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_COMPILEOPTIONS_H
#define TRANSEPT_TOOLS_DRIVER_COMPILEOPTIONS_H

#include <string>
#include <vector>

namespace mlir::transept {

/// What decides the bytes of an artifact beside the model. A dump carries it.
struct TargetOptions {
  /// "cpu", "vulkan", or both, separated by a comma.
  std::string target = "cpu";
  std::string precision = "fp32";
  /// Of cached keys and values: "fp32" or "bf16".
  std::string caches = "fp32";
  /// Globs over nodes and weights whose products stay as they are.
  std::vector<std::string> keepFp32;
  /// Names of CPU levels, best first; empty, or all of this kind of machine: those that are of use to the program, and
  /// none where the target is no CPU.
  std::vector<std::string> cpuLevels;
  /// Whether greedy steps compute few logits, for a narrow copy of the matrix behind them.
  bool twoStageVocabulary = false;

  bool hasVulkan() const { return target != "cpu"; }
  bool hasCpu() const { return target != "vulkan"; }

  bool operator==(const TargetOptions &other) const {
    return target == other.target && precision == other.precision && caches == other.caches &&
           keepFp32 == other.keepFp32 && cpuLevels == other.cpuLevels && twoStageVocabulary == other.twoStageVocabulary;
  }
};

struct CompileOptions {
  enum Kind { ByPath, AsGraph, AsExport };

  /// An .onnx file, an export directory, or a dump.
  std::string source;
  /// Where the artifact goes; not written where `stopAfter` names an earlier phase than the last.
  std::string output;
  Kind kind = ByPath;
  TargetOptions target;
  /// Whether the user named any of it; a dump has its own.
  bool targetGiven = false;
  /// The source is a dump made after this phase; empty: the source is a model.
  std::string startFrom;
  /// Empty: all phases.
  std::string stopAfter;
  /// Phases that are left out, and their checks with them. Only those may be that make a program faster, not different:
  /// to tell whether one of them does more than that.
  std::vector<std::string> skip;
  /// Where dumps go; empty: none.
  std::string dumpDirectory;
  /// Also one dump per pass that changed something.
  bool dumpPasses = false;
};

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_COMPILEOPTIONS_H
