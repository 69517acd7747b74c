// Flags that `generate`, `translate` and `score` share.
#ifndef TRANSEPT_TOOLS_GENERATEFLAGS_H
#define TRANSEPT_TOOLS_GENERATEFLAGS_H

#include "Command.h"
#include "LineLoop.h"

#include <map>
#include <set>

namespace transept::tool {

struct GenerateFlags {
  ModelFlags model;
  int64_t batch = 16, batchTokens = 0;
  int32_t ahead = 8;
  std::string overlong = "error", shortlist;
  bool keepGoing = false, jsonSummary = false;
  std::map<std::string, std::string> settings; // by their generation_config.json names, as given
  std::map<std::string, std::string> controls; // of texts, by their keys in requests; empty: not given

  /// Adds the flags; those of settings in `without` are left out, also "batch_tokens" and "steps_ahead".
  void add(CLI::App &app, const std::set<std::string> &without = {});
  void addShortlist(CLI::App &app);

  /// The settings as an object; Code::Usage where one has an impossible value.
  Result<nlohmann::json> settingsJson() const;
  LineLoopOptions loop() const;
};

/// The tensors of a source in a file, for GeneratorOptions.
Result<std::vector<search::SourceTensor>> readSource(const std::string &path);

/// Loads model and tokenizer.
Result<std::unique_ptr<search::Generator>> openGenerator(const GenerateFlags &flags);

/// Answers the lines of standard input on standard output; requests join between steps. `actions` says what a line and
/// an answer are.
Status generateLines(const GenerateFlags &flags, search::Generator &generator, LineReader &reader, LineWriter &writer,
                     LineActions<search::Request> actions, int verbosity);

/// Prints what was cut, and with -v or --json what was done, on standard error.
void report(const GenerateFlags &flags, const LineSummary &summary, int verbosity);

void registerTranslate(CLI::App &app, Command &command);
void registerScore(CLI::App &app, Command &command);

} // namespace transept::tool

#endif
