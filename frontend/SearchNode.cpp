//===- SearchNode.cpp - graphs that hold a whole generation -------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/SearchNode.h"
#include "frontend/TensorData.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

using namespace mlir::transept;
using nlohmann::json;

namespace {

bool isSearch(const onnx::NodeProto &node) {
  return node.domain() == "com.microsoft" &&
         llvm::is_contained({"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"},
                            llvm::StringRef(node.op_type()));
}

/// The numbers of a tensor that is stored in the file; nullopt for other types and external data.
std::optional<std::vector<double>> numbersOf(const onnx::TensorProto &tensor, const OnnxFile &file) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return std::nullopt;
  Outcome<std::vector<char>> raw = readRawData(tensor, file);
  if (!raw)
    return std::nullopt;
  auto read = [&](const auto &stored, auto zero) {
    std::vector<double> numbers(stored.begin(), stored.end());
    if (numbers.empty())
      for (size_t at = 0; at + sizeof(zero) <= raw->size(); at += sizeof(zero)) {
        std::memcpy(&zero, raw->data() + at, sizeof(zero));
        numbers.push_back(static_cast<double>(zero));
      }
    return numbers;
  };
  if (tensor.data_type() == onnx::TensorProto::INT32)
    return read(tensor.int32_data(), int32_t());
  if (tensor.data_type() == onnx::TensorProto::INT64)
    return read(tensor.int64_data(), int64_t());
  if (tensor.data_type() == onnx::TensorProto::FLOAT)
    return read(tensor.float_data(), float());
  return std::nullopt;
}

/// Leaves of a graph what its outputs need.
void prune(onnx::GraphProto &graph) {
  llvm::StringMap<const onnx::NodeProto *> makers;
  for (const onnx::NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      if (!output.empty())
        makers[output] = &node;
  llvm::StringSet<> needed;
  std::set<const onnx::NodeProto *> kept;
  std::vector<std::string> work;
  for (const onnx::ValueInfoProto &output : graph.output())
    work.push_back(output.name());
  std::vector<const onnx::GraphProto *> nested;
  while (!work.empty() || !nested.empty()) {
    if (!nested.empty()) { // uses of names from around a nested graph
      const onnx::GraphProto *inner = nested.back();
      nested.pop_back();
      for (const onnx::NodeProto &node : inner->node()) {
        work.insert(work.end(), node.input().begin(), node.input().end());
        for (const onnx::AttributeProto &attribute : node.attribute())
          if (attribute.has_g())
            nested.push_back(&attribute.g());
      }
      for (const onnx::ValueInfoProto &output : inner->output())
        work.push_back(output.name());
      continue;
    }
    std::string name = work.back();
    work.pop_back();
    const onnx::NodeProto *node = needed.insert(name).second ? makers.lookup(name) : nullptr;
    if (!node || !kept.insert(node).second)
      continue;
    work.insert(work.end(), node->input().begin(), node->input().end());
    for (const onnx::AttributeProto &attribute : node->attribute())
      if (attribute.has_g())
        nested.push_back(&attribute.g());
  }
  auto erase = [](auto *list, auto keep) {
    int count = 0;
    for (int i = 0; i < list->size(); ++i)
      if (keep(list->Get(i)))
        list->SwapElements(i, count++);
    list->DeleteSubrange(count, list->size() - count);
  };
  // Nodes move among themselves while they are sorted out, so what is kept is known by name.
  llvm::StringSet<> results;
  for (const onnx::NodeProto *node : kept)
    for (const std::string &output : node->output())
      if (!output.empty())
        results.insert(output);
  erase(graph.mutable_node(), [&](const onnx::NodeProto &node) {
    return llvm::any_of(node.output(), [&](const std::string &output) { return results.contains(output); });
  });
  auto isNeeded = [&](const auto &named) { return needed.contains(named.name()); };
  erase(graph.mutable_initializer(), isNeeded);
  erase(graph.mutable_input(), isNeeded);
}

class SearchSplitter {
public:
  explicit SearchSplitter(OnnxFile file) : file(std::move(file)) {}

  Outcome<SearchParts> split();

private:
  Failure unsupported(const llvm::Twine &what) const {
    return {ExitUnsupported,
            printable(file.path) + ": node " + mlir::transept::quoted(search->name()) + " (" + search->op_type() +
                ") " + what.str(),
            {}};
  }
  std::optional<Failure> findSearch();
  std::optional<Failure> readAttributes();
  std::optional<Failure> readInputs();
  std::optional<Failure> takeGraph(llvm::StringRef attribute, bool isEncoder);
  /// What a converter adds to a vocabulary so that its size is round is no token.
  std::optional<Failure> suppressPadding(const onnx::GraphProto &decoder);
  int64_t integer(llvm::StringRef name, int64_t otherwise) const {
    auto *found = find(name);
    return found && found->has_i() ? found->i() : otherwise;
  }
  const onnx::AttributeProto *find(llvm::StringRef name) const {
    for (const onnx::AttributeProto &attribute : search->attribute())
      if (attribute.name() == name)
        return &attribute;
    return nullptr;
  }

  OnnxFile file;
  onnx::NodeProto *search = nullptr;
  SearchParts result;
  json settings = json::object();
};

} // namespace

bool mlir::transept::hasSearchNode(const onnx::GraphProto &graph) { return llvm::any_of(graph.node(), isSearch); }

std::optional<Failure> SearchSplitter::findSearch() {
  for (onnx::NodeProto &node : *file.model->mutable_graph()->mutable_node()) {
    if (!isSearch(node))
      continue;
    if (search)
      return unsupported("is not the only search of its graph");
    search = &node;
  }
  // Integers of another width, and names, are all that may be changed before and after the search.
  for (const onnx::NodeProto &node : file.model->graph().node())
    if (!isSearch(node) && node.op_type() != "Cast" && node.op_type() != "Identity")
      return unsupported("is not alone: its graph also computes " + mlir::transept::quoted(node.name()) + " (" +
                         printable(node.op_type()) + "); export the model without it");
  if (search->op_type() == "WhisperBeamSearch")
    return unsupported("is not implemented; export encoder and decoder as files of their own");
  return std::nullopt;
}

std::optional<Failure> SearchSplitter::readAttributes() {
  for (const char *name : {"eos_token_id", "pad_token_id", "decoder_start_token_id"})
    if (int64_t id = integer(name, -1); id >= 0)
      settings[name] = id;
  settings["no_repeat_ngram_size"] = integer("no_repeat_ngram_size", 0);
  settings["early_stopping"] = integer("early_stopping", 0) != 0;
  bool beams = search->op_type() == "BeamSearch";
  if (beams)
    settings["search"] = "onnxruntime";
  else
    settings["num_beams"] = 1;
  settings["do_sample"] = search->op_type() == "Sampling";
  static constexpr llvm::StringRef known[] = {"eos_token_id",   "pad_token_id", "decoder_start_token_id",
                                              "early_stopping", "vocab_size",   "no_repeat_ngram_size",
                                              "model_type",     "encoder",      "decoder",
                                              "init_decoder"};
  for (const onnx::AttributeProto &attribute : search->attribute()) {
    if (llvm::is_contained(known, llvm::StringRef(attribute.name())))
      continue;
    bool sampling = search->op_type() == "Sampling";
    if (sampling && (attribute.name() == "temperature" || attribute.name() == "top_p"))
      settings[attribute.name()] = static_cast<double>(attribute.f());
    else if (attribute.f() != 0 || (attribute.i() != 0 && attribute.name() != "min_tokens_to_keep"))
      return unsupported("has the attribute " + mlir::transept::quoted(attribute.name()) +
                         ", which is not implemented");
  }
  return std::nullopt;
}

std::optional<Failure> SearchSplitter::readInputs() {
  static constexpr llvm::StringRef ofBeams[] = {"input_ids",          "max_length",           "min_length",
                                                "num_beams",          "num_return_sequences", "length_penalty",
                                                "repetition_penalty", "vocab_mask",           "prefix_vocab_mask",
                                                "attention_mask",     "decoder_input_ids",    "logits_processor"};
  static constexpr llvm::StringRef ofOthers[] = {"input_ids",          "max_length",    "min_length",
                                                 "repetition_penalty", "vocab_mask",    "prefix_vocab_mask",
                                                 "attention_mask",     "presence_mask", "seed"};
  llvm::ArrayRef<llvm::StringRef> names = search->op_type() == "BeamSearch" ? llvm::ArrayRef(ofBeams) : ofOthers;
  llvm::StringMap<const onnx::TensorProto *> stored;
  for (const onnx::TensorProto &tensor : file.model->graph().initializer())
    stored[tensor.name()] = &tensor;
  for (int i = 0; i < search->input_size(); ++i) {
    const std::string &value = search->input(i);
    if (value.empty())
      continue;
    if (i >= static_cast<int>(names.size()))
      return unsupported("has more inputs than are known");
    llvm::StringRef name = names[static_cast<size_t>(i)];
    const onnx::TensorProto *tensor = stored.lookup(value);
    if (name == "logits_processor" || name == "presence_mask" || name == "decoder_input_ids")
      return unsupported("takes " + mlir::transept::quoted(name) + ", which is not implemented");
    if (!tensor) // given with each call there, with each request here
      continue;
    std::optional<std::vector<double>> numbers = numbersOf(*tensor, file);
    if (!numbers || numbers->empty())
      return unsupported("stores " + mlir::transept::quoted(name) + " in a form that is not read");
    if (name == "vocab_mask" || name == "prefix_vocab_mask") {
      json banned = json::array();
      for (auto [token, allowed] : llvm::enumerate(*numbers))
        if (allowed == 0)
          banned.push_back(token);
      if (!banned.empty())
        settings[name == "vocab_mask" ? "suppress_tokens" : "begin_suppress_tokens"] = banned;
    } else if (name == "length_penalty" || name == "repetition_penalty") {
      settings[name.str()] = numbers->front();
    } else if (name != "input_ids" && name != "attention_mask") {
      settings[name.str()] = static_cast<int64_t>(numbers->front());
    }
  }
  return std::nullopt;
}

std::optional<Failure> SearchSplitter::suppressPadding(const onnx::GraphProto &decoder) {
  int64_t vocabulary = integer("vocab_size", -1);
  if (vocabulary <= 0)
    return std::nullopt;
  const onnx::TensorShapeProto &shape =
      decoder.output_size() ? decoder.output(0).type().tensor_type().shape() : onnx::TensorShapeProto();
  int64_t columns = shape.dim_size() ? shape.dim(shape.dim_size() - 1).dim_value() : 0;
  constexpr int64_t most = 65536;
  if (columns < vocabulary || columns - vocabulary > most)
    return unsupported("has vocab_size " + llvm::Twine(vocabulary) + " for logits of " +
                       (columns ? llvm::Twine(columns) : llvm::Twine("unknown size")));
  if (columns == vocabulary)
    return std::nullopt;
  json &banned = settings["suppress_tokens"];
  for (int64_t token = vocabulary; token < columns; ++token)
    banned.push_back(token);
  return std::nullopt;
}

std::optional<Failure> SearchSplitter::takeGraph(llvm::StringRef name, bool isEncoder) {
  onnx::AttributeProto *holder = nullptr;
  for (onnx::AttributeProto &attribute : *search->mutable_attribute())
    if (attribute.name() == name && attribute.has_g())
      holder = &attribute;
  if (!holder)
    return Failure{ExitInvalidModel,
                   printable(file.path) + ": node " + mlir::transept::quoted(search->name()) + " has no graph " +
                       mlir::transept::quoted(name),
                   {}};
  OnnxFile part;
  part.path = file.path;
  part.name = file.name + ":" + name.str();
  part.directory = file.directory;
  part.sha256 = file.sha256;
  part.contents = file.contents;
  part.opsets = file.opsets;
  part.limits = file.limits;
  part.model = std::make_unique<onnx::ModelProto>();
  part.model->set_ir_version(file.model->ir_version());
  *part.model->mutable_opset_import() = file.model->opset_import();
  *part.model->mutable_functions() = file.model->functions();
  onnx::GraphProto &graph = *part.model->mutable_graph();
  graph.Swap(holder->mutable_g());
  // The first step that an encoder's graph may hold as well is one like all others.
  if (isEncoder) {
    auto &outputs = *graph.mutable_output();
    for (int i = outputs.size() - 1; i >= 0; --i)
      if (outputs.Get(i).name() == "logits" || llvm::StringRef(outputs.Get(i).name()).contains("_self_"))
        outputs.DeleteSubrange(i, 1);
  } else if (std::optional<Failure> failure = suppressPadding(graph)) {
    return failure;
  }
  llvm::StringSet<> own;
  for (const onnx::TensorProto &tensor : graph.initializer())
    own.insert(tensor.name());
  for (const onnx::TensorProto &tensor : file.model->graph().initializer())
    if (!own.contains(tensor.name()))
      *graph.add_initializer() = tensor;
  prune(graph);
  result.parts.push_back({std::move(part), isEncoder ? std::optional(GraphRole::Encoder) : std::nullopt});
  return std::nullopt;
}

Outcome<SearchParts> SearchSplitter::split() {
  for (auto step : {&SearchSplitter::findSearch, &SearchSplitter::readAttributes, &SearchSplitter::readInputs})
    if (std::optional<Failure> failure = (this->*step)())
      return std::move(*failure);
  if (find("encoder"))
    if (std::optional<Failure> failure = takeGraph("encoder", /*isEncoder=*/true))
      return std::move(*failure);
  if (std::optional<Failure> failure = takeGraph("decoder", /*isEncoder=*/false))
    return std::move(*failure);
  result.settings = settings.dump(-1, ' ', false, json::error_handler_t::replace);
  return std::move(result);
}

Outcome<SearchParts> mlir::transept::splitSearch(OnnxFile file) { return SearchSplitter(std::move(file)).split(); }
