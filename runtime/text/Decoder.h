// The "decoder" section of tokenizer.json: tokens become a text again.
#ifndef TRANSEPT_RUNTIME_TEXT_DECODER_H
#define TRANSEPT_RUNTIME_TEXT_DECODER_H

#include "runtime/Status.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

namespace transept::text {

/// Immutable, shared by threads.
class Decoder {
public:
  virtual ~Decoder() = default;
  /// Changes the parts whose concatenation is the text.
  virtual void apply(std::vector<std::string> &parts) const = 0;
};

/// Null for a null: tokens are then joined by spaces. Code::Unsupported for what is not implemented, by name.
Result<std::shared_ptr<const Decoder>> makeDecoder(const nlohmann::json &spec, int depth = 0);

/// The bytes that a token of a byte-level vocabulary stands for; false where a character stands for none.
bool fromByteLevel(std::string_view token, std::string &bytes);

/// `bytes` as UTF-8, each malformed sequence replaced by U+FFFD.
std::string lossyUtf8(std::string_view bytes);

/// clean_up_tokenization() of transformers: no spaces in front of punctuation and English suffixes.
std::string cleanUp(std::string text);

} // namespace transept::text

#endif
