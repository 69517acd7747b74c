#include "runtime/text/LanguageTable.h"

namespace transept::text {

namespace {

struct Family {
  const char *name;   // of the tokenizer's class
  const char *codes;  // its set of codes; null: as the configuration says
  const char *source; // the default
  const char *mark;   // around a code in a token
  bool behind;        // the language stands behind the end token
  bool startsWith;    // the output starts with its language
};

constexpr Family families[] = {
    {"M2M100Tokenizer", nullptr, "en", "__", false, false},
    {"NllbTokenizer", "nllb", "eng_Latn", "", false, false},
    {"MBartTokenizer", "mbart", "en_XX", "", true, true},
    {"MBart50Tokenizer", "mbart50", "en_XX", "", false, false},
};

} // namespace

Result<std::optional<LanguageTable>> LanguageTable::create(const TokenizerConfig &config, int64_t end,
                                                           const Find &find) {
  for (const Family &family : families) {
    if (config.tokenizerClass != family.name)
      continue;
    LanguageTable table;
    std::vector<std::string> codes = languageCodes(family.codes ? family.codes : config.languageCodes);
    if (codes.empty())
      return Status(Code::Unsupported, "the tokenizer's configuration: 'language_codes' is '" +
                                           printable(config.languageCodes, 60) + "', which is not implemented");
    if (std::string(family.codes ? family.codes : "") == "nllb" && config.hasAdditional) {
      codes.clear();
      for (const AddedToken &token : config.additional)
        codes.push_back(token.content);
    }
    for (const std::string &code : codes)
      if (std::optional<int64_t> id = find(family.mark + code + family.mark))
        table.ids_[code] = *id;
    table.end_ = end;
    table.behind_ = family.behind || config.legacyBehaviour;
    table.startsWith_ = family.startsWith;
    table.source_ = config.sourceLanguage.empty() ? family.source : config.sourceLanguage;
    table.target_ = config.targetLanguage;
    if (!table.ids_.count(table.source_))
      return Status(Code::ArtifactRefused,
                    "the tokenizer has no token of its source language '" + printable(table.source_, 60) + "'");
    return std::optional<LanguageTable>(std::move(table));
  }
  return std::optional<LanguageTable>();
}

Status unknownLanguage(const std::string &what, const std::string &code, const std::vector<std::string> &known) {
  std::string list;
  for (const std::string &one : known)
    list += (list.empty() ? "" : ", ") + printable(one, 60);
  return {Code::InvalidInput, "'" + what + "' '" + printable(code, 60) + "' is unknown; the model has " + list};
}

Result<int64_t> LanguageTable::find(const char *key, const std::string &code) const {
  auto found = ids_.find(code);
  if (found != ids_.end())
    return found->second;
  std::vector<std::string> known;
  for (const auto &[name, id] : ids_)
    known.push_back(name);
  return unknownLanguage(key, code, known);
}

Result<Template> LanguageTable::around(bool target, const std::string &code) const {
  const std::string &missing = target ? target_ : source_;
  if (code.empty() && missing.empty())
    return Status(Code::InvalidInput, "a target text needs its language: give 'target_lang'");
  TRANSEPT_ASSIGN(int64_t id, find(target ? "target_lang" : "source_lang", code.empty() ? missing : code));
  return behind_ ? Template::around({}, {end_, id}) : Template::around({id}, {end_});
}

Result<std::string> LanguageTable::settings(const LanguagePair &languages) const {
  if (!languages.source.empty())
    TRANSEPT_TRY(find("source_lang", languages.source).status());
  if (languages.target.empty())
    return std::string("{}");
  TRANSEPT_ASSIGN(int64_t id, find("target_lang", languages.target));
  const char *key = startsWith_ ? "decoder_start_token_id" : "forced_bos_token_id";
  return "{\"" + std::string(key) + "\":" + std::to_string(id) + "}";
}

} // namespace transept::text
