// BertTokenizer: vocab.txt.

#include "runtime/text/PreTokenizer.h"
#include "runtime/text/SlowTokenizer.h"
#include "runtime/text/TokenModel.h"
#include "runtime/text/Unicode.h"

namespace transept::text {

namespace {

class Bert final : public SlowModel {
public:
  Bert(std::shared_ptr<const TokenModel> model, std::shared_ptr<const PreTokenizer> words,
       const TokenizerConfig &config, int64_t unknown)
      : model_(std::move(model)), words_(std::move(words)), unknown_(unknown), chinese_(config.tokenizeChineseChars),
        lower_(config.doLowerCase.value_or(true)), accents_(config.stripAccents.value_or(lower_)) {}

  Status split(std::string_view part, Tokens &tokens) const override {
    std::string text = normalForm(clean(part), NormalForm::C);
    if (lower_)
      text = lowercase(text);
    if (accents_)
      text = withoutAccents(text);
    std::vector<Piece> pieces = {{std::move(text), true, -1}};
    TRANSEPT_TRY(words_->apply(pieces));
    std::vector<int64_t> ids;
    for (const Piece &piece : pieces)
      TRANSEPT_TRY(model_->encode(piece.text, ids));
    for (int64_t id : ids)
      tokens.emplace_back(*model_->vocabulary().token(id));
    return {};
  }
  int64_t idOf(const std::string &token) const override { return model_->vocabulary().find(token).value_or(unknown_); }
  std::optional<std::string> tokenOf(int64_t id) const override {
    std::optional<std::string_view> token = model_->vocabulary().token(id);
    return token ? std::optional<std::string>(*token) : std::nullopt;
  }
  int64_t size() const override { return static_cast<int64_t>(model_->vocabulary().size()); }
  std::string join(Tokens tokens, const Specials &) const override {
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i)
      text += (i > 0 ? " " : "") + tokens[i];
    text = replaceAll(text, " ##", "");
    return std::string(stripLeft(stripRight(text)));
  }

private:
  std::string clean(std::string_view part) const {
    std::string result;
    for (size_t at = 0; at < part.size();) {
      char32_t c = nextChar(part, at);
      bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
      if (!space && (c == 0 || c == 0xFFFD || isOther(c) || isUnassigned(c)))
        continue;
      if (space || isWhitespace(c)) {
        result += ' ';
        continue;
      }
      bool apart =
          chinese_ && ((c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
                       (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2CEAF) ||
                       (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F));
      if (apart)
        result += ' ';
      appendChar(result, c);
      if (apart)
        result += ' ';
    }
    return result;
  }

  static std::string withoutAccents(std::string_view text) {
    std::string decomposed = normalForm(text, NormalForm::D), result;
    for (size_t at = 0; at < decomposed.size();)
      if (char32_t c = nextChar(decomposed, at); !isNonspacing(c))
        appendChar(result, c);
    return result;
  }

  std::shared_ptr<const TokenModel> model_;
  std::shared_ptr<const PreTokenizer> words_;
  int64_t unknown_;
  bool chinese_, lower_, accents_;
};

} // namespace

SlowModelResult makeSlowBert(std::string_view text, const TokenizerConfig &config) {
  if (!isUtf8(text))
    return Status(Code::ArtifactRefused, "'vocab.txt' is not valid UTF-8");
  Vocabulary vocabulary;
  vocabulary.reserve(text.size() / 8, text.size());
  int64_t next = 0;
  for (size_t at = 0; at < text.size(); ++next) {
    std::string_view line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    if (!line.empty() && line.back() == '\r') // lines end as Python reads them
      line.remove_suffix(1);
    if (next >= Vocabulary::maxId)
      return Status(Code::LimitExceeded, "'vocab.txt' has too many lines");
    vocabulary.add(line, next);
  }
  WordPieceOptions options;
  options.unknown = config.contentOf("unk_token", "[UNK]");
  int64_t unknown = vocabulary.find(options.unknown).value_or(-1);
  TRANSEPT_ASSIGN(std::shared_ptr<const TokenModel> model, makeWordPiece(std::move(vocabulary), options));
  TRANSEPT_ASSIGN(std::shared_ptr<const PreTokenizer> words, makePreTokenizer({{"type", "BertPreTokenizer"}}));
  return std::unique_ptr<SlowModel>(std::make_unique<Bert>(std::move(model), std::move(words), config, unknown));
}

} // namespace transept::text
