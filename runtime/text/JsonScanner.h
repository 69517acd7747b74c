// Reads JSON without building values: vocabularies have hundreds of thousands of entries.
#ifndef TRANSEPT_RUNTIME_TEXT_JSONSCANNER_H
#define TRANSEPT_RUNTIME_TEXT_JSONSCANNER_H

#include "runtime/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace transept::text {

/// Walks over a text of valid UTF-8. Errors are Code::ArtifactRefused and name the byte.
class JsonScanner {
public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  size_t position() const { return at_; }
  /// The next byte that is no space, which stays; '\0' at the end.
  char peek();
  /// Takes `c` where it is next.
  bool accept(char c);
  Status expect(char c);
  Status readString(std::string &value);
  Status readInteger(int64_t &value);
  Status readNumber(double &value);
  /// Any value; only its brackets and strings are looked at.
  Status skipValue();

  /// `member(key)` reads the value of each member of an object.
  template <typename Member> Status readObject(Member &&member) {
    TRANSEPT_TRY(expect('{'));
    if (accept('}'))
      return {};
    std::string key;
    do {
      TRANSEPT_TRY(readString(key));
      TRANSEPT_TRY(expect(':'));
      TRANSEPT_TRY(member(static_cast<const std::string &>(key)));
    } while (accept(','));
    return expect('}');
  }
  /// `element()` reads each element of an array.
  template <typename Element> Status readArray(Element &&element) {
    TRANSEPT_TRY(expect('['));
    if (accept(']'))
      return {};
    do
      TRANSEPT_TRY(element());
    while (accept(','));
    return expect(']');
  }

private:
  Status error(const std::string &what) const;
  Status readEscape(std::string &value);
  Status readHex(uint32_t &value);

  std::string_view text_;
  size_t at_ = 0;
};

} // namespace transept::text

#endif
