// The "pre_tokenizer" section of tokenizer.json.
#ifndef TRANSEPT_RUNTIME_TEXT_PRETOKENIZER_H
#define TRANSEPT_RUNTIME_TEXT_PRETOKENIZER_H

#include "runtime/Status.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

namespace transept::text {

/// A part of a text on its way to ids.
struct Piece {
  std::string text;
  bool first = false; // begins where the text begins
  int64_t token = -1; // an added token; its text is not looked at any more
};

/// Immutable, shared by threads.
class PreTokenizer {
public:
  virtual ~PreTokenizer() = default;

  /// Splits pieces that are no token, and may change their texts. Empty pieces disappear.
  virtual Status apply(std::vector<Piece> &pieces) const = 0;
};

/// Null for a null. Code::Unsupported for a type or key that is not implemented, by name.
Result<std::shared_ptr<const PreTokenizer>> makePreTokenizer(const nlohmann::json &spec, int depth = 0);

/// Parts of a text by the pattern of GPT-2:
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::vector<std::string_view> splitWords(std::string_view text);

} // namespace transept::text

#endif
