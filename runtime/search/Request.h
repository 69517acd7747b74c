// One request, and what becomes of it.
#ifndef TRANSEPT_RUNTIME_SEARCH_REQUEST_H
#define TRANSEPT_RUNTIME_SEARCH_REQUEST_H

#include "runtime/search/RequestSearch.h"
#include "runtime/search/Settings.h"
#include "runtime/search/Source.h"
#include "runtime/text/Tokenizer.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <vector>

namespace transept::search {

/// One request and, once it is done, its answer.
struct Request {
  nlohmann::ordered_json id; // echoed; null: none
  Settings settings;
  LanguagePair languages;
  Source source;
  int64_t truncatedTokens = 0; // cut off the source
  /// Called after each step of a request with `stream` set, with the tokens that are certain so far, prompt excluded.
  std::function<void(Span<const int64_t> certain)> onTokens;

  Status status; // of this request alone
  std::vector<Hypothesis> hypotheses;
  int64_t promptTokens = 0;
  int64_t inputTokens = 0;
  int64_t outputTokens = 0; // generated ones, in all returned hypotheses
};

} // namespace transept::search

#endif
