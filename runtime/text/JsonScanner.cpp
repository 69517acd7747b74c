#include "runtime/text/JsonScanner.h"

#include "runtime/text/Unicode.h"

#include <charconv>

namespace transept::text {

Status JsonScanner::error(const std::string &what) const {
  return {Code::ArtifactRefused, "is malformed JSON at byte " + std::to_string(at_) + ": " + what};
}

char JsonScanner::peek() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonScanner::accept(char c) {
  if (peek() != c)
    return false;
  ++at_;
  return true;
}

Status JsonScanner::expect(char c) { return accept(c) ? Status() : error(std::string("'") + c + "' is expected"); }

Status JsonScanner::readHex(uint32_t &value) {
  if (at_ + 4 > text_.size())
    return error("an escape is cut off");
  auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, value, 16);
  if (code != std::errc() || end != text_.data() + at_ + 4)
    return error("four hexadecimal digits are expected");
  at_ += 4;
  return {};
}

Status JsonScanner::readEscape(std::string &value) {
  static constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  if (at_ >= text_.size())
    return error("an escape is cut off");
  char name = text_[at_++];
  if (size_t index = names.find(name); index != std::string_view::npos) {
    value += meanings[index];
    return {};
  }
  if (name != 'u')
    return error("an unknown escape");
  uint32_t c, low;
  TRANSEPT_TRY(readHex(c));
  if (c >= 0xD800 && c <= 0xDBFF) {
    if (text_.substr(at_, 2) != "\\u")
      return error("half a surrogate pair");
    at_ += 2;
    TRANSEPT_TRY(readHex(low));
    if (low < 0xDC00 || low > 0xDFFF)
      return error("half a surrogate pair");
    c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
  } else if (c >= 0xDC00 && c <= 0xDFFF) {
    return error("half a surrogate pair");
  }
  appendChar(value, c);
  return {};
}

Status JsonScanner::readString(std::string &value) {
  TRANSEPT_TRY(expect('"'));
  value.clear();
  for (;;) {
    size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<unsigned char>(text_[at_]) >= 0x20)
      ++at_;
    value.append(text_, begin, at_ - begin);
    if (at_ >= text_.size())
      return error("a string is not closed");
    char c = text_[at_++];
    if (c == '"')
      return {};
    if (c != '\\')
      return error("a control character in a string");
    TRANSEPT_TRY(readEscape(value));
  }
}

Status JsonScanner::readInteger(int64_t &value) {
  peek();
  auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (code != std::errc() || (end < text_.data() + text_.size() && (*end == '.' || *end == 'e' || *end == 'E')))
    return error("an integer is expected");
  at_ = static_cast<size_t>(end - text_.data());
  return {};
}

Status JsonScanner::readNumber(double &value) {
  char first = peek();
  if (first != '-' && (first < '0' || first > '9'))
    return error("a number is expected");
  auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (code != std::errc())
    return error("a number is expected");
  at_ = static_cast<size_t>(end - text_.data());
  return {};
}

Status JsonScanner::skipValue() {
  constexpr size_t deepest = 64;
  std::string open; // closing brackets that are due
  std::string ignored;
  do {
    char c = peek();
    if (c == '\0')
      return error("the text ends inside of a value");
    if (c == '"') {
      TRANSEPT_TRY(readString(ignored));
    } else if (c == '{' || c == '[') {
      if (open.size() == deepest)
        return error("nested deeper than " + std::to_string(deepest));
      open += c == '{' ? '}' : ']';
      ++at_;
    } else if (!open.empty() && c == open.back()) {
      open.pop_back();
      ++at_;
    } else if (!open.empty() && (c == ',' || c == ':')) {
      ++at_;
    } else {
      size_t begin = at_;
      while (at_ < text_.size() && std::string_view(",:]}[{\" \n\t\r").find(text_[at_]) == std::string_view::npos)
        ++at_;
      if (at_ == begin)
        return error("a value is expected");
    }
  } while (!open.empty());
  return {};
}

} // namespace transept::text
