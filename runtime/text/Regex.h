// Regular expressions of tokenizer.json, with the engine that the tokenizers library uses: Oniguruma.
#ifndef TRANSEPT_RUNTIME_TEXT_REGEX_H
#define TRANSEPT_RUNTIME_TEXT_REGEX_H

#include "runtime/Status.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace transept::text {

/// A part of a text, in bytes; `match` says whether a pattern matched it.
struct Range {
  size_t begin = 0, end = 0;
  bool match = false;
};

/// Immutable, shared by threads.
class Regex {
public:
  /// Code::ArtifactRefused for what is no pattern.
  static Result<Regex> compile(const std::string &pattern);

  /// The whole text as ranges that match and ranges between them, in order. An empty text is one range without a match.
  /// Code::LimitExceeded where the pattern needs too many tries on the text.
  Result<std::vector<Range>> ranges(std::string_view text) const;

private:
  struct Deleter {
    void operator()(void *regex) const;
  };
  std::unique_ptr<void, Deleter> regex_;
  std::string pattern_;
};

} // namespace transept::text

#endif
