//===- Tokenizer.cpp - which tokenizer an export has -----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Tokenizer.h"
#include "frontend/FileBytes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir::transept;

Outcome<TokenizerFiles> mlir::transept::findTokenizer(const std::string &directory) {
  // Sorted: the order in which they are listed.
  static constexpr llvm::StringRef names[] = {"added_tokens.json",
                                              "merges.txt",
                                              "sentencepiece.bpe.model",
                                              "source.spm",
                                              "special_tokens_map.json",
                                              "spiece.model",
                                              "target.spm",
                                              "target_vocab.json",
                                              "tokenizer.json",
                                              "tokenizer.model",
                                              "tokenizer_config.json",
                                              "vocab.json",
                                              "vocab.txt"};
  constexpr uint64_t limit = 256u << 20;
  TokenizerFiles tokenizer;
  for (llvm::StringRef name : names) {
    llvm::SmallString<256> path(directory);
    llvm::sys::path::append(path, name);
    if (!llvm::sys::fs::exists(path))
      continue;
    Outcome<std::string> bytes = readWholeFile(path.str().str(), limit);
    if (!bytes)
      return std::move(bytes.failure());
    tokenizer.files.push_back({name.str(), path.str().str(), sha256(*bytes)});
  }
  auto has = [&](llvm::StringRef name) {
    return llvm::any_of(tokenizer.files, [&](const TokenizerFiles::File &file) { return file.name == name; });
  };
  // Files of the checkpoint can lie beside the tokenizer.json that was made from them.
  if (has("source.spm") && has("target.spm") && has("vocab.json"))
    tokenizer.kind = "marian";
  else if (has("tokenizer.json"))
    tokenizer.kind = "tokenizer.json";
  else if (has("spiece.model") || has("sentencepiece.bpe.model") || has("tokenizer.model"))
    tokenizer.kind = "sentencepiece";
  else if (has("vocab.json") && has("merges.txt"))
    tokenizer.kind = "byte-level-bpe";
  else if (has("vocab.txt"))
    tokenizer.kind = "wordpiece";
  return tokenizer;
}
