// Joins what the search head reports for each block of the vocabulary.
#ifndef TRANSEPT_RUNTIME_SEARCH_HEADRESULTS_H
#define TRANSEPT_RUNTIME_SEARCH_HEADRESULTS_H

#include "runtime/search/Stepper.h"

#include <cstdint>
#include <vector>

namespace transept::search {

/// Results of one row, by vocabulary block.
struct HeadRow {
  const float *maxima;   // [blocks]
  const float *sums;     // [blocks] of exp(logit - maximum) over all tokens of the block
  const float *values;   // [blocks][topk], descending; ties: lower token first
  const int32_t *tokens; // [blocks][topk], -1: no more candidates
};

/// Joined results of all rows; memory is allocated by the constructor.
class HeadResults {
public:
  HeadResults(int64_t rows, int64_t blocks, int64_t topk);

  /// Joins the results of `row`. Sets all of a result but its special logits and logits.
  StepResult join(int32_t row, const HeadRow &head);

private:
  int64_t blocks_, topk_;
  std::vector<float> values_;   // [rows][topk]
  std::vector<int32_t> tokens_; // [rows][topk]
};

} // namespace transept::search

#endif
