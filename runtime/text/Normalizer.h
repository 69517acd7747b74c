// The "normalizer" section of tokenizer.json.
#ifndef TRANSEPT_RUNTIME_TEXT_NORMALIZER_H
#define TRANSEPT_RUNTIME_TEXT_NORMALIZER_H

#include "runtime/Status.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace transept::text {

/// Immutable, shared by threads.
class Normalizer {
public:
  virtual ~Normalizer() = default;

  /// Changes `text`. `first` says whether its beginning is that of the text as it was given; cleared where characters
  /// are taken away in front.
  virtual Status apply(std::string &text, bool &first) const = 0;
};

/// Null for a null. Code::Unsupported for a type or key that is not implemented, by name.
Result<std::shared_ptr<const Normalizer>> makeNormalizer(const nlohmann::json &spec, int depth = 0);

/// The character that stands for a byte in byte-level vocabularies, in UTF-8.
std::string_view byteLevelChar(unsigned char byte);

} // namespace transept::text

#endif
