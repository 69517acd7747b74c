//===- TextScores.h - texts against their references ---------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_TEXTSCORES_H
#define TRANSEPT_TOOLS_DRIVER_TEXTSCORES_H

#include "llvm/ADT/StringRef.h"
#include <array>
#include <cstdint>

namespace mlir::transept {

/// Word error rate and BLEU over pairs of texts. Words are what white space separates, as they are written.
class TextScores {
public:
  void add(llvm::StringRef text, llvm::StringRef reference);

  int64_t pairs() const { return count; }
  /// Insertions, deletions and substitutions per word of the references; 0 where they have none.
  double wordErrorRate() const;
  /// Between 0 and 100: of the whole corpus, up to four words, with the brevity penalty and without smoothing (Papineni
  /// et al. 2002, section 2.3).
  double bleu() const;

private:
  static constexpr size_t longest = 4;
  int64_t count = 0, edits = 0, words = 0, referenceWords = 0;
  /// Of runs of 1 to 4 words of the texts: how many there are, and how many their reference has too.
  std::array<int64_t, longest> runs{}, matches{};
};

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_TEXTSCORES_H
