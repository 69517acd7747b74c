// The tokenizer of Marian exports: a SentencePiece model for each side, ids through one vocabulary.
#ifndef TRANSEPT_RUNTIME_TEXT_SENTENCEPIECEPAIR_H
#define TRANSEPT_RUNTIME_TEXT_SENTENCEPIECEPAIR_H

#include "runtime/text/Tokenizer.h"

#include <sentencepiece_processor.h>

#include <unordered_map>

namespace transept {

/// MarianTokenizer of transformers 4.57 (which does not normalise punctuation).
class SentencePiecePair final : public Tokenizer {
public:
  /// Files source.spm, target.spm, vocab.json and, with separate_vocabs, target_vocab.json.
  static Result<std::unique_ptr<Tokenizer>> create(const std::vector<TokenizerFile> &files,
                                                   const std::string &configJson);

  /// The target language is that of a tag in front of the source, as in ">>fra<<".
  Result<std::vector<int64_t>> encodeSource(std::string_view text, const LanguagePair &languages) const override;
  Result<std::vector<int64_t>> encodeTarget(std::string_view text, const LanguagePair &) const override {
    return encode(text, target_, targetIds_);
  }
  Result<std::string> languageSettings(const LanguagePair &languages) const override;
  std::string decode(Span<const int64_t> ids) const override;
  int64_t endOfSource() const override { return end_; }

private:
  using Vocabulary = std::unordered_map<std::string, int64_t>;
  using Processor = sentencepiece::SentencePieceProcessor;

  Status readConfig(const std::string &json);
  Result<std::vector<int64_t>> encode(std::string_view text, const Processor &processor, const Vocabulary &ids) const;
  Result<int64_t> tagOf(const std::string &language) const;
  /// A token that texts may spell out, at the beginning of `text`: the longest one. Empty where there is none.
  std::string_view addedToken(std::string_view text) const;
  std::string decodePieces(const std::vector<std::string> &pieces) const;

  Processor source_, target_;
  Vocabulary sourceIds_, targetIds_;
  std::vector<std::string> pieces_;             // of the target side, by id; empty: no such id
  std::unordered_map<std::string, bool> added_; // added tokens; true: special, left out of decoded text
  std::string firstBytes_;                      // bytes with which an added token can begin
  std::string unknownPiece_ = "<unk>", endPiece_ = "</s>", padPiece_ = "<pad>";
  int64_t unknown_ = 0, end_ = 0;
  bool cleanUp_ = false;
};

} // namespace transept

#endif
