//===- main.cpp - transept-compile ----------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Import.h"
#include "google/protobuf/stubs/common.h"
#include "onnx/common/version.h"
#include "runtime/AtomicFile.h"
#include "tools/compile/Supervise.h"
#include "tools/driver/Accuracy.h"
#include "tools/driver/Compile.h"
#include "transept/version.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <new>
#include <unistd.h>

using namespace mlir;
using namespace mlir::transept;

namespace {

constexpr const char *footer = R"(Examples:
  transept compile opus-export/ -o model.tsp            an export directory becomes a program that generates
  transept compile model.onnx                           one graph becomes model.tsp, with its own inputs and outputs
  transept compile model.onnx --report report.json -v   what was found and decided, as JSON and on the screen
  transept compile opus-export/ --dump-ir dump          one .mlir per phase beside the artifact
  transept compile dump/04-fuse.mlir --start-from fuse -o model.tsp

Exit codes: 0 ok, 2 usage, 3 model invalid, 4 unsupported, 5 over a limit, 6 file or disk, 9 out of memory,
70 internal error.)";

struct Flags {
  CompileOptions compile;
  std::string report, levels, accuracy;
  std::optional<double> maxLoss;
  bool asGraph = false, asExport = false, json = false, quiet = false, verbose = false;
  bool printPhases = false, printOperators = false;
};

std::string versionText() {
  int protobuf = GOOGLE_PROTOBUF_VERSION;
  return llvm::formatv("transept {0} (LLVM {1}, ONNX {2}, Protocol Buffers {3}.{4}.{5})", TRANSEPT_VERSION,
                       LLVM_VERSION_STRING, onnx::LAST_RELEASE_VERSION, protobuf / 1000000, protobuf / 1000 % 1000,
                       protobuf % 1000)
      .str();
}

void defineFlags(CLI::App &app, Flags &flags) {
  CompileOptions &options = flags.compile;
  app.footer(footer);
  app.set_version_flag("--version", versionText());
  app.add_option("source", options.source, "An export directory, an .onnx file, or a dump (.mlir)")->type_name("SRC");
  app.add_option("-o,--output", options.output, "The artifact; default: the name of SRC with .tsp")
      ->type_name("OUT.tsp");
  app.add_option("--target", options.target.target, "What the code runs on: cpu (default), vulkan, or cpu,vulkan")
      ->type_name("NAME");
  app.add_option("--precision", options.target.precision, "Of products: fp32, bf16, int8 or int8-weights")
      ->type_name("NAME");
  app.add_option("--keep-fp32", options.target.keepFp32,
                 "Products that stay in fp32: a glob over nodes and weights; again")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all();
  app.add_option("--caches", options.target.caches, "Of cached keys and values: fp32 or bf16")->type_name("NAME");
  app.add_flag("--two-stage-vocabulary", options.target.twoStageVocabulary,
               "Greedy steps read the last matrix in 8 bits and compute few logits: same tokens, a larger file");
  app.add_option(
         "--cpu-levels", flags.levels,
         "Instruction sets to compile for: avx512,avx2,x86-64, with products of bf16 also avx512bf16, with those of "
         "8-bit integers avx512vnni; default: all of these; for Arm: neon")
      ->type_name("NAME,...");
  app.add_option("--accuracy", flags.accuracy,
                 "Compare with fp32 on the requests or texts of FILE, or on 'bundled' sentences")
      ->type_name("FILE");
  app.add_option("--max-loss", flags.maxLoss, "Refuse a mean divergence from fp32 above X nats per token")
      ->type_name("X");
  app.add_flag("--as-export", flags.asExport, "Treat one .onnx file as an export, to generate with");
  app.add_flag("--as-graph", flags.asGraph, "Treat the source as one graph, whatever it looks like");
  app.add_option("--report", flags.report, "Write what was found and decided as JSON")->type_name("FILE.json");
  app.add_option("--dump-ir", options.dumpDirectory, "Write the module after each phase, and its weights")
      ->type_name("DIR");
  app.add_flag("--dump-ir-passes", options.dumpPasses, "Also write it after each pass that changed something");
  app.add_option("--stop-after", options.stopAfter, "Stop after a phase: " + phaseNames())->type_name("PHASE");
  app.add_option("--start-from", options.startFrom, "SRC is a dump; go on after this phase")->type_name("PHASE");
  app.add_flag("--print-phases", flags.printPhases, "Print the table of phases, in Markdown");
  app.add_flag("--print-operators", flags.printOperators, "Print the ONNX operators that can be imported");
  app.add_flag("--json", flags.json, "Print the report as JSON on standard output");
  app.add_flag("-q,--quiet", flags.quiet, "Errors only");
  app.add_flag("-v,--verbose", flags.verbose, "Print the report");
}

int fail(const Failure &failure) {
  std::fprintf(stderr, "transept: error: %s\n", printable(failure.message, 2000).c_str());
  // One is in the line already.
  if (isatty(STDERR_FILENO) && failure.details.size() > 1)
    for (const std::string &detail : failure.details)
      std::fprintf(stderr, "  %s\n", printable(detail, 2000).c_str());
  return failure.exitCode;
}

/// "[10/11] emit, after 1.2 s" on one line of a terminal, which disappears.
class ProgressLine {
public:
  explicit ProgressLine(bool shown) : shown(shown && isatty(STDERR_FILENO)) {}
  ~ProgressLine() { clear(); }
  void show(const Phase &phase) {
    if (!shown)
      return;
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "\r\033[K[%2u/%zu] %s, after %.1f s", phaseNumber(phase), phases().size(), phase.name.data(),
                 passed.count());
    visible = true;
  }
  void clear() {
    if (visible)
      std::fprintf(stderr, "\r\033[K");
    visible = false;
  }

private:
  bool shown, visible = false;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

std::optional<Failure> writeReport(const std::string &path, const std::string &text) {
  auto file = ::transept::AtomicFile::create(path);
  ::transept::Status status = file.ok() ? file->write(0, text.data(), text.size()) : file.status();
  if (status.ok())
    status = file->commit();
  return status.ok() ? std::nullopt : std::optional(Failure{status.exitCode(), status.message(), {}});
}

/// "model.tsp: 1.2 MB, 18 of 18 attention sites fused, 3.4 s".
std::string summary(const CompileReport &report) {
  double total = 0;
  for (const auto &[phase, seconds] : report.seconds)
    total += seconds;
  std::string line = report.sizes ? report.output + ": " + bytesAsText(report.sizes->artifact)
                                  : "stopped after " + report.seconds.back().first;
  if (report.fusion && report.fusion->sites > 0)
    line += llvm::formatv(", {0} of {1} attention sites fused", report.fusion->fused, report.fusion->sites).str();
  line += llvm::formatv(", {0:f1} s", total).str();
  return report.accuracy ? line + "\naccuracy: " + accuracyAsText(*report.accuracy) : line;
}

std::optional<Failure> copyFile(const std::string &from, const std::string &to) {
  std::ifstream source(from, std::ios::binary);
  auto file = ::transept::AtomicFile::create(to);
  ::transept::Status status = file.status();
  std::vector<char> piece(1 << 22);
  for (uint64_t offset = 0; status.ok() && source; offset += source.gcount())
    if (source.read(piece.data(), piece.size()); source.gcount() > 0)
      status = file->write(offset, piece.data(), source.gcount());
  if (status.ok() && !source.eof())
    return Failure{ExitFile, "cannot read " + printable(from), {}};
  if (status.ok())
    status = file->commit();
  return status.ok() ? std::nullopt : std::optional(Failure{status.exitCode(), status.message(), {}});
}

/// Compiles twice into the process's own directory, measures, and lets the artifact out if it is good enough.
std::optional<Failure> compileMeasured(const Flags &flags, const Progress &progress, CompileReport &report) {
  const char *directory = std::getenv("TMPDIR");
  const std::string stem = directory ? directory : ".";
  CompileOptions candidate = flags.compile, reference = flags.compile;
  candidate.output = stem + "/candidate.tsp";
  reference.output = stem + "/fp32.tsp";
  reference.dumpDirectory.clear();
  reference.target = defaultTarget();
  CompileReport ignored;
  if (std::optional<Failure> failure = compile(candidate, progress, report))
    return failure;
  report.output = flags.compile.output;
  if (std::optional<Failure> failure = compile(reference, progress, ignored))
    return failure;
  Outcome<AccuracyReport> accuracy = measureAccuracy(reference.output, candidate.output, flags.accuracy);
  if (!accuracy)
    return std::move(accuracy.failure());
  report.accuracy = *accuracy;
  // NaN is above every bound.
  if (flags.maxLoss && !(accuracy->meanDivergence <= *flags.maxLoss))
    return Failure{ExitLimit,
                   llvm::formatv("precision {0} diverges from fp32 by {1} nats per token, more than --max-loss {2}; "
                                 "try --keep-fp32, or another precision",
                                 flags.compile.target.precision, accuracy->meanDivergence, *flags.maxLoss)
                       .str(),
                   {accuracyAsText(*accuracy)}};
  return copyFile(candidate.output, flags.compile.output);
}

[[noreturn]] void endForMemory() {
  constexpr char line[] = "transept: error: out of memory\n";
  (void)!write(STDERR_FILENO, line, sizeof(line) - 1);
  _exit(ExitMemory);
}

/// What the child does.
int compileAndReport(const Flags &flags, Activity &activity) {
  std::set_new_handler(endForMemory);
  // Of what LLVM takes without new.
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { endForMemory(); });
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    std::fprintf(stderr, "transept: error: internal error: %s\n", printable(reason).c_str());
    _exit(ExitInternal);
  });
  ProgressLine line(!flags.quiet);
  CompileReport report;
  auto progress = [&](const Phase &phase) {
    activity.set("phase '" + phase.name.str() + "'");
    line.show(phase);
  };
  std::optional<Failure> failure =
      flags.accuracy.empty() ? compile(flags.compile, progress, report) : compileMeasured(flags, progress, report);
  if (failure)
    report.failure = failure;
  line.clear();
  std::string json = reportAsJson(report);
  if (!flags.report.empty())
    if (std::optional<Failure> unwritten = writeReport(flags.report, json); unwritten && !failure)
      failure = unwritten;
  if (!flags.quiet)
    for (const std::string &warning : report.warnings)
      std::fprintf(stderr, "transept: warning: %s\n", printable(warning, 2000).c_str());
  if (flags.json)
    std::fputs(json.c_str(), stdout);
  else if (flags.verbose && !failure)
    std::fputs((reportAsText(report) + summary(report) + "\n").c_str(), stdout);
  else if (!flags.quiet && !failure)
    std::fputs((summary(report) + "\n").c_str(), stdout);
  if (!failure && (std::fflush(stdout) != 0 || std::ferror(stdout)))
    failure = Failure{ExitFile, "cannot write to standard output", {}};
  return failure ? fail(*failure) : ExitOk;
}

int runTool(int argc, char **argv) {
  Flags flags;
  CLI::App app("Compiles an exported model into one native file.", "transept compile");
  defineFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    std::string what = error.what();
    return fail({ExitUsage, what.substr(0, what.find('\n')) + " (see 'transept compile --help')", {}});
  }
  if (flags.printPhases) {
    std::fputs(phasesPage().c_str(), stdout);
    return ExitOk;
  }
  if (flags.printOperators) {
    for (const std::string &title : importedOperators())
      std::puts(title.c_str());
    return ExitOk;
  }
  CompileOptions &options = flags.compile;
  if (flags.asGraph && flags.asExport)
    return fail({ExitUsage, "--as-graph and --as-export exclude each other", {}});
  const bool writes = options.stopAfter.empty() || findPhase(options.stopAfter) == &phases().back();
  if (!flags.accuracy.empty() && ((options.target.precision == "fp32" && options.target.caches == "fp32") ||
                                  !options.startFrom.empty() || !writes))
    return fail({ExitUsage,
                 "--accuracy compares an artifact with another precision or other caches, compiled from a model, with "
                 "fp32",
                 {}});
  if (flags.maxLoss && flags.accuracy.empty())
    return fail({ExitUsage, "--max-loss needs --accuracy", {}});
  options.kind = flags.asGraph    ? CompileOptions::AsGraph
                 : flags.asExport ? CompileOptions::AsExport
                                  : CompileOptions::ByPath;
  for (StringRef rest = flags.levels; !rest.empty();) {
    StringRef level;
    std::tie(level, rest) = rest.split(',');
    options.target.cpuLevels.push_back(level.trim().str());
  }
  for (const char *flag :
       {"--target", "--precision", "--caches", "--keep-fp32", "--cpu-levels", "--two-stage-vocabulary"})
    options.targetGiven |= app.count(flag) > 0;
  if (std::optional<Failure> failure = completeOptions(options))
    return fail(*failure);
  return supervise([&](Activity &activity) { return compileAndReport(flags, activity); },
                   [&] {
                     // Making a file for the same name removes what was left of it.
                     if (!options.output.empty())
                       (void)::transept::AtomicFile::create(options.output);
                   });
}

} // namespace

int main(int argc, char **argv) {
  try {
    llvm::sys::Process::FixupStandardFileDescriptors(); // else a file of ours could become a closed one of these
    return runTool(argc, argv);
  } catch (const std::exception &error) {
    return fail({ExitInternal, std::string("internal error: ") + error.what(), {}});
  }
}
