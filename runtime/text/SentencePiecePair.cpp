#include "runtime/text/SentencePiecePair.h"

#include "runtime/text/LanguageTable.h"
#include "runtime/text/TokenizerConfig.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace transept {

using nlohmann::json;

namespace {

constexpr std::string_view metaSpace = "\xE2\x96\x81"; // U+2581 stands for a space inside pieces

Status refuse(const std::string &sentence) { return {Code::ArtifactRefused, sentence}; }

void replaceAll(std::string &text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// Bytes of a character that str.strip() of Python removes, at the beginning of `text`; 0 where there is none.
size_t spaceAt(std::string_view text) {
  static constexpr std::string_view spaces[] = {" ",
                                                "\t",
                                                "\n",
                                                "\v",
                                                "\f",
                                                "\r",
                                                "\x1C",
                                                "\x1D",
                                                "\x1E",
                                                "\x1F",
                                                "\xC2\x85",
                                                "\xC2\xA0",
                                                "\xE1\x9A\x80",
                                                "\xE2\x80\x80",
                                                "\xE2\x80\x81",
                                                "\xE2\x80\x82",
                                                "\xE2\x80\x83",
                                                "\xE2\x80\x84",
                                                "\xE2\x80\x85",
                                                "\xE2\x80\x86",
                                                "\xE2\x80\x87",
                                                "\xE2\x80\x88",
                                                "\xE2\x80\x89",
                                                "\xE2\x80\x8A",
                                                "\xE2\x80\xA8",
                                                "\xE2\x80\xA9",
                                                "\xE2\x80\xAF",
                                                "\xE2\x81\x9F",
                                                "\xE3\x80\x80"};
  for (std::string_view space : spaces)
    if (text.substr(0, space.size()) == space)
      return space.size();
  return 0;
}

std::string strip(std::string_view text) {
  while (size_t size = spaceAt(text))
    text.remove_prefix(size);
  for (bool again = true; again && !text.empty();) {
    again = false;
    for (size_t size = 1; size <= 3 && size <= text.size() && !again; ++size)
      if (spaceAt(text.substr(text.size() - size)) == size) {
        text.remove_suffix(size);
        again = true;
      }
  }
  return std::string(text);
}

/// A token of tokenizer_config.json: its text, or an object with it.
std::string contentOf(const json &token) {
  if (token.is_string())
    return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string())
    return token["content"].get<std::string>();
  return "";
}

Status load(sentencepiece::SentencePieceProcessor &processor, const TokenizerFile &file) {
  auto status = processor.LoadFromSerializedProto({file.bytes.data(), file.bytes.size()});
  return status.ok() ? Status::success()
                     : refuse("'" + file.name + "' is no SentencePiece model: " + printable(status.ToString()));
}

Status loadVocabulary(std::unordered_map<std::string, int64_t> &ids, const TokenizerFile &file) {
  json object = json::parse(file.bytes.begin(), file.bytes.end(), nullptr, false);
  if (!object.is_object() || object.empty())
    return refuse("'" + file.name + "' is no JSON object of pieces and ids");
  for (const auto &[piece, id] : object.items()) {
    constexpr int64_t most = 1 << 24;
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > most)
      return refuse("'" + file.name + "' has an impossible id for piece '" + printable(piece, 60) + "'");
    ids.emplace(piece, id.get<int64_t>());
  }
  return Status::success();
}

} // namespace

Result<std::unique_ptr<Tokenizer>> SentencePiecePair::create(const std::vector<TokenizerFile> &files,
                                                             const std::string &configJson) {
  std::unique_ptr<SentencePiecePair> pair(new SentencePiecePair);
  auto file = [&](const char *name) -> const TokenizerFile * {
    auto found = std::find_if(files.begin(), files.end(), [&](const TokenizerFile &f) { return f.name == name; });
    return found == files.end() ? nullptr : &*found;
  };
  for (const char *name : {"source.spm", "target.spm", "vocab.json"})
    if (!file(name))
      return refuse(std::string("the tokenizer lacks '") + name + "'");
  TRANSEPT_TRY(load(pair->source_, *file("source.spm")));
  TRANSEPT_TRY(load(pair->target_, *file("target.spm")));
  TRANSEPT_TRY(loadVocabulary(pair->sourceIds_, *file("vocab.json")));
  if (const TokenizerFile *target = file("target_vocab.json"))
    TRANSEPT_TRY(loadVocabulary(pair->targetIds_, *target));
  else
    pair->targetIds_ = pair->sourceIds_;
  TRANSEPT_TRY(pair->readConfig(configJson));

  for (const auto &[piece, id] : pair->targetIds_) {
    if (static_cast<size_t>(id) >= pair->pieces_.size())
      pair->pieces_.resize(id + 1);
    pair->pieces_[id] = piece;
  }
  for (const std::string &special : {pair->unknownPiece_, pair->endPiece_, pair->padPiece_})
    pair->added_[special] = true;
  for (const auto &[token, special] : pair->added_)
    if (!token.empty() && pair->firstBytes_.find(token[0]) == std::string::npos)
      pair->firstBytes_ += token[0];
  for (auto [piece, id] : {std::pair{&pair->unknownPiece_, &pair->unknown_}, {&pair->endPiece_, &pair->end_}}) {
    auto found = pair->sourceIds_.find(*piece);
    if (found == pair->sourceIds_.end())
      return refuse("the tokenizer's vocabulary lacks '" + printable(*piece, 60) + "'");
    *id = found->second;
  }
  return std::unique_ptr<Tokenizer>(std::move(pair));
}

Status SentencePiecePair::readConfig(const std::string &configJson) {
  TRANSEPT_TRY(text::TokenizerConfig::parse(configJson).status()); // refuses keys that are not known
  json config = configJson.empty() ? json::object() : json::parse(configJson, nullptr, false);
  for (auto [name, piece] :
       {std::pair{"unk_token", &unknownPiece_}, {"eos_token", &endPiece_}, {"pad_token", &padPiece_}})
    if (config.contains(name) && !contentOf(config[name]).empty())
      *piece = contentOf(config[name]);
  if (config.contains("clean_up_tokenization_spaces"))
    cleanUp_ = config["clean_up_tokenization_spaces"] == true;
  if (config.contains("additional_special_tokens") && config["additional_special_tokens"].is_array())
    for (const json &token : config["additional_special_tokens"])
      if (!contentOf(token).empty())
        added_[contentOf(token)] = true;
  if (config.contains("added_tokens_decoder") && config["added_tokens_decoder"].is_object())
    for (const auto &[key, token] : config["added_tokens_decoder"].items()) {
      std::string content = contentOf(token);
      if (content.empty() || key.empty() || key.size() > 8 || key.find_first_not_of("0123456789") != std::string::npos)
        return refuse("the tokenizer's configuration has a malformed added token '" + printable(key, 60) + "'");
      for (const char *part : {"lstrip", "rstrip", "single_word"})
        if (token.is_object() && token.contains(part) && token[part] == true)
          return {Code::Unsupported,
                  "added token '" + printable(content, 60) + "' has \"" + part + "\": true, which is not implemented"};
      bool special = token.is_object() && token.contains("special") && token["special"] == true;
      added_[content] = added_[content] || special;
      sourceIds_.emplace(content, std::stoll(key));
      targetIds_.emplace(content, std::stoll(key));
    }
  return Status::success();
}

std::string_view SentencePiecePair::addedToken(std::string_view text) const {
  std::string_view longest;
  for (const auto &[token, special] : added_)
    if (token.size() > longest.size() && text.substr(0, token.size()) == token)
      longest = text.substr(0, token.size());
  return longest;
}

Result<std::vector<int64_t>> SentencePiecePair::encode(std::string_view text, const Processor &processor,
                                                       const Vocabulary &vocabulary) const {
  std::vector<int64_t> ids;
  auto add = [&](const std::string &piece) {
    auto found = vocabulary.find(piece);
    ids.push_back(found == vocabulary.end() ? unknown_ : found->second);
  };
  auto addPart = [&](std::string_view part) -> Status {
    // A language code at the beginning is one token, whether or not the vocabulary has it.
    if (size_t end = part.find("<<"); part.substr(0, 2) == ">>" && end != std::string_view::npos) {
      add(std::string(part.substr(0, end + 2)));
      part.remove_prefix(end + 2);
    }
    std::vector<std::string> pieces;
    if (auto status = processor.Encode({part.data(), part.size()}, &pieces); !status.ok())
      return {Code::InvalidInput, "SentencePiece cannot split the text: " + printable(status.ToString())};
    for (const std::string &piece : pieces)
      add(piece);
    return Status::success();
  };
  size_t begin = 0, at = 0;
  while ((at = text.find_first_of(firstBytes_, at)) != std::string_view::npos) {
    std::string_view token = addedToken(text.substr(at));
    if (token.empty()) {
      ++at;
      continue;
    }
    if (at > begin)
      TRANSEPT_TRY(addPart(text.substr(begin, at - begin)));
    add(std::string(token));
    begin = at = at + token.size();
  }
  if (begin < text.size())
    TRANSEPT_TRY(addPart(text.substr(begin)));
  ids.push_back(end_);
  return ids;
}

Result<std::vector<int64_t>> SentencePiecePair::encodeSource(std::string_view text,
                                                             const LanguagePair &languages) const {
  TRANSEPT_ASSIGN(std::vector<int64_t> ids, encode(text, source_, sourceIds_));
  if (!languages.target.empty()) {
    TRANSEPT_ASSIGN(int64_t tag, tagOf(languages.target));
    ids.insert(ids.begin(), tag);
  }
  return ids;
}

Result<int64_t> SentencePiecePair::tagOf(const std::string &language) const {
  if (auto found = sourceIds_.find(">>" + language + "<<"); found != sourceIds_.end())
    return found->second;
  if (auto found = sourceIds_.find(language); found != sourceIds_.end() && language.compare(0, 2, ">>") == 0)
    return found->second;
  std::set<std::string> known;
  for (const auto &[piece, id] : sourceIds_)
    if (piece.size() > 4 && piece.compare(0, 2, ">>") == 0 && piece.compare(piece.size() - 2, 2, "<<") == 0)
      known.insert(piece.substr(2, piece.size() - 4));
  if (known.empty())
    return Status(Code::InvalidInput, "'target_lang' is not available: the model has one target language");
  return text::unknownLanguage("target_lang", language, {known.begin(), known.end()});
}

Result<std::string> SentencePiecePair::languageSettings(const LanguagePair &languages) const {
  if (!languages.source.empty())
    return Status(Code::InvalidInput, "'source_lang' is not available: the model has one kind of source");
  if (!languages.target.empty())
    TRANSEPT_TRY(tagOf(languages.target).status());
  return std::string("{}");
}

std::string SentencePiecePair::decodePieces(const std::vector<std::string> &pieces) const {
  std::string text;
  if (!target_.Decode(pieces, &text).ok())
    text.clear();
  replaceAll(text, metaSpace, " ");
  return strip(text);
}

std::string SentencePiecePair::decode(Span<const int64_t> ids) const {
  std::vector<std::string> parts, pieces;
  auto flush = [&] {
    if (std::string text = decodePieces(pieces); !text.empty())
      parts.push_back(text);
    pieces.clear();
  };
  for (int64_t id : ids) {
    const std::string &piece =
        id >= 0 && static_cast<size_t>(id) < pieces_.size() && !pieces_[id].empty() ? pieces_[id] : unknownPiece_;
    auto added = added_.find(piece);
    if (added == added_.end())
      pieces.push_back(piece);
    else if (!added->second) { // not special: its text as it is
      if (!pieces.empty())
        flush();
      parts.push_back(piece);
    }
  }
  if (!pieces.empty())
    flush();
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i ? " " : "") + parts[i];
  if (cleanUp_)
    for (auto [from, to] : {std::pair{" .", "."},
                            {" ?", "?"},
                            {" !", "!"},
                            {" ,", ","},
                            {" ' ", "'"},
                            {" n't", "n't"},
                            {" 'm", "'m"},
                            {" 's", "'s"},
                            {" 've", "'ve"},
                            {" 're", "'re"}})
      replaceAll(text, from, to);
  return text;
}

} // namespace transept
