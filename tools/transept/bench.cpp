// `transept bench`: how fast a model runs here.

#include "Command.h"
#include "EntryCall.h"

#include "runtime/search/Generator.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace transept::tool {

namespace {

constexpr const char *footer = R"(Examples:
  transept bench model.tsp                                  64 tokens from 32, one sentence, greedy
  transept bench model.tsp --batch 32 --num-beams 4 --json
  transept bench plain.tsp --inputs x.npz --repeat 100      one entry of any model

Sources are made up; generation always runs for the whole length. The first calls are not counted.)";

struct BenchFlags {
  ModelFlags model;
  CallFlags call;
  int64_t source = 32, tokens = 64, batch = 1, beams = 1, repeat = 7, warmup = 1;
  bool json = false;
};

using Clock = std::chrono::steady_clock;

/// Milliseconds of each call, ascending.
template <typename Call> Result<std::vector<double>> timeCalls(const BenchFlags &flags, Call call) {
  std::vector<double> times;
  for (int64_t i = 0; i < flags.warmup + flags.repeat; ++i) {
    Clock::time_point begin = Clock::now();
    TRANSEPT_TRY(call());
    std::chrono::duration<double, std::milli> taken = Clock::now() - begin;
    if (i >= flags.warmup)
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
          {"p90", percentile(times, 90)},
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
      std::printf(" %s %.3f", part.c_str(), number.get<double>());
    std::printf("\n");
  }
}

/// A source of made-up tokens, away from the low ids that are often special.
nlohmann::json madeUpRequest(const BenchFlags &flags, const search::Settings &defaults, int64_t vocabulary,
                             int64_t index) {
  std::vector<int64_t> ids;
  const int64_t first = std::min<int64_t>(4, vocabulary - 1);
  for (int64_t i = 0; i < flags.source; ++i)
    ids.push_back(first + (index * 1009 + i * 7919) % std::max<int64_t>(vocabulary - first, 1));
  nlohmann::json request = {{"input_ids", ids},
                            {"max_new_tokens", flags.tokens},
                            {"min_new_tokens", flags.tokens},
                            {"num_beams", flags.beams}};
  if (!defaults.decoderStartTokenId && defaults.decoderInputIds.empty())
    request["decoder_start_token_id"] = 0;
  return request;
}

Status benchGeneration(std::shared_ptr<const Model> model, const BenchFlags &flags) {
  search::GeneratorOptions options;
  options.threads = flags.model.threads;
  options.batch = flags.batch;
  const std::string device = model->device().name(), level = model->level();
  const int64_t vocabulary = model->manifest().generation().vocabulary();
  TRANSEPT_ASSIGN(std::unique_ptr<search::Generator> generator,
                  search::Generator::create(std::move(model), nullptr, options));
  int64_t generated = 0;
  TRANSEPT_ASSIGN(
      std::vector<double> times, timeCalls(flags, [&]() -> Status {
        std::vector<search::Request> requests(static_cast<size_t>(flags.batch));
        std::vector<search::Request *> pointers;
        for (int64_t i = 0; i < flags.batch; ++i) {
          search::Request &request = requests[static_cast<size_t>(i)];
          TRANSEPT_TRY(generator->parse(madeUpRequest(flags, generator->defaults(), vocabulary, i), nullptr, request));
          pointers.push_back(&request);
        }
        TRANSEPT_TRY(generator->run(pointers));
        generated = 0;
        for (const search::Request &request : requests) {
          TRANSEPT_TRY(request.status);
          generated += request.outputTokens;
        }
        return {};
      }));
  MemoryUse memory = generator->stepper().session()->memory();
  print({{"device", device},
         {"level", level},
         {"threads", generator->stepper().session()->threads()},
         {"batch", flags.batch},
         {"num_beams", flags.beams},
         {"source", flags.source},
         {"tokens", generated},
         {"tokens_per_second",
          {{"best", 1e3 * static_cast<double>(generated) / times.front()},
           {"median", 1e3 * static_cast<double>(generated) / percentile(times, 50)}}},
         {"milliseconds", latencies(times)},
         {"weight_bytes", memory.weights},
         {"reserved_bytes", memory.reserved + memory.scratch},
         {"resident_bytes", peakResidentBytes()}},
        flags.json);
  return {};
}

Status benchEntry(std::shared_ptr<const Model> model, const BenchFlags &flags) {
  TRANSEPT_ASSIGN(std::unique_ptr<EntryCall> call, EntryCall::create(model, flags.call, flags.model.threads));
  TRANSEPT_ASSIGN(std::vector<double> times, timeCalls(flags, [&] { return call->run(); }));
  MemoryUse memory = call->session().memory();
  print({{"device", model->device().name()},
         {"level", model->level()},
         {"threads", call->session().threads()},
         {"entry", call->entry().name()},
         {"dispatches", call->entry().dispatches_size()},
         {"milliseconds", latencies(times)},
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
