#include "runtime/text/Unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

namespace transept::text {

namespace {

/// Bytes of a well-formed character at the beginning of `text`, and its code point; 0 where there is none.
size_t decode(std::string_view text, char32_t &c) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  auto tail = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  if (text.empty())
    return 0;
  unsigned char first = byte(0);
  if (first < 0x80) {
    c = first;
    return 1;
  }
  if (first >= 0xC2 && first < 0xE0 && tail(1)) {
    c = (first & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
    return 2;
  }
  if (first >= 0xE0 && first < 0xF0 && tail(1) && tail(2)) {
    c = (first & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    return c >= 0x800 && (c < 0xD800 || c > 0xDFFF) ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5 && tail(1) && tail(2) && tail(3)) {
    c = (first & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
    return c >= 0x10000 && c <= 0x10FFFF ? 4 : 0;
  }
  return 0;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

} // namespace

bool isUtf8(std::string_view bytes) {
  char32_t c;
  for (size_t at = 0; at < bytes.size();) {
    size_t size = static_cast<unsigned char>(bytes[at]) < 0x80 ? 1 : decode(bytes.substr(at), c);
    if (size == 0)
      return false;
    at += size;
  }
  return true;
}

char32_t nextChar(std::string_view text, size_t &at) {
  char32_t c = 0xFFFD;
  size_t size = decode(text.substr(at), c);
  at += size ? size : 1;
  return size ? c : 0xFFFD;
}

char32_t previousChar(std::string_view text, size_t &at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
    --begin;
  size_t end = begin;
  char32_t c = nextChar(text, end);
  if (end != at) { // malformed: one byte
    --at;
    return 0xFFFD;
  }
  at = begin;
  return c;
}

void appendChar(std::string &text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  }
}

size_t countChars(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

bool isWhitespace(char32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0D) ||
         (c >= 0x85 && (c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
                        c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000));
}

bool isLetter(char32_t c) {
  if (c < 0x80)
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool isNumber(char32_t c) {
  if (c < 0x80)
    return c >= '0' && c <= '9';
  utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool isMark(char32_t c) {
  utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool isNonspacing(char32_t c) { return c >= 0x80 && category(c) == UTF8PROC_CATEGORY_MN; }

bool isOther(char32_t c) {
  if (c < 0x80)
    return c < 0x20 || c == 0x7F;
  utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_CC && kind <= UTF8PROC_CATEGORY_CO;
}

bool isUnassigned(char32_t c) { return category(c) == UTF8PROC_CATEGORY_CN; }

bool isPunctuation(char32_t c) {
  if (c < 0x80)
    return c > 0x20 && c < 0x7F && !isLetter(c) && !isNumber(c);
  utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool isWord(char32_t c) {
  if (c < 0x80)
    return isLetter(c) || isNumber(c) || c == '_';
  utf8proc_category_t kind = category(c);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NL) || kind == UTF8PROC_CATEGORY_PC ||
         c == 0x200C || c == 0x200D ||
         // Other_Alphabetic symbols: enclosed letters.
         (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

bool isGraphemeBreak(char32_t before, char32_t after, int &state) {
  return utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before), static_cast<utf8proc_int32_t>(after),
                                          &state);
}

std::string lowercase(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    char32_t c = nextChar(text, at);
    if (c == 0x130) // the only one whose mapping has two code points
      result += "i\xCC\x87";
    else
      appendChar(result, c < 0x80 ? (c >= 'A' && c <= 'Z' ? c + 32 : c)
                                  : static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
  return result;
}

std::string normalForm(std::string_view text, NormalForm form) {
  if (std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x80; }))
    return std::string(text); // all forms keep ASCII
  bool compose = form == NormalForm::C || form == NormalForm::KC;
  bool compatible = form == NormalForm::KC || form == NormalForm::KD;
  auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> chars;
  chars.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t parts[32]; // the longest decomposition has 18
    int last = 0;
    auto c = static_cast<utf8proc_int32_t>(nextChar(text, at));
    utf8proc_ssize_t count = utf8proc_decompose_char(c, parts, 32, options, &last);
    if (count < 1 || count > 32)
      chars.push_back(c);
    else
      chars.insert(chars.end(), parts, parts + count);
  }
  // Canonical order: combining marks by their class. A stable sort keeps long runs of marks from costing their square.
  auto combiningClass = [](utf8proc_int32_t c) { return c < 0x300 ? 0 : utf8proc_get_property(c)->combining_class; };
  for (size_t begin = 0; begin < chars.size();) {
    if (combiningClass(chars[begin]) == 0) {
      ++begin;
      continue;
    }
    size_t end = begin + 1;
    while (end < chars.size() && combiningClass(chars[end]) != 0)
      ++end;
    std::stable_sort(chars.begin() + static_cast<std::ptrdiff_t>(begin),
                     chars.begin() + static_cast<std::ptrdiff_t>(end),
                     [&](utf8proc_int32_t a, utf8proc_int32_t b) { return combiningClass(a) < combiningClass(b); });
    begin = end;
  }
  utf8proc_ssize_t size = static_cast<utf8proc_ssize_t>(chars.size());
  if (compose)
    size = utf8proc_normalize_utf32(chars.data(), size,
                                    static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string result;
  result.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < size; ++i)
    appendChar(result, static_cast<char32_t>(chars[static_cast<size_t>(i)]));
  return result;
}

std::string replaceAll(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  size_t at = 0;
  for (size_t found; (found = text.find(from, at)) != std::string_view::npos; at = found + from.size()) {
    result.append(text, at, found - at);
    result.append(to);
  }
  result.append(text, at);
  return result;
}

} // namespace transept::text
