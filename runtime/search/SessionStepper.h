// The stepper over a session of an artifact: writes the step's states, runs the entry, reads the head's results.
#ifndef TRANSEPT_RUNTIME_SEARCH_SESSIONSTEPPER_H
#define TRANSEPT_RUNTIME_SEARCH_SESSIONSTEPPER_H

#include "runtime/Model.h"
#include "runtime/Session.h"
#include "runtime/search/BlockPool.h"
#include "runtime/search/HeadResults.h"
#include "runtime/search/ListedTokens.h"
#include "runtime/search/SourceSlots.h"
#include "runtime/search/Stepper.h"

#include <memory>
#include <optional>

namespace transept::search {

/// What a batch needs; the generation symbols follow from it.
struct Demand {
  int64_t batch = 1;     // source slots, exact
  int64_t source = 0;    // source positions of a slot, exact; 0 where the model fixes them
  int64_t rows = 1;      // this many or more, as the others
  int64_t positions = 1; // target positions that are computed
  int64_t specials = 1;
  int64_t topk = 1;
  int64_t listed = 0; // tokens that requests with a list of them may generate, all of them together
};

class SessionStepper final : public Stepper {
public:
  /// `threads` as in SessionOptions. Where the device can, up to `ahead` steps are computed at once.
  SessionStepper(std::shared_ptr<const Model> model, int threads, int32_t ahead = 1);

  /// Sets the session up for a batch, forgetting all rows. Keeps it as it is where it is large enough.
  Status prepare(const Demand &demand);

  /// What prepare() has set up, which may be more than was asked for.
  const Demand &prepared() const { return have_; }

  /// Runs the encoder for all slots; its results stay for the steps of the batch.
  Status encode(const RunArguments &arguments);

  /// Whether sources may come while others are in use.
  bool takesSourcesInBetween() const { return incremental() && slots_; }
  /// Runs the encoder for `batch` sources of `length` positions, each at most those of the session, and moves what it
  /// leaves to other slots. Uses the first `batch` slots for that, and the last one; all that are neither these nor
  /// targets of a move keep what they hold. Where slots are longer than the call, a source needs a position of padding,
  /// unless knowsPadding().
  Status encode(RunArguments arguments, int64_t batch, int64_t length, Span<const SlotMove> moves);
  /// Whether a call since prepare() has shown what padding becomes, so that what lies behind a source can be made of
  /// it.
  bool knowsPadding() const { return knowsPadding_; }

  int64_t positions() const { return generation().position_limit(); }
  int64_t sourceLimit() const { return generation().source_limit(); }
  bool incremental() const override { return generation().strategy() != "recompute"; }
  bool promptAtOnce() const override { return !incremental() || !generation().prefill().empty(); }
  int64_t vocabulary() const override { return generation().vocabulary(); }
  Status step(Span<const StepRow> rows, StepWants wants = {}) override;
  StepResult result(int32_t row) const override { return results_[row]; }
  int64_t attentionLayers() const override { return layers_; }
  AttentionWeights attention(int64_t layer, int32_t row) const override;

  /// Rows of steps that wanted the best token alone and got it from a step that screens the vocabulary, and logits that
  /// were computed exactly for them.
  struct Screened {
    int64_t rows = 0, logits = 0;
  };
  const Screened &screened() const { return screened_; }

  /// Null before the first prepare().
  Session *session() { return session_.get(); }

private:
  const program::Generation &generation() const { return model_->manifest().generation(); }
  Result<SymbolValues> symbols(const Demand &demand) const;
  Status bind();
  /// Computes the caches of what new rows begin with, all but their last token. The block table is complete.
  Status prefill(Span<const StepRow> rows);
  /// Whether the rows are those that a run ahead has computed; their results and places in the cache, then.
  Result<bool> takeAhead(Span<const StepRow> rows, StepWants wants);
  /// Forgets what was computed ahead and not taken.
  void dropAhead();
  /// How many steps to compute at once, this one counted.
  int32_t stepsAtOnce(Span<const StepRow> rows, StepWants wants) const;
  /// Notes what the steps begin with, and gives every row places for what it computes.
  Status reserveAhead(Span<const StepRow> rows, int32_t steps);
  /// Whether a step may compute the logits of listed tokens alone.
  bool hasList() const;
  /// The list, and which of it is new; and the results of a step of its tokens.
  void writeList();
  void takeListed(size_t rows);
  /// Whether the step's entry is the one that computes few logits.
  bool screens(size_t rows, StepWants wants) const;
  Status runAhead(Span<const StepRow> rows, int32_t steps, bool best);
  /// Tokens, positions, sources, parents and special sets of the rows.
  Status writeRows(Span<const StepRow> rows);
  /// From the results in memory: of the session, or of a step of the log.
  void joinResult(int32_t row, int32_t from, const uint8_t *results);
  /// Those of the first rows; null where the model keeps none.
  Result<const float *> readLogits(size_t rows);
  /// Rows that are skipped, or computed in vain by an artifact that does not skip rows, must do no harm: they compute
  /// some token at position 0, or at the first `positions` in turn, in a block that no live row uses.
  void makeIdle(int64_t begin, int64_t end, int64_t positions = 1);

  std::shared_ptr<const Model> model_;
  int threads_;
  std::unique_ptr<Session> session_;
  std::optional<SourceSlots> slots_;
  std::vector<StateCopy> copies_; // kept for its memory
  bool knowsPadding_ = false;     // the last slot begins with a position of padding
  Demand have_;
  int64_t headBlocks_ = 0, capacity_ = 0; // capacity_: target positions, row stride of the block table
  int64_t written_ = 0;                   // rows of the session whose step state is not idle

  // States of the session; see the generation contract in docs/.
  int32_t *live_ = nullptr, *source_ = nullptr, *parent_ = nullptr, *block_ = nullptr, *special_ = nullptr;
  int64_t *token_ = nullptr, *position_ = nullptr, *prefix_ = nullptr;
  int32_t *first_ = nullptr, *beams_ = nullptr;
  int32_t *bestOnly_ = nullptr; // null where all is computed anyway
  const int32_t *from_ = nullptr;
  float *score_ = nullptr; // with the three above: null where beams need the host
  int64_t prefixBytes_ = 0;
  const float *maxima_ = nullptr, *sums_ = nullptr, *values_ = nullptr, *specialLogits_ = nullptr;
  const int32_t *best_ = nullptr;

  int32_t *listTokens_ = nullptr, *fresh_ = nullptr; // null where steps compute all logits
  const float *listedLogits_ = nullptr;

  ListedTokens list_;
  RunArguments arguments_; // of a step; kept for its memory
  std::optional<BlockPool> pool_;
  std::optional<HeadResults> head_;
  std::vector<BlockPool::Move> moves_;
  std::vector<StepResult> results_;
  // Steps that were computed before anybody asked for them. Each has a record in log_: the tokens it was fed, the
  // head's results, and which rows of the step before it was made of; see kept_.
  struct Ahead {
    int32_t taken = 0, steps = 0;      // of the steps of the log
    bool beams = false;                // rows may continue others
    bool best = false;                 // nothing else was wanted; see StepWants
    std::vector<int32_t> rows;         // by row of the last step taken: its row in the log
    std::vector<int32_t> first, count; // by row of the log: the rows of its search
    std::vector<int64_t> positions;    // by row of the log: of the first step
    std::vector<int32_t> specials;     // [rows of the log][specials]
    std::vector<int32_t> places;       // [steps but the first][rows of the log]: reserved blocks
  };
  Ahead ahead_;
  std::vector<int32_t> taken_, places_; // by row of a step of the log: its row there, and its block; kept for memory
  const int32_t mostAhead_;
  std::vector<Session::KeptState> kept_;
  uint64_t recordBytes_ = 0;
  std::vector<uint8_t> log_;
  Screened screened_;
  int64_t layers_ = 0;                // whose attention the model reports
  std::vector<int64_t> promptTokens_; // [rows][positions] of a prefill
  std::vector<int32_t> savedBlocks_;  // the same shape: the block table while others must not be written
  std::vector<float> logits_;         // [rows][vocabulary], where the host does not see those of the session
};

} // namespace transept::search

#endif
