// Attention over the source, kept step by step for hypotheses that share beginnings.
#ifndef TRANSEPT_RUNTIME_SEARCH_ALIGNMENTLOG_H
#define TRANSEPT_RUNTIME_SEARCH_ALIGNMENTLOG_H

#include "runtime/search/Settings.h"
#include "runtime/search/Stepper.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <vector>

namespace transept::search {

/// Attention over the source at the steps that chose the tokens of an output.
struct Alignment {
  Alignments kind = Alignments::None;
  std::vector<int64_t> heads; // by layer
  int64_t target = 0, source = 0;
  std::vector<float> weights; // [all heads][target][source]

  /// [layers][heads][target][source], or [target][source] for the mean.
  nlohmann::ordered_json toJson() const;
};

/// Entries are never dropped: beams move indices to them, not their content.
class AlignmentLog {
public:
  explicit AlignmentLog(Alignments kind) : kind_(kind) {}

  bool wanted() const { return kind_ != Alignments::None; }
  /// Keeps the attention of the stepper's row `row` in its last step; `parent` is the entry of the token before, -1 for
  /// none. Positions of the source from `source` on are padding. Returns the entry.
  int32_t keep(const Stepper &stepper, int32_t row, int64_t source, int32_t parent);
  /// What was kept for the tokens that end with that of entry `last`; -1: none.
  Alignment upTo(int32_t last) const;

private:
  int64_t size() const; // floats of an entry

  Alignments kind_;
  std::vector<int64_t> heads_; // by layer
  int64_t source_ = 0;
  std::vector<int32_t> parents_; // by entry
  std::vector<float> weights_;   // by entry: [all heads][source], or [source] for the mean
};

} // namespace transept::search

#endif
