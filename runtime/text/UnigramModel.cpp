#include "runtime/text/TokenModel.h"
#include "runtime/text/Trie.h"
#include "runtime/text/Unicode.h"

#include <algorithm>
#include <limits>

namespace transept::text {

namespace {

class Unigram final : public TokenModel {
public:
  Unigram(const std::vector<ScoredPiece> &pieces, int64_t unknown, bool byteFallback);
  Status encode(std::string_view piece, std::vector<int64_t> &ids) const override;

private:
  struct Node { // the best path that ends at a byte
    double score = 0;
    int64_t id = -1;
    size_t begin = none;
  };
  static constexpr size_t none = std::numeric_limits<size_t>::max();

  Status add(std::string_view part, std::vector<int64_t> &ids) const;

  std::vector<double> scores_; // by id
  Trie trie_;
  std::vector<int64_t> bytes_; // tokens of bytes, -1: none; empty without byte fallback
  int64_t unknown_;
  double unknownScore_ = 0;
};

Unigram::Unigram(const std::vector<ScoredPiece> &pieces, int64_t unknown, bool byteFallback) : unknown_(unknown) {
  constexpr double unknownPenalty = 10;
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::pair<std::string_view, int32_t>> strings;
  size_t bytes = 0;
  for (const ScoredPiece &piece : pieces)
    bytes += piece.text.size();
  vocabulary_.reserve(pieces.size(), bytes);
  for (const ScoredPiece &piece : pieces) {
    auto id = static_cast<int64_t>(scores_.size());
    vocabulary_.add(piece.text, id);
    strings.push_back({piece.text, static_cast<int32_t>(id)});
    scores_.push_back(piece.score);
    least = std::min(least, piece.score);
  }
  unknownScore_ = least - unknownPenalty;
  trie_ = Trie(std::move(strings));
  if (byteFallback)
    for (unsigned byte = 0; byte < 256; ++byte)
      bytes_.push_back(vocabulary_.find(byteToken(static_cast<unsigned char>(byte))).value_or(-1));
}

/// A part of the best path. What has no piece becomes bytes or unknown.
Status Unigram::add(std::string_view part, std::vector<int64_t> &ids) const {
  if (std::optional<int64_t> id = vocabulary_.find(part)) {
    ids.push_back(*id);
    return {};
  }
  if (!bytes_.empty() &&
      std::all_of(part.begin(), part.end(), [&](char byte) { return bytes_[static_cast<unsigned char>(byte)] >= 0; })) {
    for (char byte : part)
      ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
    return {};
  }
  ids.push_back(unknown_);
  return {};
}

Status Unigram::encode(std::string_view piece, std::vector<int64_t> &ids) const {
  std::vector<Node> best(piece.size() + 1);
  for (size_t begin = 0, next = 0; begin < piece.size(); begin = next) {
    nextChar(piece, next);
    double before = best[begin].score;
    bool single = false; // a token for this character alone
    auto offer = [&](size_t end, int64_t id, double score) {
      Node &node = best[end];
      if (node.begin == none || score + before > node.score)
        node = {score + before, id, begin};
    };
    trie_.prefixes(piece.substr(begin), [&](size_t length, int32_t id) {
      offer(begin + length, id, scores_[static_cast<size_t>(id)]);
      single = single || length == next - begin;
    });
    if (!single) {
      if (unknown_ < 0)
        return {Code::InvalidInput, "the tokenizer has no piece for '" +
                                        printable(std::string(piece.substr(begin, next - begin))) +
                                        "' and no unknown token"};
      offer(next, unknown_, unknownScore_);
    }
  }
  // Back along the path; unknown parts in a row are one.
  std::vector<std::string_view> parts;
  bool fuse = false;
  for (size_t end = piece.size(); end > 0;) {
    const Node &node = best[end];
    bool isUnknown = unknown_ >= 0 && node.id == unknown_;
    if (isUnknown && fuse)
      parts.back() = piece.substr(node.begin, parts.back().size() + end - node.begin);
    else
      parts.push_back(piece.substr(node.begin, end - node.begin));
    fuse = isUnknown;
    end = node.begin;
  }
  for (size_t i = parts.size(); i-- > 0;)
    TRANSEPT_TRY(add(parts[i], ids));
  return {};
}

} // namespace

Result<std::shared_ptr<const TokenModel>> makeUnigram(std::vector<ScoredPiece> pieces, int64_t unknown,
                                                      bool byteFallback) {
  if (pieces.empty() || unknown >= static_cast<int64_t>(pieces.size()))
    return Status(Code::ArtifactRefused,
                  pieces.empty() ? "the model's vocabulary is empty" : "the model's 'unk_id' is not in the vocabulary");
  if (static_cast<int64_t>(pieces.size()) > Vocabulary::maxId)
    return Status(Code::LimitExceeded, "the model's vocabulary is too large");
  return std::shared_ptr<const TokenModel>(std::make_shared<Unigram>(pieces, unknown, byteFallback));
}

} // namespace transept::text
