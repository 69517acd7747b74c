// The search algorithms.
#ifndef TRANSEPT_RUNTIME_SEARCH_ALGORITHMS_H
#define TRANSEPT_RUNTIME_SEARCH_ALGORITHMS_H

#include "runtime/search/RequestSearch.h"

namespace transept::search {

/// The best token by raw logits; ties: the lowest. Scored only where return_token_scores is set: the log-probabilities
/// of the model itself, whatever the rules did.
class GreedySearch final : public RequestSearch {
public:
  GreedySearch(const Settings &settings, int64_t vocabulary, int64_t positions, bool stepwise,
               Span<const int64_t> source)
      : RequestSearch(settings, vocabulary, positions, stepwise, source) {}

  bool wantsBestOnly() const override { return !settings().returnTokenScores; }

private:
  Status select(const StepResult *results) override;
  bool returnsLive() const override { return true; }
  double normalised(double score, int64_t length) const override;
};

/// _beam_search of transformers 4.57. Beams that it keeps at -1e9 because they have no hypothesis of their own do not
/// exist here, so fewer than num_return_sequences hypotheses may come back where the settings exclude almost
/// everything.
class BeamSearch final : public RequestSearch {
public:
  BeamSearch(const Settings &settings, int64_t vocabulary, int64_t positions, bool stepwise, Span<const int64_t> source)
      : RequestSearch(settings, vocabulary, positions, stepwise, source) {}

private:
  Status select(const StepResult *results) override;
  double normalised(double score, int64_t length) const override;
};

/// The beam search of the 2017 reference implementation (Tensor2Tensor): a set of alive and a set of finished
/// hypotheses.
class TwoSetSearch final : public RequestSearch {
public:
  TwoSetSearch(const Settings &settings, int64_t vocabulary, int64_t positions, bool stepwise,
               Span<const int64_t> source)
      : RequestSearch(settings, vocabulary, positions, stepwise, source) {}

private:
  Status select(const StepResult *results) override;
  bool returnsLive() const override { return finished_.empty(); }
  double normalised(double score, int64_t length) const override;
};

/// The BeamSearch operator of ONNX Runtime 1.32: hypotheses are as long as the sequence without its end token, prompt
/// included, and at the limit every live one is finished.
class OnnxRuntimeSearch final : public RequestSearch {
public:
  OnnxRuntimeSearch(const Settings &settings, int64_t vocabulary, int64_t positions, bool stepwise,
                    Span<const int64_t> source)
      : RequestSearch(settings, vocabulary, positions, stepwise, source) {}

private:
  Status select(const StepResult *results) override;
  double normalised(double score, int64_t length) const override;
};

/// Independent draws from the model's distribution, num_return_sequences of them, after the rules and then temperature,
/// top_k and top_p as transformers applies them. Draw n of sequence s is a function of the seed, s and n alone.
class SampleSearch final : public RequestSearch {
public:
  SampleSearch(const Settings &settings, int64_t vocabulary, int64_t positions, bool stepwise,
               Span<const int64_t> source);

private:
  Status select(const StepResult *results) override;
  double normalised(double score, int64_t length) const override;
  /// The kept tokens and their weights exp(score - best), most likely first, into shares_.
  void weigh(int32_t row, const StepResult &result);

  struct Share {
    double weight;
    int32_t token;
  };
  std::vector<double> scores_; // by token
  std::vector<double> sorted_; // scratch of top_k
  std::vector<Share> shares_;
  std::vector<int32_t> sequences_, nextSequences_; // number of the sequence of each live row
};

} // namespace transept::search

#endif
