// Text to token ids and back. The interface alone needs no library; makeTokenizer() is in libtransept_text.
#ifndef TRANSEPT_RUNTIME_TEXT_TOKENIZER_H
#define TRANSEPT_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/Span.h"
#include "runtime/Status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

/// Immutable, shared by threads.
class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  /// Ids of a source text, end token included. `text` is valid UTF-8.
  virtual Result<std::vector<int64_t>> encodeSource(std::string_view text) const = 0;
  /// Ids of a target text, end token included.
  virtual Result<std::vector<int64_t>> encodeTarget(std::string_view text) const = 0;
  /// Text of an output, without special tokens.
  virtual std::string decode(Span<const int64_t> ids) const = 0;
  /// The id that ends every source, -1 where there is none.
  virtual int64_t endOfSource() const = 0;
};

/// A file of the tokenizer, by its name in the export ("source.spm").
struct TokenizerFile {
  std::string name;
  std::string_view bytes; // must outlive the call only
};

/// `kind` and `configJson` as in the manifest. Code::Unsupported for a kind this library does not have,
/// Code::ArtifactRefused where a file is missing or malformed.
Result<std::unique_ptr<Tokenizer>> makeTokenizer(const std::string &kind, const std::vector<TokenizerFile> &files,
                                                 const std::string &configJson);

} // namespace transept

#endif
