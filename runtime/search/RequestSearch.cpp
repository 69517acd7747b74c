#include "runtime/search/RequestSearch.h"

#include "runtime/search/Algorithms.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace transept::search {

namespace {
constexpr double excluded = -std::numeric_limits<double>::infinity();
}

const char *finishName(Finish finish) {
  switch (finish) {
  case Finish::Eos:
    return "eos";
  case Finish::Length:
    return "length";
  case Finish::Time:
    return "time";
  }
  return "";
}

std::unique_ptr<RequestSearch> RequestSearch::create(const Settings &settings, int64_t vocabulary, int64_t positions,
                                                     bool stepwise, Span<const int64_t> source) {
  if (settings.doSample)
    return std::make_unique<SampleSearch>(settings, vocabulary, positions, stepwise, source);
  if (settings.search == Algorithm::Tensor2Tensor)
    return std::make_unique<TwoSetSearch>(settings, vocabulary, positions, stepwise, source);
  if (settings.search == Algorithm::OnnxRuntime)
    return std::make_unique<OnnxRuntimeSearch>(settings, vocabulary, positions, stepwise, source);
  if (settings.numBeams == 1)
    return std::make_unique<GreedySearch>(settings, vocabulary, positions, stepwise, source);
  return std::make_unique<BeamSearch>(settings, vocabulary, positions, stepwise, source);
}

/// The last token is never fed, so a sequence may be one longer than the positions.
static int64_t sequenceLimit(const Settings &settings, int64_t prompt, int64_t positions) {
  int64_t limit = settings.lengthLimit(prompt);
  return positions > 0 ? std::min(limit, positions + 1) : limit;
}

RequestSearch::Extent RequestSearch::extentOf(const Settings &settings, int64_t vocabulary, int64_t positions,
                                              Span<const int64_t> source) {
  int64_t prompt = static_cast<int64_t>(settings.prompt().size());
  return {sequenceLimit(settings, prompt, positions),
          Rules(settings, prompt, settings.lengthLimit(prompt), vocabulary, source).capacity()};
}

RequestSearch::RequestSearch(const Settings &settings, int64_t vocabulary, int64_t positions, bool stepwise,
                             Span<const int64_t> source)
    : settings_(settings), vocabulary_(vocabulary), prompt_(static_cast<int64_t>(settings.prompt().size())),
      limit_(sequenceLimit(settings, prompt_, positions)),
      rules_(settings, prompt_, settings.lengthLimit(prompt_), vocabulary, source), log_(settings.returnAlignments),
      allowed_(settings, vocabulary, rules_.capacity()) {
  size_t beams = static_cast<size_t>(settings.width()), cells = beams * static_cast<size_t>(limit_);
  for (std::vector<int64_t> &bank : bank_)
    bank.resize(cells);
  finishedTokens_.resize(cells + limit_); // one slot to fill before the worst one is dropped
  if (settings.returnTokenScores) {
    for (std::vector<double> &bank : scoreBank_)
      bank.resize(cells);
    finishedScores_.resize(cells + limit_);
  }
  live_.reserve(beams);
  nextLive_.reserve(beams);
  sets_.resize(beams);
  special_.resize(rules_.capacity());
  candidates_.reserve(beams * static_cast<size_t>(settings.candidates() + rules_.capacity()));
  chosen_.reserve(beams);
  finished_.reserve(beams + 1);
  for (size_t slot = 0; slot <= beams; ++slot)
    freeSlots_.push_back(static_cast<int32_t>(slot));

  std::vector<int64_t> prompt = settings.prompt();
  std::copy(prompt.begin(), prompt.end(), bank_[0].begin());
  live_.push_back({});
  length_ = stepwise ? 1 : prompt_;
  done_ = prompt_ >= limit_;
  startClock();
}

void RequestSearch::prepare() {
  for (int32_t row = 0; row < rows(); ++row) {
    if (length_ < prompt_)
      sets_[row].tokens.clear();
    else
      rules_.collect(tokens(row), sets_[row]);
  }
}

int32_t RequestSearch::ahead() const {
  // Streams go one by one, so that tokens come as soon as they are known. Draws cannot be guessed, nor what a list of
  // allowed tokens leaves, nor beams where some have no hypothesis yet.
  if (length_ < prompt_ || settings_.stream || settings_.doSample || allowed_.any() || rows() < settings_.numBeams)
    return 0;
  int64_t steps = limit_ - 1 - length_;
  for (int32_t row = 0; row < rows(); ++row)
    steps = std::min(steps, rules_.steadyFor(length_, sets_[row]));
  return static_cast<int32_t>(std::clamp<int64_t>(steps, 0, std::numeric_limits<int32_t>::max()));
}

void RequestSearch::keepWeights(const Stepper &stepper, int32_t first, int64_t source) {
  for (int32_t row = 0; row < rows(); ++row) {
    int32_t entry = log_.keep(stepper, first + row, source, live_[row].kept);
    firstKept_ = row == 0 ? entry : firstKept_;
  }
}

Status RequestSearch::advance(const StepResult *results) {
  if (length_ < prompt_) { // the prompt decides the next token
    ++length_;
    live_[0].parent = 0;
    return Status::success();
  }
  if (allowed_.any()) {
    TRANSEPT_TRY(allowed_.restrict({results, live_.size()}, sets_));
    results = allowed_.results();
  }
  for (int32_t row = 0; row < rows(); ++row)
    if (!results[row].finite)
      return {Code::InvalidInput, "the model's logits are not finite at step " + std::to_string(length_ - prompt_ + 1) +
                                      " (after " + std::to_string(length_) + " decoder tokens)"};
  return select(results);
}

bool RequestSearch::timeIsUp() const {
  return settings_.maxTime > 0 &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() > settings_.maxTime;
}

Status RequestSearch::nothingAllowed() const {
  return {Code::InvalidInput,
          "the settings exclude every token at step " + std::to_string(length_ - prompt_ + 1) +
              "; relax bad_words_ids, suppress_tokens, allowed_token_ids, no_repeat_ngram_size or min_length"};
}

double RequestSearch::normaliser(const SpecialSet &set, const StepResult &result) const {
  if (set.tokens.empty())
    return 0;
  double sum = 0;
  for (size_t i = 0; i < set.tokens.size(); ++i)
    sum += std::exp(special_[i]);
  if (!set.forced) {
    size_t next = 0;
    if (result.logits) {
      for (int64_t token = 0; token < vocabulary_; ++token) {
        if (next < set.tokens.size() && set.tokens[next] == token)
          ++next;
        else
          sum += std::exp(result.logits[token] - result.logSum);
      }
    } else {
      double rest = 1;
      for (size_t i = 0; i < set.tokens.size(); ++i)
        rest -= std::exp(result.specials[i] - result.logSum);
      sum += std::max(rest, 0.0);
    }
  }
  return std::log(sum);
}

void RequestSearch::gather(const StepResult *results, int64_t count) {
  candidates_.clear();
  for (int32_t row = 0; row < rows(); ++row) {
    const StepResult &result = results[row];
    const SpecialSet &set = sets_[row];
    for (size_t i = 0; i < set.tokens.size(); ++i)
      special_[i] = result.specials[i] - result.logSum;
    rules_.apply(set, special_.data());
    double base = live_[row].score - (settings_.renormalizeLogits ? normaliser(set, result) : 0);
    auto add = [&](double score, int32_t token) {
      if (score > excluded)
        candidates_.push_back({score, row, token});
    };
    for (size_t i = 0; i < set.tokens.size(); ++i)
      add(base + special_[i], set.tokens[i]);
    if (!set.forced)
      for (int32_t i = 0; i < result.count && i < count; ++i)
        add(base + (result.values[i] - result.logSum), result.tokens[i]);
  }
  auto better = [](const Candidate &a, const Candidate &b) {
    if (a.score != b.score)
      return a.score > b.score;
    return a.row != b.row ? a.row < b.row : a.token < b.token;
  };
  size_t kept = std::min(candidates_.size(), static_cast<size_t>(count));
  std::partial_sort(candidates_.begin(), candidates_.begin() + kept, candidates_.end(), better);
  candidates_.resize(kept, {});
}

void RequestSearch::continueWith(const std::vector<int32_t> &chosen) {
  std::vector<int64_t> &from = bank_[current_], &to = bank_[1 - current_];
  nextLive_.clear();
  for (size_t row = 0; row < chosen.size(); ++row) {
    const Candidate &candidate = candidates_[chosen[row]];
    std::copy_n(from.begin() + candidate.row * limit_, length_, to.begin() + row * limit_);
    to[row * limit_ + length_] = candidate.token;
    if (settings_.returnTokenScores) {
      std::copy_n(scoreBank_[current_].begin() + candidate.row * limit_, length_,
                  scoreBank_[1 - current_].begin() + row * limit_);
      scoreBank_[1 - current_][row * limit_ + length_] = candidate.score - live_[candidate.row].score;
    }
    nextLive_.push_back({candidate.score, candidate.row, kept(candidate.row)});
  }
  std::swap(live_, nextLive_);
  current_ = 1 - current_;
  ++length_;
}

void RequestSearch::finish(const Candidate &candidate, double score, Finish how) {
  size_t beams = static_cast<size_t>(settings_.numBeams);
  if (finished_.size() == beams && !(score > finished_.back().score))
    return;
  int32_t slot = freeSlots_.back();
  freeSlots_.pop_back();
  std::copy_n(bank_[current_].begin() + candidate.row * limit_, length_, finishedTokens_.begin() + slot * limit_);
  finishedTokens_[slot * limit_ + length_] = candidate.token;
  if (settings_.returnTokenScores) {
    std::copy_n(scoreBank_[current_].begin() + candidate.row * limit_, length_,
                finishedScores_.begin() + slot * limit_);
    finishedScores_[slot * limit_ + length_] = candidate.score - live_[candidate.row].score;
  }
  auto place =
      std::find_if(finished_.begin(), finished_.end(), [&](const Finished &other) { return score > other.score; });
  finished_.insert(place, {score, slot, length_ + 1, how, kept(candidate.row)});
  if (finished_.size() > beams) {
    freeSlots_.push_back(finished_.back().slot);
    finished_.pop_back();
  }
}

Span<const int64_t> RequestSearch::certain() const {
  Span<const int64_t> shared = tokens(0);
  size_t length = std::max<size_t>(shared.size(), prompt_);
  if (live_.empty() && finished_.empty())
    return {};
  const int64_t *first = live_.empty() ? finishedTokens_.data() + finished_[0].slot * limit_ : shared.data();
  auto shorten = [&](const int64_t *other, size_t size) {
    length = std::min<size_t>(length, std::mismatch(first, first + std::min(length, size), other).first - first);
  };
  for (int32_t row = 1; row < rows(); ++row)
    shorten(tokens(row).data(), tokens(row).size());
  for (const Finished &finished : finished_)
    shorten(finishedTokens_.data() + finished.slot * limit_, static_cast<size_t>(finished.length));
  return {first, length};
}

std::vector<Hypothesis> RequestSearch::hypotheses() const {
  std::vector<Hypothesis> list;
  if (!done_)
    return list;
  auto add = [&](const int64_t *ids, const double *scores, int64_t length, double score, Finish how, int32_t kept) {
    if (static_cast<int64_t>(list.size()) == settings_.numReturnSequences)
      return;
    bool greedy = settings_.numBeams == 1 && settings_.search == Algorithm::Transformers;
    Hypothesis hypothesis;
    hypothesis.ids.assign(ids, ids + length);
    hypothesis.finish = how;
    if (log_.wanted())
      hypothesis.alignment = log_.upTo(kept);
    if (!greedy || settings_.returnTokenScores)
      hypothesis.score = score;
    if (scores)
      hypothesis.tokenScores.assign(scores + prompt_, scores + length);
    list.push_back(std::move(hypothesis));
  };
  auto at = [&](const std::vector<double> &bank, int64_t row) {
    return bank.empty() ? nullptr : bank.data() + row * limit_;
  };
  if (returnsLive()) {
    for (int32_t row = 0; row < rows(); ++row)
      add(tokens(row).data(), at(scoreBank_[current_], row), length_, normalised(live_[row].score, length_),
          liveFinish_, live_[row].kept);
  } else {
    for (const Finished &f : finished_)
      add(finishedTokens_.data() + f.slot * limit_, at(finishedScores_, f.slot), f.length, f.score, f.finish, f.kept);
  }
  return list;
}

} // namespace transept::search
