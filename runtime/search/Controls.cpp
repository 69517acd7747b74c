#include "runtime/search/Controls.h"

#include <algorithm>

namespace transept::search {

using nlohmann::json;

namespace {

Status refuse(const std::string &sentence) { return {Code::InvalidInput, sentence}; }

Status unknown(const char *key, const std::string &value, const std::string &known) {
  return refuse(std::string("'") + key + "' '" + printable(value, 60) + "' is unknown; the model has " + known);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return text;
}

std::map<std::string, int64_t> idsIn(const json &settings, const char *key) {
  std::map<std::string, int64_t> ids;
  if (auto found = settings.find(key); found != settings.end() && found->is_object())
    for (const auto &[name, id] : found->items())
      if (id.is_number_integer() && id.get<int64_t>() >= 0)
        ids[name] = id.get<int64_t>();
  return ids;
}

std::string stringIn(const json &settings, const char *key) {
  auto found = settings.find(key);
  return found != settings.end() && found->is_string() ? found->get<std::string>() : "";
}

/// "<|en|>" as "en".
std::string bare(const std::string &token) {
  bool marked = token.size() > 4 && token.compare(0, 2, "<|") == 0 && token.compare(token.size() - 2, 2, "|>") == 0;
  return marked ? token.substr(2, token.size() - 4) : token;
}

template <typename Map> std::string namesOf(const Map &map) {
  std::string names;
  for (const auto &entry : map)
    names += (names.empty() ? "" : ", ") + printable(bare(entry.first), 60);
  return names.empty() ? "none" : names;
}

} // namespace

const std::vector<ControlInfo> &controlInfos() {
  static const std::vector<ControlInfo> infos = {
      {"source_lang", "a language code",
       "Language of the source text, for models that translate between many (NLLB, M2M100, mBART)."},
      {"target_lang", "a language code",
       "Language of the output: its token is forced to the front. For OPUS models with several targets, their tag."},
      {"language", "a language code or its English name", "Language that is spoken, for Whisper."},
      {"task", "a task of the model",
       "With task_specific_params (T5, BART): their prefix and settings. For Whisper: transcribe or translate."},
  };
  return infos;
}

bool ControlTable::isData(const std::string &key) {
  return key == "task_specific_params" || key == "language" || key == "task";
}

ControlTable ControlTable::create(const json &settings, std::optional<int64_t> start) {
  ControlTable table;
  table.start_ = start;
  table.spokenLanguages_ = idsIn(settings, "lang_to_id");
  table.spokenTasks_ = idsIn(settings, "task_to_id");
  table.language_ = stringIn(settings, "language");
  table.task_ = stringIn(settings, "task");
  if (auto found = settings.find("no_timestamps_token_id"); found != settings.end() && found->is_number_integer())
    table.noTimestamps_ = found->get<int64_t>();
  if (auto found = settings.find("is_multilingual"); found != settings.end())
    table.onlyEnglish_ = *found == false;
  if (auto found = settings.find("task_specific_params"); found != settings.end() && found->is_object())
    table.tasks_ = *found;
  return table;
}

Result<Controls> ControlTable::take(json &given, const Tokenizer *tokenizer) const {
  Controls controls;
  std::map<std::string, std::string> values;
  for (const ControlInfo &info : controlInfos()) {
    auto found = given.find(info.name);
    if (found == given.end())
      continue;
    if (!found->is_null() && (!found->is_string() || found->get<std::string>().empty()))
      return refuse(std::string("'") + info.name + "' must be " + info.values);
    if (!found->is_null())
      values[info.name] = found->get<std::string>();
    given.erase(found);
  }
  controls.languages = {values["source_lang"], values["target_lang"]};
  if (!controls.languages.source.empty() || !controls.languages.target.empty()) {
    if (!tokenizer)
      return refuse("'source_lang' and 'target_lang' are not available: there is no tokenizer that knows languages");
    TRANSEPT_ASSIGN(std::string text, tokenizer->languageSettings(controls.languages));
    controls.settings = json::parse(text, nullptr, false);
  }
  std::string language = values["language"], task = values["task"];
  bool speaks = !spokenLanguages_.empty() || !spokenTasks_.empty();
  if (onlyEnglish_ && (!language.empty() || !task.empty()))
    return refuse(std::string("'") + (language.empty() ? "task" : "language") +
                  "' is not available: the model knows English only");
  if (!speaks && !language.empty())
    return refuse("'language' is not available: the model has no languages that are spoken");
  if (speaks) {
    language = language.empty() ? language_ : language;
    if (language.empty() && !task.empty())
      return refuse("'task' needs 'language': languages are not recognised here");
    if (!language.empty())
      TRANSEPT_TRY(speak(language, task.empty() ? task_ : task, controls));
  } else if (!task.empty()) {
    TRANSEPT_TRY(applyTask(task, controls));
  }
  return controls;
}

Status ControlTable::applyTask(const std::string &task, Controls &controls) const {
  if (tasks_.empty())
    return refuse("'task' is not available: the model has no 'task_specific_params'");
  auto found = tasks_.find(task);
  if (found == tasks_.end() || !found->is_object()) {
    std::string names;
    for (const auto &entry : tasks_.items())
      names += (names.empty() ? "" : ", ") + printable(entry.key(), 60);
    return unknown("task", task, names);
  }
  for (const auto &[key, value] : found->items()) {
    if (key == "prefix" && value.is_string())
      controls.prefix = value.get<std::string>();
    else
      controls.settings[key] = value;
  }
  return {};
}

Result<int64_t> ControlTable::languageId(const std::string &language) const {
  std::string name = lower(language), code = spokenLanguageCode(name);
  for (const std::string &token : {name, "<|" + name + "|>", "<|" + code + "|>"})
    if (auto found = spokenLanguages_.find(token); found != spokenLanguages_.end())
      return found->second;
  return unknown("language", language, namesOf(spokenLanguages_));
}

/// The decoder's prompt of Whisper: start, language, task, no times.
Status ControlTable::speak(const std::string &language, const std::string &task, Controls &controls) const {
  if (!start_)
    return refuse("'language' is not available: the model has no decoder_start_token_id");
  TRANSEPT_ASSIGN(int64_t spoken, languageId(language));
  std::vector<int64_t> prompt = {*start_, spoken};
  auto found = spokenTasks_.find(task.empty() ? "transcribe" : task);
  if (found != spokenTasks_.end())
    prompt.push_back(found->second);
  else if (!task.empty())
    return unknown("task", task, namesOf(spokenTasks_));
  if (noTimestamps_ && prompt.back() != *noTimestamps_)
    prompt.push_back(*noTimestamps_);
  controls.settings["decoder_input_ids"] = prompt;
  controls.settings["forced_decoder_ids"] = json(); // an older way to say the same
  return {};
}

} // namespace transept::search
