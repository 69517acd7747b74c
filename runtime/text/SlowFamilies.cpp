// Which class of transformers does what with the files of a checkpoint.

#include "runtime/text/SlowTokenizer.h"

#include <algorithm>

namespace transept::text {

namespace {

AddedToken special(const std::string &content, bool lstrip = false, bool rstrip = false) {
  AddedToken token;
  token.content = content;
  token.special = true;
  token.lstrip = lstrip;
  token.rstrip = rstrip;
  return token;
}

using Named = std::map<std::string, AddedToken>;

Named fairseqTokens() {
  return {{"bos_token", special("<s>")},          {"eos_token", special("</s>")},  {"sep_token", special("</s>")},
          {"cls_token", special("<s>")},          {"unk_token", special("<unk>")}, {"pad_token", special("<pad>")},
          {"mask_token", special("<mask>", true)}};
}

int64_t givenExtraIds(const TokenizerConfig &config) {
  return std::count_if(config.additional.begin(), config.additional.end(),
                       [](const AddedToken &token) { return token.content.find("<extra_id_") != std::string::npos; });
}

SlowTraits t5Traits(const TokenizerConfig &config, int64_t pieces) {
  SlowTraits traits;
  traits.named = {{"eos_token", special("</s>")}, {"unk_token", special("<unk>")}, {"pad_token", special("<pad>")}};
  int64_t given = givenExtraIds(config);
  for (int64_t i = 0; i < (given ? given : config.extraIds); ++i) {
    std::string content = "<extra_id_" + std::to_string(i) + ">";
    traits.added[pieces - 1 + config.extraIds - i] = special(content, true, true);
    if (given == 0)
      traits.additional.push_back(special(content, true, true));
  }
  traits.after = {"eos_token"};
  traits.endOnce = true;
  return traits;
}

SlowTraits pegasusTraits(const TokenizerConfig &config) {
  SlowTraits traits;
  traits.named = {{"pad_token", special("<pad>")},
                  {"eos_token", special("</s>")},
                  {"unk_token", special("<unk>")},
                  {"mask_token", special("<mask_2>")}};
  traits.addedGoFirst = false;
  traits.added[0] = special(config.contentOf("pad_token", "<pad>"));
  traits.added[1] = special(config.contentOf("eos_token", "</s>"));
  std::string sentence = config.contentOf("mask_token_sent", "<mask_1>");
  if (!sentence.empty()) {
    traits.added[2] = special(sentence);
    traits.added[3] = special(config.contentOf("mask_token", "<mask_2>"));
  }
  for (int64_t i = 2; i < config.offset; ++i)
    traits.added[static_cast<int64_t>(traits.added.size())] = special("<unk_" + std::to_string(i) + ">");
  // Given ones are filled up to the same number.
  if (!sentence.empty())
    traits.additional.push_back(special(sentence));
  bool there = std::any_of(config.additional.begin(), config.additional.end(),
                           [&](const AddedToken &token) { return token.content == sentence; });
  int64_t first = config.hasAdditional ? static_cast<int64_t>(config.additional.size()) + !there : 2;
  for (int64_t i = first; i < config.offset - (config.hasAdditional ? 1 : 0); ++i)
    traits.additional.push_back(special("<unk_" + std::to_string(i) + ">"));
  traits.after = {"eos_token"};
  return traits;
}

SlowTraits languageTraits(const std::string &name, const TokenizerConfig &config) {
  SlowTraits traits;
  traits.named = fairseqTokens();
  if (name == "XLMRobertaTokenizer") {
    traits.before = {"cls_token"};
    traits.after = {"sep_token"};
    return traits;
  }
  if (name == "M2M100Tokenizer") {
    traits.named.erase("cls_token");
    traits.named.erase("mask_token");
    return traits;
  }
  if (name == "NllbTokenizer") {
    const char *keys[] = {"bos_token", "pad_token", "eos_token", "unk_token"};
    for (int64_t id = 0; id < 4; ++id)
      traits.added[id] = special(config.contentOf(keys[id], traits.named[keys[id]].content));
    if (!config.hasAdditional)
      for (const std::string &code : languageCodes("nllb"))
        traits.additional.push_back(special(code));
    return traits;
  }
  if (name == "MBart50Tokenizer")
    traits.named.erase("bos_token");
  for (const std::string &code : languageCodes(name == "MBartTokenizer" ? "mbart" : "mbart50"))
    traits.additional.push_back(special(code));
  return traits;
}

SlowTraits whisperTraits(const TokenizerConfig &config) {
  SlowTraits traits;
  for (const char *key : {"bos_token", "eos_token", "unk_token"})
    traits.named[key] = special("<|endoftext|>");
  traits.before = {"<|startoftranscript|>"};
  if (!config.language.empty())
    traits.before.push_back("<|" + config.language + "|>");
  if (!config.task.empty())
    traits.before.push_back("<|" + config.task + "|>");
  if (!config.predictTimestamps)
    traits.before.push_back("<|notimestamps|>");
  traits.after = {"eos_token"};
  traits.speech = true;
  return traits;
}

SlowTraits byteLevelTraits(const std::string &name, const TokenizerConfig &config) {
  if (name == "WhisperTokenizer")
    return whisperTraits(config);
  SlowTraits traits;
  if (name == "GPT2Tokenizer") {
    for (const char *key : {"bos_token", "eos_token", "unk_token"})
      traits.named[key] = special("<|endoftext|>");
    if (config.addBosToken.value_or(false))
      traits.before = {"bos_token"};
    return traits;
  }
  traits.named = fairseqTokens();
  if (name == "BlenderbotTokenizer") {
    traits.after = {"eos_token"};
  } else {
    traits.before = {"cls_token"};
    traits.after = {"sep_token"};
  }
  return traits;
}

SlowTraits bertTraits(const TokenizerConfig &config) {
  SlowTraits traits;
  traits.named = {{"unk_token", special("[UNK]")},
                  {"sep_token", special("[SEP]")},
                  {"pad_token", special("[PAD]")},
                  {"cls_token", special("[CLS]")},
                  {"mask_token", special("[MASK]")}};
  traits.before = {"cls_token"};
  traits.after = {"sep_token"};
  traits.lowercase = config.doLowerCase.value_or(true);
  traits.cleanUp = true;
  return traits;
}

bool isOneOf(const std::string &name, std::initializer_list<const char *> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

Result<std::unique_ptr<Tokenizer>> makeSlowTokenizer(const std::string &kind, const std::vector<TokenizerFile> &files,
                                                     const TokenizerConfig &config) {
  auto file = [&](std::initializer_list<const char *> names) -> const TokenizerFile * {
    for (const TokenizerFile &one : files)
      if (isOneOf(one.name, names))
        return &one;
    return nullptr;
  };
  auto lacks = [](const char *name) {
    return Status(Code::ArtifactRefused, std::string("the tokenizer lacks '") + name + "'");
  };
  const std::string &name = config.tokenizerClass;
  auto unknownClass = [&] {
    return Status(Code::Unsupported, name.empty() ? "the tokenizer's configuration names no 'tokenizer_class'"
                                                  : "the tokenizer class '" + printable(name, 60) +
                                                        "' without a tokenizer.json is not implemented");
  };
  const TokenizerFile *vocabulary = file({"vocab.json"});
  if (kind == "sentencepiece") {
    const TokenizerFile *model = file({"spiece.model", "sentencepiece.bpe.model", "tokenizer.model"});
    if (!isOneOf(name, {"T5Tokenizer", "PegasusTokenizer", "MBartTokenizer", "MBart50Tokenizer", "NllbTokenizer",
                        "M2M100Tokenizer", "XLMRobertaTokenizer"}))
      return unknownClass();
    if (!model)
      return lacks("spiece.model");
    if (name == "M2M100Tokenizer" && !vocabulary)
      return lacks("vocab.json");
    if (int64_t given = givenExtraIds(config); given > 0 && given != config.extraIds && name == "T5Tokenizer")
      return Status(Code::ArtifactRefused, "the tokenizer's configuration has " + std::to_string(given) +
                                               " tokens '<extra_id_N>', 'extra_ids' says " +
                                               std::to_string(config.extraIds));
    SlowModelResult made =
        makeSlowSentencePiece(model->bytes, vocabulary ? vocabulary->bytes : std::string_view(), config);
    if (!made.ok())
      return made.status().withContext("'" + model->name + "'");
    SlowTraits traits = name == "T5Tokenizer"        ? t5Traits(config, (*made)->size())
                        : name == "PegasusTokenizer" ? pegasusTraits(config)
                                                     : languageTraits(name, config);
    return SlowTokenizer::create(made.take(), std::move(traits), config);
  }
  if (kind == "byte-level-bpe") {
    if (!isOneOf(name,
                 {"BartTokenizer", "RobertaTokenizer", "BlenderbotTokenizer", "GPT2Tokenizer", "WhisperTokenizer"}))
      return unknownClass();
    const TokenizerFile *merges = file({"merges.txt"});
    if (!vocabulary || !merges)
      return lacks(vocabulary ? "merges.txt" : "vocab.json");
    TRANSEPT_ASSIGN(std::unique_ptr<SlowModel> model, makeSlowByteLevel(vocabulary->bytes, merges->bytes, config));
    return SlowTokenizer::create(std::move(model), byteLevelTraits(name, config), config);
  }
  if (name != "BertTokenizer")
    return unknownClass();
  const TokenizerFile *words = file({"vocab.txt"});
  if (!words)
    return lacks("vocab.txt");
  TRANSEPT_ASSIGN(std::unique_ptr<SlowModel> model, makeSlowBert(words->bytes, config));
  return SlowTokenizer::create(std::move(model), bertTraits(config), config);
}

} // namespace transept::text
