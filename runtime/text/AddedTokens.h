// Tokens that texts may spell out, found before a text is split.
#ifndef TRANSEPT_RUNTIME_TEXT_ADDEDTOKENS_H
#define TRANSEPT_RUNTIME_TEXT_ADDEDTOKENS_H

#include "runtime/text/Normalizer.h"
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/Trie.h"
#include "runtime/text/Vocabulary.h"

#include <set>
#include <unordered_map>

namespace transept::text {

struct AddedToken {
  std::string content;
  bool lstrip = false, rstrip = false; // takes the spaces on this side with it
  bool singleWord = false;             // not inside of a word
  bool normalized = false;             // looked for in the normalised text
  bool special = false;                // left out of decoded texts

  bool operator==(const AddedToken &other) const {
    return content == other.content && lstrip == other.lstrip && rstrip == other.rstrip &&
           singleWord == other.singleWord && normalized == other.normalized && special == other.special;
  }
};

/// As in the tokenizers library: ids of new tokens follow those of the model.
class AddedTokens {
public:
  AddedTokens(const Vocabulary *model, std::shared_ptr<const Normalizer> normalizer)
      : model_(model), normalizer_(std::move(normalizer)) {}

  Status add(const std::vector<AddedToken> &tokens);
  /// After the last add().
  Status finish();

  /// The text in pieces: tokens, and normalised text between them.
  Result<std::vector<Piece>> split(std::string_view text) const;

  std::optional<int64_t> find(const std::string &content) const;
  /// Null for an id that is none of an added token.
  const AddedToken *token(int64_t id) const;
  bool isSpecial(const std::string &content) const { return specials_.count(content) != 0; }
  /// Contents in the order of ids.
  std::vector<std::string> contents() const;

private:
  void splitWith(const Trie &trie, Piece piece, std::vector<Piece> &pieces) const;

  const Vocabulary *model_;
  std::shared_ptr<const Normalizer> normalizer_;
  std::unordered_map<std::string, int64_t> ids_;
  std::map<int64_t, AddedToken> byId_;
  std::set<std::string> specials_;
  std::vector<std::pair<std::string, int64_t>> plainTexts_, normalizedTexts_; // what the tries hold
  Trie plain_, normalized_;                                                   // values are ids
};

} // namespace transept::text

#endif
