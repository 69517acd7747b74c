// The pattern of GPT-2, by hand: it splits every text of byte-level vocabularies.

#include "runtime/text/PreTokenizer.h"
#include "runtime/text/Unicode.h"

namespace transept::text {

std::vector<std::string_view> splitWords(std::string_view text) {
  enum Kind { Letter, Number, Space, Other };
  auto kindOf = [](char32_t c) {
    return isLetter(c) ? Letter : isNumber(c) ? Number : isWhitespace(c) ? Space : Other;
  };
  // The end of the run of `kind` that goes on at `at`, and where its last character begins.
  auto runEnd = [&](size_t at, Kind kind, size_t &last) {
    while (at < text.size()) {
      size_t next = at;
      if (kindOf(nextChar(text, next)) != kind)
        break;
      last = at;
      at = next;
    }
    return at;
  };
  std::vector<std::string_view> words;
  words.reserve(text.size() / 4 + 1);
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    size_t last = begin;
    end = begin;
    if (text[begin] == '\'')
      for (std::string_view suffix : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
        if (text.substr(begin, suffix.size()) == suffix)
          end = begin + suffix.size();
    if (end == begin) {
      Kind kind = kindOf(nextChar(text, end));
      if (text[begin] == ' ' && end < text.size()) { // belongs to what follows, unless that is a space
        size_t next = end;
        if (Kind following = kindOf(nextChar(text, next)); following != Space) {
          kind = following;
          end = next;
        }
      }
      end = runEnd(end, kind, last);
      // Of spaces in front of something else the last one is a part of its own.
      if (kind == Space && end < text.size() && last > begin)
        end = last;
    }
    words.push_back(text.substr(begin, end - begin));
  }
  return words;
}

} // namespace transept::text
