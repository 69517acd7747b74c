//===- CompileOptions.cpp - what a user asks of the compiler --------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/NarrowCaches.h"
#include "passes/Quantise.h"
#include "runtime/AtomicFile.h"
#include "tools/driver/Compile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::transept;

static Failure usage(const llvm::Twine &message) { return {ExitUsage, message.str(), {}}; }

/// "opus-export/" gives opus-export.tsp, "dir/model.onnx" model.tsp.
static std::string defaultOutput(const std::string &source) {
  SmallString<128> path(source);
  llvm::sys::fs::make_absolute(path);
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  StringRef name = llvm::sys::path::filename(path);
  if (!name.consume_back(".onnx"))
    name.consume_back(".mlir");
  return (name.empty() ? "model" : name.str()) + ".tsp";
}

/// Targets in any order, each at most once, become the name of their combination.
static std::optional<Failure> checkTargetNames(TargetOptions &target) {
  SmallVector<StringRef> names;
  StringRef(target.target).split(names, ',');
  bool cpu = false, vulkan = false;
  for (StringRef name : names) {
    bool *found = name == "cpu" ? &cpu : name == "vulkan" ? &vulkan : nullptr;
    if (!found || *found)
      return usage("target " + quoted(target.target) + " is not implemented; there are: cpu, vulkan, and cpu,vulkan");
    *found = true;
  }
  target.target = cpu && vulkan ? "cpu,vulkan" : cpu ? "cpu" : "vulkan";
  if (!cpu && !target.cpuLevels.empty())
    return usage("--cpu-levels needs the target cpu");
  return std::nullopt;
}

static std::optional<Failure> checkTarget(TargetOptions &target) {
  if (std::optional<Failure> failure = checkTargetNames(target))
    return failure;
  if (!llvm::is_contained(precisionNames, target.precision))
    return usage("there is no precision " + quoted(target.precision) +
                 "; there are: " + llvm::join(ArrayRef(precisionNames), ", "));
  if (!llvm::is_contained(cacheTypeNames, target.caches))
    return usage("there are no caches in " + quoted(target.caches) +
                 "; there are: " + llvm::join(ArrayRef(cacheTypeNames), ", "));
  if (target.caches != cacheTypeNames[0] && target.hasVulkan())
    return usage("--caches " + target.caches + " is for the target cpu: shaders keep caches in fp32");
  if (!target.keepFp32.empty() && target.precision == precisionNames[0])
    return usage("--keep-fp32 says what stays in fp32, where everything does");
  if (target.twoStageVocabulary && (target.hasVulkan() || target.precision != precisionNames[0]))
    return usage(
        "--two-stage-vocabulary is for fp32 and the target cpu; other precisions have a narrow matrix already");
  const std::vector<std::string> all = cpuLevelNames();
  llvm::StringSet<> wanted;
  for (const std::string &name : target.cpuLevels) {
    if (!llvm::is_contained(all, name))
      return usage("there is no CPU level " + quoted(name) + "; there are: " + llvm::join(all, ", "));
    wanted.insert(name);
  }
  if (!target.hasCpu())
    return std::nullopt;
  if (wanted.empty()) {
    target.cpuLevels = defaultTarget(target.precision).cpuLevels;
    return std::nullopt;
  }
  target.cpuLevels.clear();
  llvm::copy_if(all, std::back_inserter(target.cpuLevels), [&](const auto &name) { return wanted.contains(name); });
  return std::nullopt;
}

static std::optional<Failure> checkPhases(const CompileOptions &options) {
  for (auto [flag, name] : {std::pair("--start-from", &options.startFrom), {"--stop-after", &options.stopAfter}})
    if (!name->empty() && !findPhase(*name))
      return usage("there is no phase " + quoted(*name) + " (" + flag + "); there are: " + phaseNames());
  const Phase *start = findPhase(options.startFrom), *stop = findPhase(options.stopAfter);
  if (start == &phases().back())
    return usage("nothing comes after phase '" + start->name + "'");
  if (start && stop && start >= stop)
    return usage("phase '" + stop->name + "' is not after phase '" + start->name + "'");
  if (!start && StringRef(options.source).ends_with(".mlir"))
    return usage(printable(options.source) + ": is a dump; say after which phase with --start-from");
  if (options.dumpPasses && options.dumpDirectory.empty())
    return usage("--dump-ir-passes needs --dump-ir DIR");
  // Dumps replace the weights file beside them.
  bool same = false;
  if (start && !options.dumpDirectory.empty() &&
      !llvm::sys::fs::equivalent(llvm::sys::path::parent_path(options.source), options.dumpDirectory, same) && same)
    return usage("--dump-ir must name another directory than that of the source");
  return std::nullopt;
}

/// An output that cannot be written is no reason to compile first.
static std::optional<Failure> checkOutput(const CompileOptions &options) {
  bool same = false;
  if (!llvm::sys::fs::equivalent(options.source, options.output, same) && same)
    return usage("output and source are the same, " + quoted(options.output));
  auto file = ::transept::AtomicFile::create(options.output);
  if (!file.ok())
    return Failure{file.status().exitCode(), file.status().message(), {}};
  return std::nullopt;
}

std::optional<Failure> mlir::transept::completeOptions(CompileOptions &options) {
  if (options.source.empty())
    return usage("nothing to compile");
  if (std::optional<Failure> failure = checkTarget(options.target))
    return failure;
  if (std::optional<Failure> failure = checkPhases(options))
    return failure;
  if (options.kind != CompileOptions::ByPath && !options.startFrom.empty())
    return usage("a dump was imported already: --as-graph and --as-export say how to import");
  const bool writes = options.stopAfter.empty() || findPhase(options.stopAfter) == &phases().back();
  if (options.output.empty() && writes)
    options.output = defaultOutput(options.source);
  return writes ? checkOutput(options) : std::nullopt;
}
