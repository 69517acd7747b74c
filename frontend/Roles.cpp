//===- Roles.cpp - what graphs, inputs and outputs are, by name and structure ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Export.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir::transept;

llvm::StringRef mlir::transept::functionName(GraphRole role) {
  switch (role) {
  case GraphRole::Main:
    return "main";
  case GraphRole::Encoder:
    return "encoder";
  case GraphRole::CrossKeys:
    return "cross_kv";
  case GraphRole::Decoder:
    return "decoder";
  case GraphRole::DecoderWithPast:
    return "decoder_with_past";
  case GraphRole::DecoderMerged:
    return "decoder_merged";
  case GraphRole::DecoderOnly:
    return "decoder_only";
  case GraphRole::Monolith:
    return "monolith";
  }
  return "main";
}

namespace {
/// An input or output, reduced to what roles are found by.
struct Port {
  std::string name;                     ///< as in the model
  std::string lower;                    ///< in lower case
  llvm::SmallVector<std::string> words; ///< of letters or digits
  int32_t type = 0;
  int rank = -1;
  std::string shape; ///< as declared

  explicit Port(const onnx::ValueInfoProto &info) : name(info.name()), lower(llvm::StringRef(info.name()).lower()) {
    for (char c : lower) {
      bool digit = llvm::isDigit(c);
      if (!llvm::isAlnum(c)) {
        fresh = true;
        continue;
      }
      if (fresh || digit != lastDigit)
        words.emplace_back();
      words.back() += c;
      lastDigit = digit;
      fresh = false;
    }
    const onnx::TypeProto::Tensor &tensor = info.type().tensor_type();
    type = tensor.elem_type();
    rank = tensor.has_shape() ? tensor.shape().dim_size() : -1;
    for (const onnx::TensorShapeProto::Dimension &dim : tensor.shape().dim())
      shape += dim.dim_param() + "," + std::to_string(dim.dim_value()) + ";";
  }

  bool has(std::initializer_list<llvm::StringRef> any) const {
    return llvm::any_of(words, [&](const std::string &word) { return llvm::is_contained(any, word); });
  }
  bool is(std::initializer_list<llvm::StringRef> any) const { return llvm::is_contained(any, lower); }
  bool integer() const { return type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32; }
  bool boolean() const { return type == onnx::TensorProto::BOOL; }
  bool real() const {
    return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::FLOAT16 ||
           type == onnx::TensorProto::BFLOAT16 || type == onnx::TensorProto::DOUBLE;
  }

private:
  bool fresh = true, lastDigit = false;
};

/// Caches under the naming schemes of optimum, fastT5, ONNX Runtime's converters, and hand-made exports:
///   past_key_values.N.decoder.key, present.N.encoder.value, pkv_N, past_key_self_N, present_value_cross_N, past.N.key,
///   cross.N.key. Returns "self.key.N" and so on, or an empty string.
std::string cacheOf(const Port &port) {
  if (!port.real() || port.rank < 3)
    return {};
  std::optional<unsigned> number;
  for (const std::string &word : port.words)
    if (unsigned value; !llvm::StringRef(word).getAsInteger(10, value)) {
      if (number)
        return {}; // two numbers: not a layer
      number = value;
    }
  if (!number)
    return {};
  std::string layer = std::to_string(*number);
  if (port.words.front() == "pkv") { // four per layer, in this order
    static constexpr llvm::StringRef parts[] = {"self.key", "self.value", "cross.key", "cross.value"};
    return (parts[*number % 4] + "." + llvm::Twine(*number / 4)).str();
  }
  bool cache = port.has({"past", "present", "cache", "cross"});
  // "past_key_values.0.decoder.value" has the word "key" too: the last one counts.
  llvm::StringRef part;
  for (const std::string &word : port.words) {
    if (word == "key" || word == "k")
      part = "key";
    else if (word == "value" || word == "v")
      part = "value";
  }
  if (!cache || part.empty())
    return {};
  llvm::StringRef kind = port.has({"encoder", "cross"}) ? "cross" : "self";
  return (kind + "." + part + "." + layer).str();
}

bool isSourceIds(const Port &port) {
  return port.is({"input_ids", "encoder_input_ids", "src", "src_ids", "src_tokens", "source", "source_ids", "inputs",
                  "input", "encoder_input", "encoder_inputs", "tokens"});
}
bool isTargetIds(const Port &port) {
  return port.is({"decoder_input_ids", "tgt", "tgt_ids", "tgt_tokens", "trg", "target", "target_ids", "targets",
                  "decoder_input", "decoder_inputs", "prev_output_tokens", "last_id", "last_ids", "last_token"});
}
bool isEncoderStates(const Port &port) {
  return port.is({"encoder_hidden_states", "encoder_outputs", "encoder_output", "encoder_last_hidden_state", "memory",
                  "last_hidden_state", "hidden_states", "encoder_states", "enc_out", "encoder_out"});
}
bool isIds(const Port &port) { return port.integer() && port.rank == 2; }
bool isPadding(const Port &port) { return port.has({"padding", "pad"}); }
bool isMask(const Port &port) { return port.has({"mask"}) || isPadding(port); }
bool isTargetSide(const Port &port) { return port.has({"decoder", "tgt", "trg", "target"}); }
bool isSourceSide(const Port &port) { return port.has({"encoder", "src", "source", "memory"}); }
bool isUseCache(const Port &port) {
  return port.is({"use_cache_branch", "use_cache"}) && port.boolean() && port.rank <= 1;
}

/// The words of a name that say what is handed on, not in which direction.
llvm::SmallVector<std::string> stateWords(const Port &port) {
  static constexpr llvm::StringRef directions[] = {"past",   "prev",    "previous", "in",   "input", "out",
                                                   "output", "present", "new",      "next", "cur",   "current"};
  llvm::SmallVector<std::string> words;
  for (const std::string &word : port.words)
    if (!llvm::is_contained(directions, word))
      words.push_back(word);
  return words;
}

/// Pairs of what a step takes from the one before and hands to the next, apart from caches: by name, then by shape.
llvm::SmallVector<std::pair<size_t, size_t>> recurrentPairs(llvm::ArrayRef<Port> inputs, llvm::ArrayRef<Port> outputs) {
  auto mayBe = [](const Port &port) {
    return port.real() && port.rank >= 2 && cacheOf(port).empty() && !isMask(port) && !isEncoderStates(port);
  };
  llvm::SmallVector<std::pair<size_t, size_t>> pairs;
  llvm::SmallVector<bool> taken(outputs.size(), false);
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (!mayBe(input))
      continue;
    std::optional<size_t> named, shaped;
    unsigned alike = 0;
    for (auto [j, output] : llvm::enumerate(outputs)) {
      if (!mayBe(output) || taken[j] || output.type != input.type || output.rank != input.rank)
        continue;
      if (!named && !stateWords(input).empty() && stateWords(input) == stateWords(output))
        named = j;
      if (output.shape == input.shape && j > 0) { // the first output is what the graph is for
        shaped = j;
        ++alike;
      }
    }
    std::optional<size_t> found = named ? named : alike == 1 ? shaped : std::nullopt;
    if (!found)
      continue;
    taken[*found] = true;
    pairs.push_back({i, *found});
  }
  return pairs;
}

llvm::SmallVector<Port> graphInputs(const onnx::GraphProto &graph) {
  std::map<std::string, bool> initialized;
  for (const onnx::TensorProto &tensor : graph.initializer())
    initialized[tensor.name()] = true;
  llvm::SmallVector<Port> ports;
  for (const onnx::ValueInfoProto &input : graph.input())
    if (!initialized.count(input.name()))
      ports.emplace_back(input);
  return ports;
}

llvm::SmallVector<Port> graphOutputs(const onnx::GraphProto &graph) {
  llvm::SmallVector<Port> ports;
  for (const onnx::ValueInfoProto &output : graph.output())
    ports.emplace_back(output);
  return ports;
}

/// Finds the role of one input; an empty string if it is not recognised.
class InputRoles {
public:
  InputRoles(GraphRole graph, llvm::ArrayRef<Port> inputs) : graph(graph), inputs(inputs) {}

  std::string roleOf(const Port &port) const {
    if (std::string cache = cacheOf(port); !cache.empty())
      return "past." + cache;
    if (isUseCache(port))
      return "use_cache";
    bool encoder = graph == GraphRole::Encoder, monolith = graph == GraphRole::Monolith;
    if (isMask(port))
      return maskRole(port);
    if (!encoder && port.integer() && port.rank <= 1 &&
        port.is({"step", "offset", "past_length", "past_sequence_length", "past_key_values_length"}))
      return "past_length";
    if (port.integer() && port.rank == 1 && port.has({"length", "lengths", "len"}))
      return "source_lengths";
    if (!encoder && port.integer() && port.rank >= 1 && port.has({"position", "positions"}))
      return "target_positions";
    if (isIds(port)) {
      if (encoder && isTargetIds(port))
        return "target_ids"; // of which an encoder may use the sizes
      if (encoder)
        return isSourceIds(port) || onlyIds() ? "source_ids" : "";
      if (isTargetIds(port))
        return "target_ids";
      if (monolith)
        return isSourceIds(port) ? "source_ids" : "";
      return isSourceIds(port) || onlyIds() ? "target_ids" : "";
    }
    if (port.real() && encoder && port.rank >= 2)
      return "source_features";
    if (port.real() && port.rank == 3 && isEncoderStates(port))
      return "encoder_states";
    if (port.real() && monolith && port.rank >= 2)
      return "source_features";
    return {};
  }

private:
  std::string maskRole(const Port &port) const {
    llvm::StringRef kind = isPadding(port) ? "padding" : "mask";
    // In a decoder file "attention_mask" is about the decoder's own ids; in all others about the source.
    bool decoder = graph == GraphRole::Decoder || graph == GraphRole::DecoderWithPast ||
                   graph == GraphRole::DecoderMerged || graph == GraphRole::DecoderOnly;
    bool target = isTargetSide(port) || (decoder && !isSourceSide(port));
    return ((target ? "target_" : "source_") + kind).str();
  }
  /// There is one input that may be ids: its name does not matter.
  bool onlyIds() const {
    return llvm::count_if(inputs, [](const Port &port) { return isIds(port) && !isMask(port); }) == 1;
  }

  GraphRole graph;
  llvm::ArrayRef<Port> inputs;
};

std::string outputRole(GraphRole graph, const Port &port, const Port *first) {
  if (std::string cache = cacheOf(port); !cache.empty())
    return "present." + cache;
  if (graph == GraphRole::Encoder)
    return first == &port || isEncoderStates(port) ? "encoder_states" : "encoder_result";
  if (port.has({"log"}) && port.has({"probs", "prob", "probabilities"}))
    return "log_probs";
  if (port.is({"logits"}) || first == &port)
    return "logits";
  bool step = graph == GraphRole::DecoderWithPast || graph == GraphRole::DecoderOnly;
  if (step && port.real() && port.rank == 2 && port.has({"attention", "attentions", "attn", "align", "alignment"}))
    return "alignment";
  return {};
}
} // namespace

std::optional<GraphRole> mlir::transept::findGraphRole(const onnx::GraphProto &graph) {
  llvm::SmallVector<Port> inputs = graphInputs(graph), outputs = graphOutputs(graph);
  auto cacheKind = [](llvm::StringRef kind) {
    return [kind](const Port &port) { return llvm::StringRef(cacheOf(port)).starts_with(kind); };
  };
  bool takesSelf = llvm::any_of(inputs, cacheKind("self.")), takesCross = llvm::any_of(inputs, cacheKind("cross."));
  bool givesSelf = llvm::any_of(outputs, cacheKind("self.")), givesCross = llvm::any_of(outputs, cacheKind("cross."));
  bool takesStates =
      llvm::any_of(inputs, [](const Port &port) { return port.real() && port.rank == 3 && isEncoderStates(port); });
  bool takesIds = llvm::any_of(inputs, isIds);
  // "input" alone may be features too; names that say "target" decide.
  bool takesTarget = llvm::any_of(inputs, [](const Port &port) { return isIds(port) && isTargetIds(port); });
  bool takesOther = llvm::any_of(inputs, [](const Port &port) {
    return (isIds(port) && isSourceIds(port)) ||
           (port.real() && port.rank >= 3 && !isEncoderStates(port) && cacheOf(port).empty());
  });
  if (llvm::any_of(inputs, isUseCache) && takesSelf)
    return GraphRole::DecoderMerged;
  if (takesSelf && (takesCross || takesStates))
    return GraphRole::DecoderWithPast;
  if (takesSelf)
    return takesIds ? std::optional(GraphRole::DecoderOnly) : std::nullopt;
  if (takesIds && !recurrentPairs(inputs, outputs).empty())
    return takesStates ? GraphRole::DecoderWithPast : GraphRole::DecoderOnly;
  if (takesStates && takesIds)
    return GraphRole::Decoder;
  if (takesStates && givesCross && !givesSelf)
    return GraphRole::CrossKeys;
  if (takesTarget && takesOther)
    return GraphRole::Monolith;
  if (takesTarget)
    return std::nullopt;
  bool givesStates = !outputs.empty() && outputs[0].real() && (outputs[0].rank == 3 || outputs[0].rank == -1) &&
                     !outputs[0].is({"logits", "log_probs"});
  bool takesSource = takesIds || llvm::any_of(inputs, [](const Port &port) { return port.real() && port.rank >= 2; });
  return givesStates && takesSource ? std::optional(GraphRole::Encoder) : std::nullopt;
}

PortRoles mlir::transept::findPortRoles(const onnx::GraphProto &graph, GraphRole role,
                                        std::vector<std::string> &unknown) {
  PortRoles roles;
  if (role == GraphRole::Main)
    return roles;
  llvm::SmallVector<Port> inputs = graphInputs(graph), outputs = graphOutputs(graph);
  InputRoles find(role, inputs);
  llvm::StringMap<std::string> recurrent;
  if (role == GraphRole::DecoderWithPast || role == GraphRole::DecoderOnly)
    for (auto [number, pair] : llvm::enumerate(recurrentPairs(inputs, outputs))) {
      recurrent[inputs[pair.first].name] = "recurrent." + std::to_string(number);
      roles.emplace(outputs[pair.second].name, "recurrent_out." + std::to_string(number));
    }
  for (const Port &port : inputs) {
    auto state = recurrent.find(port.name);
    std::string found = state == recurrent.end() ? find.roleOf(port) : state->second;
    if (found.empty())
      unknown.push_back(port.name);
    else
      roles[port.name] = found;
  }
  // The main result is the first one that is no cache.
  const Port *first =
      llvm::find_if(outputs, [&](const Port &port) { return cacheOf(port).empty() && !roles.count(port.name); });
  for (const Port &port : outputs)
    if (std::string found = outputRole(role, port, first); !found.empty())
      roles.emplace(port.name, found);
  return roles;
}
