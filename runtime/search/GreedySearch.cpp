#include "runtime/search/Algorithms.h"

#include <cmath>
#include <limits>

namespace transept::search {

Status GreedySearch::select(const StepResult *results) {
  const StepResult &result = results[0];
  const SpecialSet &set = sets_[0];
  for (size_t i = 0; i < set.tokens.size(); ++i)
    special_[i] = result.specials[i];
  rules_.apply(set, special_.data());

  double best = -std::numeric_limits<double>::infinity(), raw = 0;
  int32_t token = -1;
  if (!set.forced && result.count > 0 && result.values[0] > best) {
    best = raw = result.values[0];
    token = result.tokens[0];
  }
  for (size_t i = 0; i < set.tokens.size(); ++i)
    if (special_[i] > best || (special_[i] == best && token >= 0 && set.tokens[i] < token)) {
      best = special_[i];
      raw = result.specials[i];
      token = set.tokens[i];
    }
  if (token < 0)
    return nothingAllowed();

  candidates_.assign(1, {live_[0].score + (raw - result.logSum), 0, token});
  chosen_.assign(1, 0);
  continueWith(chosen_);
  if (rules_.isEos(token))
    liveFinish_ = Finish::Eos;
  else if (length_ >= limit_)
    liveFinish_ = Finish::Length;
  else if (timeIsUp())
    liveFinish_ = Finish::Time;
  else
    return Status::success();
  done_ = true;
  return Status::success();
}

double GreedySearch::normalised(double score, int64_t length) const {
  return score / std::pow(static_cast<double>(length - prompt_), settings_.lengthPenalty);
}

} // namespace transept::search
