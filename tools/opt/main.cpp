//===- main.cpp - transept-opt --------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/ToolUtilities.h"
#include "tools/driver/Dump.h"
#include "tools/driver/Phases.h"
#include "tools/opt/Normalize.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include <CLI/CLI.hpp>

using namespace mlir;
using namespace mlir::transept;

namespace {

constexpr const char *footer = R"(Examples:
  transept-opt dump/04-fuse.mlir --transept-stage        one phase on a dump
  transept-opt x.mlir --transept-pass=transept-shapes    one pass
  transept-opt dump/05-stage.mlir --normalize            a program as comparable text
Phases and passes run in the order given. Long options may be written with one dash.)";

/// A phase, or one pass with its options.
struct Step {
  const Phase *phase = nullptr;
  std::string pass, options;
};

struct OptOptions {
  std::string input = "-", output = "-";
  std::vector<Step> steps;
  bool normalize = false, split = false, verifyDiagnostics = false, locations = false;
};

int complain(const llvm::Twine &message, ExitCode code = ExitUsage) {
  llvm::errs() << "transept-opt: error: " << message << '\n';
  return code;
}

/// What the module says it is compiled for.
TargetOptions targetOf(ModuleOp module) {
  auto options = module->getAttrOfType<DictionaryAttr>(optionsAttrName);
  return (options ? optionsFromAttr(options) : std::nullopt).value_or(defaultTarget());
}

/// The pass of that name from whichever phase has it.
std::unique_ptr<Pass> makePass(StringRef name, const TargetOptions &target) {
  for (const Phase &phase : phases()) {
    PassList list;
    if (phase.passes)
      phase.passes(list, target);
    for (std::unique_ptr<Pass> &pass : list)
      if (pass->getArgument() == name)
        return std::move(pass);
  }
  return nullptr;
}

std::string passNames() {
  std::vector<std::string> names;
  for (const Phase &phase : phases()) {
    PassList list;
    if (phase.passes)
      phase.passes(list, defaultTarget());
    for (std::unique_ptr<Pass> &pass : list)
      if (!llvm::is_contained(names, pass->getArgument()))
        names.push_back(pass->getArgument().str());
  }
  return llvm::join(names, ", ");
}

LogicalResult runStep(ModuleOp module, const Step &step) {
  if (step.phase) {
    PassList list;
    step.phase->passes(list, targetOf(module));
    for (std::unique_ptr<Pass> &pass : list)
      if (failed(applyPass(module, std::move(pass))))
        return failure();
    return verifyPhase(module, *step.phase);
  }
  std::unique_ptr<Pass> pass = makePass(step.pass, targetOf(module));
  auto onError = [&](const Twine &message) { return module.emitError(message); };
  if (failed(pass->initializeOptions(step.options, onError)))
    return failure();
  return applyPass(module, std::move(pass));
}

/// Whether every bracket and quote is closed: MLIR looks for the end of those that are not for ever.
bool isClosed(StringRef options) {
  SmallVector<char> closers;
  for (char c : options) {
    if (!closers.empty() && c == closers.back())
      closers.pop_back();
    else if (!closers.empty() && (closers.back() == '"' || closers.back() == '\''))
      continue;
    else if (size_t opener = StringRef("{[(\"'").find(c); opener != StringRef::npos)
      closers.push_back(StringRef("}])\"'")[opener]);
  }
  return closers.empty();
}

/// One chunk of the input: parse, run, print.
LogicalResult process(std::unique_ptr<llvm::MemoryBuffer> buffer, const OptOptions &options, raw_ostream &out) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadPhaseDialects(context);
  context.printOpOnDiagnostic(!options.verifyDiagnostics);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  auto transform = [&]() -> OwningOpRef<ModuleOp> {
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
    if (!module)
      return {};
    if (std::optional<Failure> failure = loadWeights(*module, options.input)) {
      emitError(module->getLoc()) << failure->message;
      return {};
    }
    for (const Step &step : options.steps)
      if (failed(runStep(*module, step)))
        return {};
    return module;
  };
  if (options.verifyDiagnostics) {
    SourceMgrDiagnosticVerifierHandler handler(sources, &context);
    transform();
    return handler.verify();
  }
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = transform();
  if (!module)
    return failure();
  if (options.normalize) {
    printNormalized(*module, out);
  } else {
    module->print(out, OpPrintingFlags().enableDebugInfo(options.locations));
    out << '\n';
  }
  return success();
}

/// Single-dash long options, as other tools of this kind take them, become double-dash ones.
std::vector<std::string> normalizeArguments(int argc, char **argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    std::string word = argv[i];
    if (word.size() > 2 && word[0] == '-' && word[1] != '-')
      word.insert(0, "-");
    words.push_back(word);
  }
  return words;
}

int runTool(int argc, char **argv) {
  OptOptions options;
  CLI::App app("Runs phases and passes of the compiler on a dump, and prints the result.", "transept-opt");
  app.footer(footer);
  app.add_option("input", options.input, "A dump (.mlir); its weights lie beside it; -: standard input")
      ->type_name("FILE");
  app.add_option("-o", options.output, "Where the result goes; -: standard output")->type_name("FILE");
  app.add_flag("--normalize", options.normalize,
               "Print functions in canonical op order without names and locations, for comparing programs");
  app.add_flag("--split-input-file", options.split, "Treat the parts between lines '// -----' as files of their own");
  app.add_flag("--verify-diagnostics", options.verifyDiagnostics,
               "Compare errors with the comments 'expected-error' of the input, and print nothing else");
  app.add_flag("--mlir-print-debuginfo,--locations", options.locations, "Print locations");
  std::map<const CLI::Option *, const Phase *> phaseFlags;
  for (const Phase &phase : phases())
    if (phase.passes)
      phaseFlags[app.add_flag("--transept-" + phase.name.str())->description("Phase: " + phase.sentence.str())] =
          &phase;
  std::vector<std::string> passes;
  CLI::Option *passOption = app.add_option("--transept-pass", passes, "One pass: " + passNames())
                                ->expected(1)
                                ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                                ->type_name("NAME[{OPTIONS}]");
  try {
    app.parse(normalizeArguments(argc, argv));
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    return complain(error.what());
  }
  size_t passIndex = 0;
  for (CLI::Option *option : app.parse_order()) {
    if (auto phase = phaseFlags.find(option); phase != phaseFlags.end())
      options.steps.push_back({phase->second, "", ""});
    if (option != passOption)
      continue;
    auto [name, rest] = StringRef(passes[passIndex++]).split('{');
    rest.consume_back("}");
    if (!makePass(name, defaultTarget()))
      return complain("no pass is named '" + name + "'; there are " + passNames());
    if (!isClosed(rest))
      return complain("options of pass '" + name + "' have a bracket or quote that is not closed: " + quoted(rest));
    options.steps.push_back({nullptr, name.str(), rest.str()});
  }

  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(options.input, &error);
  if (!buffer)
    return complain(error, ExitFile);
  std::unique_ptr<llvm::ToolOutputFile> output = openOutputFile(options.output, &error);
  if (!output)
    return complain(error, ExitFile);
  auto chunk = [&](std::unique_ptr<llvm::MemoryBuffer> part, raw_ostream &out) {
    return process(std::move(part), options, out);
  };
  if (failed(splitAndProcessBuffer(std::move(buffer), chunk, output->os(), options.split ? kDefaultSplitMarker : "",
                                   options.split ? kDefaultSplitMarker : "")))
    return 1;
  output->keep();
  return ExitOk;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return runTool(argc, argv);
  } catch (const std::exception &error) {
    return complain(error.what(), ExitInternal);
  }
}
