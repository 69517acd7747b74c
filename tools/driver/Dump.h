//===- Dump.h - a module as files, complete enough to go on from ------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dump is a .mlir file and, beside it, the weights it refers to by key. Module attributes carry the rest:
// `transept.options` (TargetOptions), `transept.phase` (the phase after which it was made), `transept.weights` (the
// name of the weights file).

#ifndef TRANSEPT_TOOLS_DRIVER_DUMP_H
#define TRANSEPT_TOOLS_DRIVER_DUMP_H

#include "ir/Diagnostic.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/driver/CompileOptions.h"
#include <set>

namespace mlir::transept {

constexpr StringLiteral weightsFileName = "weights.bin";
constexpr StringLiteral optionsAttrName = "transept.options";

/// Writes the dumps of one compilation into a directory, which is made if need be.
class DumpWriter {
public:
  explicit DumpWriter(std::string directory) : directory(std::move(directory)) {}

  /// Removes the dumps of an earlier compilation, so that a listing shows one.
  std::optional<Failure> prepare();
  /// Writes `<stem>.mlir`, and the weights where there are new ones.
  std::optional<Failure> write(ModuleOp module, StringRef stem, StringRef phase);

private:
  std::string directory;
  std::set<std::string> keys;
};

struct LoadedDump {
  OwningOpRef<ModuleOp> module;
  /// Empty where the file does not say.
  std::string phase;
  std::optional<TargetOptions> options;
};

/// Parses a dump and puts its weights into the context's store.
Outcome<LoadedDump> loadDump(const std::string &path, MLIRContext *context);

/// Puts the weights of a parsed dump at `path` into the store; a module that names no weights file is fine.
std::optional<Failure> loadWeights(ModuleOp module, const std::string &path);

/// Text with locations, as a dump has it.
std::string printModule(ModuleOp module);

/// The keys of the context's weights that the module refers to.
std::set<std::string> referencedWeights(ModuleOp module);

/// What a dump says it is compiled for; nothing where it says something else.
std::optional<TargetOptions> optionsFromAttr(DictionaryAttr attr);
DictionaryAttr optionsToAttr(MLIRContext *context, const TargetOptions &options);
/// Null where the attribute is none that optionsToAttr makes.
std::optional<TargetOptions> optionsFromAttr(DictionaryAttr attr);

/// Puts the uses of every value into the order that parsing the module's text gives them, so that later phases do the
/// same work on a parsed dump.
void normalizeUseLists(ModuleOp module);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_DUMP_H
