// `transept run`: tensors in, tensors out.

#include "Array.h"
#include "Command.h"
#include "Compare.h"
#include "EntryCall.h"
#include "Npz.h"
#include "RawFile.h"

#include "runtime/BindSymbols.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>

namespace transept::tool {

namespace {

constexpr const char *footer = R"(Examples:
  transept run model.tsp --inputs x.npz --outputs y.npz
  transept run model.tsp --input x='[[1, 2], [3, 4]]' --input training=false
  transept run model.tsp --input tokens=@tokens.npy --json
  transept run model.tsp --input x=@input_0.pb --output y=y.pb
  transept run model.tsp --inputs x.npz --check expected.npz --rtol 1e-4)";

struct RunFlags {
  ModelFlags model;
  CallFlags call;
  std::string outputs, check;
  std::vector<std::string> output;
  Tolerance tolerance;
  bool json = false;
};

nlohmann::ordered_json outputJson(const TensorView &output) {
  nlohmann::ordered_json out = {{"name", output.name},
                                {"dtype", dtypeName(output.dtype)},
                                {"dims", std::vector<int64_t>(output.dims.begin(), output.dims.end())}};
  auto data = nlohmann::ordered_json::array();
  const int64_t count = output.bytes / dtypeSize(output.dtype);
  for (int64_t i = 0; i < count; ++i) {
    if (output.dtype == program::I64)
      data.push_back(static_cast<const int64_t *>(output.data)[i]);
    else if (output.dtype == program::U64)
      data.push_back(static_cast<const uint64_t *>(output.data)[i]);
    else if (output.dtype == program::BOOL)
      data.push_back(static_cast<const uint8_t *>(output.data)[i] != 0);
    else
      data.push_back(elementAsDouble(output.dtype, output.data, i));
  }
  out["data"] = std::move(data);
  return out;
}

void printOutput(const TensorView &output) {
  constexpr int64_t most = 32;
  const int64_t count = output.bytes / dtypeSize(output.dtype);
  std::string text =
      printable(std::string(output.name)) + ": " + dtypeName(output.dtype) + " " + shapeText(output.dims);
  for (int64_t i = 0; i < std::min(count, most); ++i)
    text += (i ? " " : " = ") + elementText(output.dtype, output.data, i);
  std::printf("%s%s\n", text.c_str(), count > most ? " …" : "");
}

Status deliver(Span<const TensorView> outputs, const RunFlags &flags, double milliseconds, int verbosity) {
  if (!flags.outputs.empty())
    TRANSEPT_TRY(writeNpz(flags.outputs, outputs));
  for (const std::string &word : flags.output)
    TRANSEPT_TRY(writeOutput(word, outputs));
  if (flags.json) {
    nlohmann::ordered_json out = {{"milliseconds", milliseconds}, {"outputs", nlohmann::ordered_json::array()}};
    for (const TensorView &output : outputs)
      out["outputs"].push_back(outputJson(output));
    std::printf("%s\n", out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  } else if (flags.outputs.empty() && flags.output.empty() && flags.check.empty() && verbosity >= 0) {
    for (const TensorView &output : outputs)
      printOutput(output);
  }
  if (flags.check.empty())
    return {};
  TRANSEPT_ASSIGN(std::vector<Array> expected, readArrays(flags.check));
  for (const Array &array : expected)
    TRANSEPT_TRY(compare(outputs, array, flags.tolerance));
  if (verbosity >= 0 && !flags.json)
    std::printf("%zu outputs as expected\n", expected.size());
  return {};
}

Status runModel(const RunFlags &flags, int verbosity) {
  TRANSEPT_ASSIGN(std::shared_ptr<const Model> model, flags.model.load());
  TRANSEPT_ASSIGN(std::unique_ptr<EntryCall> call, EntryCall::create(model, flags.call, flags.model.threads));
  auto begin = std::chrono::steady_clock::now();
  TRANSEPT_TRY(flags.model.finish(call->run(), *model));
  std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  if (verbosity > 0)
    std::fprintf(stderr, "transept: entry '%s', device %s, level %s, %d threads, %.3f ms\n",
                 printable(call->entry().name()).c_str(), model->device().name().c_str(), model->level().c_str(),
                 call->session().threads(), taken.count());
  return deliver(call->session().outputs(), flags, taken.count(), verbosity);
}

} // namespace

void registerRun(CLI::App &app, Command &command) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App *sub = app.add_subcommand("run", "Run an entry on given tensors");
  sub->footer(footer);
  flags->model.add(*sub);
  flags->call.add(*sub);
  sub->add_option("--outputs", flags->outputs, "Write outputs here instead of printing them")->type_name("FILE.npz");
  sub->add_option("--output", flags->output, "Write one output here, as .npy, .pb or .raw")
      ->type_name("NAME=FILE")
      ->type_size(1)
      ->allow_extra_args(false);
  sub->add_option("--check", flags->check, "Compare outputs with these; exit code 1 where they differ")
      ->type_name("FILE.npz");
  sub->add_option("--rtol", flags->tolerance.relative, "Relative tolerance of --check")->capture_default_str();
  sub->add_option("--atol", flags->tolerance.absolute, "Absolute tolerance of --check")->capture_default_str();
  sub->add_flag("--json", flags->json, "Print outputs as one line of JSON");
  sub->callback(
      [flags, &command] { command.action = [flags, &command] { return runModel(*flags, command.verbosity); }; });
}

} // namespace transept::tool
