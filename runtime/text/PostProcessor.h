// The "post_processor" section of tokenizer.json: what stands around the ids of a text.
#ifndef TRANSEPT_RUNTIME_TEXT_POSTPROCESSOR_H
#define TRANSEPT_RUNTIME_TEXT_POSTPROCESSOR_H

#include "runtime/Span.h"
#include "runtime/Status.h"

#include <nlohmann/json.hpp>

#include <vector>

namespace transept::text {

/// Ids in order; `text` stands for those of the text.
struct Template {
  static constexpr int64_t text = -1;
  std::vector<int64_t> parts = {text};

  static Template around(std::vector<int64_t> before, std::vector<int64_t> after);
  std::vector<int64_t> apply(Span<const int64_t> ids) const;
  /// How many ids stand behind the text.
  int64_t behind() const;
};

/// For one text; a null adds nothing. Code::Unsupported for what is not implemented, by name.
Result<Template> makeTemplate(const nlohmann::json &spec);

} // namespace transept::text

#endif
