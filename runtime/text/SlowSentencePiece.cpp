// Tokenizers with one SentencePiece model: T5, Pegasus, mBART, NLLB, M2M100, XLM-RoBERTa.

#include "runtime/text/SlowTokenizer.h"
#include "runtime/text/TokenModel.h"
#include "runtime/text/Unicode.h"

#include <sentencepiece_processor.h>

namespace transept::text {

namespace {

constexpr std::string_view metaSpace = "\xE2\x96\x81"; // U+2581 stands for a space inside pieces

/// Pieces of the model have their own ids, moved by an offset where others come first.
class SentencePieceModel : public SlowModel {
public:
  Status load(std::string_view bytes) {
    auto status = processor_.LoadFromSerializedProto({bytes.data(), bytes.size()});
    return status.ok() ? Status()
                       : Status(Code::ArtifactRefused, "is no SentencePiece model: " + printable(status.ToString()));
  }

  Status split(std::string_view part, Tokens &tokens) const override {
    Tokens pieces;
    if (auto status = processor_.Encode({part.data(), part.size()}, &pieces); !status.ok())
      return {Code::InvalidInput, "SentencePiece cannot split the text: " + printable(status.ToString())};
    tokens.insert(tokens.end(), std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
    return {};
  }
  int64_t idOf(const std::string &token) const override { return processor_.PieceToId(token); }
  std::optional<std::string> tokenOf(int64_t id) const override { return piece(id); }
  int64_t size() const override { return processor_.GetPieceSize(); }
  std::string join(Tokens tokens, const Specials &) const override {
    std::string text = decode(tokens);
    return std::string(stripLeft(stripRight(text)));
  }

protected:
  std::optional<std::string> piece(int64_t id) const {
    if (id < 0 || id >= processor_.GetPieceSize())
      return std::nullopt;
    return processor_.IdToPiece(static_cast<int>(id));
  }
  std::string decode(const Tokens &tokens) const {
    std::string text;
    return processor_.Decode(tokens, &text).ok() ? text : "";
  }

  sentencepiece::SentencePieceProcessor processor_;
};

class T5 final : public SentencePieceModel {
public:
  T5(bool legacy, bool prefixSpace, std::string unknown)
      : legacy_(legacy), prefixSpace_(prefixSpace), unknown_(std::move(unknown)) {}

  Status loadT5(std::string_view bytes) {
    std::string own(bytes);
    // A second normalizer_spec {add_dummy_prefix: false} is merged into the first.
    if (!legacy_)
      own += std::string_view("\x1A\x02\x18\x00", 4);
    TRANSEPT_TRY(load(own));
    Tokens pieces;
    TRANSEPT_TRY(SentencePieceModel::split(unknown_, pieces));
    unknownLength_ = pieces.size();
    return {};
  }
  Result<std::string> prepare(std::string_view text) const override {
    if (legacy_ || text.empty())
      return std::string(text);
    return (prefixSpace_ ? std::string(metaSpace) : "") + replaceAll(text, metaSpace, " ");
  }
  Status split(std::string_view part, Tokens &tokens) const override {
    bool begins = part.substr(0, metaSpace.size()) == metaSpace || part.substr(0, 1) == " ";
    if (legacy_ || !begins)
      return SentencePieceModel::split(part, tokens);
    // Behind the unknown token, a space in front stays.
    Tokens pieces;
    TRANSEPT_TRY(SentencePieceModel::split(unknown_ + std::string(part), pieces));
    size_t skipped = pieces.size() >= unknownLength_ ? unknownLength_ : 0;
    tokens.insert(tokens.end(), pieces.begin() + static_cast<std::ptrdiff_t>(skipped), pieces.end());
    return {};
  }
  void finish(Tokens &tokens, const Specials &specials) const override {
    if (!legacy_ && tokens.size() > 1 && tokens[0] == metaSpace && specials.count(tokens[1]))
      tokens.erase(tokens.begin());
  }
  std::string join(Tokens tokens, const Specials &specials) const override {
    if (prefixSpace_ && tokens[0].compare(0, metaSpace.size(), metaSpace) == 0)
      tokens[0].erase(0, metaSpace.size());
    return SentencePieceModel::join(std::move(tokens), specials);
  }

private:
  bool legacy_, prefixSpace_;
  std::string unknown_;
  size_t unknownLength_ = 0;
};

class Pegasus final : public SentencePieceModel {
public:
  explicit Pegasus(int64_t offset) : offset_(offset) {}
  int64_t idOf(const std::string &token) const override { return processor_.PieceToId(token) + offset_; }
  std::optional<std::string> tokenOf(int64_t id) const override { return piece(id < offset_ ? id : id - offset_); }
  int64_t size() const override { return processor_.GetPieceSize() + offset_; }

private:
  int64_t offset_;
};

/// The numbering of fairseq: four tokens, the pieces from the third on, then the languages and a mask.
class Fairseq final : public SentencePieceModel {
public:
  Fairseq(const std::vector<std::string> &codes, bool mask, bool plainJoin)
      : codes_(codes), mask_(mask), plainJoin_(plainJoin) {}

  void number() {
    Tokens first = {"<s>", "<pad>", "</s>", "<unk>"};
    for (size_t i = 0; i < first.size(); ++i)
      special_.add(first[i], static_cast<int64_t>(i));
    int64_t next = processor_.GetPieceSize() + 1;
    for (const std::string &code : codes_)
      special_.add(code, next++);
    if (mask_)
      special_.add("<mask>", next++);
    size_ = next;
  }
  int64_t idOf(const std::string &token) const override {
    if (std::optional<int64_t> id = special_.find(token))
      return *id;
    int piece = processor_.PieceToId(token);
    return piece ? piece + 1 : 3;
  }
  std::optional<std::string> tokenOf(int64_t id) const override {
    if (std::optional<std::string_view> token = special_.token(id))
      return std::string(*token);
    return piece(id - 1);
  }
  int64_t size() const override { return size_; }
  std::string join(Tokens tokens, const Specials &specials) const override {
    if (!plainJoin_)
      return SentencePieceModel::join(std::move(tokens), specials);
    std::string text;
    for (const std::string &token : tokens)
      text += token;
    text = replaceAll(text, metaSpace, " ");
    return std::string(stripLeft(stripRight(text)));
  }

private:
  std::vector<std::string> codes_;
  bool mask_, plainJoin_;
  Vocabulary special_;
  int64_t size_ = 0;
};

/// Ids from a vocabulary, languages behind it.
class M2M100 final : public SentencePieceModel {
public:
  M2M100(Vocabulary vocabulary, const std::vector<std::string> &codes, const std::string &unknown)
      : vocabulary_(std::move(vocabulary)), unknown_(unknown) {
    auto next = static_cast<int64_t>(vocabulary_.size());
    for (const std::string &code : codes)
      languages_.add("__" + code + "__", next++);
  }
  Status check() const {
    return vocabulary_.find(unknown_)
               ? Status()
               : Status(Code::ArtifactRefused, "the tokenizer's vocabulary lacks '" + printable(unknown_, 60) + "'");
  }
  int64_t idOf(const std::string &token) const override {
    if (std::optional<int64_t> id = languages_.find(token))
      return *id;
    std::optional<int64_t> id = vocabulary_.find(token);
    return id ? *id : *vocabulary_.find(unknown_);
  }
  std::optional<std::string> tokenOf(int64_t id) const override {
    if (std::optional<std::string_view> token = languages_.token(id))
      return std::string(*token);
    return std::string(vocabulary_.token(id).value_or(unknown_));
  }
  int64_t size() const override { return static_cast<int64_t>(vocabulary_.size()); }

private:
  Vocabulary vocabulary_, languages_;
  std::string unknown_;
};

} // namespace

SlowModelResult makeSlowSentencePiece(std::string_view bytes, std::string_view vocabulary,
                                      const TokenizerConfig &config) {
  const std::string &name = config.tokenizerClass;
  if (name == "T5Tokenizer") {
    auto model = std::make_unique<T5>(config.legacy.value_or(true), config.addPrefixSpace.value_or(true),
                                      config.contentOf("unk_token", "<unk>"));
    TRANSEPT_TRY(model->loadT5(bytes));
    return std::unique_ptr<SlowModel>(std::move(model));
  }
  std::unique_ptr<SentencePieceModel> model;
  Fairseq *numbered = nullptr;
  if (name == "PegasusTokenizer") {
    model = std::make_unique<Pegasus>(config.offset);
  } else if (name == "M2M100Tokenizer") {
    TRANSEPT_ASSIGN(Vocabulary words, readVocabulary(vocabulary, "'vocab.json'"));
    auto made = std::make_unique<M2M100>(std::move(words), languageCodes(config.languageCodes),
                                         config.contentOf("unk_token", "<unk>"));
    TRANSEPT_TRY(made->check());
    model = std::move(made);
  } else {
    // Languages of NLLB, and its mask, are added tokens.
    auto made = std::make_unique<Fairseq>(languageCodes(name == "MBartTokenizer"     ? "mbart"
                                                        : name == "MBart50Tokenizer" ? "mbart50"
                                                                                     : ""),
                                          name != "NllbTokenizer", name != "MBart50Tokenizer");
    numbered = made.get();
    model = std::move(made);
  }
  TRANSEPT_TRY(model->load(bytes));
  if (numbered)
    numbered->number();
  return std::unique_ptr<SlowModel>(std::move(model));
}

} // namespace transept::text
