// `transept translate`: lines of text in, lines of text out.

#include "GenerateFlags.h"

#include <cstdio>
#include <unistd.h>

namespace transept::tool {

using nlohmann::json;
using search::Generator;
using search::GeneratorPool;
using search::Request;

namespace {

constexpr const char *footer =
    R"(Each line is answered by one line. A line without any token is answered by an empty line.
With --n-best N each line is answered by up to N lines: index of the line from 0 ||| text ||| score.
Examples:
  transept translate model.tsp < in.txt > out.txt
  echo attention | transept translate model.tsp --num-beams 4 --n-best 4)";

struct TranslateFlags : GenerateFlags {
  int64_t best = 0;
};

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

Status translate(const TranslateFlags &flags, int verbosity) {
  TRANSEPT_ASSIGN(json settings, flags.settingsJson());
  SignalGuard signals;
  TRANSEPT_ASSIGN(std::unique_ptr<GeneratorPool> generators, openGenerators(flags));
  Generator &generator = generators->front();
  if (!generator.tokenizer()) {
    Status refusal = generator.textRefusal("input_ids");
    if (refusal.code() != Code::InvalidInput)
      return refusal.withContext(flags.model.path);
    return {Code::Unsupported, flags.model.path + ": has no tokenizer; use 'transept generate' with input_ids"};
  }
  if (flags.best > 0) {
    settings["num_return_sequences"] = flags.best;
    if (!settings.contains("num_beams") && generator.defaults().numBeams < flags.best)
      settings["num_beams"] = flags.best;
    settings["return_token_scores"] = true; // a greedy answer gets a score too
  }
  // What stands around every text; a line of which no more is left is answered by an empty one.
  Request nothing;
  const bool comparable = generator.parseText("", settings, nothing).ok();
  LineReader reader(STDIN_FILENO, &SignalGuard::interrupted());
  LineWriter writer(STDOUT_FILENO);

  LineActions<Request> actions;
  actions.read = [&](const std::string &line, Request &request, bool &done) -> Status {
    TRANSEPT_TRY(generator.parseText(line, settings, request));
    done = comparable && request.source.ids == nothing.source.ids &&
           request.settings.decoderInputIds == nothing.settings.decoderInputIds;
    return {};
  };
  actions.answer = [&](int64_t index, const Request &request) -> std::string {
    if (request.hypotheses.empty())
      return flags.best > 0 ? std::to_string(index) + " |||  ||| 0.000000\n" : "\n";
    std::string lines;
    for (const search::Hypothesis &hypothesis : request.hypotheses) {
      std::string text = oneLine(generator.tokenizer()->decode(hypothesis.ids));
      if (flags.best == 0)
        return text + "\n";
      lines += std::to_string(index) + " ||| " + text + " ||| " + number(hypothesis.score.value_or(0)) + "\n";
    }
    return lines;
  };
  actions.failure = [&](int64_t index, const Request &, const Status &status) -> std::string {
    std::string text = "error: " + oneLine(status.message());
    return flags.best > 0 ? std::to_string(index) + " ||| " + text + " ||| \n" : text + "\n";
  };
  return generateLines(flags, *generators, reader, writer, std::move(actions), verbosity);
}

} // namespace

void registerTranslate(CLI::App &app, Command &command) {
  auto flags = std::make_shared<TranslateFlags>();
  CLI::App *sub = app.add_subcommand("translate", "Answer lines of text with lines of text");
  sub->footer(footer);
  flags->add(*sub, {"num_return_sequences", "return_token_scores", "stream"});
  flags->addShortlist(*sub);
  sub->add_option("--n-best", flags->best, "Answer with the N best hypotheses and their scores")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  sub->callback(
      [flags, &command] { command.action = [flags, &command] { return translate(*flags, command.verbosity); }; });
}

} // namespace transept::tool
