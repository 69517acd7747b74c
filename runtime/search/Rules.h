// The score rules of transformers, in its order, over the few tokens they touch.
//
// Before a step a row's special set is collected: every token a rule bans, forces or re-weights at that step. The head
// reports the raw logits of these tokens apart from the best others; rules then change the scores of the set only.
#ifndef TRANSEPT_RUNTIME_SEARCH_RULES_H
#define TRANSEPT_RUNTIME_SEARCH_RULES_H

#include "runtime/Span.h"
#include "runtime/search/Settings.h"

#include <cstdint>
#include <vector>

namespace transept::search {

/// The special set of a row and what happens to it. Memory is kept between uses.
struct SpecialSet {
  std::vector<int32_t> tokens;  // ascending, each once
  std::vector<uint8_t> actions; // of Rules::Action, one per token
  bool forced = false;          // all tokens outside the set are excluded
};

/// The rules of one request. Not thread-safe: collect() uses memory of the object.
class Rules {
public:
  /// End does nothing to the score: the token ends a hypothesis, so no step follows it.
  enum Action : uint8_t { Penalise = 1, Ban = 2, Force = 4, Suppress = 8, End = 16 };

  /// `prompt` is the length of the decoder prompt, `limit` the longest sequence of the settings, `vocabulary` above all
  /// token ids of the settings.
  /// `source` are the encoder's token ids, which stay alive; empty where it takes none.
  Rules(const Settings &settings, int64_t prompt, int64_t limit, int64_t vocabulary, Span<const int64_t> source = {});

  /// Most tokens a special set can have.
  int64_t capacity() const { return capacity_; }

  /// The special set for the token after `hypothesis` (prompt included). Allocates nothing once `set` has grown to
  /// capacity() tokens.
  void collect(Span<const int64_t> hypothesis, SpecialSet &set);

  /// Applies all rules but renormalisation to `scores`, the raw logits or log-probabilities of set.tokens.
  /// -infinity means excluded.
  void apply(const SpecialSet &set, double *scores) const;

  /// For how many hypotheses longer than `length`, one token each, collect() gives `set` again, whatever the tokens
  /// are, and no token of it is one that a hypothesis goes on with.
  int64_t steadyFor(int64_t length, const SpecialSet &set) const;

  bool isEos(int64_t token) const;

private:
  void mark(int64_t token, Action action, SpecialSet &set);

  const Settings &settings_;
  Span<const int64_t> source_;
  int64_t limit_, capacity_ = 0;
  bool setsEndsApart_ = false; // end tokens are always in the set
  int64_t minLength_ = 0;      // no end token below this length
  int64_t beginIndex_ = 0;     // length at which begin_suppress_tokens acts
  std::vector<uint8_t> marks_; // actions by token, zero between calls
};

} // namespace transept::search

#endif
