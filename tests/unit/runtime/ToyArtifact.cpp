#include "ToyArtifact.h"

#include "TinyModel.h"
#include "ToyStepper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace transept::tests {

namespace {

using Names = std::vector<std::string>;
constexpr int64_t headBlock = 2048, blockPositions = 16;
const ToyModel toy{toyVocabulary, 24, 9, {{1, 1.0f}}};
constexpr int64_t poisoned = 66, outside = 77;

template <typename T> T *at(const transept_dispatch *dispatch, int index) {
  return static_cast<T *>(dispatch->buffers[index]);
}

/// The seed, and whether it is poisoned, in two words.
struct SourceWords {
  uint64_t seed, poison;
};

std::vector<float> logitsOf(const SourceWords &source, const std::vector<int64_t> &prefix) {
  std::vector<float> logits = toy.logits(source.seed, prefix);
  if (source.poison && prefix.size() == 2)
    logits[5] = std::nanf("");
  return logits;
}

/// buffers: ids [batch, source], mask [batch, source] or the ids again, memory [batch, 2]; sizes: source
void encode(const transept_dispatch *dispatch, int64_t begin, int64_t end, void *) {
  int64_t source = dispatch->sizes[0];
  for (int64_t slot = begin; slot < end; ++slot) {
    std::vector<int64_t> ids;
    for (int64_t i = slot * source; i < (slot + 1) * source; ++i)
      if (dispatch->buffers[0] == dispatch->buffers[1] || at<int64_t>(dispatch, 1)[i])
        ids.push_back(at<int64_t>(dispatch, 0)[i]);
    for (int64_t id : ids)
      if (int32_t none = 0; id == outside && __atomic_compare_exchange_n(&dispatch->error->id, &none, 1, false,
                                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        dispatch->error->value = id;
    at<SourceWords>(dispatch, 2)[slot] = {toySeed(ids), std::count(ids.begin(), ids.end(), poisoned) > 0};
  }
}

/// buffers: live, token, position, block, cache; sizes: capacity
void append(const transept_dispatch *dispatch, int64_t begin, int64_t end, void *) {
  int64_t capacity = dispatch->sizes[0];
  for (int64_t row = begin; row < std::min<int64_t>(end, *at<int32_t>(dispatch, 0)); ++row) {
    int64_t position = at<int64_t>(dispatch, 2)[row];
    at<float>(dispatch,
              4)[at<int32_t>(dispatch, 3)[row * capacity + position] * blockPositions + position % blockPositions] =
        static_cast<float>(at<int64_t>(dispatch, 1)[row]);
  }
}

/// buffers from `first`: source, special, memory, max, sum, value, token, special logits, logits; sizes: specials, topk
void head(const transept_dispatch *dispatch, int first, int64_t specials, int64_t topk, int64_t row,
          const std::vector<int64_t> &prefix) {
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  const int32_t *special = at<int32_t>(dispatch, first + 1) + row * specials;
  std::vector<float> logits = logitsOf(at<SourceWords>(dispatch, first + 2)[at<int32_t>(dispatch, first)[row]], prefix);
  int64_t blocks = (toyVocabulary + headBlock - 1) / headBlock;
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t low = block * headBlock, high = std::min(low + headBlock, toyVocabulary);
    float maximum = nothing, sum = 0;
    std::vector<int32_t> order;
    for (int64_t v = low; v < high; ++v) {
      maximum = std::max(maximum, logits[v]);
      if (!std::count(special, special + specials, static_cast<int32_t>(v)))
        order.push_back(static_cast<int32_t>(v));
    }
    for (int64_t v = low; v < high; ++v)
      sum += std::exp(logits[v] - maximum);
    std::sort(order.begin(), order.end(),
              [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
    at<float>(dispatch, first + 3)[row * blocks + block] = maximum;
    at<float>(dispatch, first + 4)[row * blocks + block] = sum;
    for (int64_t k = 0; k < topk; ++k) {
      bool there = k < static_cast<int64_t>(order.size());
      at<float>(dispatch, first + 5)[(row * blocks + block) * topk + k] = there ? logits[order[k]] : nothing;
      at<int32_t>(dispatch, first + 6)[(row * blocks + block) * topk + k] = there ? order[k] : -1;
    }
  }
  for (int64_t i = 0; i < specials && special[i] >= 0; ++i)
    at<float>(dispatch, first + 7)[row * specials + i] = logits[special[i]];
  std::copy(logits.begin(), logits.end(), at<float>(dispatch, first + 8) + row * toyVocabulary);
}

/// buffers: live, position, block, cache, then those of head(); sizes: capacity, specials, topk
void cachedHead(const transept_dispatch *dispatch, int64_t begin, int64_t end, void *) {
  int64_t capacity = dispatch->sizes[0];
  for (int64_t row = begin; row < std::min<int64_t>(end, *at<int32_t>(dispatch, 0)); ++row) {
    std::vector<int64_t> prefix;
    for (int64_t p = 0; p <= at<int64_t>(dispatch, 1)[row]; ++p)
      prefix.push_back(static_cast<int64_t>(
          at<float>(dispatch, 3)[at<int32_t>(dispatch, 2)[row * capacity + p] * blockPositions + p % blockPositions]));
    head(dispatch, 4, dispatch->sizes[1], dispatch->sizes[2], row, prefix);
  }
}

/// buffers: live, prefix [rows, target], then those of head(); sizes: target, specials, topk
void prefixHead(const transept_dispatch *dispatch, int64_t begin, int64_t end, void *) {
  int64_t target = dispatch->sizes[0];
  for (int64_t row = begin; row < std::min<int64_t>(end, *at<int32_t>(dispatch, 0)); ++row) {
    const int64_t *tokens = at<int64_t>(dispatch, 1) + row * target;
    head(dispatch, 2, dispatch->sizes[1], dispatch->sizes[2], row, {tokens, tokens + target});
  }
}

/// buffers: decoder ids [batch, target], memory [batch, 2], logits [batch, target, V]; sizes: target
void force(const transept_dispatch *dispatch, int64_t begin, int64_t end, void *) {
  int64_t target = dispatch->sizes[0];
  for (int64_t slot = begin; slot < end; ++slot)
    for (int64_t t = 0; t < target; ++t) {
      const int64_t *ids = at<int64_t>(dispatch, 0) + slot * target;
      std::vector<float> logits = logitsOf(at<SourceWords>(dispatch, 1)[slot], {ids, ids + t + 1});
      std::copy(logits.begin(), logits.end(), at<float>(dispatch, 2) + (slot * target + t) * toyVocabulary);
    }
}

const transept_kernel_table &kernels() {
  static const transept_kernel list[] = {encode, append, cachedHead, prefixHead, force};
  static const transept_kernel_table table = {TRANSEPT_ABI_VERSION, 5, list};
  return table;
}

/// An entry under construction; buffers are numbered as they are named.
class EntryBuilder {
public:
  EntryBuilder(program::Manifest &manifest, const std::string &name, const Names &symbols)
      : entry_(manifest.add_entries()), symbols_(symbols) {
    entry_->set_name(name);
    entry_->add_segments()->set_next(1);
    for (const std::string &symbol : symbols) {
      program::Symbol *added = entry_->add_symbols();
      added->set_name(symbol);
      added->set_min(1);
    }
  }
  uint32_t buffer(const std::string &name, program::Storage storage, DType dtype, const Names &dims) {
    program::Buffer *buffer = entry_->add_buffers();
    buffer->set_name(name);
    buffer->set_storage(storage);
    buffer->set_dtype(dtype);
    for (const std::string &dim : dims)
      *buffer->add_dims() = postfix(dim, symbols_);
    return static_cast<uint32_t>(entry_->buffers_size() - 1);
  }
  void dispatch(uint32_t kernel, const std::string &items, const std::vector<uint32_t> &buffers, const Names &sizes,
                bool barrier) {
    program::Dispatch *dispatch = entry_->add_dispatches();
    dispatch->set_kernel(kernel);
    *dispatch->mutable_items() = postfix(items, symbols_);
    for (uint32_t buffer : buffers)
      dispatch->add_buffers(buffer);
    for (const std::string &size : sizes)
      *dispatch->add_sizes() = postfix(size, symbols_);
    dispatch->set_barrier(barrier);
    entry_->mutable_segments(0)->set_dispatches(static_cast<uint32_t>(entry_->dispatches_size()));
  }

private:
  program::Entry *entry_;
  Names symbols_;
};

const std::string vocabulary = std::to_string(toyVocabulary),
                  headBlocks = std::to_string((toyVocabulary + headBlock - 1) / headBlock);

struct StateRow {
  const char *name;
  DType dtype;
  Names dims;
};

std::vector<StateRow> states(bool recompute) {
  std::vector<StateRow> rows = {{"cross.0", program::I64, {"batch", "2"}},
                                {"step.live", program::I32, {"1"}},
                                {"step.source", program::I32, {"rows"}},
                                {"step.special", program::I32, {"rows", "specials"}},
                                {"search.max", program::F32, {"rows", headBlocks}},
                                {"search.sum", program::F32, {"rows", headBlocks}},
                                {"search.value", program::F32, {"rows", headBlocks, "topk"}},
                                {"search.token", program::I32, {"rows", headBlocks, "topk"}},
                                {"search.special", program::F32, {"rows", "specials"}},
                                {"logits", program::F32, {"rows", vocabulary}}};
  if (recompute) {
    rows.push_back({"step.prefix", program::I64, {"rows", "capacity"}});
  } else {
    rows.push_back({"step.token", program::I64, {"rows"}});
    rows.push_back({"step.position", program::I64, {"rows"}});
    rows.push_back({"step.block", program::I32, {"rows", "capacity"}});
    rows.push_back({"cache.self", program::F32, {"blocks", "16"}});
  }
  return rows;
}

void addStep(program::Manifest &manifest, bool recompute) {
  Names symbols = {"batch", "rows", "capacity", "blocks", "specials", "topk"};
  if (recompute)
    symbols = {"batch", "rows", "specials", "topk", "target"};
  EntryBuilder step(manifest, "step", symbols);
  auto state = [&](const std::string &name) {
    for (const StateRow &row : states(recompute))
      if (name == row.name) {
        Names dims = row.dims;
        if (name == "step.prefix")
          dims[1] = "target";
        return step.buffer(name, program::STATE, row.dtype, dims);
      }
    return uint32_t(0);
  };
  std::vector<uint32_t> results;
  for (const char *name : {"step.source", "step.special", "cross.0", "search.max", "search.sum", "search.value",
                           "search.token", "search.special", "logits"})
    results.push_back(state(name));
  auto with = [&](std::vector<uint32_t> first) {
    first.insert(first.end(), results.begin(), results.end());
    return first;
  };
  uint32_t live = state("step.live");
  if (recompute) {
    step.dispatch(3, "rows", with({live, state("step.prefix")}), {"target", "specials", "topk"}, false);
    return;
  }
  uint32_t token = state("step.token"), position = state("step.position"), block = state("step.block"),
           cache = state("cache.self");
  step.dispatch(1, "rows", {live, token, position, block, cache}, {"capacity"}, false);
  step.dispatch(2, "rows", with({live, position, block, cache}), {"capacity", "specials", "topk"}, true);
}

} // namespace

uint64_t toySeed(const std::vector<int64_t> &ids) {
  uint64_t seed = 1469598103934665603u;
  for (int64_t id : ids)
    seed = (seed ^ static_cast<uint64_t>(id)) * 1099511628211u;
  return seed;
}

std::shared_ptr<const Model> toyArtifact(const ToyOptions &options) {
  program::Manifest manifest;
  manifest.set_producer("test");
  for (const char *name : {"encode", "append", "cached_head", "prefix_head", "force"})
    manifest.add_kernels()->set_name(name);
  manifest.add_checks()->set_message("Gather node 'embed' reads index {} outside [0, 76]");
  const Names all = {"batch", "source", "rows", "capacity", "blocks", "specials", "topk"};
  for (const std::string &name : all) {
    program::Symbol *symbol = manifest.add_generation_symbols();
    symbol->set_name(name);
    symbol->set_min(1);
  }
  for (const StateRow &row : states(options.recompute)) {
    program::State *state = manifest.add_states();
    state->set_name(row.name);
    state->set_dtype(row.dtype);
    for (const std::string &dim : row.dims)
      *state->add_dims() = postfix(dim, all);
  }
  auto addEncoder = [&](EntryBuilder &entry) {
    uint32_t ids = entry.buffer("input_ids", program::INPUT, program::I64, {"batch", "source"});
    uint32_t mask =
        options.equalLengths ? ids : entry.buffer("attention_mask", program::INPUT, program::I64, {"batch", "source"});
    uint32_t memory = entry.buffer("cross.0", program::STATE, program::I64, {"batch", "2"});
    entry.dispatch(0, "batch", {ids, mask, memory}, {"source"}, false);
    return memory;
  };
  EntryBuilder encoder(manifest, "encode", {"batch", "source"});
  addEncoder(encoder);
  addStep(manifest, options.recompute);
  if (options.score) {
    EntryBuilder score(manifest, "score", {"batch", "source", "target"});
    uint32_t memory = addEncoder(score),
             ids = score.buffer("decoder_input_ids", program::INPUT, program::I64, {"batch", "target"});
    score.dispatch(
        4, "batch",
        {ids, memory, score.buffer("logits", program::OUTPUT, program::F32, {"batch", "target", vocabulary})},
        {"target"}, true);
  }
  program::Generation *generation = manifest.mutable_generation();
  generation->set_kind("encoder-decoder");
  generation->set_encode("encode");
  generation->set_step("step");
  generation->set_score(options.score ? "score" : "");
  generation->set_vocabulary(toyVocabulary);
  generation->set_position_limit(options.positionLimit);
  generation->set_source_limit(options.sourceLimit);
  generation->set_settings_json(options.settings);
  for (const std::string &setting : options.refused)
    generation->add_refused_settings(setting);
  generation->set_strategy(options.recompute ? "recompute" : "cached");
  generation->set_encoder_input("input_ids");
  generation->set_encoder_mask(options.equalLengths ? "" : "attention_mask");
  generation->set_equal_lengths(options.equalLengths);

  Result<std::string> bytes =
      buildArtifact({ArtifactSection::fromBytes("manifest", SectionKind::Manifest, manifest.SerializeAsString())});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  Span<const uint8_t> span(reinterpret_cast<const uint8_t *>(bytes->data()), bytes->size());
  Result<Artifact> artifact = Artifact::read(*bytesInMemory(span));
  EXPECT_TRUE(artifact.ok()) << artifact.status().message();
  Result<std::shared_ptr<const Model>> model = Model::fromParts(artifact.take(), kernels());
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.take();
}

} // namespace transept::tests
