// What a request says of its text instead of the search: languages, and tasks the model was trained for.
#ifndef TRANSEPT_RUNTIME_SEARCH_CONTROLS_H
#define TRANSEPT_RUNTIME_SEARCH_CONTROLS_H

#include "runtime/search/Settings.h"
#include "runtime/text/Tokenizer.h"

#include <map>

namespace transept::search {

struct ControlInfo {
  const char *name;   // the key of a request; the flag has hyphens
  const char *values; // what it takes
  const char *summary;
};

const std::vector<ControlInfo> &controlInfos();

/// What the controls of a request come to.
struct Controls {
  std::string prefix;                                 // in front of the source text
  LanguagePair languages;                             // for the tokenizer
  nlohmann::json settings = nlohmann::json::object(); // the request's own go before them
};

/// The controls of a model. Immutable.
class ControlTable {
public:
  /// From the model's generation settings, with the decoder's start token.
  static ControlTable create(const nlohmann::json &settings, std::optional<int64_t> start);

  /// Whether the key of the model's settings is one of a control, and no setting of the search.
  static bool isData(const std::string &key);

  /// Takes the controls out of `given`. `tokenizer` may be null. Code::InvalidInput for a control the model does not
  /// have, and for a language or a task it does not know, with those it knows.
  Result<Controls> take(nlohmann::json &given, const Tokenizer *tokenizer) const;

private:
  Status speak(const std::string &language, const std::string &task, Controls &controls) const;
  Status applyTask(const std::string &task, Controls &controls) const;
  Result<int64_t> languageId(const std::string &language) const;

  nlohmann::json tasks_ = nlohmann::json::object();              // task_specific_params
  std::map<std::string, int64_t> spokenLanguages_, spokenTasks_; // tokens of Whisper
  std::optional<int64_t> start_, noTimestamps_;
  bool onlyEnglish_ = false;
  std::string language_, task_; // the model's own choice
};

/// Code of a language that Whisper knows, by its English name in lower case; empty for another name.
std::string spokenLanguageCode(const std::string &name);

} // namespace transept::search

#endif
