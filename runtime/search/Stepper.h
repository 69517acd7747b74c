// What a search asks of a model: one more position for each live hypothesis.
#ifndef TRANSEPT_RUNTIME_SEARCH_STEPPER_H
#define TRANSEPT_RUNTIME_SEARCH_STEPPER_H

#include "runtime/Span.h"
#include "runtime/Status.h"

#include <cstdint>

namespace transept::search {

/// A live hypothesis; the step computes the scores of the token after it.
struct StepRow {
  Span<const int64_t> tokens;   // the hypothesis so far, prompt included
  int32_t source = 0;           // source slot of its request
  int32_t parent = -1;          // row of the previous step that it continues by one token; -1: a new one
  Span<const int32_t> specials; // ascending; kept apart from the best tokens
  // Of the search it belongs to, whose rows are neighbours:
  int32_t member = 0, beams = 1;    // which of its rows it is, of how many
  double score = 0;                 // what its continuations are compared by with those of the others, so far
  Span<const int32_t> allowed = {}; // tokens that its rows may generate, ascending; empty: any
};

/// Pointers are valid until the next step.
struct StepResult {
  double logSum = 0;             // log of the sum of exponentials over the whole vocabulary
  const float *values = nullptr; // the largest raw logits outside the special set, descending, ties: lower token first
  const int32_t *tokens = nullptr; // their tokens
  int32_t count = 0;               // as many as the session was set up for, fewer where the vocabulary ends
  const float *specials = nullptr; // raw logits of the special tokens, in their order
  const float *logits = nullptr; // raw logits of the vocabulary outside the special set; null where not kept or wanted
  /// Where this is not null, there is nothing but raw logits of all tokens that the row's search may generate: that of
  /// token t is logits[places[t]].
  const int32_t *places = nullptr;
  bool finite = true; // false: a logit is not a number, or +infinity
};

/// Attention weights over the source of one row, layer by layer. Valid until the next step.
struct AttentionWeights {
  const float *weights = nullptr; // [heads][source]
  int64_t heads = 0, source = 0;
};

/// What is wanted of a step beside the results of the search head.
struct StepWants {
  bool weights = false; // of attention over the source
  bool logits = false;  // StepResult::logits, which may be null otherwise
  /// So many steps are likely to follow in which the rows of each search are the best continuations of its rows by
  /// tokens outside the special sets, best first, with the same special sets. They may be computed now; whether they
  /// are taken is decided step by step.
  int32_t ahead = 0;
  /// Nothing but the best token outside the special set, and the logits of that: logSum may mean nothing.
  bool best = false;
};

class Stepper {
public:
  virtual ~Stepper() = default;

  /// Whether every position of a hypothesis must be stepped through once, in order (a cache). Otherwise a step computes
  /// from all tokens of its rows, which must be equally many.
  virtual bool incremental() const = 0;

  /// Whether a new row may begin with several tokens; else a row of a cache grows by one token per step from the first
  /// one on.
  virtual bool promptAtOnce() const { return !incremental(); }

  virtual int64_t vocabulary() const = 0;

  /// `rows` replace the rows of the previous step; those that are nobody's parent are forgotten.
  virtual Status step(Span<const StepRow> rows, StepWants wants = {}) = 0;

  virtual StepResult result(int32_t row) const = 0;

  /// Layers of attention over the source; 0 where the model reports none.
  virtual int64_t attentionLayers() const { return 0; }
  /// Of the last step, which was one with weights.
  virtual AttentionWeights attention(int64_t layer, int32_t row) const {
    (void)layer, (void)row;
    return {};
  }
};

} // namespace transept::search

#endif
