//===- Tokenizer.h - which tokenizer an export has --------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_TOKENIZER_H
#define TRANSEPT_FRONTEND_TOKENIZER_H

#include "ir/Diagnostic.h"

namespace mlir::transept {

struct TokenizerFiles {
  struct File {
    std::string name, path, sha256;
  };
  /// "marian" (two SentencePiece models and a vocabulary), "tokenizer.json", "sentencepiece" (one model),
  /// "byte-level-bpe" (vocab.json and merges.txt), "wordpiece" (vocab.txt), or "none": ids only.
  std::string kind = "none";
  std::vector<File> files; ///< by name
};

Outcome<TokenizerFiles> findTokenizer(const std::string &directory);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_TOKENIZER_H
