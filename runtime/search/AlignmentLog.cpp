#include "runtime/search/AlignmentLog.h"

#include <algorithm>
#include <numeric>

namespace transept::search {

using nlohmann::ordered_json;

namespace {
int64_t sum(const std::vector<int64_t> &heads) { return std::accumulate(heads.begin(), heads.end(), int64_t(0)); }
} // namespace

ordered_json Alignment::toJson() const {
  auto table = [&](int64_t head) {
    ordered_json rows = ordered_json::array();
    for (int64_t i = 0; i < target; ++i) {
      auto row = weights.begin() + (head * target + i) * source;
      rows.push_back(std::vector<float>(row, row + source));
    }
    return rows;
  };
  if (kind == Alignments::Mean)
    return table(0);
  ordered_json layers = ordered_json::array();
  int64_t head = 0;
  for (int64_t count : heads) {
    ordered_json layer = ordered_json::array();
    for (int64_t i = 0; i < count; ++i)
      layer.push_back(table(head++));
    layers.push_back(std::move(layer));
  }
  return layers;
}

int64_t AlignmentLog::size() const { return (kind_ == Alignments::Mean ? 1 : sum(heads_)) * source_; }

int32_t AlignmentLog::keep(const Stepper &stepper, int32_t row, int64_t source, int32_t parent) {
  const int64_t layers = stepper.attentionLayers();
  if (heads_.empty()) { // the same for all rows and steps
    source_ = std::min(source, stepper.attention(0, row).source);
    for (int64_t layer = 0; layer < layers; ++layer)
      heads_.push_back(stepper.attention(layer, row).heads);
  }
  size_t place = weights_.size();
  weights_.resize(place + static_cast<size_t>(size()), 0.0f);
  const float share = 1.0f / static_cast<float>(sum(heads_));
  for (int64_t layer = 0; layer < layers; ++layer) {
    AttentionWeights from = stepper.attention(layer, row);
    for (int64_t head = 0; head < from.heads; ++head) {
      const float *weights = from.weights + head * from.source;
      for (int64_t i = 0; i < source_; ++i)
        weights_[place + i] = kind_ == Alignments::Mean ? weights_[place + i] + weights[i] * share : weights[i];
      place += kind_ == Alignments::Mean ? 0 : source_;
    }
  }
  parents_.push_back(parent);
  return static_cast<int32_t>(parents_.size()) - 1;
}

Alignment AlignmentLog::upTo(int32_t last) const {
  Alignment result;
  result.kind = kind_;
  result.heads = kind_ == Alignments::Mean ? std::vector<int64_t>{1} : heads_;
  result.source = source_;
  std::vector<int32_t> path;
  for (; last >= 0; last = parents_[last])
    path.push_back(last);
  std::reverse(path.begin(), path.end());
  result.target = static_cast<int64_t>(path.size());
  for (int64_t head = 0, all = sum(result.heads); head < all; ++head)
    for (int32_t entry : path) {
      auto from = weights_.begin() + entry * size() + head * source_;
      result.weights.insert(result.weights.end(), from, from + source_);
    }
  return result;
}

} // namespace transept::search
