// The results of a step for a request that may generate some tokens only.
#ifndef TRANSEPT_RUNTIME_SEARCH_ALLOWEDTOKENS_H
#define TRANSEPT_RUNTIME_SEARCH_ALLOWEDTOKENS_H

#include "runtime/search/Rules.h"
#include "runtime/search/Settings.h"
#include "runtime/search/Stepper.h"

#include <cstdint>
#include <vector>

namespace transept::search {

/// Turns the results of the whole vocabulary into those of a model whose other logits are -infinity. All memory is
/// allocated by the constructor.
class AllowedTokens {
public:
  /// Those of the settings, end tokens and forced ones; none where the settings allow all. `specials`: most tokens of a
  /// special set.
  AllowedTokens(const Settings &settings, int64_t vocabulary, int64_t specials);

  /// No fewer than tokens() of these settings will be; 0 where all are allowed.
  static int64_t most(const Settings &settings);

  bool any() const { return !tokens_.empty(); }
  Span<const int32_t> tokens() const { return {tokens_.data(), tokens_.size()}; }

  /// `sets[i]` is the special set of row i. Fails where the rows have no logits.
  Status restrict(Span<const StepResult> rows, const std::vector<SpecialSet> &sets);
  /// Of the last restrict(), by row; valid until the next one.
  const StepResult *results() const { return results_.data(); }

private:
  struct Row {
    std::vector<float> values, specials, logits;
    std::vector<int32_t> tokens;
  };
  StepResult restrictRow(const StepResult &whole, const SpecialSet &set, Row &row);

  std::vector<int32_t> tokens_; // ascending
  std::vector<float> found_;    // logits of tokens_
  std::vector<Row> rows_;
  std::vector<StepResult> results_;
};

} // namespace transept::search

#endif
