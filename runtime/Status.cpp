#include "runtime/Status.h"

#include <cstdint>
#include <cstdio>

namespace transept {

namespace {
/// Bytes of the UTF-8 sequence at `position`, 0 where it is malformed.
size_t sequenceLength(const std::string &text, size_t position) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t first = byte(position);
  size_t length = first < 0x80                    ? 1
                  : first >= 0xC2 && first < 0xE0 ? 2
                  : first >= 0xE0 && first < 0xF0 ? 3
                  : first >= 0xF0 && first < 0xF5 ? 4
                                                  : 0;
  if (length == 0 || position + length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(position + i) & 0xC0) != 0x80)
      return 0;
  return length;
}
} // namespace

std::string printable(const std::string &text, size_t limit) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t length = sequenceLength(text, i);
    bool control = length == 1 && (static_cast<uint8_t>(text[i]) < 0x20 || text[i] == 0x7F);
    char escape[8] = {};
    if (length == 0 || control)
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<uint8_t>(text[i]));
    std::string piece = *escape ? std::string(escape) : text.substr(i, length);
    if (out.size() + piece.size() > limit)
      return out + "...";
    out += piece;
    i += length ? length : 1;
  }
  return out;
}

} // namespace transept
