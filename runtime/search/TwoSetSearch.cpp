#include "runtime/search/Algorithms.h"

#include <cmath>

namespace transept::search {

double TwoSetSearch::normalised(double score, int64_t length) const {
  return score / std::pow((5.0 + static_cast<double>(length - prompt_)) / 6.0, settings_.lengthPenalty);
}

Status TwoSetSearch::select(const StepResult *results) {
  gather(results, settings_.candidates());
  size_t beams = static_cast<size_t>(settings_.numBeams);
  int64_t length = nextLength();
  chosen_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (rules_.isEos(candidates_[i].token))
      finish(candidates_[i], normalised(candidates_[i].score, length), Finish::Eos);
    else if (chosen_.size() < beams)
      chosen_.push_back(static_cast<int32_t>(i));
  }
  if (chosen_.empty()) {
    done_ = true;
    return finished_.empty() ? nothingAllowed() : Status::success();
  }
  // What an alive hypothesis would score at the limit bounds what it can reach.
  double reachable = normalised(candidates_[chosen_[0]].score, limit_);
  done_ = length >= limit_ || timeIsUp() || (finished_.size() == beams && reachable <= finished_.back().score);
  liveFinish_ = length >= limit_ ? Finish::Length : Finish::Time;
  continueWith(chosen_);
  return Status::success();
}

} // namespace transept::search
