#include "runtime/text/Regex.h"

#include "runtime/text/Unicode.h"

#include <oniguruma.h>

namespace transept::text {

namespace {

const OnigUChar *bytes(const char *text) { return reinterpret_cast<const OnigUChar *>(text); }

std::string reason(int code, const OnigErrorInfo *info) {
  OnigUChar message[ONIG_MAX_ERROR_MESSAGE_LEN];
  int length = info ? onig_error_code_to_str(message, code, info) : onig_error_code_to_str(message, code);
  return printable(std::string(reinterpret_cast<const char *>(message), length > 0 ? static_cast<size_t>(length) : 0));
}

struct Region {
  OnigRegion *region = onig_region_new();
  Region() = default;
  Region(const Region &) = delete;
  Region &operator=(const Region &) = delete;
  ~Region() { onig_region_free(region, 1); }
};

} // namespace

void Regex::Deleter::operator()(void *regex) const { onig_free(static_cast<OnigRegex>(regex)); }

Result<Regex> Regex::compile(const std::string &pattern) {
  static const bool ready = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1) == ONIG_NORMAL;
  }();
  OnigRegex compiled = nullptr;
  OnigErrorInfo info = {};
  int code = ready ? onig_new(&compiled, bytes(pattern.data()), bytes(pattern.data() + pattern.size()),
                              ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info)
                   : ONIGERR_MEMORY;
  if (code != ONIG_NORMAL)
    return Status(Code::ArtifactRefused,
                  "the regular expression '" + printable(pattern, 80) + "' is malformed: " + reason(code, &info));
  Regex regex;
  regex.regex_.reset(compiled);
  regex.pattern_ = pattern;
  return regex;
}

Result<std::vector<Range>> Regex::ranges(std::string_view text) const {
  std::vector<Range> ranges;
  if (text.empty())
    return std::vector<Range>{Range{}};
  Region region;
  const OnigUChar *begin = bytes(text.data()), *end = begin + text.size();
  size_t at = 0, previous = 0; // where to search on, and the end of the last range
  bool matched = false;        // previous is the end of a match
  while (at <= text.size()) {
    onig_region_clear(region.region);
    int found =
        onig_search(static_cast<OnigRegex>(regex_.get()), begin, end, begin + at, end, region.region, ONIG_OPTION_NONE);
    if (found == ONIG_MISMATCH)
      break;
    if (found < 0)
      return Status(Code::LimitExceeded, "the regular expression '" + printable(pattern_, 80) +
                                             "' cannot be matched with the text: " + reason(found, nullptr));
    auto from = static_cast<size_t>(region.region->beg[0]), to = static_cast<size_t>(region.region->end[0]);
    if (from == to && matched && previous == to) { // no empty match right behind a match
      if (at < text.size())
        nextChar(text, at);
      else
        ++at;
      continue;
    }
    if (previous != from)
      ranges.push_back({previous, from, false});
    ranges.push_back({from, to, true});
    at = previous = to;
    matched = true;
  }
  if (previous != text.size())
    ranges.push_back({previous, text.size(), false});
  return ranges;
}

} // namespace transept::text
