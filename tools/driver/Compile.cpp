//===- Compile.cpp - from a model to an artifact, phase by phase ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/Compile.h"
#include "frontend/Import.h"
#include "mlir/IR/OperationSupport.h"
#include "tools/driver/DiagnosticLog.h"
#include "tools/driver/Dump.h"
#include <chrono>

using namespace mlir;
using namespace mlir::transept;

std::optional<Failure>
mlir::transept::runPhase(ModuleOp module, const Phase &phase, const TargetOptions &options,
                         llvm::function_ref<std::optional<Failure>(unsigned number, StringRef pass)> after) {
  PassList passes;
  phase.passes(passes, options);
  for (auto [index, pass] : llvm::enumerate(passes)) {
    std::string name = pass->getArgument().str();
    std::optional<OperationFingerPrint> before;
    if (after)
      before.emplace(module);
    if (std::optional<Failure> failure = runPass(module, std::move(pass), phase.failure))
      return failure;
    if (after && *before != OperationFingerPrint(module))
      if (std::optional<Failure> failure = after(index + 1, name))
        return failure;
  }
  return checkPhase(module, phase);
}

namespace {

/// One compilation: the context, the module as far as it has come, and where its dumps go.
class Compilation {
public:
  Compilation(const CompileOptions &options, const Progress &progress)
      : options(options), progress(progress), context(MLIRContext::Threading::DISABLED), dumps(options.dumpDirectory) {
    loadPhaseDialects(context);
  }

  std::optional<Failure> run();

private:
  std::optional<Failure> runOne(const Phase &phase);
  std::optional<Failure> import();
  std::optional<Failure> resume();

  const CompileOptions &options;
  const Progress &progress;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  TargetOptions target;
  DumpWriter dumps;
};

std::optional<Failure> Compilation::import() {
  ImportRequest request;
  request.kind = options.kind == CompileOptions::AsGraph    ? ImportRequest::AsGraph
                 : options.kind == CompileOptions::AsExport ? ImportRequest::AsExport
                                                            : ImportRequest::ByPath;
  Outcome<ImportResult> imported = importModel(options.source, &context, request);
  if (!imported)
    return std::move(imported.failure());
  module = std::move(imported->module);
  target = options.target;
  (*module)->setAttr(optionsAttrName, optionsToAttr(&context, target));
  return std::nullopt;
}

std::optional<Failure> Compilation::resume() {
  Outcome<LoadedDump> dump = loadDump(options.source, &context);
  if (!dump)
    return std::move(dump.failure());
  if (!dump->phase.empty() && dump->phase != options.startFrom)
    return Failure{ExitUsage,
                   printable(options.source) + ": was made after phase '" + dump->phase + "', not '" +
                       options.startFrom + "'",
                   {}};
  module = std::move(dump->module);
  target = dump->options.value_or(options.target);
  return std::nullopt;
}

std::optional<Failure> Compilation::runOne(const Phase &phase) {
  if (!phase.passes) {
    if (std::optional<Failure> failure = import())
      return failure;
    if (std::optional<Failure> failure = checkPhase(*module, phase))
      return failure;
  } else {
    std::string stem = phaseStem(phase);
    auto dumpPass = [&](unsigned number, StringRef pass) {
      return dumps.write(*module, stem + "." + std::to_string(number) + "-" + pass.str(), "");
    };
    if (std::optional<Failure> failure =
            options.dumpPasses ? runPhase(*module, phase, target, dumpPass) : runPhase(*module, phase, target))
      return failure;
  }
  normalizeUseLists(*module);
  if (!options.dumpDirectory.empty())
    return dumps.write(*module, phaseStem(phase), phase.name);
  return std::nullopt;
}

std::optional<Failure> Compilation::run() {
  if (!options.dumpDirectory.empty())
    if (std::optional<Failure> failure = dumps.prepare())
      return failure;
  ArrayRef<Phase> left = phases();
  if (!options.startFrom.empty()) {
    if (std::optional<Failure> failure = resume())
      return failure;
    left = left.drop_front(phaseNumber(*findPhase(options.startFrom)));
  }
  for (const Phase &phase : left) {
    progress.phase(phase, Progress::Begin, 0);
    auto start = std::chrono::steady_clock::now();
    if (std::optional<Failure> failure = runOne(phase))
      return failure;
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    progress.phase(phase, Progress::End, took.count());
    if (options.stopAfter == phase.name)
      break;
  }
  return std::nullopt;
}

} // namespace

std::optional<Failure> mlir::transept::compile(const CompileOptions &options, const Progress &progress) {
  return Compilation(options, progress).run();
}
