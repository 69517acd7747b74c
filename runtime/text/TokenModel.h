// The "model" section of tokenizer.json: pieces of a text become ids.
#ifndef TRANSEPT_RUNTIME_TEXT_TOKENMODEL_H
#define TRANSEPT_RUNTIME_TEXT_TOKENMODEL_H

#include "runtime/Status.h"
#include "runtime/text/Vocabulary.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transept::text {

/// Immutable, shared by threads.
class TokenModel {
public:
  virtual ~TokenModel() = default;

  /// Appends the ids of a piece that is not empty.
  virtual Status encode(std::string_view piece, std::vector<int64_t> &ids) const = 0;

  const Vocabulary &vocabulary() const { return vocabulary_; }

protected:
  Vocabulary vocabulary_;
};

/// `spec` without its bulk; `vocabulary` and `merges` are the JSON of those members, empty where there is none.
/// Code::Unsupported for a type or key that is not implemented, by name.
Result<std::shared_ptr<const TokenModel>> makeTokenModel(const nlohmann::json &spec, std::string_view vocabulary,
                                                         std::string_view merges);

struct BpeOptions {
  std::optional<std::string> unknown;
  std::string prefix, suffix; // of pieces inside a word, and of those that end one
  bool fuseUnknown = false, byteFallback = false, ignoreMerges = false;
};
/// Merges, first ones first, come from `merges`: it sets both sides of the next one and returns false behind the last.
using NextMerge = std::function<Result<bool>(std::string &left, std::string &right)>;
Result<std::shared_ptr<const TokenModel>> makeBpe(Vocabulary vocabulary, const BpeOptions &options,
                                                  const NextMerge &merges);

struct ScoredPiece {
  std::string text;
  double score = 0;
};
/// `unknown` is the id of the unknown piece, -1: none.
Result<std::shared_ptr<const TokenModel>> makeUnigram(std::vector<ScoredPiece> pieces, int64_t unknown,
                                                      bool byteFallback);

struct WordPieceOptions {
  std::string unknown = "[UNK]", prefix = "##";
  int64_t longestWord = 100; // characters; longer ones are unknown
};
Result<std::shared_ptr<const TokenModel>> makeWordPiece(Vocabulary vocabulary, const WordPieceOptions &options);

/// {"token": id, …} as a vocabulary; `what` names it in messages.
Result<Vocabulary> readVocabulary(std::string_view text, const std::string &what);

/// "<0x41>", the token of a byte where a vocabulary has one for each.
std::string byteToken(unsigned char byte);

} // namespace transept::text

#endif
