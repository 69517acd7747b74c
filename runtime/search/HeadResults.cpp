#include "runtime/search/HeadResults.h"

#include <cmath>
#include <limits>

namespace transept::search {

HeadResults::HeadResults(int64_t rows, int64_t blocks, int64_t topk)
    : blocks_(blocks), topk_(topk), values_(rows * topk), tokens_(rows * topk) {}

StepResult HeadResults::join(int32_t row, const HeadRow &head) {
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  StepResult result;
  float *values = values_.data() + row * topk_;
  int32_t *tokens = tokens_.data() + row * topk_;
  result.values = values;
  result.tokens = tokens;

  double maximum = nothing;
  for (int64_t block = 0; block < blocks_; ++block) {
    if (std::isnan(head.maxima[block]) || head.maxima[block] == -nothing)
      result.finite = false;
    maximum = std::max<double>(maximum, head.maxima[block]);
  }
  double sum = 0;
  for (int64_t block = 0; block < blocks_; ++block) {
    if (head.maxima[block] == nothing) // every token of the block has probability 0
      continue;
    if (!std::isfinite(head.sums[block]))
      result.finite = false;
    sum += head.sums[block] * std::exp(head.maxima[block] - maximum);
  }
  result.logSum = maximum + std::log(sum);
  result.finite = result.finite && std::isfinite(result.logSum);

  // Blocks ascend, so an equal value that comes later has the higher token and goes behind.
  int64_t count = 0;
  for (int64_t block = 0; block < blocks_; ++block) {
    for (int64_t i = 0; i < topk_; ++i) {
      float value = head.values[block * topk_ + i];
      int32_t token = head.tokens[block * topk_ + i];
      if (token < 0 || (count == topk_ && !(value > values[count - 1])))
        break;
      int64_t place = count < topk_ ? count++ : count - 1;
      for (; place > 0 && value > values[place - 1]; --place) {
        values[place] = values[place - 1];
        tokens[place] = tokens[place - 1];
      }
      values[place] = value;
      tokens[place] = token;
    }
  }
  result.count = static_cast<int32_t>(count);
  return result;
}

} // namespace transept::search
