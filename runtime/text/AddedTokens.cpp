#include "runtime/text/AddedTokens.h"

#include "runtime/text/Unicode.h"

#include <algorithm>

namespace transept::text {

std::optional<int64_t> AddedTokens::find(const std::string &content) const {
  auto found = ids_.find(content);
  return found != ids_.end() ? std::optional<int64_t>(found->second) : model_->find(content);
}

const AddedToken *AddedTokens::token(int64_t id) const {
  auto found = byId_.find(id);
  return found == byId_.end() ? nullptr : &found->second;
}

std::vector<std::string> AddedTokens::contents() const {
  std::vector<std::string> result;
  for (const auto &[id, token] : byId_)
    result.push_back(token.content);
  return result;
}

Status AddedTokens::add(const std::vector<AddedToken> &tokens) {
  auto modelSize = static_cast<int64_t>(model_->size());
  int64_t next = byId_.empty() || byId_.rbegin()->first < modelSize ? modelSize : byId_.rbegin()->first + 1;
  for (const AddedToken &token : tokens) {
    if (token.special)
      specials_.insert(token.content);
    auto known = ids_.find(token.content);
    if (token.content.empty() || (known != ids_.end() && byId_[known->second] == token))
      continue;
    std::optional<int64_t> found = find(token.content);
    int64_t id = found ? *found : next++;
    if (id >= Vocabulary::maxId)
      return {Code::LimitExceeded, "the added token '" + printable(token.content, 60) + "' has an id above the limit"};
    ids_[token.content] = id;
    byId_[id] = token;
  }
  return {};
}

Status AddedTokens::finish() {
  plainTexts_.clear();
  normalizedTexts_.clear();
  for (const auto &[content, id] : ids_) {
    std::string text = content;
    bool normalized = byId_.at(id).normalized, first = true;
    if (normalized && normalizer_)
      TRANSEPT_TRY(normalizer_->apply(text, first));
    (normalized ? normalizedTexts_ : plainTexts_).push_back({std::move(text), id});
  }
  for (auto [texts, trie] : {std::pair{&plainTexts_, &plain_}, {&normalizedTexts_, &normalized_}}) {
    std::sort(texts->begin(), texts->end());
    std::vector<std::pair<std::string_view, int32_t>> strings;
    for (const auto &[text, id] : *texts)
      strings.push_back({text, static_cast<int32_t>(id)});
    // Of tokens whose normalised texts are equal the first one counts.
    std::reverse(strings.begin(), strings.end());
    *trie = Trie(std::move(strings));
  }
  return {};
}

void AddedTokens::splitWith(const Trie &trie, Piece piece, std::vector<Piece> &pieces) const {
  std::string_view text = piece.text;
  auto add = [&](size_t begin, size_t end, int64_t token) {
    if (begin < end)
      pieces.push_back({std::string(text.substr(begin, end - begin)), piece.first && begin == 0, token});
  };
  size_t done = 0; // what lies before is in `pieces`
  for (size_t at = 0; at < text.size();) {
    auto [length, id] = trie.begins(text[at]) ? trie.longest(text.substr(at)) : std::pair<size_t, int32_t>(0, -1);
    if (length == 0) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + length;
    at = end;
    const AddedToken &token = byId_.at(id);
    if (token.singleWord) {
      size_t left = begin, right = end;
      if ((begin > 0 && isWord(previousChar(text, left))) || (end < text.size() && isWord(nextChar(text, right))))
        continue;
    }
    for (size_t left = begin; token.lstrip && left > 0 && isWhitespace(previousChar(text, left));)
      begin = left;
    begin = std::max(begin, done);
    for (size_t right = end; token.rstrip && right < text.size() && isWhitespace(nextChar(text, right));)
      end = right;
    add(done, begin, -1);
    add(begin, end, id);
    done = end;
  }
  if (done == 0 && !text.empty())
    pieces.push_back(std::move(piece));
  else
    add(done, text.size(), -1);
}

Result<std::vector<Piece>> AddedTokens::split(std::string_view text) const {
  std::vector<Piece> plain, pieces;
  if (text.empty())
    return pieces;
  splitWith(plain_, {std::string(text), true, -1}, plain);
  for (Piece &piece : plain) {
    if (piece.token >= 0) {
      pieces.push_back(std::move(piece));
      continue;
    }
    if (normalizer_)
      TRANSEPT_TRY(normalizer_->apply(piece.text, piece.first));
    splitWith(normalized_, std::move(piece), pieces);
  }
  return pieces;
}

} // namespace transept::text
