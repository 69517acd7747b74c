#include "runtime/text/SlowTokenizer.h"

#include "runtime/text/Decoder.h"
#include "runtime/text/FastTokenizer.h"
#include "runtime/text/Unicode.h"

#include <algorithm>

namespace transept::text {

bool isPythonSpace(char32_t c) { return isWhitespace(c) || (c >= 0x1C && c <= 0x1F); }

std::string_view stripLeft(std::string_view text) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size() && isPythonSpace(nextChar(text, at));)
    begin = at;
  return text.substr(begin);
}

std::string_view stripRight(std::string_view text) {
  size_t end = text.size();
  for (size_t at = end; at > 0 && isPythonSpace(previousChar(text, at));)
    end = at;
  return text.substr(0, end);
}

Result<std::unique_ptr<Tokenizer>> SlowTokenizer::create(std::unique_ptr<SlowModel> model, SlowTraits traits,
                                                         const TokenizerConfig &config) {
  std::unique_ptr<SlowTokenizer> tokenizer(new SlowTokenizer(std::move(model), std::move(traits)));
  TRANSEPT_TRY(tokenizer->addTokens(config));
  TRANSEPT_TRY(tokenizer->readTemplate(config));
  tokenizer->cleanUp_ = config.cleanUpSpaces.value_or(tokenizer->traits_.cleanUp);
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

Status SlowTokenizer::addTokens(const TokenizerConfig &config) {
  auto add = [&](int64_t id, const AddedToken &token) {
    if (auto old = addedById_.find(id); old != addedById_.end())
      added_.erase(old->second);
    added_[token.content] = {id, token};
    addedById_[id] = token.content;
  };
  for (bool own : {traits_.addedGoFirst, !traits_.addedGoFirst})
    for (const auto &[id, token] : own ? traits_.added : config.addedTokens)
      add(id, token);

  // Special tokens in the order of transformers. Those without an id get the next ones.
  std::vector<AddedToken> specials;
  auto want = [&](const AddedToken &token) {
    if (!token.content.empty() && specials_.insert(token.content).second)
      specials.push_back(token);
  };
  for (const std::string &key : namedTokenKeys()) {
    if (key == "mask_token_sent")
      continue;
    if (auto own = config.named.find(key); own != config.named.end())
      want(own->second);
    else if (auto missing = traits_.named.find(key); missing != traits_.named.end() && !config.absent.count(key))
      want(missing->second);
  }
  for (const AddedToken &token : config.additional)
    want(token);
  for (const AddedToken &token : traits_.additional)
    want(token);

  std::unordered_map<std::string, int64_t> vocabulary; // made where it is needed: by content, the last id counts
  for (const AddedToken &token : specials) {
    if (added_.count(token.content))
      continue;
    if (vocabulary.empty()) {
      for (int64_t id = 0; id < model_->size(); ++id)
        if (std::optional<std::string> known =
                addedById_.count(id) ? std::optional<std::string>(addedById_[id]) : model_->tokenOf(id))
          vocabulary[*known] = id;
      for (const auto &[id, content] : addedById_)
        vocabulary[content] = id;
    }
    int64_t id = vocabulary.emplace(token.content, static_cast<int64_t>(vocabulary.size())).first->second;
    add(id, token);
  }

  std::vector<std::pair<std::string_view, int32_t>> strings, kept;
  for (const auto &[content, entry] : added_) {
    strings.push_back({content, 0});
    if (specials_.count(content) || (!entry.second.special && entry.second.normalized))
      kept.push_back({content, 0});
  }
  trie_ = Trie(std::move(strings));
  kept_ = Trie(std::move(kept));
  for (const std::string &content : specials_)
    specialIds_.insert(idOf(content));
  return {};
}

Status SlowTokenizer::readTemplate(const TokenizerConfig &config) {
  auto contentOf = [&](const std::string &key) {
    auto missing = traits_.named.find(key);
    return config.contentOf(key, missing == traits_.named.end() ? key : missing->second.content);
  };
  auto idsOf = [&](const std::vector<std::string> &keys) {
    std::vector<int64_t> ids;
    for (const std::string &key : keys)
      if (std::string content = contentOf(key); !content.empty())
        ids.push_back(idOf(content));
    return ids;
  };
  template_ = Template::around(idsOf(traits_.before), idsOf(traits_.after));
  std::string end = contentOf("eos_token");
  auto find = [&](const std::string &token) -> std::optional<int64_t> {
    if (auto found = added_.find(token); found != added_.end())
      return found->second.first;
    int64_t id = model_->idOf(token);
    return model_->tokenOf(id) == token ? std::optional<int64_t>(id) : std::nullopt;
  };
  TRANSEPT_ASSIGN(languages_, LanguageTable::create(config, idOf(end), find));
  if (languages_) {
    TRANSEPT_ASSIGN(template_, languages_->around(false, ""));
  }
  return {};
}

int64_t SlowTokenizer::idOf(const std::string &token) const {
  auto found = added_.find(token);
  return found != added_.end() ? found->second.first : model_->idOf(token);
}

/// The text in parts that are added tokens or hold none, with the rules of their properties.
std::vector<std::string> SlowTokenizer::splitAdded(std::string_view text) const {
  std::vector<std::string> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    size_t length = trie_.begins(text[at]) ? trie_.longest(text.substr(at)).first : 0;
    if (length == 0) {
      ++at;
      continue;
    }
    if (at > done)
      parts.emplace_back(text.substr(done, at - done));
    parts.emplace_back(text.substr(at, length));
    done = at += length;
  }
  if (done < text.size())
    parts.emplace_back(text.substr(done));

  for (size_t i = 0; i < parts.size(); ++i) {
    auto found = added_.find(parts[i]);
    if (found == added_.end())
      continue;
    const AddedToken &token = found->second.second;
    std::string left = i > 0 ? parts[i - 1] : "", right = i + 1 < parts.size() ? parts[i + 1] : "";
    if (token.rstrip && !right.empty())
      parts[i + 1] = stripLeft(right);
    if (token.lstrip && !left.empty())
      parts[i - 1] = stripRight(left);
    if (token.singleWord && !left.empty() && left.back() != ' ') {
      parts[i - 1] += parts[i];
      parts[i].clear();
    } else if (token.singleWord && !right.empty() && right.front() != ' ') {
      parts[i + 1].insert(0, parts[i]);
      parts[i].clear();
    }
  }
  return parts;
}

Result<std::vector<int64_t>> SlowTokenizer::encode(std::string_view given, const Template &around) const {
  TRANSEPT_ASSIGN(std::string text, model_->prepare(given));
  if (traits_.lowercase) {
    std::string lower;
    for (size_t begin = 0, at = 0; begin < text.size(); begin = at) {
      size_t length = kept_.begins(text[begin]) ? kept_.longest(std::string_view(text).substr(begin)).first : 0;
      at = begin + length;
      if (length > 0) {
        lower.append(text, begin, length);
        continue;
      }
      nextChar(text, at);
      lower += lowercase(std::string_view(text).substr(begin, at - begin));
    }
    text = std::move(lower);
  }
  std::vector<std::string> tokens;
  for (const std::string &part : splitAdded(text)) {
    if (added_.count(part))
      tokens.push_back(part);
    else if (!part.empty())
      TRANSEPT_TRY(model_->split(part, tokens));
  }
  model_->finish(tokens, specials_);
  std::vector<int64_t> ids;
  ids.reserve(tokens.size());
  for (const std::string &token : tokens)
    ids.push_back(idOf(token));
  if (traits_.endOnce && !ids.empty() && ids.back() == around.parts.back())
    ids.pop_back();
  return around.apply(ids);
}

Result<std::vector<int64_t>> SlowTokenizer::encodeSource(std::string_view text, const LanguagePair &languages) const {
  if (!languages_)
    return encode(text, template_);
  TRANSEPT_ASSIGN(Template around, languages_->around(false, languages.source));
  return encode(text, around);
}

Result<std::vector<int64_t>> SlowTokenizer::encodeTarget(std::string_view text, const LanguagePair &languages) const {
  if (!languages_)
    return encode(text, template_);
  TRANSEPT_ASSIGN(Template around, languages_->around(true, languages.target));
  return encode(text, around);
}

Result<std::string> SlowTokenizer::languageSettings(const LanguagePair &languages) const {
  return languages_ ? languages_->settings(languages) : Tokenizer::languageSettings(languages);
}

std::string SlowTokenizer::decode(Span<const int64_t> ids) const {
  size_t begin = 0;
  if (traits_.speech && ids.size() > 0 && added_.count("<|startofprev|>") && ids[0] == idOf("<|startofprev|>"))
    while (begin < ids.size() && ids[begin] != idOf("<|startoftranscript|>"))
      ++begin; // what was said before
  std::vector<std::string> parts, tokens;
  for (; begin < ids.size(); ++begin) {
    int64_t id = ids[begin];
    auto added = addedById_.find(id);
    std::optional<std::string> token =
        added != addedById_.end() ? std::optional<std::string>(added->second) : model_->tokenOf(id);
    if (!token || specialIds_.count(id) || (!traits_.speech && specials_.count(*token)))
      continue;
    if (!added_.count(*token)) {
      tokens.push_back(std::move(*token));
      continue;
    }
    if (!tokens.empty())
      if (std::string joined = model_->join(std::move(tokens), specials_); !joined.empty() || traits_.speech)
        parts.push_back(std::move(joined));
    tokens.clear();
    parts.push_back(std::move(*token));
  }
  if (!tokens.empty())
    parts.push_back(model_->join(std::move(tokens), specials_));
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i > 0 && !traits_.speech ? " " : "") + parts[i];
  if (traits_.speech)
    return withoutTimes(text);
  return cleanUp_ ? cleanUp(std::move(text)) : text;
}

} // namespace transept::text
