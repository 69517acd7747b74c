//===- RunTest.h - from a node test's model to a comparison of its outputs --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TESTS_CONFORMANCE_RUNTEST_H
#define TRANSEPT_TESTS_CONFORMANCE_RUNTEST_H

#include "tests/conformance/Exclusions.h"
#include <filesystem>
#include <optional>

namespace mlir::transept {

/// Compiles the model of a folder for the best level of this machine or for Vulkan, loads the artifact, runs all data
/// sets and compares types, shapes and elements. `scratch` is a folder of the caller's own. Says what is wrong, in one
/// line.
std::optional<std::string> runNodeTest(const std::filesystem::path &folder, Mode mode,
                                       const std::filesystem::path &scratch);

} // namespace mlir::transept

#endif // TRANSEPT_TESTS_CONFORMANCE_RUNTEST_H
