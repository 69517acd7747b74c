// tokenizer.json, the format of the Hugging Face tokenizers library.
#ifndef TRANSEPT_RUNTIME_TEXT_FASTTOKENIZER_H
#define TRANSEPT_RUNTIME_TEXT_FASTTOKENIZER_H

#include "runtime/text/AddedTokens.h"
#include "runtime/text/Decoder.h"
#include "runtime/text/LanguageTable.h"
#include "runtime/text/TokenModel.h"
#include "runtime/text/TokenizerConfig.h"

namespace transept::text {

/// PreTrainedTokenizerFast of transformers 4.57 over tokenizers 0.22. The sections "truncation" and "padding" are
/// defaults of calls that ask for them, as there; lengths are the runtime's business.
class FastTokenizer final : public Tokenizer {
public:
  static Result<std::unique_ptr<Tokenizer>> create(std::string_view tokenizerJson, const TokenizerConfig &config);

  Result<std::vector<int64_t>> encodeSource(std::string_view text, const LanguagePair &languages) const override;
  Result<std::vector<int64_t>> encodeTarget(std::string_view text, const LanguagePair &languages) const override;
  std::string decode(Span<const int64_t> ids) const override;
  int64_t endOfSource() const override { return template_.behind() > 0 ? template_.parts.back() : -1; }
  int64_t sourceSuffix() const override { return template_.behind(); }
  Result<std::string> languageSettings(const LanguagePair &languages) const override;

private:
  Status read(const nlohmann::json &spec, const TokenizerConfig &config);
  Status addTokens(const nlohmann::json *list, const TokenizerConfig &config);
  Status checkEnds(const TokenizerConfig &config) const;
  Result<std::vector<int64_t>> encode(std::string_view text, const Template &around) const;

  std::shared_ptr<const TokenModel> model_;
  std::unique_ptr<AddedTokens> added_;
  std::shared_ptr<const PreTokenizer> preTokenizer_;
  std::shared_ptr<const Decoder> decoder_;
  Template template_;
  std::optional<LanguageTable> languages_;
  bool cleanUp_ = false;
  bool speech_ = false; // of Whisper: prompts and times are no text
};

/// A text of Whisper without "<|0.00|>".
std::string withoutTimes(std::string_view text);

} // namespace transept::text

#endif
