//===- Accuracy.h - what a precision costs ------------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_ACCURACY_H
#define TRANSEPT_TOOLS_DRIVER_ACCURACY_H

#include "ir/Diagnostic.h"
#include "tools/driver/TextScores.h"
#include <cstdint>
#include <string>

namespace mlir::transept {

/// A program against the same one in fp32. Logits are compared token by token with the outputs given, or where none
/// are, with those that fp32 finds greedily.
struct AccuracyReport {
  int64_t inputs = 0, tokens = 0;
  /// Of the distribution in fp32 from the other one, in nats per token.
  double meanDivergence = 0, maxDivergence = 0;
  /// Of logits; and the standard deviation of those in fp32.
  double rmsError = 0, maxError = 0, deviation = 0;
  /// Tokens whose most likely successor is the same, and inputs whose greedy output is.
  int64_t sameTokens = 0, sameOutputs = 0;
  /// Greedy outputs against the targets that are given as text, in fp32 and in the other precision.
  TextScores exactTexts, otherTexts;
};

/// The word that stands for a few sentences that come with the compiler.
constexpr const char *bundledInputs = "bundled";

/// Runs both artifacts on the lines of a file, requests as `transept score` takes them, "target" being optional, or
/// plain texts. Fails where there is none, or an artifact has no entry for teacher forcing.
Outcome<AccuracyReport> measureAccuracy(const std::string &reference, const std::string &candidate,
                                        const std::string &inputs);

/// "divergence 0.0012 nats per token (largest 0.3); …", one line.
std::string accuracyAsText(const AccuracyReport &report);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_ACCURACY_H
