//===- Table.cpp - the published table of operators -----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tests/conformance/Table.h"
#include "onnx/onnx_pb.h"
#include "tests/conformance/NodeTest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace mlir::transept;
namespace fs = std::filesystem;

namespace {

struct Row {
  std::set<int64_t> opsets;
  unsigned tests = 0, passed[std::size(publishedModes)] = {}; ///< passed: in each mode
  std::map<std::string, unsigned> reasons;
};

std::string reasonOf(const Exclusion &exclusion) {
  std::string modes;
  for (Mode mode : exclusion.modes)
    modes += (modes.empty() ? " (" : ", ") + modeName(mode).str();
  return (exclusion.kind == Exclusion::NotYet ? "not yet: " : "") + exclusion.reason + modes +
         (modes.empty() ? "" : ")");
}

} // namespace

Outcome<std::string> mlir::transept::conformancePage(const fs::path &root, const std::vector<std::string> &tests,
                                                     const Exclusions &exclusions) {
  std::map<std::string, Row> rows;
  unsigned passed[std::size(publishedModes)] = {}, meaningless = 0;
  for (const std::string &test : tests) {
    Outcome<onnx::ModelProto> model = readModel(originalOf(root / test) / "model.onnx");
    if (!model)
      return std::move(model.failure());
    Row &row = rows[llvm::join(operatorsOf(*model), ", ")];
    row.opsets.insert(opsetOf(*model));
    ++row.tests;
    for (auto [i, mode] : llvm::enumerate(publishedModes)) {
      bool passes = !findExclusion(exclusions, test, mode);
      row.passed[i] += passes;
      passed[i] += passes;
    }
    auto exclusion = exclusions.find(test);
    if (exclusion == exclusions.end())
      continue;
    ++row.reasons[reasonOf(exclusion->second)];
    meaningless += exclusion->second.kind == Exclusion::Meaningless;
  }
  std::string counts, columns;
  for (auto [i, mode] : llvm::enumerate(publishedModes)) {
    counts += (i == 0 ? "" : ", ") + std::to_string(passed[i]) + " " + modeName(mode).str();
    columns += " " + modeName(mode).str() + " |";
  }
  std::string page = "# ONNX conformance\n\nThe node tests of ONNX 1.21 as `transept-conformance` runs them: " +
                     std::to_string(tests.size()) + " folders. " + std::to_string(meaningless) +
                     " have no meaning for a compiler of tensor\nprograms. Passed: " + counts +
                     " (symbols for sizes; without the phases that\noptimise; as shaders on a software device). "
                     "`tests/conformance/exclusions.txt` is the list by folder.\n\n| operator | opset | folders |" +
                     columns + " others |\n|---|---|---|---|---|---|---|---|\n";
  for (const auto &[title, row] : rows) {
    std::string opsets, reasons;
    for (int64_t opset : row.opsets)
      opsets += (opsets.empty() ? "" : ", ") + std::to_string(opset);
    for (const auto &[reason, count] : row.reasons)
      reasons += (reasons.empty() ? "" : "; ") + std::to_string(count) + " " + reason;
    page += "| " + title + " | " + opsets + " | " + std::to_string(row.tests);
    for (unsigned count : row.passed)
      page += " | " + std::to_string(count);
    page += " | " + reasons + " |\n";
  }
  return page;
}
