// The character map of SentencePiece's normaliser, as tokenizer.json carries it.
#ifndef TRANSEPT_RUNTIME_TEXT_CHARSMAP_H
#define TRANSEPT_RUNTIME_TEXT_CHARSMAP_H

#include "runtime/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transept::text {

/// Size of the trie in bytes (32 bits, little endian), a Darts double array of character sequences, and the strings
/// they are replaced by, each with a zero byte at its end.
class CharsMap {
public:
  static Result<CharsMap> parse(std::string_view bytes);

  /// Replaces what the map has, by grapheme clusters of at most five bytes and by single characters.
  std::string apply(std::string_view text) const;

private:
  /// What the map has for the shortest prefix of `chunk` that it knows.
  std::optional<std::string_view> find(std::string_view chunk) const;

  std::vector<uint32_t> units_;
  std::string strings_;
};

/// Code::ArtifactRefused where `text` is not base64 with padding.
Result<std::string> decodeBase64(std::string_view text);

} // namespace transept::text

#endif
