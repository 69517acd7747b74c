#include "runtime/text/TokenModel.h"
#include "runtime/text/Unicode.h"

namespace transept::text {

namespace {

/// The longest token first, inside of a word with a prefix.
class WordPiece final : public TokenModel {
public:
  WordPiece(Vocabulary vocabulary, const WordPieceOptions &options, int64_t unknown)
      : prefix_(options.prefix), longestWord_(static_cast<size_t>(options.longestWord)), unknown_(unknown) {
    vocabulary_ = std::move(vocabulary);
  }

  Status encode(std::string_view piece, std::vector<int64_t> &ids) const override {
    size_t before = ids.size();
    bool known = piece.size() <= 4 * longestWord_ && countChars(piece) <= longestWord_;
    std::string token;
    for (size_t begin = 0; known && begin < piece.size();) {
      size_t end = piece.size();
      std::optional<int64_t> id;
      while (begin < end) {
        token.assign(begin > 0 ? prefix_ : "");
        token.append(piece, begin, end - begin);
        if ((id = vocabulary_.find(token)))
          break;
        previousChar(piece, end);
      }
      if (id)
        ids.push_back(*id);
      known = id.has_value();
      begin = end;
    }
    if (!known) {
      ids.resize(before);
      ids.push_back(unknown_);
    }
    return {};
  }

private:
  std::string prefix_;
  size_t longestWord_;
  int64_t unknown_;
};

} // namespace

Result<std::shared_ptr<const TokenModel>> makeWordPiece(Vocabulary vocabulary, const WordPieceOptions &options) {
  std::optional<int64_t> unknown = vocabulary.find(options.unknown);
  if (!unknown)
    return Status(Code::ArtifactRefused,
                  "the unknown token '" + printable(options.unknown, 60) + "' is not in the vocabulary");
  return std::shared_ptr<const TokenModel>(std::make_shared<WordPiece>(std::move(vocabulary), options, *unknown));
}

} // namespace transept::text
