#include "runtime/search/AllowedTokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace transept::search {

namespace {
constexpr float excluded = -std::numeric_limits<float>::infinity();
}

AllowedTokens::AllowedTokens(const Settings &settings, int64_t vocabulary, int64_t specials) {
  if (settings.allowedTokenIds.empty())
    return;
  auto add = [&](const std::vector<int64_t> &tokens) { tokens_.insert(tokens_.end(), tokens.begin(), tokens.end()); };
  add(settings.allowedTokenIds);
  add(settings.eosTokenId);
  add(settings.forcedEosTokenId);
  if (settings.forcedBosTokenId)
    tokens_.push_back(static_cast<int32_t>(*settings.forcedBosTokenId));
  for (const ForcedToken &forced : settings.forcedDecoderIds)
    tokens_.push_back(static_cast<int32_t>(forced.token));
  std::sort(tokens_.begin(), tokens_.end());
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end()), tokens_.end());

  const auto best = static_cast<size_t>(std::min(settings.candidates(), vocabulary));
  const bool keepsLogits = settings.doSample || settings.renormalizeLogits;
  found_.resize(tokens_.size());
  rows_.resize(static_cast<size_t>(settings.width()));
  results_.resize(rows_.size());
  for (Row &row : rows_) {
    row.values.resize(best);
    row.tokens.resize(best);
    row.specials.resize(static_cast<size_t>(specials));
    if (keepsLogits)
      row.logits.assign(static_cast<size_t>(vocabulary), excluded);
  }
}

int64_t AllowedTokens::most(const Settings &settings) {
  if (settings.allowedTokenIds.empty())
    return 0;
  return static_cast<int64_t>(settings.allowedTokenIds.size() + settings.eosTokenId.size() +
                              settings.forcedEosTokenId.size() + settings.forcedDecoderIds.size() + 1);
}

Status AllowedTokens::restrict(Span<const StepResult> rows, const std::vector<SpecialSet> &sets) {
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row].logits)
      return {Code::InvalidInput, "the artifact keeps no logits, which allowed_token_ids needs"};
    results_[row] = restrictRow(rows[row], sets[row], rows_[row]);
  }
  return Status::success();
}

StepResult AllowedTokens::restrictRow(const StepResult &whole, const SpecialSet &set, Row &row) {
  std::fill(row.specials.begin(), row.specials.end(), excluded);
  size_t special = 0;
  int32_t count = 0;
  double maximum = excluded;
  StepResult result;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const int32_t token = tokens_[i];
    while (special < set.tokens.size() && set.tokens[special] < token)
      ++special;
    const bool isSpecial = special < set.tokens.size() && set.tokens[special] == token;
    const float logit = found_[i] = whole.places ? whole.logits[whole.places[token]]
                                    : isSpecial  ? whole.specials[special]
                                                 : whole.logits[token];
    result.finite = result.finite && !std::isnan(logit);
    maximum = std::max<double>(maximum, logit);
    if (!row.logits.empty())
      row.logits[token] = isSpecial ? excluded : logit;
    if (isSpecial) {
      row.specials[special] = logit;
      continue;
    }
    // Tokens ascend, so an equal value that comes later goes behind.
    const auto most = static_cast<int32_t>(row.values.size());
    if (!(logit > excluded) || (count == most && !(logit > row.values[count - 1])))
      continue;
    int32_t place = count < most ? count++ : count - 1;
    for (; place > 0 && logit > row.values[place - 1]; --place) {
      row.values[place] = row.values[place - 1];
      row.tokens[place] = row.tokens[place - 1];
    }
    row.values[place] = logit;
    row.tokens[place] = token;
  }
  double sum = 0;
  for (float logit : found_)
    sum += std::exp(logit - maximum);
  result.logSum = maximum + std::log(sum);
  result.finite = result.finite && std::isfinite(result.logSum);
  result.values = row.values.data();
  result.tokens = row.tokens.data();
  result.count = count;
  result.specials = row.specials.data();
  result.logits = row.logits.empty() ? nullptr : row.logits.data();
  return result;
}

} // namespace transept::search
