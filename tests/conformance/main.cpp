//===- main.cpp - transept-conformance: the ONNX node tests, and the list of those that need not pass ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tests/conformance/RunTest.h"
#include "tests/conformance/Table.h"
#include "tests/conformance/Workers.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <unistd.h>

using namespace mlir::transept;
namespace fs = std::filesystem;

namespace {

constexpr const char *footer =
    R"(A folder that the list does not name must pass; one that it names must not. Exit code 1 where that is not so.
A file `tolerance` in a folder, `RELATIVE ABSOLUTE`, replaces the tolerances of the ONNX backend runner for floats.
The last line counts folders that passed, that are not as listed, and that failed as listed.)";

struct Flags {
  std::string tests, list, only, results;
  unsigned jobs = 2;
  Mode mode = Mode::Plain;
  bool page = false, verbose = false;
};

std::vector<std::string> findTests(const Flags &flags) {
  std::vector<std::string> tests;
  std::error_code none;
  for (const fs::directory_entry &entry : fs::directory_iterator(flags.tests, none)) {
    std::string name = entry.path().filename().string();
    if (fs::exists(entry.path() / "model.onnx") && name.find(flags.only) != std::string::npos)
      tests.push_back(std::move(name));
  }
  std::sort(tests.begin(), tests.end());
  return tests;
}

/// Names that the list excludes but that do not exist.
std::vector<std::string> unknownNames(const Exclusions &exclusions, const std::string &root) {
  std::vector<std::string> unknown;
  for (const auto &[name, exclusion] : exclusions)
    if (!fs::exists(fs::path(root) / name))
      unknown.push_back(name);
  return unknown;
}

/// A folder per worker, removed at the end.
class Scratch {
public:
  Scratch() : root(fs::temp_directory_path() / ("transept-conformance-" + std::to_string(getpid()))) {}
  ~Scratch() {
    std::error_code none;
    fs::remove_all(root, none);
  }
  fs::path folder(unsigned worker) const {
    fs::path path = root / std::to_string(worker);
    fs::create_directories(path);
    return path;
  }

private:
  fs::path root;
};

struct Counts {
  unsigned passed = 0, wrong = 0, excluded = 0;
};

int runTests(const Flags &flags, const std::vector<std::string> &tests, const Exclusions &exclusions) {
  Scratch scratch;
  Counts counts;
  std::ofstream results;
  if (!flags.results.empty())
    results.open(flags.results);
  WorkerOptions options;
  options.processes = flags.jobs;
  auto job = [&](size_t index, unsigned worker) {
    return runNodeTest(fs::path(flags.tests) / tests[index], flags.mode, scratch.folder(worker)).value_or("");
  };
  auto done = [&](size_t index, const std::string &reason) {
    const std::string &test = tests[index];
    const Exclusion *exclusion = findExclusion(exclusions, test, flags.mode);
    bool passes = reason.empty();
    results << test << '\t' << (passes ? "pass" : reason) << '\n';
    counts.passed += passes && !exclusion;
    counts.excluded += !passes && exclusion;
    if (passes == !exclusion) {
      if (flags.verbose)
        std::printf("%s %s%s%s\n", passes ? "pass    " : "excluded", test.c_str(), passes ? "" : ": ", reason.c_str());
      return;
    }
    ++counts.wrong;
    if (passes)
      std::printf("PASSES   %s, which the list excludes: take it out\n", test.c_str());
    else
      std::printf("FAIL     %s: %s\n", test.c_str(), reason.c_str());
    std::fflush(stdout);
  };
  if (!runInWorkers(tests.size(), options, job, done)) {
    std::fprintf(stderr, "transept-conformance: cannot start a process\n");
    return ExitInternal;
  }
  for (const std::string &name :
       flags.only.empty() ? unknownNames(exclusions, flags.tests) : std::vector<std::string>()) {
    ++counts.wrong;
    std::printf("UNKNOWN  %s is excluded, but there is no such folder\n", name.c_str());
  }
  std::printf("%u passed, %u failed, %u skipped\n", counts.passed, counts.wrong, counts.excluded);
  return counts.wrong > 0;
}

int run(const Flags &flags) {
  std::vector<std::string> tests = findTests(flags);
  Outcome<Exclusions> exclusions = flags.list.empty() ? Exclusions() : readExclusions(flags.list);
  if (tests.empty() || !exclusions) {
    std::fprintf(stderr, "transept-conformance: %s\n",
                 exclusions ? (flags.tests + ": holds no such tests; ./dev setup fetches them").c_str()
                            : exclusions.failure().message.c_str());
    return ExitFile;
  }
  if (!flags.page)
    return runTests(flags, tests, *exclusions);
  Outcome<std::string> page = conformancePage(flags.tests, tests, *exclusions);
  std::fputs(page ? page->c_str() : (page.failure().message + "\n").c_str(), page ? stdout : stderr);
  return page ? 0 : page.failure().exitCode;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Runs the ONNX node tests through import, all phases, native code and the runtime");
  app.footer(footer);
  Flags flags;
  app.add_option("--tests", flags.tests, "Folder of the tests")->required()->type_name("DIR");
  app.add_option("--exclusions", flags.list, "The list; without one, every folder must pass")->type_name("FILE");
  app.add_option("--only", flags.only, "Only folders whose name contains this")->type_name("WORD");
  app.add_option("--jobs", flags.jobs, "Processes")->check(CLI::Range(1u, 256u))->capture_default_str();
  app.add_option("--results", flags.results, "Write a line per folder: its name, and `pass` or why not")
      ->type_name("FILE.tsv");
  app.add_flag("-v,--verbose", flags.verbose, "Also name folders that are as listed");
  auto set = [&](Mode mode) { return [&flags, mode](int64_t) { flags.mode = mode; }; };
  CLI::Option *symbolic =
      app.add_flag_function("--symbolic", set(Mode::Symbolic), "Symbols in place of the sizes of inputs");
  app.add_flag_function("--unoptimized", set(Mode::Unoptimized), "Without the phases that fold and fuse")
      ->excludes(symbolic);
  app.add_flag_function("--vulkan", set(Mode::Vulkan), "As shaders, on the device vulkan:0")
      ->excludes(symbolic)
      ->excludes("--unoptimized");
  app.add_flag_function("--evaluated", set(Mode::Evaluated), "The graph as imported and as fused, by the interpreter")
      ->excludes(symbolic)
      ->excludes("--unoptimized")
      ->excludes("--vulkan");
  app.add_flag("--print-page", flags.page, "Print the table of operators instead of running anything");
  CLI11_PARSE(app, argc, argv);
  return run(flags);
}
