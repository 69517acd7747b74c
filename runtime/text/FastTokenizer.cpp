#include "runtime/text/FastTokenizer.h"

#include "runtime/text/Fields.h"
#include "runtime/text/JsonScanner.h"
#include "runtime/text/Unicode.h"

#include <algorithm>

namespace transept::text {

using nlohmann::json;

namespace {

/// tokenizer.json with its long members apart: their text is a part of the file.
struct Document {
  json rest; // with null in their place
  std::string_view vocabulary, merges;
};

Result<Document> splitDocument(std::string_view text) {
  if (!isUtf8(text))
    return Status(Code::ArtifactRefused, "is not valid UTF-8");
  Document document;
  std::string rest;
  size_t done = 0;
  JsonScanner scanner(text);
  auto cut = [&](std::string_view &part) -> Status {
    if (!part.empty())
      return {Code::ArtifactRefused, "has a member of its model twice"};
    scanner.peek();
    size_t begin = scanner.position();
    TRANSEPT_TRY(scanner.skipValue());
    part = text.substr(begin, scanner.position() - begin);
    rest.append(text, done, begin - done);
    rest += "null";
    done = scanner.position();
    return {};
  };
  auto inModel = [&](const std::string &key) {
    return key == "vocab" ? cut(document.vocabulary) : key == "merges" ? cut(document.merges) : scanner.skipValue();
  };
  TRANSEPT_TRY(scanner.readObject([&](const std::string &key) {
    return key == "model" && scanner.peek() == '{' ? scanner.readObject(inModel) : scanner.skipValue();
  }));
  if (scanner.peek(); scanner.position() != text.size())
    return Status(Code::ArtifactRefused, "is followed by something else");
  rest.append(text, done);
  document.rest = json::parse(rest, nullptr, false);
  if (!document.rest.is_object())
    return Status(Code::ArtifactRefused, "is malformed JSON");
  return document;
}

/// Only what is said about them is read; they concern batches.
Status checkLengths(Fields &fields) {
  if (const json *truncation = fields.find("truncation")) {
    Fields parts(*truncation, "'truncation'");
    parts.choice("direction", {"Left", "Right"}, 1);
    parts.choice("strategy", {"LongestFirst", "OnlyFirst", "OnlySecond"}, 0);
    parts.integer("max_length", 0, 0, INT64_MAX);
    parts.integer("stride", 0, 0, INT64_MAX);
    TRANSEPT_TRY(parts.done());
  }
  if (const json *padding = fields.find("padding")) {
    Fields parts(*padding, "'padding'");
    parts.ignore({"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"});
    TRANSEPT_TRY(parts.done());
  }
  return {};
}

/// Whether the configuration changes the pre-tokenizer: a space in front is its decision.
Status adjustPrefixSpace(json &preTokenizer, const TokenizerConfig &config) {
  if (!preTokenizer.is_object())
    return {};
  if (preTokenizer.contains("add_prefix_space") && preTokenizer["add_prefix_space"].is_boolean() &&
      preTokenizer.contains("type") && preTokenizer["type"] == "ByteLevel")
    preTokenizer["add_prefix_space"] = config.addPrefixSpace.value_or(false);
  // Tokenizers made from SentencePiece are made anew where the key is there; the file must be what comes out.
  bool made = preTokenizer.contains("type") && preTokenizer["type"] == "Metaspace";
  if (made && config.addPrefixSpace && config.tokenizerClass == "T5Tokenizer") {
    const char *wanted = !*config.addPrefixSpace ? "never" : config.legacy.value_or(true) ? "always" : "first";
    if (preTokenizer.contains("prepend_scheme") && preTokenizer["prepend_scheme"] != wanted)
      return {Code::Unsupported, "the tokenizer's configuration: 'add_prefix_space' and 'legacy' ask for the prepend "
                                 "scheme '" +
                                     std::string(wanted) + "', which is not that of the file"};
  }
  return {};
}

} // namespace

Result<std::unique_ptr<Tokenizer>> FastTokenizer::create(std::string_view text, const TokenizerConfig &config) {
  auto named = [](Status status) { return status.withContext("'tokenizer.json'"); };
  Result<Document> document = splitDocument(text);
  if (!document.ok())
    return named(document.status());
  std::unique_ptr<FastTokenizer> tokenizer(new FastTokenizer);
  Result<std::shared_ptr<const TokenModel>> model =
      document->rest.contains("model") ? makeTokenModel(document->rest["model"], document->vocabulary, document->merges)
                                       : Status(Code::ArtifactRefused, "lacks 'model'");
  if (!model.ok())
    return named(model.status());
  tokenizer->model_ = model.take();
  TRANSEPT_TRY(named(tokenizer->read(document->rest, config)));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

Status FastTokenizer::read(const json &spec, const TokenizerConfig &given) {
  TokenizerConfig config = given;
  Fields fields(spec, "the file");
  fields.ignore({"model"});
  if (std::string version = fields.string("version", "1.0"); version != "1.0")
    fields.fail(Code::Unsupported, "has version '" + printable(version, 60) + "', only 1.0 is implemented");
  TRANSEPT_TRY(checkLengths(fields));
  // The token that fills batches is special, whoever names it.
  if (const json *padding = fields.find("padding"); padding && padding->contains("pad_token"))
    if (const json &token = (*padding)["pad_token"];
        token.is_string() && !config.named.count("pad_token") && !config.absent.count("pad_token"))
      config.named["pad_token"] = {token.get<std::string>(), false, false, false, false, true};
  auto section = [&](const char *name) {
    const json *found = fields.find(name);
    return found ? *found : json();
  };
  TRANSEPT_ASSIGN(std::shared_ptr<const Normalizer> normalizer, makeNormalizer(section("normalizer")));
  json preTokenizer = section("pre_tokenizer");
  TRANSEPT_TRY(adjustPrefixSpace(preTokenizer, config));
  TRANSEPT_ASSIGN(preTokenizer_, makePreTokenizer(preTokenizer));
  TRANSEPT_ASSIGN(decoder_, makeDecoder(section("decoder")));
  TRANSEPT_ASSIGN(template_, makeTemplate(section("post_processor")));
  added_ = std::make_unique<AddedTokens>(&model_->vocabulary(), std::move(normalizer));
  TRANSEPT_TRY(addTokens(fields.find("added_tokens"), config));
  TRANSEPT_TRY(fields.done());

  int64_t end = added_->find(config.contentOf("eos_token", "</s>")).value_or(-1);
  TRANSEPT_ASSIGN(languages_,
                  LanguageTable::create(config, end, [&](const std::string &token) { return added_->find(token); }));
  if (languages_) {
    TRANSEPT_ASSIGN(template_, languages_->around(false, ""));
  }
  cleanUp_ = config.cleanUpSpaces.value_or(config.tokenizerClass == "BertTokenizer");
  speech_ = config.tokenizerClass == "WhisperTokenizer";
  return checkEnds(config);
}

Status FastTokenizer::addTokens(const json *list, const TokenizerConfig &config) {
  std::vector<AddedToken> tokens;
  if (list && !list->is_array())
    return {Code::ArtifactRefused, "'added_tokens' must be a list"};
  if (list)
    for (const json &entry : *list) {
      Fields fields(entry, "an added token");
      AddedToken token;
      token.content = fields.string("content");
      token.singleWord = fields.flag("single_word");
      token.lstrip = fields.flag("lstrip");
      token.rstrip = fields.flag("rstrip");
      token.normalized = fields.flag("normalized");
      token.special = fields.flag("special");
      fields.integer("id", 0, 0, Vocabulary::maxId - 1); // ids follow from the order
      TRANSEPT_TRY(fields.done());
      tokens.push_back(std::move(token));
    }
  TRANSEPT_TRY(added_->add(tokens));
  // Then those of the configuration that are new or have other properties.
  std::vector<AddedToken> specials = config.specials(), more;
  auto isSpecial = [&](const std::string &content) {
    return std::any_of(specials.begin(), specials.end(), [&](const AddedToken &s) { return s.content == content; });
  };
  std::set<std::string> mentioned;
  for (const auto &[id, token] : config.addedTokens) {
    mentioned.insert(token.content);
    AddedToken same = token;
    same.special = token.special || isSpecial(token.content);
    more.push_back(std::move(same));
  }
  std::vector<std::string> known = added_->contents();
  mentioned.insert(known.begin(), known.end());
  for (const AddedToken &token : specials)
    if (mentioned.insert(token.content).second)
      more.push_back(token);
  TRANSEPT_TRY(added_->add(more));
  return added_->finish();
}

/// add_bos_token and add_eos_token make some classes rebuild the template; the file must be what comes out.
Status FastTokenizer::checkEnds(const TokenizerConfig &config) const {
  if (config.tokenizerClass != "LlamaTokenizer" && config.tokenizerClass != "GemmaTokenizer" &&
      config.tokenizerClass != "CodeLlamaTokenizer")
    return {};
  auto check = [&](const char *name, std::optional<bool> wanted, bool there) -> Status {
    if (!wanted || *wanted == there)
      return {};
    return {Code::Unsupported, std::string("the configuration's '") + name + "' is " + (*wanted ? "true" : "false") +
                                   ", which is not what the file's post-processor does"};
  };
  TRANSEPT_TRY(check("add_bos_token", config.addBosToken, template_.parts.front() != Template::text));
  return check("add_eos_token", config.addEosToken, template_.behind() > 0);
}

Result<std::vector<int64_t>> FastTokenizer::encode(std::string_view text, const Template &around) const {
  TRANSEPT_ASSIGN(std::vector<Piece> pieces, added_->split(text));
  if (preTokenizer_)
    TRANSEPT_TRY(preTokenizer_->apply(pieces));
  std::vector<int64_t> ids;
  ids.reserve(text.size() / 3 + 8);
  for (const Piece &piece : pieces)
    if (piece.token >= 0)
      ids.push_back(piece.token);
    else if (!piece.text.empty())
      TRANSEPT_TRY(model_->encode(piece.text, ids));
  return around.apply(ids);
}

Result<std::vector<int64_t>> FastTokenizer::encodeSource(std::string_view text, const LanguagePair &languages) const {
  if (!languages_)
    return encode(text, template_);
  TRANSEPT_ASSIGN(Template around, languages_->around(false, languages.source));
  return encode(text, around);
}

Result<std::vector<int64_t>> FastTokenizer::encodeTarget(std::string_view text, const LanguagePair &languages) const {
  if (!languages_)
    return encode(text, template_);
  TRANSEPT_ASSIGN(Template around, languages_->around(true, languages.target));
  return encode(text, around);
}

Result<std::string> FastTokenizer::languageSettings(const LanguagePair &languages) const {
  return languages_ ? languages_->settings(languages) : Tokenizer::languageSettings(languages);
}

std::string FastTokenizer::decode(Span<const int64_t> ids) const {
  size_t begin = 0;
  if (speech_ && ids.size() > 0 && added_->find("<|startofprev|>") == ids[0]) { // what was said before
    std::optional<int64_t> start = added_->find("<|startoftranscript|>");
    while (begin < ids.size() && ids[begin] != start)
      ++begin;
  }
  std::vector<std::string> tokens;
  for (; begin < ids.size(); ++begin) {
    const AddedToken *added = added_->token(ids[begin]);
    std::optional<std::string_view> known = model_->vocabulary().token(ids[begin]);
    if (!added && !known)
      continue;
    std::string token = added ? added->content : std::string(*known);
    if (!added_->isSpecial(token))
      tokens.push_back(std::move(token));
  }
  std::string text;
  if (decoder_ && !tokens.empty())
    decoder_->apply(tokens);
  for (size_t i = 0; i < tokens.size(); ++i)
    text += (i > 0 && !decoder_ ? " " : "") + tokens[i];
  if (cleanUp_)
    text = cleanUp(std::move(text));
  return speech_ ? withoutTimes(text) : text;
}

std::string withoutTimes(std::string_view text) {
  std::string result;
  auto digits = [&](size_t at) {
    while (at < text.size() && text[at] >= '0' && text[at] <= '9')
      ++at;
    return at;
  };
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, 2) == "<|") {
      size_t point = digits(at + 2), end = point;
      if (point > at + 2 && text.substr(point, 1) == ".")
        end = digits(point + 1);
      if (end > point + 1 && text.substr(end, 2) == "|>") {
        at = end + 2;
        continue;
      }
    }
    result += text[at++];
  }
  return result;
}

} // namespace transept::text
