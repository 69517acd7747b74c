//===- Phases.h - the phases of a compilation, as one table -----------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_PHASES_H
#define TRANSEPT_TOOLS_DRIVER_PHASES_H

#include "ir/Diagnostic.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "tools/driver/CompileOptions.h"

namespace mlir::transept {

using PassList = std::vector<std::unique_ptr<Pass>>;

/// A row of the table. Numbers in names of dumps are places in it, from 1.
struct Phase {
  llvm::StringLiteral name;
  /// What it does, for a reader of the documentation.
  llvm::StringLiteral sentence;
  /// What holds afterwards, in words.
  llvm::StringLiteral afterwards;
  /// Dialects that the module may hold afterwards.
  ArrayRef<llvm::StringLiteral> dialects;
  /// Appends the passes, each over the module. Null for the first phase, which makes the module, and the last one,
  /// which writes it to a file.
  void (*passes)(PassList &list, const TargetOptions &options);
  /// Checks what `dialects` does not say; emits one error at an op that breaks it. May be null.
  LogicalResult (*check)(ModuleOp module);
  /// Whose fault it is if a pass fails and its error does not say.
  ExitCode failure;
};

ArrayRef<Phase> phases();
/// Null for an unknown name.
const Phase *findPhase(StringRef name);
/// 1 for the first one.
unsigned phaseNumber(const Phase &phase);
/// "04-fuse".
std::string phaseStem(const Phase &phase);
/// The names, separated by commas.
std::string phaseNames();

/// Checks the post-condition of a phase; emits an error at an op that breaks it.
LogicalResult verifyPhase(ModuleOp module, const Phase &phase);
/// The same as an internal failure that names phase, op and source node.
std::optional<Failure> checkPhase(ModuleOp module, const Phase &phase);

/// Runs one pass; verifies the module unless `checked` is false.
LogicalResult applyPass(ModuleOp module, std::unique_ptr<Pass> pass, bool checked = true);
/// Runs one pass and verifies the module. Errors that the pass emits have the exit code `code` unless they say
/// otherwise; those of the verifier are internal. Its warnings are appended to `warnings`.
std::optional<Failure> runPass(ModuleOp module, std::unique_ptr<Pass> pass, ExitCode code,
                               std::vector<std::string> *warnings);

/// CPU levels of one architecture, named as in a target triple, or of all.
std::vector<std::string> cpuLevelNames(StringRef architecture = "");

/// A precision with all its CPU levels for the kind of machine that the compiler runs on.
TargetOptions defaultTarget(StringRef precision = "fp32");

/// The documentation page of the table, in Markdown.
std::string phasesPage();

/// Loads the dialects that any phase reads or makes.
void loadPhaseDialects(MLIRContext &context);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_PHASES_H
