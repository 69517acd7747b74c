//===- Exclusions.cpp - which node tests need not pass, and why -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tests/conformance/Exclusions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include <fstream>
#include <optional>

using namespace mlir::transept;
using llvm::StringRef;

namespace {
std::optional<Exclusion> parseClass(StringRef text) {
  Exclusion exclusion;
  auto [name, modes] = text.split('@');
  if (name == "meaningless")
    exclusion.kind = Exclusion::Meaningless;
  else if (name == "erratum")
    exclusion.kind = Exclusion::Erratum;
  else if (name != "not-yet")
    return std::nullopt;
  llvm::SmallVector<StringRef> names;
  modes.split(names, ',', -1, /*KeepEmpty=*/false);
  for (StringRef wanted : names) {
    const Mode *mode = llvm::find_if(allModes, [&](Mode candidate) { return modeName(candidate) == wanted; });
    if (mode == std::end(allModes))
      return std::nullopt;
    exclusion.modes.push_back(*mode);
  }
  return exclusion;
}
} // namespace

StringRef mlir::transept::modeName(Mode mode) {
  switch (mode) {
  case Mode::Plain:
    return "plain";
  case Mode::Symbolic:
    return "symbolic";
  case Mode::Unoptimized:
    return "unoptimized";
  case Mode::Vulkan:
    return "vulkan";
  case Mode::Evaluated:
    return "evaluated";
  }
  return {};
}

Outcome<Exclusions> mlir::transept::readExclusions(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return Failure{ExitFile, path + ": cannot be read", {}};
  Exclusions exclusions;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    StringRef line = StringRef(text).trim();
    if (line.empty() || line.starts_with("#"))
      continue;
    auto fail = [&](const llvm::Twine &what) {
      return Failure{ExitUsage, path + ":" + std::to_string(number) + ": " + what.str(), {}};
    };
    auto [test, rest] = line.split(' ');
    auto [kind, reason] = rest.ltrim().split(' ');
    std::optional<Exclusion> exclusion = parseClass(kind);
    if (!exclusion || reason.trim().empty())
      return fail("is not FOLDER meaningless|erratum|not-yet[@MODE,MODE] REASON");
    exclusion->reason = reason.trim().str();
    if (!exclusions.try_emplace(test.str(), *exclusion).second)
      return fail("excludes " + test + " again");
  }
  auto isFinal = [](const auto &entry) { return entry.second.kind != Exclusion::NotYet; };
  if (size_t count = llvm::count_if(exclusions, isFinal); count > mostFinal)
    return Failure{ExitUsage,
                   path + ": excludes " + std::to_string(count) + " tests as meaningless or erratum, more than " +
                       std::to_string(mostFinal),
                   {}};
  return exclusions;
}

const Exclusion *mlir::transept::findExclusion(const Exclusions &exclusions, const std::string &test, Mode mode) {
  auto found = exclusions.find(test);
  if (found == exclusions.end())
    return nullptr;
  const Exclusion &exclusion = found->second;
  return exclusion.modes.empty() || llvm::is_contained(exclusion.modes, mode) ? &exclusion : nullptr;
}
