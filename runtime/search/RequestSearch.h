// The search for one request: which hypotheses live, what a step's scores make of them, and what is returned.
#ifndef TRANSEPT_RUNTIME_SEARCH_REQUESTSEARCH_H
#define TRANSEPT_RUNTIME_SEARCH_REQUESTSEARCH_H

#include "runtime/search/AlignmentLog.h"
#include "runtime/search/AllowedTokens.h"
#include "runtime/search/Rules.h"
#include "runtime/search/Settings.h"
#include "runtime/search/Stepper.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace transept::search {

enum class Finish { Eos, Length, Time };

const char *finishName(Finish finish);

struct Hypothesis {
  std::vector<int64_t> ids; // prompt and end token included
  std::optional<double> score;
  std::vector<double> tokenScores; // one per generated token, where asked for
  Alignment alignment;             // where asked for
  Finish finish = Finish::Length;
};

/// One step at a time: prepare(), a step of the rows it offers, advance() with their results; until done().
/// All memory is allocated by create(); steps allocate nothing, unless they keep alignments.
class RequestSearch {
public:
  /// `positions`: positions the model can compute, 0 for any. `settings` passed checkSettings() for it and stays alive.
  /// `stepwise`: the prompt is fed one position per step. `source` as in Rules.
  static std::unique_ptr<RequestSearch> create(const Settings &settings, int64_t vocabulary, int64_t positions,
                                               bool stepwise, Span<const int64_t> source = {});
  virtual ~RequestSearch() = default;

  /// What a search will need, without making one.
  struct Extent {
    int64_t limit = 0; // as limit()
    int64_t specials = 0;
  };
  static Extent extentOf(const Settings &settings, int64_t vocabulary, int64_t positions,
                         Span<const int64_t> source = {});

  /// max_time counts from here, at first from create().
  void startClock() { start_ = std::chrono::steady_clock::now(); }

  const Settings &settings() const { return settings_; }
  /// Longest sequence this search makes.
  int64_t limit() const { return limit_; }
  int64_t maxSpecials() const { return rules_.capacity(); }

  /// Collects the special sets of the rows.
  void prepare();

  int32_t rows() const { return static_cast<int32_t>(live_.size()); }
  Span<const int64_t> tokens(int32_t row) const {
    return {bank_[current_].data() + row * limit_, static_cast<size_t>(length_)};
  }
  /// The row of the previous step that this one continues, -1 for the first step.
  int32_t parent(int32_t row) const { return live_[row].parent; }
  Span<const int32_t> specials(int32_t row) const { return sets_[row].tokens; }
  double score(int32_t row) const { return live_[row].score; }
  /// All tokens that it may generate, ascending; none where it may generate any.
  Span<const int32_t> allowed() const { return allowed_.tokens(); }

  /// Whether the next step chooses tokens whose alignment is wanted.
  bool wantsWeights() const { return log_.wanted() && length_ >= prompt_; }
  /// As StepWants::ahead, after prepare().
  int32_t ahead() const;
  bool wantsLogits() const { return settings_.doSample || settings_.renormalizeLogits || allowed_.any(); }
  /// Whether it looks at nothing but the best token and the special set.
  virtual bool wantsBestOnly() const { return false; }
  /// Keeps the attention of all rows in the step that advance() is about to be told of; `first` is the row of the
  /// stepper that row 0 is. Positions of the source from `source` on are padding.
  void keepWeights(const Stepper &stepper, int32_t first, int64_t source);
  /// Takes the results of all rows, in their order.
  Status advance(const StepResult *results);

  bool done() const { return done_; }
  /// Tokens, prompt included, that every hypothesis in sight begins with.
  Span<const int64_t> certain() const;
  /// The answer, best first; empty before done().
  std::vector<Hypothesis> hypotheses() const;
  /// Generated tokens of all returned hypotheses.
  int64_t promptLength() const { return prompt_; }

protected:
  struct Live {
    double score = 0;
    int32_t parent = -1;
    int32_t kept = -1; // entry of the log for its last token
  };
  struct Candidate {
    double score;
    int32_t row;
    int32_t token;
  };
  struct Finished {
    double score;
    int32_t slot; // in finishedTokens_
    int64_t length;
    Finish finish;
    int32_t kept;
  };

  RequestSearch(const Settings &settings, int64_t vocabulary, int64_t positions, bool stepwise,
                Span<const int64_t> source);

  virtual Status select(const StepResult *results) = 0;
  /// `settled` hypotheses or, where the algorithm falls back to them, live ones.
  virtual bool returnsLive() const { return false; }
  virtual double normalised(double score, int64_t length) const = 0;

  /// The best `count` continuations by total log-probability; ties: lower row, then lower token. Excluded ones are left
  /// out.
  void gather(const StepResult *results, int64_t count);
  /// Makes `chosen` (of candidates_) the live hypotheses, one token longer.
  void continueWith(const std::vector<int32_t> &chosen);
  /// Adds a continuation to the finished hypotheses where it is among the best num_beams; ties: the earlier one.
  void finish(const Candidate &candidate, double score, Finish how);
  bool timeIsUp() const;
  Status nothingAllowed() const;
  /// Length of the hypotheses after the token being chosen.
  int64_t nextLength() const { return length_ + 1; }

  /// The entry of the log for row `row` of this step, -1 for none.
  int32_t kept(int32_t row) const { return firstKept_ < 0 ? -1 : firstKept_ + row; }

  const Settings &settings_;
  const int64_t vocabulary_, prompt_, limit_;
  Rules rules_;
  int64_t length_ = 0; // of the live hypotheses as fed to the model
  std::vector<Live> live_, nextLive_;
  std::vector<SpecialSet> sets_;
  std::vector<double> special_; // scores of a row's special set
  std::vector<Candidate> candidates_;
  std::vector<int32_t> chosen_;
  std::vector<Finished> finished_; // best first
  std::vector<int32_t> freeSlots_;
  std::vector<int64_t> bank_[2], finishedTokens_;     // [num_beams][limit]
  std::vector<double> scoreBank_[2], finishedScores_; // token scores, same shape; empty unless asked for
  int current_ = 0;
  bool done_ = false;
  Finish liveFinish_ = Finish::Length;
  std::chrono::steady_clock::time_point start_;

private:
  double normaliser(const SpecialSet &set, const StepResult &result) const;

  AlignmentLog log_;
  AllowedTokens allowed_;
  int32_t firstKept_ = -1;
};

} // namespace transept::search

#endif
