#include "runtime/text/CharsMap.h"

#include "runtime/text/Unicode.h"

namespace transept::text {

namespace {

uint32_t word(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// Where the grapheme cluster that begins at `at` ends.
size_t clusterEnd(std::string_view text, size_t at) {
  auto ascii = [&](size_t i) { return static_cast<unsigned char>(text[i]) < 0x80; };
  if (ascii(at) && text[at] != '\r' && (at + 1 == text.size() || ascii(at + 1)))
    return at + 1;
  int state = 0;
  size_t end = at;
  char32_t before = nextChar(text, end);
  while (end < text.size()) {
    size_t behind = end;
    char32_t after = nextChar(text, behind);
    if (isGraphemeBreak(before, after, state))
      break;
    before = after;
    end = behind;
  }
  return end;
}

} // namespace

Result<CharsMap> CharsMap::parse(std::string_view bytes) {
  Status malformed(Code::ArtifactRefused, "the character map is cut off");
  if (bytes.size() < 4)
    return malformed;
  size_t size = word(bytes, 0);
  if (size % 4 != 0 || size == 0 || size > bytes.size() - 4)
    return malformed;
  CharsMap map;
  map.units_.resize(size / 4);
  for (size_t i = 0; i < map.units_.size(); ++i)
    map.units_[i] = word(bytes, 4 + 4 * i);
  map.strings_ = bytes.substr(4 + size);
  if (!isUtf8(map.strings_))
    return Status(Code::ArtifactRefused, "the character map holds invalid UTF-8");
  return map;
}

std::optional<std::string_view> CharsMap::find(std::string_view chunk) const {
  auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  uint32_t node = offset(units_[0]);
  for (char c : chunk) {
    auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (byte == 0 || node >= units_.size())
      return std::nullopt;
    uint32_t unit = units_[node];
    if ((unit & (1u << 31 | 0xFFu)) != byte)
      return std::nullopt;
    node ^= offset(unit);
    if (!(unit >> 8 & 1))
      continue;
    size_t begin = node < units_.size() ? units_[node] & 0x7FFFFFFF : strings_.size();
    if (begin >= strings_.size())
      return std::nullopt;
    std::string_view found = std::string_view(strings_).substr(begin);
    return found.substr(0, found.find('\0'));
  }
  return std::nullopt;
}

std::string CharsMap::apply(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    std::string_view cluster = text.substr(at, clusterEnd(text, at) - at);
    at += cluster.size();
    if (cluster.size() < 6)
      if (std::optional<std::string_view> found = find(cluster)) {
        result.append(*found);
        continue;
      }
    for (size_t begin = 0, end = 0; begin < cluster.size(); begin = end) {
      nextChar(cluster, end);
      std::string_view part = cluster.substr(begin, end - begin);
      result.append(find(part).value_or(part));
    }
  }
  return result;
}

Result<std::string> decodeBase64(std::string_view text) {
  Status malformed(Code::ArtifactRefused, "the character map is not base64");
  if (text.size() % 4 != 0)
    return malformed;
  size_t padding = text.size() - (text.find_last_not_of('=') + 1);
  if (padding > 2)
    return malformed;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    static constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t digit = i < text.size() - padding ? alphabet.find(text[i]) : 0;
    if (digit == std::string_view::npos)
      return malformed;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 == 3) {
      for (int shift : {16, 8, 0})
        bytes += static_cast<char>(bits >> shift & 0xFF);
      bits = 0;
    }
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

} // namespace transept::text
