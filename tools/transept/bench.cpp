// `transept bench`: how fast a model runs here.

#include "Command.h"
#include "EntryCall.h"
#include "GenerateFlags.h"
#include "StepReads.h"
#include "StreamRate.h"

#include "runtime/search/Generator.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace transept::tool {

namespace {

constexpr const char *footer = R"(Examples:
  transept bench model.tsp                                  64 tokens from 32, one sentence, greedy
  transept bench model.tsp --batch 32 --num-beams 4 --json
  transept bench whisper.tsp --inputs clip.npz --tokens 26   a source of features
  transept bench plain.tsp --inputs x.npz --repeat 100      one entry of any model

Sources are made up; generation always runs for the whole length. The first calls are not counted. A call is the whole
batch with its encoder; a step is one position of all its hypotheses, search included.)";

struct BenchFlags {
  ModelFlags model;
  CallFlags call;
  int64_t source = 32, tokens = 64, batch = 1, beams = 1, repeat = 7, warmup = 1;
  bool json = false;
};

using Clock = std::chrono::steady_clock;

/// Milliseconds of each call, ascending. `call` gets whether it counts.
template <typename Call> Result<std::vector<double>> timeCalls(const BenchFlags &flags, Call call) {
  std::vector<double> times;
  for (int64_t i = 0; i < flags.warmup + flags.repeat; ++i) {
    const bool counts = i >= flags.warmup;
    Clock::time_point begin = Clock::now();
    TRANSEPT_TRY(call(counts));
    std::chrono::duration<double, std::milli> taken = Clock::now() - begin;
    if (counts)
      times.push_back(taken.count());
  }
  std::sort(times.begin(), times.end());
  return times;
}

/// The nearest rank; `times` ascending.
double percentile(const std::vector<double> &times, double percent) {
  auto rank = static_cast<size_t>(percent / 100 * static_cast<double>(times.size()) + 0.5);
  return times[std::min(std::max<size_t>(rank, 1), times.size()) - 1];
}

nlohmann::ordered_json latencies(const std::vector<double> &times) {
  return {{"best", times.front()},
          {"p50", percentile(times, 50)},
          {"p95", percentile(times, 95)},
          {"p99", percentile(times, 99)}};
}

/// The most memory this process held so far, libraries included; 0 where the system does not say.
uint64_t peakResidentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0)
      return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

void print(const nlohmann::ordered_json &result, bool json) {
  if (json) {
    std::printf("%s\n", result.dump().c_str());
    return;
  }
  for (const auto &[name, value] : result.items()) {
    if (!value.is_object()) {
      std::printf("%s: %s\n", name.c_str(),
                  value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
      continue;
    }
    std::printf("%s:", name.c_str());
    for (const auto &[part, number] : value.items())
      std::printf(number.is_number_integer() ? " %s %.0f" : " %s %.3f", part.c_str(), number.get<double>());
    std::printf("\n");
  }
}

/// Made-up tokens, away from the low ids that are often special, or the tensors of --inputs.
nlohmann::json madeUpRequest(const BenchFlags &flags, const search::Settings &defaults, int64_t vocabulary,
                             int64_t index) {
  nlohmann::json request = {
      {"max_new_tokens", flags.tokens}, {"min_new_tokens", flags.tokens}, {"num_beams", flags.beams}};
  if (!flags.call.inputs.empty()) {
    request["inputs"] = flags.call.inputs;
  } else {
    std::vector<int64_t> ids;
    const int64_t first = std::min<int64_t>(4, vocabulary - 1);
    for (int64_t i = 0; i < flags.source; ++i)
      ids.push_back(first + (index * 1009 + i * 7919) % std::max<int64_t>(vocabulary - first, 1));
    request["input_ids"] = ids;
  }
  if (!defaults.decoderStartTokenId && defaults.decoderInputIds.empty())
    request["decoder_start_token_id"] = 0;
  return request;
}

/// The calls of one run.
struct Measured {
  std::vector<double> calls, steps; // milliseconds, ascending
  int64_t tokens = 0;               // of a call
  int64_t stepsPerCall = 0;
  double rows = 0, rowSteps = 0; // rows of a step, and rows times the number of the step from 1; averages
  int64_t promptTokens = 0, inputLength = 0;
};

Result<Measured> measure(search::Generator &generator, const BenchFlags &flags) {
  Measured measured;
  const int64_t vocabulary = generator.generation().vocabulary();
  std::vector<search::Request> requests(static_cast<size_t>(flags.batch));
  std::vector<search::Request *> pointers;
  for (search::Request &request : requests) {
    const auto index = static_cast<int64_t>(pointers.size());
    TRANSEPT_TRY(generator.parse(madeUpRequest(flags, generator.defaults(), vocabulary, index), nullptr, request));
    measured.inputLength = generator.encoderInputs().length(request.source);
    pointers.push_back(&request);
  }
  bool counted = false;
  int64_t stepOfCall = 0, rowsSoFar = 0, rows = 0, rowSteps = 0;
  measured.steps.reserve(static_cast<size_t>(std::min<int64_t>(flags.repeat * flags.tokens, 1 << 20)));
  generator.observeSteps([&](int64_t nanoseconds) {
    const int64_t rowsOfStep = generator.counts().rows - rowsSoFar;
    rowsSoFar += rowsOfStep;
    ++stepOfCall;
    if (!counted)
      return;
    measured.steps.push_back(1e-6 * static_cast<double>(nanoseconds));
    rows += rowsOfStep;
    rowSteps += rowsOfStep * stepOfCall;
  });
  TRANSEPT_ASSIGN(measured.calls, timeCalls(flags, [&](bool counts) -> Status {
                    counted = counts;
                    stepOfCall = 0;
                    return generator.run(pointers);
                  }));
  generator.observeSteps({});
  for (const search::Request &request : requests) {
    TRANSEPT_TRY(request.status);
    measured.tokens += request.outputTokens;
    measured.promptTokens = request.promptTokens;
  }
  std::sort(measured.steps.begin(), measured.steps.end());
  const auto steps = static_cast<double>(measured.steps.size());
  measured.stepsPerCall = static_cast<int64_t>(measured.steps.size()) / flags.repeat;
  measured.rows = static_cast<double>(rows) / steps;
  measured.rowSteps = static_cast<double>(rowSteps) / steps;
  return measured;
}

/// What a step reads on average over a call, and how close to the limit of the memory that comes.
Status addReads(nlohmann::ordered_json &result, search::Generator &generator, const BenchFlags &flags,
                const Measured &measured) {
  const program::Manifest &manifest = generator.model().manifest();
  const bool screens = generator.stepper().screened().rows > 0;
  const int step =
      generator.model().findEntry(screens ? manifest.generation().step_greedy() : manifest.generation().step());
  if (step < 0 || measured.steps.empty())
    return {};
  TRANSEPT_ASSIGN(CacheReads caches, cacheReads(manifest, measured.inputLength));
  // The first step reads the prompt, or its first position; each further one a position more.
  const auto before = static_cast<double>(generator.stepper().promptAtOnce() ? measured.promptTokens - 1 : 0);
  const int64_t constants = constantsRead(manifest, manifest.entries(step));
  const int64_t self =
      std::llround((measured.rowSteps + measured.rows * before) * static_cast<double>(caches.selfPerPosition) +
                   measured.rows * static_cast<double>(caches.recurrentPerRow));
  const double cross = static_cast<double>(flags.batch) * static_cast<double>(caches.crossPerSource);
  const double total = static_cast<double>(constants) + static_cast<double>(self) + cross;
  result["step_read_bytes"] = {{"weights", constants},
                               {"self_cache", self},
                               {"cross_cache", std::llround(cross)},
                               {"total", std::llround(total)}};
  if (generator.model().device().name() != "cpu")
    return {}; // memory that this processor does not read
  TRANSEPT_ASSIGN(double limit, streamRate(generator.stepper().session()->team()));
  const double reached = total / (1e-3 * percentile(measured.steps, 50));
  result["stream"] = {{"limit_gbytes_per_second", 1e-9 * limit},
                      {"reached_gbytes_per_second", 1e-9 * reached},
                      {"share", reached / limit}};
  return {};
}

Status benchGeneration(std::shared_ptr<const Model> model, const BenchFlags &flags) {
  search::GeneratorOptions options;
  options.threads = flags.model.threads;
  options.batch = flags.batch;
  options.readInputs = readSource;
  const std::string device = model->device().name(), level = model->level();
  TRANSEPT_ASSIGN(std::unique_ptr<search::Generator> generator,
                  search::Generator::create(std::move(model), nullptr, options));
  TRANSEPT_ASSIGN(Measured measured, measure(*generator, flags));
  const auto tokens = static_cast<double>(measured.tokens);
  MemoryUse memory = generator->stepper().session()->memory();
  nlohmann::ordered_json result = {
      {"device", device},
      {"level", level},
      {"threads", generator->stepper().session()->threads()},
      {"batch", flags.batch},
      {"num_beams", flags.beams},
      {"source", measured.inputLength},
      {"tokens", measured.tokens},
      {"steps", measured.stepsPerCall},
      {"tokens_per_second",
       {{"best", 1e3 * tokens / measured.calls.front()}, {"median", 1e3 * tokens / percentile(measured.calls, 50)}}},
      {"call_milliseconds", latencies(measured.calls)},
      {"step_milliseconds", latencies(measured.steps)},
      {"weight_bytes", memory.weights},
      {"reserved_bytes", memory.reserved + memory.scratch},
      {"resident_bytes", peakResidentBytes()}};
  const search::SessionStepper::Screened &screened = generator->stepper().screened();
  if (screened.rows > 0)
    result["two_stage_vocabulary"] = {
        {"computed_logits", static_cast<double>(screened.logits) / static_cast<double>(screened.rows)},
        {"of", generator->generation().vocabulary()}};
  TRANSEPT_TRY(addReads(result, *generator, flags, measured)); // last: its buffer would be resident, too
  print(result, flags.json);
  return {};
}

Status benchEntry(std::shared_ptr<const Model> model, const BenchFlags &flags) {
  TRANSEPT_ASSIGN(std::unique_ptr<EntryCall> call, EntryCall::create(model, flags.call, flags.model.threads));
  TRANSEPT_ASSIGN(std::vector<double> times, timeCalls(flags, [&](bool) { return call->run(); }));
  MemoryUse memory = call->session().memory();
  print({{"device", model->device().name()},
         {"level", model->level()},
         {"threads", call->session().threads()},
         {"entry", call->entry().name()},
         {"dispatches", call->entry().dispatches_size()},
         {"call_milliseconds", latencies(times)},
         {"weight_bytes", memory.weights},
         {"reserved_bytes", memory.reserved + memory.scratch},
         {"resident_bytes", peakResidentBytes()}},
        flags.json);
  return {};
}

Status bench(const BenchFlags &flags) {
  TRANSEPT_ASSIGN(std::shared_ptr<const Model> model, flags.model.load());
  bool generation = model->manifest().has_generation() && flags.call.entry.empty();
  return flags.model.finish(generation ? benchGeneration(model, flags) : benchEntry(model, flags), *model);
}

} // namespace

void registerBench(CLI::App &app, Command &command) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App *sub = app.add_subcommand("bench", "Measure tokens per second and latencies");
  sub->footer(footer);
  flags->model.add(*sub);
  flags->call.add(*sub);
  const CLI::Range positive(int64_t(1), int64_t(1) << 20);
  sub->add_option("--source", flags->source, "Source tokens of a sentence")->check(positive)->capture_default_str();
  sub->add_option("--tokens", flags->tokens, "Tokens to generate")->check(positive)->capture_default_str();
  sub->add_option("--batch", flags->batch, "Sentences at once")->check(positive)->capture_default_str();
  sub->add_option("--num-beams,--beam", flags->beams, "Beams; 1: greedy")->check(positive)->capture_default_str();
  sub->add_option("--repeat", flags->repeat, "Calls that are counted")->check(positive)->capture_default_str();
  sub->add_option("--warmup", flags->warmup, "Calls before those")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 20))
      ->capture_default_str();
  sub->add_flag("--json", flags->json, "Print one line of JSON");
  sub->callback([flags, &command] { command.action = [flags] { return bench(*flags); }; });
}

} // namespace transept::tool
