// `transept generate`: requests as JSON lines in, answers as JSON lines out.

#include "GenerateFlags.h"

#include <unistd.h>

namespace transept::tool {

using nlohmann::json;
using nlohmann::ordered_json;
using search::Generator;
using search::GeneratorPool;
using search::Request;

namespace {

constexpr const char *footer =
    R"(A request is one line: {"text": "..."} or {"input_ids": [...]} or {"inputs": "x.npz"}, optionally
with "id", which is echoed, and any setting under its generation_config.json name.
Examples:
  echo '{"text": "attention"}' | transept generate model.tsp
  transept generate model.tsp --num-beams 4 --num-return-sequences 4 < requests.jsonl > answers.jsonl
  transept generate model.tsp --keep-going --batch 32 --json < requests.jsonl > answers.jsonl)";

std::string lineOf(const ordered_json &object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Status generate(const GenerateFlags &flags, int verbosity) {
  TRANSEPT_ASSIGN(json settings, flags.settingsJson());
  SignalGuard signals;
  TRANSEPT_ASSIGN(std::unique_ptr<GeneratorPool> generators, openGenerators(flags));
  Generator &generator = generators->front();
  LineReader reader(STDIN_FILENO, &SignalGuard::interrupted());
  LineWriter writer(STDOUT_FILENO);

  // {"id", "tokens": what became certain, "text": of all certain tokens}
  auto stream = [&](const Request &request, size_t &sent, Span<const int64_t> certain) {
    if (certain.size() <= sent)
      return;
    ordered_json piece;
    if (!request.id.is_null())
      piece["id"] = request.id;
    piece["tokens"] = std::vector<int64_t>(certain.begin() + sent, certain.end());
    if (generator.tokenizer())
      piece["text"] = generator.tokenizer()->decode(certain);
    sent = certain.size();
    writer.write(lineOf(piece));
  };

  LineActions<Request> actions;
  actions.read = [&](const std::string &line, Request &request, bool &) -> Status {
    json object = json::parse(line, nullptr, false);
    if (object.is_discarded())
      return {Code::InvalidInput, line.empty() ? "is empty, a request is a JSON object" : "is not valid JSON"};
    TRANSEPT_TRY(generator.parse(object, settings, request));
    if (request.settings.stream)
      request.onTokens = [&request, &stream, sent = size_t(0)](Span<const int64_t> certain) mutable {
        stream(request, sent, certain);
      };
    return {};
  };
  actions.answer = [&](int64_t, const Request &request) { return lineOf(generator.answer(request)); };
  actions.failure = [&](int64_t, const Request &request, const Status &status) {
    return lineOf(Generator::errorAnswer(request, status));
  };
  return generateLines(flags, *generators, reader, writer, std::move(actions), verbosity);
}

} // namespace

void registerGenerate(CLI::App &app, Command &command) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App *sub = app.add_subcommand("generate", "Answer requests given as JSON lines");
  sub->footer(footer);
  flags->add(*sub);
  flags->addShortlist(*sub);
  sub->callback(
      [flags, &command] { command.action = [flags, &command] { return generate(*flags, command.verbosity); }; });
  registerTranslate(app, command);
  registerScore(app, command);
}

} // namespace transept::tool
