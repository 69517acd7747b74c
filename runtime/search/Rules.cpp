#include "runtime/search/Rules.h"

#include <algorithm>
#include <limits>

namespace transept::search {

namespace {
constexpr double excluded = -std::numeric_limits<double>::infinity();
}

Rules::Rules(const Settings &settings, int64_t prompt, int64_t limit, int64_t vocabulary, Span<const int64_t> source)
    : settings_(settings), source_(source), limit_(limit), marks_(vocabulary) {
  minLength_ = settings.minNewTokens ? prompt + *settings.minNewTokens : settings.minLength;
  beginIndex_ = prompt;
  if (prompt == 1 && settings.forcedBosTokenId)
    beginIndex_ = 2;
  for (const ForcedToken &forced : settings.forcedDecoderIds)
    beginIndex_ = std::max(beginIndex_, forced.position + 1);

  // Of several hypotheses those that end must not take the places of those that go on. Where every logit is looked at,
  // nothing is gained.
  bool isGreedy = settings.numBeams == 1 && settings.search == Algorithm::Transformers;
  setsEndsApart_ = !isGreedy && !settings.doSample && !settings.renormalizeLogits;

  bool history = settings.repetitionPenalty != 1.0 || settings.noRepeatNgramSize > 0;
  int64_t most = static_cast<int64_t>(settings.suppressTokens.size() + settings.beginSuppressTokens.size() +
                                      settings.badWordsIds.size() + settings.eosTokenId.size());
  if (settings.encoderNoRepeatNgramSize > 0)
    most += static_cast<int64_t>(source.size());
  most = std::max<int64_t>(most + (history ? limit : 0), settings.forcedEosTokenId.size());
  capacity_ = std::clamp<int64_t>(most, 1, std::max<int64_t>(vocabulary, 1));
}

bool Rules::isEos(int64_t token) const {
  return std::find(settings_.eosTokenId.begin(), settings_.eosTokenId.end(), token) != settings_.eosTokenId.end();
}

void Rules::mark(int64_t token, Action action, SpecialSet &set) {
  if (marks_[token] == 0)
    set.tokens.push_back(static_cast<int32_t>(token));
  marks_[token] |= action;
}

void Rules::collect(Span<const int64_t> h, SpecialSet &set) {
  const Settings &s = settings_;
  int64_t n = static_cast<int64_t>(h.size());
  set.tokens.clear();
  set.actions.clear();
  set.tokens.reserve(capacity_);
  set.actions.reserve(capacity_);

  // A forcing rule replaces all scores, so what came before it does not matter; of several the last one holds.
  for (const ForcedToken &forced : s.forcedDecoderIds)
    if (forced.position == n && set.tokens.empty())
      mark(forced.token, Force, set);
  auto forceOnly = [&](Span<const int64_t> tokens) {
    for (int32_t token : set.tokens)
      marks_[token] = 0;
    set.tokens.clear();
    for (int64_t token : tokens)
      mark(token, Force, set);
  };
  if (s.forcedBosTokenId && n == 1)
    forceOnly({&*s.forcedBosTokenId, 1});
  if (!s.forcedEosTokenId.empty() && n == limit_ - 1)
    forceOnly(s.forcedEosTokenId);
  set.forced = !set.tokens.empty();

  auto suppress = [&](const std::vector<int64_t> &tokens) {
    for (int64_t token : tokens)
      if (!set.forced || marks_[token])
        mark(token, Suppress, set);
  };
  if (!set.forced) {
    if (s.repetitionPenalty != 1.0)
      for (int64_t token : h)
        mark(token, Penalise, set);
    if (int64_t g = s.noRepeatNgramSize; g > 0)
      for (int64_t i = 0; i + g <= n; ++i)
        if (std::equal(h.begin() + i, h.begin() + i + g - 1, h.begin() + n - g + 1))
          mark(h[i + g - 1], Ban, set);
    // Ids of the source need not be ids of the target; the others cannot be generated anyway.
    if (int64_t g = s.encoderNoRepeatNgramSize; g > 0 && n + 1 >= g)
      for (int64_t i = 0; i + g <= static_cast<int64_t>(source_.size()); ++i)
        if (int64_t last = source_[i + g - 1];
            last < static_cast<int64_t>(marks_.size()) &&
            std::equal(source_.begin() + i, source_.begin() + i + g - 1, h.begin() + n - g + 1))
          mark(last, Ban, set);
    for (const std::vector<int64_t> &word : s.badWordsIds) {
      int64_t length = static_cast<int64_t>(word.size());
      if (length == 1 ? !isEos(word[0])
                      : length <= n && std::equal(word.begin(), word.end() - 1, h.end() - (length - 1)))
        mark(word.back(), Ban, set);
    }
    if (n < minLength_)
      for (int64_t token : s.eosTokenId)
        mark(token, Ban, set);
    if (setsEndsApart_)
      for (int64_t token : s.eosTokenId)
        mark(token, End, set);
  }
  suppress(s.suppressTokens);
  if (n == beginIndex_)
    suppress(s.beginSuppressTokens);

  std::sort(set.tokens.begin(), set.tokens.end());
  for (int32_t token : set.tokens) {
    set.actions.push_back(marks_[token]);
    marks_[token] = 0;
  }
}

int64_t Rules::steadyFor(int64_t length, const SpecialSet &set) const {
  const Settings &s = settings_;
  const bool dependsOnTokens =
      s.repetitionPenalty != 1.0 || s.noRepeatNgramSize > 0 || s.encoderNoRepeatNgramSize > 0 ||
      std::any_of(s.badWordsIds.begin(), s.badWordsIds.end(), [](const auto &word) { return word.size() > 1; });
  const bool goesOn = std::any_of(set.actions.begin(), set.actions.end(),
                                  [](uint8_t actions) { return (actions & (Ban | Suppress | End)) == 0; });
  if (set.forced || dependsOnTokens || goesOn)
    return 0;
  // Lengths at which something begins or ends.
  int64_t last = std::numeric_limits<int64_t>::max();
  auto changesAt = [&](int64_t at) {
    if (at > length)
      last = std::min(last, at - 1);
  };
  for (const ForcedToken &forced : s.forcedDecoderIds)
    changesAt(forced.position);
  if (!s.forcedEosTokenId.empty())
    changesAt(limit_ - 1);
  if (!s.eosTokenId.empty())
    changesAt(minLength_);
  if (!s.beginSuppressTokens.empty()) {
    changesAt(beginIndex_);
    changesAt(beginIndex_ + 1);
  }
  if (s.forcedBosTokenId)
    changesAt(1);
  return last - length;
}

void Rules::apply(const SpecialSet &set, double *scores) const {
  double penalty = settings_.repetitionPenalty;
  for (size_t i = 0; i < set.tokens.size(); ++i) {
    double &score = scores[i];
    uint8_t actions = set.actions[i];
    if (actions & Penalise)
      score = score < 0 ? score * penalty : score / penalty;
    if (actions & Ban)
      score = excluded;
    if (actions & Force)
      score = 0;
    if (actions & Suppress)
      score = excluded;
  }
}

} // namespace transept::search
