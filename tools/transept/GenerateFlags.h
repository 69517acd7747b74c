// Flags that `generate`, `translate` and `score` share.
#ifndef TRANSEPT_TOOLS_GENERATEFLAGS_H
#define TRANSEPT_TOOLS_GENERATEFLAGS_H

#include "Command.h"
#include "LineLoop.h"

#include "runtime/search/GeneratorPool.h"

#include <map>
#include <set>

namespace transept::tool {

struct GenerateFlags {
  ModelFlags model;
  int64_t batch = 16, batchTokens = 0;
  int32_t ahead = 8;
  int sessions = 0; // 0: what suits the model
  std::string overlong = "error", shortlist;
  bool keepGoing = false, jsonSummary = false;
  std::map<std::string, std::string> settings; // by their generation_config.json names, as given
  std::map<std::string, std::string> controls; // of texts, by their keys in requests; empty: not given

  /// Adds the flags; those of settings in `without` are left out, also "batch_tokens", "sessions" and "steps_ahead".
  void add(CLI::App &app, const std::set<std::string> &without = {});
  void addShortlist(CLI::App &app);

  /// The settings as an object; Code::Usage where one has an impossible value.
  Result<nlohmann::json> settingsJson() const;
  /// For lines that are computed by so many sessions.
  LineLoopOptions loop(int sessions) const;
};

/// The tensors of a source in a file, for GeneratorOptions.
Result<std::vector<search::SourceTensor>> readSource(const std::string &path);

/// Loads model and tokenizer, for one session.
Result<std::unique_ptr<search::Generator>> openGenerator(const GenerateFlags &flags);
/// The same for as many sessions as the flags or the model say.
Result<std::unique_ptr<search::GeneratorPool>> openGenerators(const GenerateFlags &flags);

/// Answers the lines of standard input on standard output; requests join between steps. `actions` says what a line and
/// an answer are.
Status generateLines(const GenerateFlags &flags, search::GeneratorPool &generators, LineReader &reader,
                     LineWriter &writer, LineActions<search::Request> actions, int verbosity);

/// Prints what was cut, and with -v or --json what was done, on standard error.
void report(const GenerateFlags &flags, const LineSummary &summary, int verbosity);

void registerTranslate(CLI::App &app, Command &command);
void registerScore(CLI::App &app, Command &command);

} // namespace transept::tool

#endif
