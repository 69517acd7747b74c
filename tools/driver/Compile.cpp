//===- Compile.cpp - from a model to an artifact, phase by phase ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/Compile.h"
#include "frontend/Import.h"
#include "mlir/IR/OperationSupport.h"
#include "tools/driver/Attachments.h"
#include "tools/driver/DiagnosticLog.h"
#include "tools/driver/Dump.h"
#include "tools/driver/TargetPasses.h"
#include "tools/driver/TokenizerPart.h"
#include <chrono>

using namespace mlir;
using namespace mlir::transept;

namespace {

/// One compilation: the context, the module as far as it has come, and where its dumps go.
class Compilation {
public:
  Compilation(const CompileOptions &options, const Progress &progress, CompileReport &report)
      : options(options), progress(progress), report(report), context(MLIRContext::Threading::DISABLED),
        dumps(options.dumpDirectory) {
    loadPhaseDialects(context);
    context.printOpOnDiagnostic(false);
  }

  std::optional<Failure> run();

private:
  std::optional<Failure> runPhases();
  std::optional<Failure> runOne(const Phase &phase);
  std::optional<Failure> runPasses(const Phase &phase);
  std::optional<Failure> import();
  std::optional<Failure> resume();
  std::optional<Failure> pack();

  const CompileOptions &options;
  const Progress &progress;
  CompileReport &report;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  TargetOptions target;
  DumpWriter dumps;
  /// Of the phase that runs.
  std::vector<std::string> warnings;
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
  warnings = std::move(imported->warnings);
  target = options.target;
  (*module)->setAttr(optionsAttrName, optionsToAttr(&context, target));
  if (std::optional<Failure> failure = attachTokenizer(*module, imported->description.tokenizer))
    return failure;
  Outcome<TokenizerPart> part = tokenizerPartOf(*module);
  if (!part)
    return std::move(part.failure());
  if (std::string problem = tokenizerProblem(*part); !problem.empty())
    warnings.push_back("the export's tokenizer cannot be used: " + problem +
                       "; requests with text will be refused with this reason, those with token ids work");
  return std::nullopt;
}

std::optional<Failure> Compilation::resume() {
  Outcome<LoadedDump> dump = loadDump(options.source, &context);
  if (!dump)
    return std::move(dump.failure());
  std::string name = printable(options.source);
  if (!dump->phase.empty() && dump->phase != options.startFrom)
    return Failure{
        ExitUsage, name + ": was made after phase '" + dump->phase + "', not '" + options.startFrom + "'", {}};
  module = std::move(dump->module);
  target = dump->options.value_or(options.target);
  if (options.targetGiven && !(target == options.target))
    return Failure{ExitUsage, name + ": was made for another target, precision or list of CPU levels", {}};
  (*module)->setAttr(optionsAttrName, optionsToAttr(&context, target));
  // A file is not trusted to hold what the phase leaves.
  DiagnosticLog log(&context);
  if (failed(verifyPhase(*module, *findPhase(options.startFrom)))) {
    Failure failure = log.take(ExitInvalidModel, "");
    failure.message = name + ": is no module after phase '" + options.startFrom + "': " + failure.message;
    return failure;
  }
  return std::nullopt;
}

std::optional<Failure> Compilation::runPasses(const Phase &phase) {
  PassList passes;
  phase.passes(passes, target);
  for (auto [index, pass] : llvm::enumerate(passes)) {
    std::string name = pass->getArgument().str();
    std::optional<OperationFingerPrint> before;
    if (options.dumpPasses)
      before.emplace(*module);
    if (std::optional<Failure> failure = runPass(*module, std::move(pass), phase.failure, &warnings))
      return failure;
    if (before && *before != OperationFingerPrint(*module)) {
      std::string stem = phaseStem(phase) + "." + std::to_string(index + 1) + "-" + name;
      if (std::optional<Failure> failure = dumps.write(*module, stem, ""))
        return failure;
    }
  }
  return std::nullopt;
}

std::optional<Failure> Compilation::pack() {
  Outcome<PackedSizes> sizes = packArtifact(*module, target, options.output);
  if (!sizes)
    return std::move(sizes.failure());
  report.sizes = *sizes;
  return std::nullopt;
}

std::optional<Failure> Compilation::runOne(const Phase &phase) {
  if (&phase == &phases().back())
    return pack();
  warnings.clear();
  if (std::optional<Failure> failure = phase.passes ? runPasses(phase) : import())
    return failure;
  if (std::optional<Failure> failure = checkPhase(*module, phase))
    return failure;
  normalizeUseLists(*module);
  recordFacts(*module, phase, warnings);
  if (!options.dumpDirectory.empty())
    return dumps.write(*module, phaseStem(phase), phase.name);
  return std::nullopt;
}

std::optional<Failure> Compilation::runPhases() {
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
    if (llvm::is_contained(options.skip, phase.name))
      continue;
    if (progress)
      progress(phase);
    auto start = std::chrono::steady_clock::now();
    std::optional<Failure> failure = runOne(phase);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    report.seconds.push_back({phase.name.str(), took.count()});
    if (failure)
      return failure;
    if (options.stopAfter == phase.name)
      break;
  }
  return std::nullopt;
}

std::optional<Failure> Compilation::run() {
  report.source = options.source;
  report.output = options.output;
  std::optional<Failure> failure = runPhases();
  if (module)
    collectFacts(*module, report);
  report.target = module ? target : options.target;
  if (ArrayAttr code = module ? (*module)->getAttrOfType<ArrayAttr>(codeAttrName) : nullptr) {
    report.target->cpuLevels.clear();
    for (DictionaryAttr entry : code.getAsRange<DictionaryAttr>())
      if (cast<StringAttr>(entry.get("target")) == "cpu")
        report.target->cpuLevels.push_back(cast<StringAttr>(entry.get("level")).str());
  }
  report.failure = failure;
  return failure;
}

} // namespace

std::optional<Failure> mlir::transept::compile(const CompileOptions &options, const Progress &progress,
                                               CompileReport &report) {
  return Compilation(options, progress, report).run();
}
