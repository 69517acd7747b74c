// Tokenizers with vocab.json and merges.txt: GPT-2, BART, RoBERTa, Blenderbot, Whisper.

#include "runtime/text/Decoder.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/SlowTokenizer.h"
#include "runtime/text/TokenModel.h"
#include "runtime/text/Unicode.h"

namespace transept::text {

namespace {

class ByteLevelModel final : public SlowModel {
public:
  enum Prefix { None, Space, SpaceUnlessThere };
  ByteLevelModel(std::shared_ptr<const TokenModel> model, Prefix prefix, int64_t unknown)
      : model_(std::move(model)), prefix_(prefix), unknown_(unknown) {}

  Status split(std::string_view part, Tokens &tokens) const override {
    std::vector<int64_t> ids;
    std::string mapped;
    for (std::string_view word : splitWords(part)) {
      mapped.clear();
      for (char byte : word)
        mapped += byteLevelChar(static_cast<unsigned char>(byte));
      TRANSEPT_TRY(model_->encode(mapped, ids));
    }
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
    std::string bytes;
    for (const std::string &token : tokens)
      if (size_t before = bytes.size(); !fromByteLevel(token, bytes)) {
        bytes.resize(before);
        bytes += token;
      }
    return lossyUtf8(bytes);
  }
  Result<std::string> prepare(std::string_view text) const override {
    size_t at = 0;
    bool wanted =
        prefix_ == Space || (prefix_ == SpaceUnlessThere && !text.empty() && !isPythonSpace(nextChar(text, at)));
    return (wanted ? " " : "") + std::string(text);
  }

private:
  std::shared_ptr<const TokenModel> model_;
  Prefix prefix_;
  int64_t unknown_;
};

} // namespace

SlowModelResult makeSlowByteLevel(std::string_view vocabularyText, std::string_view merges,
                                  const TokenizerConfig &config) {
  TRANSEPT_ASSIGN(Vocabulary vocabulary, readVocabulary(vocabularyText, "'vocab.json'"));
  if (!isUtf8(merges))
    return Status(Code::ArtifactRefused, "'merges.txt' is not valid UTF-8");
  bool gpt = config.tokenizerClass == "GPT2Tokenizer" || config.tokenizerClass == "WhisperTokenizer";
  std::string unknown = config.contentOf("unk_token", gpt ? "<|endoftext|>" : "<unk>");
  int64_t unknownId = vocabulary.find(unknown).value_or(-1);
  BpeOptions options;
  if (unknownId >= 0)
    options.unknown = unknown;
  // The first line is a comment, and what stands behind the last line feed does not count.
  size_t at = merges.find('\n'), last = merges.rfind('\n');
  at = at == std::string_view::npos ? merges.size() : at + 1;
  auto next = [&](std::string &left, std::string &right) -> Result<bool> {
    if (last == std::string_view::npos || at > last)
      return false;
    std::string_view line = merges.substr(at, merges.find('\n', at) - at);
    at += line.size() + 1;
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos)
      return Status(Code::ArtifactRefused,
                    "'merges.txt' has the line '" + printable(std::string(line), 60) + "', which is no pair of tokens");
    left = line.substr(0, space);
    right = line.substr(space + 1);
    return true;
  };
  TRANSEPT_ASSIGN(std::shared_ptr<const TokenModel> model, makeBpe(std::move(vocabulary), options, next));
  auto prefix = !config.addPrefixSpace.value_or(false) ? ByteLevelModel::None
                : gpt                                  ? ByteLevelModel::Space
                                                       : ByteLevelModel::SpaceUnlessThere;
  if (unknownId < 0)
    return Status(Code::ArtifactRefused, "'vocab.json' lacks the unknown token '" + printable(unknown, 60) + "'");
  return std::unique_ptr<SlowModel>(std::make_unique<ByteLevelModel>(std::move(model), prefix, unknownId));
}

} // namespace transept::text
