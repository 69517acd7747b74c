#include "runtime/text/TokenizerConfig.h"

#include "runtime/text/Fields.h"

namespace transept::text {

using nlohmann::json;

namespace {

/// A token as a string, or as an object with its properties.
AddedToken readToken(const json &value, const std::string &where, Fields &errors) {
  AddedToken token;
  token.special = true;
  if (value.is_string()) {
    token.content = value.get<std::string>();
    return token;
  }
  Fields fields(value, where);
  fields.ignore({"__type"});
  token.content = fields.string("content");
  token.lstrip = fields.flag("lstrip", false);
  token.rstrip = fields.flag("rstrip", false);
  token.singleWord = fields.flag("single_word", false);
  token.special = fields.flag("special", false);
  token.normalized = fields.flag("normalized", !token.special);
  if (Status status = fields.done(); !status.ok())
    errors.fail(status.code(), status.message());
  return token;
}

void readTokens(Fields &fields, TokenizerConfig &config) {
  auto where = [&](const std::string &key) { return fields.where() + ": '" + key + "'"; };
  if (const json *tokens = fields.find("added_tokens_decoder")) {
    if (!tokens->is_object())
      fields.fail(Code::ArtifactRefused, where("added_tokens_decoder") + " must be an object");
    else
      for (const auto &[key, value] : tokens->items()) {
        bool number = !key.empty() && key.size() <= 8 && key.find_first_not_of("0123456789") == std::string::npos;
        if (!number || std::stoll(key) >= Vocabulary::maxId || !value.is_object())
          return fields.fail(Code::ArtifactRefused,
                             fields.where() + " has a malformed added token '" + printable(key, 60) + "'");
        AddedToken token = readToken(value, fields.where() + ": the added token " + key, fields);
        if (token.content.empty())
          fields.fail(Code::ArtifactRefused, fields.where() + " has a malformed added token '" + key + "'");
        config.addedTokens[std::stoll(key)] = std::move(token);
      }
  }
  auto known = [&](AddedToken token) { // properties come from added_tokens_decoder where it has the token
    for (const auto &[id, added] : config.addedTokens)
      if (added.content == token.content)
        return added;
    return token;
  };
  for (const std::string &key : namedTokenKeys()) {
    if (const json *value = fields.find(key.c_str()))
      config.named[key] = known(readToken(*value, where(key), fields));
    else
      config.absent.insert(key);
  }
  auto addAdditional = [&](const json &value, const std::string &key) {
    AddedToken token = known(readToken(value, where(key), fields));
    token.special = true;
    config.additional.push_back(std::move(token));
  };
  if (const json *list = fields.find("additional_special_tokens")) {
    config.hasAdditional = true;
    if (!list->is_array())
      fields.fail(Code::ArtifactRefused, where("additional_special_tokens") + " must be a list");
    else
      for (const json &value : *list)
        addAdditional(value, "additional_special_tokens");
  }
  if (const json *extra = fields.find("extra_special_tokens"))
    for (const auto &[key, value] : extra->items())
      addAdditional(value, "extra_special_tokens");
}

/// Keys that may only have the value which switches them off.
void refuseOthers(Fields &fields) {
  auto only = [&](const char *name, const json &accepted) {
    const json *value = fields.find(name);
    if (value && *value != accepted)
      fields.fail(Code::Unsupported, fields.where() + ": '" + name + "' is " +
                                         printable(value->dump(-1, ' ', true), 60) + ", which is not implemented");
  };
  only("sp_model_kwargs", json::object());
  only("errors", "replace");
  only("split_special_tokens", false);
  only("do_basic_tokenize", true);
  only("auto_map", json());
  only("never_split", json::array());
  only("spaces_between_special_tokens", true);
  only("use_default_system_prompt", false);
  only("normalize", false);
  only("trust_remote_code", false);
  only("fix_mistral_regex", false);
  only("wordpieces_prefix", "##");
  only("dropout", json());
}

void readRest(Fields &fields, TokenizerConfig &config) {
  auto optional = [&](const char *name, std::optional<bool> &flag) {
    if (fields.find(name))
      flag = fields.flag(name, false);
  };
  optional("add_prefix_space", config.addPrefixSpace);
  optional("legacy", config.legacy);
  optional("add_bos_token", config.addBosToken);
  optional("add_eos_token", config.addEosToken);
  optional("strip_accents", config.stripAccents);
  optional("do_lower_case", config.doLowerCase);
  optional("clean_up_tokenization_spaces", config.cleanUpSpaces);
  config.legacyBehaviour = fields.flag("legacy_behaviour", false);
  config.tokenizeChineseChars = fields.flag("tokenize_chinese_chars", true);
  config.predictTimestamps = fields.flag("predict_timestamps", false);
  config.extraIds = fields.integer("extra_ids", 100, 0, 1 << 16);
  config.offset = fields.integer("offset", 103, 0, 1 << 16);
  config.madeUpWords = fields.integer("num_madeup_words", 8, 0, 1 << 16);
  config.sourceLanguage = fields.string("src_lang", "");
  config.targetLanguage = fields.string("tgt_lang", "");
  config.languageCodes = fields.string("language_codes", "m2m100");
  config.language = fields.string("language", "");
  config.task = fields.string("task", "");
  config.tokenizerClass = fields.string("tokenizer_class", "");
  constexpr std::string_view fast = "Fast";
  if (std::string &name = config.tokenizerClass;
      name.size() > fast.size() && name.compare(name.size() - fast.size(), fast.size(), fast) == 0)
    name.resize(name.size() - fast.size());
  // Classes that are others under a name of their own.
  static const std::map<std::string, std::string> same = {
      {"MT5Tokenizer", "T5Tokenizer"},          {"LEDTokenizer", "BartTokenizer"},
      {"MvpTokenizer", "BartTokenizer"},        {"LongformerTokenizer", "RobertaTokenizer"},
      {"DistilBertTokenizer", "BertTokenizer"}, {"ElectraTokenizer", "BertTokenizer"},
  };
  if (auto found = same.find(config.tokenizerClass); found != same.end())
    config.tokenizerClass = found->second;
}

} // namespace

const std::vector<std::string> &namedTokenKeys() {
  static const std::vector<std::string> keys = {"bos_token", "eos_token", "unk_token",  "sep_token",
                                                "pad_token", "cls_token", "mask_token", "mask_token_sent"};
  return keys;
}

std::string TokenizerConfig::contentOf(const std::string &key, const std::string &missing) const {
  auto found = named.find(key);
  return found != named.end() ? found->second.content : absent.count(key) ? "" : missing;
}

std::vector<AddedToken> TokenizerConfig::specials() const {
  std::vector<AddedToken> tokens;
  for (const std::string &key : namedTokenKeys())
    if (auto found = named.find(key); found != named.end() && key != "mask_token_sent")
      tokens.push_back(found->second);
  tokens.insert(tokens.end(), additional.begin(), additional.end());
  return tokens;
}

Result<TokenizerConfig> TokenizerConfig::parse(const std::string &text) {
  TokenizerConfig config;
  if (text.empty())
    return config;
  json object = json::parse(text, nullptr, false);
  if (!object.is_object())
    return Status(Code::ArtifactRefused, "the tokenizer's configuration is no JSON object");
  Fields fields(object, "the tokenizer's configuration");
  readTokens(fields, config);
  for (const std::string &key : namedTokenKeys()) // null is something else than absent
    if (!object.contains(key))
      config.absent.erase(key);
  readRest(fields, config);
  refuseOthers(fields);
  // Of padding, truncation, offsets, chats and files; without influence on the ids of a text, or the text of ids.
  fields.ignore({"model_max_length", "max_length", "max_len", "return_attention_mask", "padding_side",
                 "truncation_side", "truncation_strategy", "truncation", "padding", "stride", "pad_to_multiple_of",
                 "pad_token_type_id", "return_token_type_ids", "model_input_names", "trim_offsets", "chat_template",
                 "response_schema", "name_or_path", "_name_or_path", "_commit_hash", "tokenizer_file", "vocab_file",
                 "merges_file", "spm_file", "special_tokens_map_file", "processor_class", "feature_extractor_type",
                 "use_fast", "from_slow", "transformers_version", "model_type", "full_tokenizer_file", "verbose",
                 "init_inputs", "normalizer_file", "is_local", "backend", "device_map", "token", "return_tensors",
                 // facts about the pair of languages, and how Marian's files were made
                 "source_lang", "target_lang", "separate_vocabs", "added_tokens_decoder"});
  TRANSEPT_TRY(fields.done());
  return config;
}

} // namespace transept::text
