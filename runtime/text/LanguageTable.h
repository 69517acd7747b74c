// Languages of a translation model, and where their tokens stand.
#ifndef TRANSEPT_RUNTIME_TEXT_LANGUAGETABLE_H
#define TRANSEPT_RUNTIME_TEXT_LANGUAGETABLE_H

#include "runtime/text/PostProcessor.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/TokenizerConfig.h"

#include <functional>
#include <map>
#include <optional>

namespace transept::text {

/// The codes of "m2m100", "wmt21", "mbart", "mbart50" or "nllb", in the order of their ids; none for another name.
std::vector<std::string> languageCodes(const std::string &set);

class LanguageTable {
public:
  /// Id of a token, where the tokenizer has it.
  using Find = std::function<std::optional<int64_t>(const std::string &token)>;

  /// Nothing for a class of tokenizers without languages. `end` is the end token.
  static Result<std::optional<LanguageTable>> create(const TokenizerConfig &config, int64_t end, const Find &find);

  /// What stands around a source or a target text in a language; an empty code is the default one.
  Result<Template> around(bool target, const std::string &code) const;
  /// As Tokenizer::languageSettings().
  Result<std::string> settings(const LanguagePair &languages) const;

private:
  Result<int64_t> find(const char *key, const std::string &code) const;

  std::map<std::string, int64_t> ids_;
  std::string source_, target_; // defaults; no target: empty
  int64_t end_ = -1;
  bool behind_ = false;     // the language stands behind the end token instead of in front of the text
  bool startsWith_ = false; // an output starts with its language in place of the model's start token
};

/// "language 'x' is unknown; …" with all that are known.
Status unknownLanguage(const std::string &what, const std::string &code, const std::vector<std::string> &known);

} // namespace transept::text

#endif
