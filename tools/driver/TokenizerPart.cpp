//===- TokenizerPart.cpp - the tokenizer of an artifact --------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/TokenizerPart.h"
#include "runtime/text/Tokenizer.h"
#include "tools/driver/Attachments.h"
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace mlir::transept;
using nlohmann::json;
namespace runtime = ::transept;

namespace {

struct Kind {
  const char *exported;             ///< as the frontend names it
  const char *kind;                 ///< as the runtime names it
  std::vector<const char *> models; ///< the first of them that is there
  std::vector<const char *> files;
};

const std::vector<Kind> &kinds() {
  static const std::vector<Kind> table = {
      {"marian", "sentencepiece-pair", {}, {"source.spm", "target.spm", "vocab.json", "target_vocab.json"}},
      {"tokenizer.json", "tokenizer.json", {}, {"tokenizer.json"}},
      {"sentencepiece",
       "sentencepiece",
       {"spiece.model", "sentencepiece.bpe.model", "tokenizer.model"},
       {"vocab.json"}},
      {"byte-level-bpe", "byte-level-bpe", {}, {"vocab.json", "merges.txt"}},
      {"wordpiece", "wordpiece", {}, {"vocab.txt"}},
  };
  return table;
}

/// The class AutoTokenizer takes for a model whose files name none.
std::string classOf(const std::string &modelType) {
  static const std::map<std::string, std::string> classes = {
      {"bart", "BartTokenizer"},
      {"bert", "BertTokenizer"},
      {"bigbird_pegasus", "PegasusTokenizer"},
      {"blenderbot", "BlenderbotTokenizer"},
      {"gpt2", "GPT2Tokenizer"},
      {"longt5", "T5Tokenizer"},
      {"m2m_100", "M2M100Tokenizer"},
      {"marian", "MarianTokenizer"},
      {"mbart", "MBartTokenizer"},
      {"mt5", "MT5Tokenizer"},
      {"nllb-moe", "NllbTokenizer"},
      {"pegasus", "PegasusTokenizer"},
      {"pegasus_x", "PegasusTokenizer"},
      {"roberta", "RobertaTokenizer"},
      {"switch_transformers", "T5Tokenizer"},
      {"t5", "T5Tokenizer"},
      {"umt5", "T5Tokenizer"},
      {"whisper", "WhisperTokenizer"},
  };
  auto found = classes.find(modelType);
  return found == classes.end() ? "" : found->second;
}

Outcome<json> objectIn(const std::map<std::string, StringRef> &files, const char *name) {
  auto file = files.find(name);
  if (file == files.end())
    return json(json::object());
  json object = json::parse(file->second.begin(), file->second.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    return Failure{ExitInvalidModel, std::string(name) + " is no JSON object", {}};
  return object;
}

std::string contentOf(const json &token) {
  if (token.is_object() && token.contains("content") && token["content"].is_string())
    return token["content"].get<std::string>();
  return token.is_string() ? token.get<std::string>() : "";
}

/// Older exports: special_tokens_map.json over the configuration, and added tokens in added_tokens.json.
std::optional<Failure> addOldFiles(const std::map<std::string, StringRef> &files, json &config) {
  Outcome<json> specials = objectIn(files, "special_tokens_map.json");
  if (!specials)
    return std::move(specials.failure());
  Outcome<json> added = objectIn(files, "added_tokens.json");
  if (!added)
    return std::move(added.failure());
  for (auto &[key, value] : specials->items()) {
    if (value.is_object())
      value["special"] = true;
    if (key != "additional_special_tokens" || !value.is_array()) {
      config[key] = value;
      continue;
    }
    json &list = config[key];
    if (!list.is_array())
      list = json::array();
    for (json &token : value) {
      if (token.is_object())
        token["special"] = true;
      if (std::find(list.begin(), list.end(), token) == list.end())
        list.push_back(token);
    }
  }
  std::set<std::string> special;
  for (const auto &[key, value] : config.items()) {
    if (value.is_array() && key == "additional_special_tokens")
      for (const json &token : value)
        special.insert(contentOf(token));
    else if (StringRef(key).ends_with("_token"))
      special.insert(contentOf(value));
  }
  json decoder = json::object();
  for (const auto &[token, id] : added->items()) {
    if (!id.is_number_integer())
      return Failure{ExitInvalidModel, "added_tokens.json has no id for '" + printable(token) + "'", {}};
    decoder[std::to_string(id.get<int64_t>())] = {
        {"content", token}, {"special", special.count(token) != 0}, {"normalized", special.count(token) == 0}};
  }
  if (!decoder.empty())
    config["added_tokens_decoder"] = std::move(decoder);
  return std::nullopt;
}

Outcome<std::string> configOf(const std::map<std::string, StringRef> &files, StringRef modelConfig) {
  Outcome<json> config = objectIn(files, "tokenizer_config.json");
  if (!config)
    return std::move(config.failure());
  if (!config->contains("added_tokens_decoder"))
    if (std::optional<Failure> failure = addOldFiles(files, *config))
      return std::move(*failure);
  if (!config->contains("tokenizer_class") || (*config)["tokenizer_class"].is_null()) {
    json model = json::parse(modelConfig.begin(), modelConfig.end(), nullptr, /*allow_exceptions=*/false);
    auto text = [&](const char *key) {
      return model.is_object() && model.contains(key) && model[key].is_string() ? model[key].get<std::string>() : "";
    };
    std::string name = text("tokenizer_class").empty() ? classOf(text("model_type")) : text("tokenizer_class");
    if (!name.empty())
      (*config)["tokenizer_class"] = name;
  }
  return config->dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

Outcome<TokenizerPart> mlir::transept::tokenizerPartOf(ModuleOp module) {
  TokenizerPart part;
  auto exported = module->getAttrOfType<DictionaryAttr>("transept.export");
  auto tokenizer = exported ? exported.getAs<DictionaryAttr>("tokenizer") : DictionaryAttr();
  auto name = tokenizer ? tokenizer.getAs<StringAttr>("kind") : StringAttr();
  const Kind *kind = nullptr;
  for (const Kind &one : kinds())
    if (name && name.getValue() == one.exported)
      kind = &one;
  if (!kind)
    return part;
  Outcome<std::map<std::string, StringRef>> files = attachedFiles(module);
  if (!files)
    return std::move(files.failure());
  auto modelConfig = exported.getAs<StringAttr>("config");
  Outcome<std::string> config = configOf(*files, modelConfig ? modelConfig.getValue() : "");
  if (!config)
    return std::move(config.failure());
  part.kind = kind->kind;
  part.config = *config;
  auto take = [&](const char *file) {
    auto found = files->find(file);
    return found != files->end() && part.files.insert(*found).second;
  };
  for (const char *file : kind->models)
    if (take(file))
      break;
  for (const char *file : kind->files)
    take(file);
  return part;
}

std::string mlir::transept::tokenizerProblem(const TokenizerPart &part) {
  if (part.kind == "none")
    return "";
  std::vector<runtime::TokenizerFile> files;
  for (const auto &[name, bytes] : part.files)
    files.push_back({name, {bytes.data(), bytes.size()}});
  auto made = runtime::makeTokenizer(part.kind, files, part.config);
  return made.ok() ? "" : made.status().message();
}
