//===- main.cpp - transept-compile ----------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/Compile.h"
#include <CLI/CLI.hpp>

using namespace mlir::transept;

static int fail(const Failure &failure) {
  std::fprintf(stderr, "transept: error: %s\n", failure.message.c_str());
  for (const std::string &detail : failure.details)
    std::fprintf(stderr, "  %s\n", detail.c_str());
  return failure.exitCode;
}

int main(int argc, char **argv) {
  CompileOptions options;
  CLI::App app("Compiles an exported model into one native file.", "transept compile");
  app.add_option("source", options.source)->required();
  app.add_option("-o,--output", options.output);
  app.add_option("--stop-after", options.stopAfter);
  app.add_option("--start-from", options.startFrom);
  app.add_option("--dump-ir", options.dumpDirectory);
  app.add_flag("--dump-ir-passes", options.dumpPasses);
  CLI11_PARSE(app, argc, argv);
  Progress progress;
  progress.phase = [](const Phase &phase, Progress::Moment moment, double seconds) {
    if (moment == Progress::End)
      std::fprintf(stderr, "%s %.3f s\n", phase.name.data(), seconds);
  };
  std::optional<Failure> failure = compile(options, progress);
  return failure ? fail(*failure) : 0;
}
