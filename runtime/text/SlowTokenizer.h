// Tokenizers from the files of the checkpoints, without a tokenizer.json: PreTrainedTokenizer of transformers 4.57.
#ifndef TRANSEPT_RUNTIME_TEXT_SLOWTOKENIZER_H
#define TRANSEPT_RUNTIME_TEXT_SLOWTOKENIZER_H

#include "runtime/text/LanguageTable.h"
#include "runtime/text/TokenizerConfig.h"

#include <unordered_set>

namespace transept::text {

/// What a family of tokenizers does with text that holds no added token. Immutable, shared by threads.
class SlowModel {
public:
  using Tokens = std::vector<std::string>;
  using Specials = std::unordered_set<std::string>;
  virtual ~SlowModel() = default;

  virtual Status split(std::string_view part, Tokens &tokens) const = 0;
  /// Of the unknown token where the vocabulary does not have `token`.
  virtual int64_t idOf(const std::string &token) const = 0;
  virtual std::optional<std::string> tokenOf(int64_t id) const = 0;
  /// Ids of the vocabulary are below it.
  virtual int64_t size() const = 0;
  virtual std::string join(Tokens tokens, const Specials &specials) const = 0;
  /// The text as it is searched for added tokens.
  virtual Result<std::string> prepare(std::string_view text) const { return std::string(text); }
  /// Last changes to the tokens of a whole text.
  virtual void finish(Tokens &, const Specials &) const {}
};

/// How a family differs in what all of them do.
struct SlowTraits {
  std::map<std::string, AddedToken> named; // special tokens where the configuration has none, by their keys
  std::map<int64_t, AddedToken> added;     // added tokens the class brings
  bool addedGoFirst = true;                // those of the configuration replace the class's
  std::vector<AddedToken> additional;      // special tokens the class adds to those of the configuration
  std::vector<std::string> before, after;  // around a text: keys of special tokens, or tokens
  bool endOnce = false;                    // no end token behind a text that ends with one
  bool speech = false;                     // Whisper: prompts and times are no text, nothing between parts
  bool lowercase = false;                  // everything but tokens is lowercased before it is searched for tokens
  bool cleanUp = false;                    // where the configuration does not say
};

class SlowTokenizer final : public Tokenizer {
public:
  static Result<std::unique_ptr<Tokenizer>> create(std::unique_ptr<SlowModel> model, SlowTraits traits,
                                                   const TokenizerConfig &config);

  Result<std::vector<int64_t>> encodeSource(std::string_view text, const LanguagePair &languages) const override;
  Result<std::vector<int64_t>> encodeTarget(std::string_view text, const LanguagePair &languages) const override;
  std::string decode(Span<const int64_t> ids) const override;
  int64_t endOfSource() const override { return template_.behind() > 0 ? template_.parts.back() : -1; }
  int64_t sourceSuffix() const override { return template_.behind(); }
  Result<std::string> languageSettings(const LanguagePair &languages) const override;

private:
  SlowTokenizer(std::unique_ptr<SlowModel> model, SlowTraits traits)
      : model_(std::move(model)), traits_(std::move(traits)) {}
  Status addTokens(const TokenizerConfig &config);
  Status readTemplate(const TokenizerConfig &config);
  int64_t idOf(const std::string &token) const;
  std::vector<std::string> splitAdded(std::string_view text) const;
  Result<std::vector<int64_t>> encode(std::string_view text, const Template &around) const;

  std::unique_ptr<SlowModel> model_;
  SlowTraits traits_;
  std::unordered_map<std::string, std::pair<int64_t, AddedToken>> added_;
  std::unordered_map<int64_t, std::string> addedById_;
  SlowModel::Specials specials_;
  std::unordered_set<int64_t> specialIds_;
  Trie trie_, kept_; // of added tokens; of what is not lowercased
  Template template_;
  std::optional<LanguageTable> languages_;
  bool cleanUp_ = false;
};

/// The tokenizer of the class that the configuration names, from the files of `kind`: "sentencepiece",
/// "byte-level-bpe" or "wordpiece".
Result<std::unique_ptr<Tokenizer>> makeSlowTokenizer(const std::string &kind, const std::vector<TokenizerFile> &files,
                                                     const TokenizerConfig &config);

/// Models of the families.
using SlowModelResult = Result<std::unique_ptr<SlowModel>>;
SlowModelResult makeSlowSentencePiece(std::string_view model, std::string_view vocabulary,
                                      const TokenizerConfig &config);
SlowModelResult makeSlowByteLevel(std::string_view vocabulary, std::string_view merges, const TokenizerConfig &config);
SlowModelResult makeSlowBert(std::string_view vocabulary, const TokenizerConfig &config);

/// str.isspace() and str.strip() of Python.
bool isPythonSpace(char32_t c);
std::string_view stripLeft(std::string_view text);
std::string_view stripRight(std::string_view text);

} // namespace transept::text

#endif
