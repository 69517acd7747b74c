#include "runtime/search/Algorithms.h"
#include "runtime/search/Philox.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace transept::search {

namespace {
constexpr double excluded = -std::numeric_limits<double>::infinity();
}

SampleSearch::SampleSearch(const Settings &settings, int64_t vocabulary, int64_t positions, bool stepwise,
                           Span<const int64_t> source)
    : RequestSearch(settings, vocabulary, positions, stepwise, source), scores_(static_cast<size_t>(vocabulary)) {
  sorted_.reserve(scores_.size());
  shares_.reserve(scores_.size());
  sequences_.reserve(static_cast<size_t>(settings.width()));
  nextSequences_.reserve(static_cast<size_t>(settings.width()));
}

void SampleSearch::weigh(int32_t row, const StepResult &result) {
  const SpecialSet &set = sets_[row];
  if (set.forced)
    std::fill(scores_.begin(), scores_.end(), excluded);
  else
    std::copy_n(result.logits, scores_.size(), scores_.begin());
  for (size_t i = 0; i < set.tokens.size(); ++i)
    special_[i] = result.specials[i];
  rules_.apply(set, special_.data());
  for (size_t i = 0; i < set.tokens.size(); ++i)
    scores_[set.tokens[i]] = special_[i];
  for (double &score : scores_)
    score /= settings_.temperature;

  // top_k keeps whatever is as good as the k-th best.
  double least = excluded;
  if (settings_.topK > 0 && settings_.topK < static_cast<int64_t>(scores_.size())) {
    sorted_ = scores_;
    auto kth = sorted_.begin() + (settings_.topK - 1);
    std::nth_element(sorted_.begin(), kth, sorted_.end(), std::greater<double>());
    least = *kth;
  }
  shares_.clear();
  for (size_t token = 0; token < scores_.size(); ++token)
    if (scores_[token] > excluded && scores_[token] >= least)
      shares_.push_back({scores_[token], static_cast<int32_t>(token)});
  std::sort(shares_.begin(), shares_.end(), [](const Share &a, const Share &b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  });
  if (shares_.empty())
    return;
  double best = shares_[0].weight, total = 0;
  for (Share &share : shares_)
    total += share.weight = std::exp(share.weight - best);
  // top_p drops the least likely ones as long as they have 1 - top_p or less together.
  double dropped = 0;
  while (settings_.topP < 1 && shares_.size() > 1) {
    dropped += shares_.back().weight / total;
    if (dropped > 1 - settings_.topP)
      break;
    shares_.pop_back();
  }
}

Status SampleSearch::select(const StepResult *results) {
  if (sequences_.empty()) // all of them continue the prompt
    sequences_.assign(static_cast<size_t>(settings_.width()), -1);
  bool first = sequences_[0] < 0;
  int64_t length = nextLength();
  candidates_.clear();
  chosen_.clear();
  nextSequences_.clear();
  for (size_t i = 0; i < sequences_.size(); ++i) {
    int32_t row = first ? 0 : static_cast<int32_t>(i), sequence = first ? static_cast<int32_t>(i) : sequences_[i];
    const StepResult &result = results[row];
    if (!result.logits)
      return {Code::InvalidInput, "the artifact keeps no logits, which do_sample needs"};
    weigh(row, result);
    if (shares_.empty())
      return nothingAllowed();
    double total = 0;
    for (const Share &share : shares_)
      total += share.weight;
    double left = uniformNumber(static_cast<uint64_t>(settings_.seed), static_cast<uint64_t>(sequence),
                                static_cast<uint64_t>(length_ - prompt_)) *
                  total;
    size_t drawn = 0;
    while (drawn + 1 < shares_.size() && left >= shares_[drawn].weight)
      left -= shares_[drawn++].weight;
    int32_t token = shares_[drawn].token;

    const SpecialSet &set = sets_[row];
    auto special = std::lower_bound(set.tokens.begin(), set.tokens.end(), token);
    double raw = special != set.tokens.end() && *special == token ? result.specials[special - set.tokens.begin()]
                                                                  : result.logits[token];
    candidates_.push_back({live_[row].score + (raw - result.logSum), row, token});
    const Candidate &candidate = candidates_.back();
    bool eos = rules_.isEos(token), full = length >= limit_;
    if (!eos && !full && !timeIsUp()) {
      chosen_.push_back(static_cast<int32_t>(candidates_.size()) - 1);
      nextSequences_.push_back(sequence);
      continue;
    }
    // The slot of a sequence is its number: they are returned in this order.
    int64_t at = sequence * limit_;
    std::copy_n(bank_[current_].begin() + row * limit_, length_, finishedTokens_.begin() + at);
    finishedTokens_[at + length_] = token;
    if (settings_.returnTokenScores) {
      std::copy_n(scoreBank_[current_].begin() + row * limit_, length_, finishedScores_.begin() + at);
      finishedScores_[at + length_] = candidate.score - live_[row].score;
    }
    Finish how = eos ? Finish::Eos : full ? Finish::Length : Finish::Time;
    finished_.push_back({normalised(candidate.score, length), sequence, length, how, kept(row)});
  }
  std::swap(sequences_, nextSequences_);
  done_ = chosen_.empty();
  if (!done_)
    continueWith(chosen_);
  else
    std::sort(finished_.begin(), finished_.end(), [](const Finished &a, const Finished &b) { return a.slot < b.slot; });
  return Status::success();
}

double SampleSearch::normalised(double score, int64_t length) const {
  return score / std::pow(static_cast<double>(length - prompt_), settings_.lengthPenalty);
}

} // namespace transept::search
