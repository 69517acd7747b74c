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

/// Codes of languages as the tokenizer spells them ("fra_Latn"); empty: the tokenizer's own default.
struct LanguagePair {
  std::string source, target;
};

/// Immutable, shared by threads.
class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  /// Ids of a source text, with the tokens around it. `text` is valid UTF-8. Code::InvalidInput for a language that is
  /// not known.
  virtual Result<std::vector<int64_t>> encodeSource(std::string_view text, const LanguagePair &languages) const = 0;
  /// Ids of a target text, with the tokens around it.
  virtual Result<std::vector<int64_t>> encodeTarget(std::string_view text, const LanguagePair &languages) const = 0;
  /// Text of an output, without special tokens.
  virtual std::string decode(Span<const int64_t> ids) const = 0;
  /// The id that ends every source, -1 where there is none.
  virtual int64_t endOfSource() const = 0;
  /// How many tokens stand behind every source text.
  virtual int64_t sourceSuffix() const { return endOfSource() >= 0 ? 1 : 0; }
  /// Generation settings, a JSON object, with which an output is in the target language. Code::InvalidInput with the
  /// known languages for one that is not, and where the tokenizer has no languages at all.
  virtual Result<std::string> languageSettings(const LanguagePair &languages) const;
};

/// A file of the tokenizer, by its name in the export ("source.spm").
struct TokenizerFile {
  std::string name;
  std::string_view bytes; // must outlive the call only
};

/// `kind` and `configJson` as in the manifest. Code::Unsupported for a kind this library does not have and for parts of
/// files that are not implemented, Code::ArtifactRefused where a file is missing or malformed.
Result<std::unique_ptr<Tokenizer>> makeTokenizer(const std::string &kind, const std::vector<TokenizerFile> &files,
                                                 const std::string &configJson);

inline Result<std::string> Tokenizer::languageSettings(const LanguagePair &languages) const {
  if (languages.source.empty() && languages.target.empty())
    return std::string("{}");
  return Status(Code::InvalidInput, std::string("'") + (languages.source.empty() ? "target" : "source") +
                                        "_lang' is not available: the model's tokenizer has no languages");
}

} // namespace transept

#endif
