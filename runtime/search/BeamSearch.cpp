#include "runtime/search/Algorithms.h"

#include <cmath>

namespace transept::search {

double BeamSearch::normalised(double score, int64_t length) const {
  return score / std::pow(static_cast<double>(length - prompt_), settings_.lengthPenalty);
}

Status BeamSearch::select(const StepResult *results) {
  gather(results, settings_.candidates());
  size_t beams = static_cast<size_t>(settings_.numBeams);
  int64_t length = nextLength();
  bool atLimit = length >= limit_, late = timeIsUp();
  bool early = settings_.earlyStopping == EarlyStopping::Yes;

  bool full = early && finished_.size() == beams;
  chosen_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    bool eos = rules_.isEos(candidates_[i].token);
    if (!eos && !atLimit && !late) {
      if (chosen_.size() < beams)
        chosen_.push_back(static_cast<int32_t>(i));
    } else if (i < beams && !full) { // only one of the best num_beams candidates can finish
      finish(candidates_[i], normalised(candidates_[i].score, length),
             eos       ? Finish::Eos
             : atLimit ? Finish::Length
                       : Finish::Time);
    }
  }

  done_ = chosen_.empty();
  if (!done_ && finished_.size() == beams) {
    // The best that the best live hypothesis can still reach, by the heuristic of transformers.
    bool never = settings_.earlyStopping == EarlyStopping::Never && settings_.lengthPenalty > 0;
    double reachable = normalised(candidates_[chosen_[0]].score, never ? limit_ : length);
    done_ = early || reachable <= finished_.back().score;
  }
  if (!done_)
    continueWith(chosen_);
  else if (finished_.empty())
    return nothingAllowed();
  return Status::success();
}

} // namespace transept::search
