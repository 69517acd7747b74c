//===- Table.h - the published table of operators ---------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TESTS_CONFORMANCE_TABLE_H
#define TRANSEPT_TESTS_CONFORMANCE_TABLE_H

#include "tests/conformance/Exclusions.h"
#include <filesystem>

namespace mlir::transept {

/// The page in Markdown: per operator and opset how many of the folders `tests` under `root` pass, and why others do
/// not.
Outcome<std::string> conformancePage(const std::filesystem::path &root, const std::vector<std::string> &tests,
                                     const Exclusions &exclusions);

} // namespace mlir::transept

#endif // TRANSEPT_TESTS_CONFORMANCE_TABLE_H
