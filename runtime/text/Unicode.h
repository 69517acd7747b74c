// What tokenizers must know of Unicode: code points, properties, normal forms. Tables are those of utf8proc.
#ifndef TRANSEPT_RUNTIME_TEXT_UNICODE_H
#define TRANSEPT_RUNTIME_TEXT_UNICODE_H

#include <cstddef>
#include <string>
#include <string_view>

namespace transept::text {

bool isUtf8(std::string_view bytes);

/// The code point that begins at text[at], which is moved behind it. A malformed byte is U+FFFD.
char32_t nextChar(std::string_view text, size_t &at);
/// The code point that ends at text[at], which is moved in front of it; `at` > 0.
char32_t previousChar(std::string_view text, size_t &at);
void appendChar(std::string &text, char32_t c);
size_t countChars(std::string_view text);

/// Properties by their Unicode names.
bool isWhitespace(char32_t c);  // White_Space
bool isLetter(char32_t c);      // L
bool isNumber(char32_t c);      // N
bool isMark(char32_t c);        // M
bool isNonspacing(char32_t c);  // Mn
bool isOther(char32_t c);       // C without unassigned code points
bool isUnassigned(char32_t c);  // Cn
bool isPunctuation(char32_t c); // P, or an ASCII character that is no letter, digit, space or control
bool isWord(char32_t c);        // \w of regular expressions: Alphabetic, M, Nd, Pc, Join_Control

/// Whether there is a boundary of extended grapheme clusters between two code points. `state` is 0 at the beginning of
/// a text and belongs to one scan.
bool isGraphemeBreak(char32_t before, char32_t after, int &state);

/// Each code point by itself, with full mappings: no final sigma.
std::string lowercase(std::string_view text);

enum class NormalForm { C, D, KC, KD };
std::string normalForm(std::string_view text, NormalForm form);

/// All occurrences, from the left, without overlap. `from` is not empty.
std::string replaceAll(std::string_view text, std::string_view from, std::string_view to);

} // namespace transept::text

#endif
