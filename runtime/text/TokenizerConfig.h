// tokenizer_config.json, with the meaning it has in transformers 4.57.
#ifndef TRANSEPT_RUNTIME_TEXT_TOKENIZERCONFIG_H
#define TRANSEPT_RUNTIME_TEXT_TOKENIZERCONFIG_H

#include "runtime/text/AddedTokens.h"

#include <map>
#include <optional>

namespace transept::text {

struct TokenizerConfig {
  std::string tokenizerClass;                // without "Fast"; empty: not said
  std::map<int64_t, AddedToken> addedTokens; // added_tokens_decoder
  std::map<std::string, AddedToken> named;   // by their keys: "eos_token"; null and absent ones are not here
  std::set<std::string> absent;              // keys of tokens that are null
  std::vector<AddedToken> additional;        // additional_special_tokens
  bool hasAdditional = false;

  std::optional<bool> cleanUpSpaces, addPrefixSpace, legacy, addBosToken, addEosToken, stripAccents, doLowerCase;
  bool legacyBehaviour = false, tokenizeChineseChars = true, predictTimestamps = false;
  int64_t extraIds = 100, offset = 103, madeUpWords = 8;
  std::string sourceLanguage, targetLanguage; // src_lang, tgt_lang
  std::string languageCodes = "m2m100", language, task;

  /// The token under a key, or `missing` where the key is absent; empty where it is null.
  std::string contentOf(const std::string &key, const std::string &missing) const;
  /// All special tokens in the order of transformers.
  std::vector<AddedToken> specials() const;

  /// An empty text is no configuration. Code::Unsupported for a key that is not known, by name.
  static Result<TokenizerConfig> parse(const std::string &json);
};

/// Keys of named tokens, in the order of transformers.
const std::vector<std::string> &namedTokenKeys();

} // namespace transept::text

#endif
