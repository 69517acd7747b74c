//===- Diagnostic.h - failures that reach the user --------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries never print: they return a Failure, and the tool prints its one line and exits with its code.

#ifndef TRANSEPT_IR_DIAGNOSTIC_H
#define TRANSEPT_IR_DIAGNOSTIC_H

#include "llvm/ADT/StringRef.h"
#include <cassert>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mlir::transept {

/// Exit codes of the tools.
enum ExitCode : int {
  ExitOk = 0,
  ExitUsage = 2,
  ExitInvalidModel = 3,
  ExitUnsupported = 4,
  ExitLimit = 5,
  ExitFile = 6,
  ExitArtifact = 7,
  ExitInputs = 8,
  ExitMemory = 9,
  ExitDevice = 10,
  ExitInternal = 70,
};

/// What went wrong: one line without a final full stop, and what a report lists below it.
struct Failure {
  int exitCode = ExitInternal;
  std::string message;
  std::vector<std::string> details;
};

/// A value or a Failure.
template <typename T> class [[nodiscard]] Outcome {
public:
  Outcome(T value) : state(std::move(value)) {}
  Outcome(Failure failure) : state(std::move(failure)) {}

  explicit operator bool() const { return std::holds_alternative<T>(state); }
  T &operator*() { return std::get<T>(state); }
  const T &operator*() const { return std::get<T>(state); }
  T *operator->() { return &std::get<T>(state); }
  const T *operator->() const { return &std::get<T>(state); }
  /// Only where there is no value.
  Failure &failure() { return std::get<Failure>(state); }
  const Failure &failure() const { return std::get<Failure>(state); }

private:
  std::variant<T, Failure> state;
};

/// Text from a file, fit for one line of a terminal: control characters and invalid UTF-8 as \xNN, cut after `limit`
/// bytes.
std::string printable(llvm::StringRef text, size_t limit = 160);
/// The same between single quotes.
std::string quoted(llvm::StringRef text, size_t limit = 160);

} // namespace mlir::transept

#endif // TRANSEPT_IR_DIAGNOSTIC_H
