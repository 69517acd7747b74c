#include "ToyStepper.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace transept::tests {

using namespace search;

namespace {
uint64_t mix(uint64_t x) { // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
} // namespace

ToyModel ToyModel::fromJson(const nlohmann::json &json) {
  ToyModel model{json["vocabulary"], json["bits"], json["scale"], {}};
  for (const auto &pair : json["bias"])
    model.bias.emplace_back(pair[0], pair[1]);
  return model;
}

std::vector<float> ToyModel::logits(uint64_t seed, Span<const int64_t> prefix) const {
  uint64_t hash = seed;
  for (int64_t token : prefix)
    hash = mix(hash ^ (static_cast<uint64_t>(token) + 0x9E3779B97F4A7C15u));
  std::vector<float> row;
  for (int64_t v = 0; v < vocabulary; ++v)
    row.push_back((static_cast<float>(mix(hash + static_cast<uint64_t>(v) * 0xD1342543DE82EF95u) >> (64 - bits)) /
                       static_cast<float>(1 << bits) -
                   0.5f) *
                  scale);
  for (auto [token, value] : bias)
    row[token] += value;
  return row;
}

ToyStepper::ToyStepper(ToyModel model, std::vector<uint64_t> seeds, bool incremental, int64_t topk, bool keepsLogits)
    : model_(std::move(model)), seeds_(std::move(seeds)), incremental_(incremental), keepsLogits_(keepsLogits),
      topk_(topk), headBlocks_((model_.vocabulary + blockTokens - 1) / blockTokens),
      pool_(rowLimit, capacity, BlockPool::blocksFor(rowLimit, capacity)), head_(rowLimit, headBlocks_, topk),
      table_(rowLimit * capacity, -1), cache_(BlockPool::blocksFor(rowLimit, capacity) * BlockPool::blockPositions, -1),
      results_(rowLimit), logits_(rowLimit), specials_(rowLimit) {}

Status ToyStepper::step(Span<const StepRow> rows, StepWants) {
  ++steps;
  rowsComputed += static_cast<int64_t>(rows.size());
  std::vector<BlockPool::Move> moves;
  for (const StepRow &row : rows)
    moves.push_back({row.parent, static_cast<int64_t>(row.tokens.size()) - 1});
  if (incremental_) {
    TRANSEPT_TRY(pool_.advance(moves));
    pool_.show(table_.data());
  }
  // All rows write before any reads, as rows of an artifact may.
  auto place = [&](size_t row, int64_t position) -> int64_t & {
    return cache_[table_[row * capacity + position] * BlockPool::blockPositions + position % BlockPool::blockPositions];
  };
  if (incremental_)
    for (size_t i = 0; i < rows.size(); ++i)
      place(i, moves[i].position) = rows[i].tokens[moves[i].position];

  constexpr float nothing = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < rows.size(); ++i) {
    const StepRow &row = rows[i];
    std::vector<int64_t> prefix(row.tokens.begin(), row.tokens.end());
    if (incremental_)
      for (size_t p = 0; p < prefix.size(); ++p)
        prefix[p] = place(i, static_cast<int64_t>(p));
    else if (prefix.size() != rows[0].tokens.size())
      return {Code::Internal, "prefixes of different lengths"};
    std::vector<float> &logits = logits_[i] = model_.logits(seeds_[row.source], prefix);
    if (auto at = poison_.find(seeds_[row.source]); at != poison_.end() && at->second == prefix.size())
      logits[3] = std::nanf("");

    std::vector<float> maxima, sums, values;
    std::vector<int32_t> tokens;
    for (int64_t begin = 0; begin < model_.vocabulary; begin += blockTokens) {
      int64_t end = std::min(begin + blockTokens, model_.vocabulary);
      float maximum = nothing, sum = 0;
      for (int64_t v = begin; v < end; ++v)
        maximum = std::max(maximum, logits[v]);
      for (int64_t v = begin; v < end; ++v)
        sum += std::exp(logits[v] - maximum);
      maxima.push_back(maximum);
      sums.push_back(sum);
      std::vector<int32_t> order;
      for (int64_t v = begin; v < end; ++v)
        if (!std::binary_search(row.specials.begin(), row.specials.end(), static_cast<int32_t>(v)))
          order.push_back(static_cast<int32_t>(v));
      std::sort(order.begin(), order.end(),
                [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
      for (int64_t k = 0; k < topk_; ++k) {
        bool there = k < static_cast<int64_t>(order.size());
        tokens.push_back(there ? order[k] : -1);
        values.push_back(there ? logits[order[k]] : nothing);
      }
    }
    results_[i] = head_.join(static_cast<int32_t>(i), {maxima.data(), sums.data(), values.data(), tokens.data()});
    specials_[i].clear();
    for (int32_t token : row.specials) {
      specials_[i].push_back(logits[token]);
      logits[token] = -12345; // an artifact may overwrite them
    }
    results_[i].specials = specials_[i].data();
    results_[i].logits = keepsLogits_ ? logits.data() : nullptr;
  }
  return Status::success();
}

Status runBatch(Stepper &stepper, std::vector<BatchMember> &members,
                const std::function<void(size_t member)> &advanced) {
  Batch batch(stepper);
  for (size_t i = 0; i < members.size(); ++i) {
    members[i].source = static_cast<int32_t>(i);
    batch.join(members[i]);
  }
  auto anyActive = [&] {
    return std::any_of(members.begin(), members.end(), [](const BatchMember &member) { return member.active(); });
  };
  while (anyActive()) {
    std::vector<bool> active;
    for (const BatchMember &member : members)
      active.push_back(member.active());
    TRANSEPT_TRY(batch.step());
    for (size_t i = 0; i < members.size(); ++i)
      if (advanced && active[i] && members[i].search->settings().stream && members[i].status.ok())
        advanced(i);
  }
  return Status::success();
}

} // namespace transept::tests
