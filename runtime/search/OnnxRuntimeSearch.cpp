#include "runtime/search/Algorithms.h"

#include <cmath>

namespace transept::search {

double OnnxRuntimeSearch::normalised(double score, int64_t length) const {
  return score / std::pow(static_cast<double>(length), settings_.lengthPenalty);
}

Status OnnxRuntimeSearch::select(const StepResult *results) {
  gather(results, settings_.candidates());
  size_t beams = static_cast<size_t>(settings_.numBeams);
  int64_t length = nextLength(), before = length - 1;
  chosen_.clear();
  for (size_t i = 0; i < candidates_.size() && chosen_.size() < beams; ++i) {
    if (!rules_.isEos(candidates_[i].token))
      chosen_.push_back(static_cast<int32_t>(i));
    else if (i < beams) // only one of the best num_beams candidates can finish
      finish(candidates_[i], normalised(candidates_[i].score, before), Finish::Eos);
  }

  // The operator asks whether the best candidate of all sentences could still improve; a sentence alone is the rule
  // here, so that an answer does not depend on its batch.
  done_ = chosen_.empty();
  if (!done_ && finished_.size() == beams)
    done_ = settings_.earlyStopping == EarlyStopping::Yes ||
            normalised(candidates_[0].score, before) <= finished_.back().score;
  bool atLimit = length >= limit_;
  if (!done_ && (atLimit || timeIsUp())) {
    for (int32_t i : chosen_)
      finish(candidates_[static_cast<size_t>(i)], normalised(candidates_[static_cast<size_t>(i)].score, length),
             atLimit ? Finish::Length : Finish::Time);
    done_ = true;
  }
  if (!done_)
    continueWith(chosen_);
  else if (finished_.empty())
    return nothingAllowed();
  return Status::success();
}

} // namespace transept::search
