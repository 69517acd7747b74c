//===- TextScores.cpp - texts against their references ------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/TextScores.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

using namespace mlir::transept;
using llvm::ArrayRef;
using llvm::StringRef;

using Words = llvm::SmallVector<StringRef>;

static Words wordsOf(StringRef text) {
  Words words;
  llvm::SplitString(text, words, " \t\n\v\f\r");
  return words;
}

/// Levenshtein's distance, in words.
static int64_t editDistance(const Words &from, const Words &to) {
  std::vector<int64_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (StringRef word : from) {
    int64_t diagonal = row[0]++;
    for (size_t i = 0; i < to.size(); ++i) {
      int64_t substituted = diagonal + (word != to[i]);
      diagonal = row[i + 1];
      row[i + 1] = std::min({row[i] + 1, row[i + 1] + 1, substituted});
    }
  }
  return row.back();
}

using Counts = std::map<std::vector<StringRef>, int64_t>;

static Counts countRuns(ArrayRef<StringRef> words, size_t length) {
  Counts counts;
  for (size_t i = 0; i + length <= words.size(); ++i)
    ++counts[words.slice(i, length).vec()];
  return counts;
}

void TextScores::add(StringRef text, StringRef reference) {
  const Words found = wordsOf(text), wanted = wordsOf(reference);
  ++count;
  edits += editDistance(found, wanted);
  words += found.size();
  referenceWords += wanted.size();
  for (size_t length = 1; length <= longest; ++length) {
    const Counts there = countRuns(wanted, length);
    for (const auto &[run, times] : countRuns(found, length)) {
      runs[length - 1] += times;
      if (auto same = there.find(run); same != there.end())
        matches[length - 1] += std::min(times, same->second);
    }
  }
}

double TextScores::wordErrorRate() const { return referenceWords ? static_cast<double>(edits) / referenceWords : 0; }

double TextScores::bleu() const {
  double logPrecision = 0;
  for (size_t i = 0; i < longest; ++i) {
    if (matches[i] == 0)
      return 0;
    logPrecision += std::log(static_cast<double>(matches[i]) / runs[i]) / longest;
  }
  double brevity = std::min(0.0, 1 - static_cast<double>(referenceWords) / words);
  return 100 * std::exp(brevity + logPrecision);
}
