//===- Exclusions.h - which node tests need not pass, and why ---------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TESTS_CONFORMANCE_EXCLUSIONS_H
#define TRANSEPT_TESTS_CONFORMANCE_EXCLUSIONS_H

#include "ir/Diagnostic.h"
#include <map>

namespace mlir::transept {

/// How the tests are compiled.
enum class Mode {
  Plain,       ///< as they are
  Symbolic,    ///< with symbols for the sizes of inputs
  Unoptimized, ///< without the phases that only make a program faster
  Vulkan,      ///< as they are, for shaders, run on the device vulkan:0
  Evaluated,   ///< the imported and the fused graph, by the interpreter
};
constexpr Mode allModes[] = {Mode::Plain, Mode::Symbolic, Mode::Unoptimized, Mode::Vulkan, Mode::Evaluated};
/// Those in which the node tests of ONNX are run; the others are for folders of our own.
constexpr Mode publishedModes[] = {Mode::Plain, Mode::Symbolic, Mode::Unoptimized, Mode::Vulkan};
llvm::StringRef modeName(Mode mode);

struct Exclusion {
  enum Kind {
    Meaningless, ///< the test has no meaning for a compiler of tensor programs
    Erratum,     ///< what it expects contradicts the standard
    NotYet,      ///< work that is left
  } kind = NotYet;
  /// Modes in which it may fail; empty: in all.
  std::vector<Mode> modes;
  std::string reason;
};

/// By folder name. At most `mostFinal` of them are meaningless or errata.
using Exclusions = std::map<std::string, Exclusion>;
constexpr size_t mostFinal = 100;

/// Reads the list: a line is `FOLDER CLASS[@MODE,MODE] REASON`, CLASS is `meaningless`, `erratum` or `not-yet`; #
/// begins a comment.
Outcome<Exclusions> readExclusions(const std::string &path);

/// Null where the test must pass in this mode.
const Exclusion *findExclusion(const Exclusions &exclusions, const std::string &test, Mode mode);

} // namespace mlir::transept

#endif // TRANSEPT_TESTS_CONFORMANCE_EXCLUSIONS_H
