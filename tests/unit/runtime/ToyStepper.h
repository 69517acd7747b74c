// A model for tests of the search: logits are a hash of the prefix.
#ifndef TRANSEPT_TESTS_TOYSTEPPER_H
#define TRANSEPT_TESTS_TOYSTEPPER_H

#include "runtime/search/Batch.h"
#include "runtime/search/BlockPool.h"
#include "runtime/search/HeadResults.h"
#include "runtime/search/Stepper.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <vector>

namespace transept::tests {

/// The model of make_search_fixture.py, bit by bit.
struct ToyModel {
  int64_t vocabulary = 23;
  int bits = 24;
  float scale = 8;
  std::vector<std::pair<int64_t, float>> bias;

  static ToyModel fromJson(const nlohmann::json &json);
  std::vector<float> logits(uint64_t seed, Span<const int64_t> prefix) const;
};

/// Computes steps as an artifact would: blocks of the vocabulary, special tokens apart. `seeds[i]` is source slot i.
/// As a cache it keeps each row's tokens in the places of a BlockPool and reads prefixes back from there.
class ToyStepper final : public search::Stepper {
public:
  ToyStepper(ToyModel model, std::vector<uint64_t> seeds, bool incremental, int64_t topk, bool keepsLogits = true);

  bool incremental() const override { return incremental_; }
  int64_t vocabulary() const override { return model_.vocabulary; }
  Status step(Span<const search::StepRow> rows, search::StepWants wants = {}) override;
  search::StepResult result(int32_t row) const override { return results_[row]; }

  /// Makes logit 3 of a prefix of this length not a number, for this seed.
  void poison(uint64_t seed, size_t length) { poison_[seed] = length; }
  int64_t rowsComputed = 0, steps = 0;

private:
  static constexpr int64_t rowLimit = 64, capacity = 48, blockTokens = 5;
  ToyModel model_;
  std::vector<uint64_t> seeds_;
  bool incremental_, keepsLogits_;
  int64_t topk_, headBlocks_;
  std::map<uint64_t, size_t> poison_;
  search::BlockPool pool_;
  search::HeadResults head_;
  std::vector<int32_t> table_;
  std::vector<int64_t> cache_; // a token per place
  std::vector<search::StepResult> results_;
  std::vector<std::vector<float>> logits_, specials_;
};

/// Steps until all members are done or have failed; source slot i belongs to member i. `advanced` is called after each
/// step of a member that streams.
Status runBatch(search::Stepper &stepper, std::vector<search::BatchMember> &members,
                const std::function<void(size_t member)> &advanced = {});

} // namespace transept::tests

#endif
