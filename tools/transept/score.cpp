// `transept score`: log-probabilities of given outputs.

#include "GenerateFlags.h"

#include "runtime/search/Scorer.h"

#include <unistd.h>

namespace transept::tool {

using nlohmann::json;
using nlohmann::ordered_json;
using search::Generator;
using search::ScoreRequest;

namespace {

constexpr const char *footer =
    R"(A request is one line: a source as for 'generate', and "target" (text) or "target_ids". The answer has the sum of
the log-probabilities and one for each target token.
Examples:
  echo '{"text": "encoder", "target": "EH N K OW D ER"}' | transept score model.tsp
  transept score model.tsp --batch 32 < pairs.jsonl > scores.jsonl)";

struct ScoreFlags : GenerateFlags {};

std::string lineOf(const ordered_json &object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Status score(const ScoreFlags &flags, int verbosity) {
  TRANSEPT_ASSIGN(json settings, flags.settingsJson());
  SignalGuard signals;
  TRANSEPT_ASSIGN(std::unique_ptr<Generator> generator, openGenerator(flags));
  LineReader reader(STDIN_FILENO, &SignalGuard::interrupted());
  LineWriter writer(STDOUT_FILENO);
  search::GeneratorOptions options;
  options.batch = flags.batch;
  options.cancelled = &SignalGuard::interrupted();

  LineActions<ScoreRequest> actions;
  actions.read = [&](const std::string &line, ScoreRequest &request, bool &) -> Status {
    json object = json::parse(line, nullptr, false);
    if (object.is_discarded())
      return {Code::InvalidInput, line.empty() ? "is empty, a request is a JSON object" : "is not valid JSON"};
    return parseScore(*generator, object, settings, request);
  };
  std::vector<ScoreRequest *> waiting;
  actions.submit = [&](ScoreRequest &request) { waiting.push_back(&request); };
  actions.step = [&](std::vector<ScoreRequest *> &done) -> Status {
    TRANSEPT_TRY(runScores(*generator, options, waiting));
    std::swap(done, waiting);
    waiting.clear();
    return {};
  };
  actions.answer = [&](int64_t, const ScoreRequest &request) { return lineOf(scoreAnswer(request)); };
  actions.failure = [&](int64_t, const ScoreRequest &request, const Status &status) {
    return lineOf(Generator::errorAnswer(request, status));
  };
  LineSummary summary;
  Status status = lineLoop(reader, writer, actions, flags.loop(1), summary);
  report(flags, summary, verbosity);
  return flags.model.finish(status, generator->model());
}

} // namespace

void registerScore(CLI::App &app, Command &command) {
  auto flags = std::make_shared<ScoreFlags>();
  CLI::App *sub = app.add_subcommand("score", "Log-probabilities of given outputs, as JSON lines");
  sub->footer(footer);
  // Only what makes the decoder prompt matters here.
  std::set<std::string> without = {"batch_tokens", "sessions", "steps_ahead"};
  for (const search::SettingInfo &info : search::settingInfos())
    if (info.name != "decoder_start_token_id" && info.name != "decoder_input_ids" && info.name != "pad_token_id")
      without.insert(info.name);
  flags->add(*sub, without);
  sub->callback([flags, &command] { command.action = [flags, &command] { return score(*flags, command.verbosity); }; });
}

} // namespace transept::tool
