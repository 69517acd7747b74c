// `transept run`: tensors in, tensors out.

#include "Array.h"
#include "Command.h"
#include "Compare.h"
#include "Npz.h"
#include "ParseValue.h"

#include "runtime/BindSymbols.h"
#include "runtime/Expr.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>

namespace transept::tool {

namespace {

constexpr const char *footer = R"(Examples:
  transept run model.tsp --inputs x.npz --outputs y.npz
  transept run model.tsp --input x='[[1, 2], [3, 4]]' --input training=false
  transept run model.tsp --input tokens=@tokens.npy --json
  transept run model.tsp --inputs x.npz --check expected.npz --rtol 1e-4)";

struct RunFlags {
  ModelFlags model;
  std::string entry, inputs, outputs, check;
  std::vector<std::string> input, set;
  Tolerance tolerance;
  bool json = false;
};

/// The entry that is meant: named, "main", or the only one.
Result<const program::Entry *> chooseEntry(const Model &model, const std::string &name) {
  const program::Manifest &manifest = model.manifest();
  int index = model.findEntry(name.empty() ? "main" : name);
  if (index < 0 && name.empty() && manifest.entries_size() == 1)
    index = 0;
  if (index < 0)
    return Status(Code::InvalidInput,
                  (name.empty() ? "name one with --entry" : "there is no entry '" + printable(name) + "'") +
                      "; the model has " + entryNames(manifest));
  return &manifest.entries(index);
}

const program::Buffer *findInput(const program::Entry &entry, const std::string &name) {
  for (const program::Buffer &buffer : entry.buffers())
    if (buffer.storage() == program::INPUT && buffer.name() == name)
      return &buffer;
  return nullptr;
}

/// The array of --input NAME=VALUE or NAME=@FILE.
Result<Array> readInput(const program::Entry &entry, const std::string &word) {
  std::string name, value;
  if (!splitAssignment(word, name, value))
    return Status(Code::Usage, "--input takes NAME=VALUE or NAME=@FILE, not '" + printable(word) + "'");
  if (!value.empty() && value[0] == '@') {
    TRANSEPT_ASSIGN(std::vector<Array> arrays, readArrays(value.substr(1)));
    if (arrays.size() != 1)
      return Status(Code::InvalidInput, printable(value.substr(1)) + ": holds " + std::to_string(arrays.size()) +
                                            " arrays, --input takes one");
    arrays[0].name = name;
    return std::move(arrays[0]);
  }
  const program::Buffer *buffer = findInput(entry, name);
  if (!buffer) // the session's message lists the names
    return Array{name, program::F32, {}, std::vector<uint8_t>(4)};
  return parseValue(name, value, buffer->dtype(), buffer->dims_size());
}

Result<std::vector<Array>> gatherInputs(const program::Entry &entry, const RunFlags &flags) {
  std::vector<Array> arrays;
  if (!flags.inputs.empty()) {
    TRANSEPT_ASSIGN(arrays, readArrays(flags.inputs));
    if (arrays.size() == 1 && arrays[0].name.empty())
      return Status(Code::Usage, "--inputs takes an .npz; for one array use --input NAME=@" + printable(flags.inputs));
  }
  for (const std::string &word : flags.input) {
    TRANSEPT_ASSIGN(Array array, readInput(entry, word));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

/// Generation symbols for a single run: as set, else from the inputs' shapes, else the least useful value.
SymbolValues sessionSymbols(const program::Manifest &manifest, const program::Entry &entry,
                            const std::vector<Array> &inputs, const SymbolValues &set) {
  SymbolValues symbols;
  for (const program::Symbol &symbol : manifest.generation_symbols()) {
    int64_t value = symbol.name() == "capacity" ? 16 : std::max<int64_t>(symbol.min(), 1);
    for (const Array &input : inputs)
      if (const program::Buffer *buffer = findInput(entry, input.name))
        for (int axis = 0; axis < buffer->dims_size() && static_cast<size_t>(axis) < input.dims.size(); ++axis)
          if (int64_t index = plainSymbol(buffer->dims(axis));
              index >= 0 && entry.symbols(static_cast<int>(index)).name() == symbol.name())
            value = input.dims[static_cast<size_t>(axis)];
    for (const SymbolValue &given : set)
      if (given.name == symbol.name())
        value = given.value;
    symbols.push_back({symbol.name(), value});
  }
  return symbols;
}

/// Symbols the session does not fix.
SymbolValues callSymbols(const SymbolValues &set, const SymbolValues &fixed) {
  SymbolValues symbols;
  for (const SymbolValue &given : set) {
    bool known = false;
    for (const SymbolValue &other : fixed)
      known |= other.name == given.name;
    if (!known)
      symbols.push_back(given);
  }
  return symbols;
}

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
  if (flags.json) {
    nlohmann::ordered_json out = {{"milliseconds", milliseconds}, {"outputs", nlohmann::ordered_json::array()}};
    for (const TensorView &output : outputs)
      out["outputs"].push_back(outputJson(output));
    std::printf("%s\n", out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  } else if (flags.outputs.empty() && flags.check.empty() && verbosity >= 0) {
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
  TRANSEPT_ASSIGN(SymbolValues set, parseSymbols(flags.set));
  TRANSEPT_ASSIGN(std::shared_ptr<const Model> model, flags.model.load());
  TRANSEPT_ASSIGN(const program::Entry *entry, chooseEntry(*model, flags.entry));
  TRANSEPT_ASSIGN(std::vector<Array> arrays, gatherInputs(*entry, flags));
  SessionOptions options;
  options.threads = flags.model.threads;
  options.symbols = sessionSymbols(model->manifest(), *entry, arrays, set);
  TRANSEPT_ASSIGN(std::unique_ptr<Session> session, model->createSession(options));
  RunArguments arguments;
  for (const Array &array : arrays)
    arguments.inputs.push_back(array.view());
  arguments.symbols = callSymbols(set, options.symbols);
  auto begin = std::chrono::steady_clock::now();
  TRANSEPT_TRY(session->run(entry->name(), arguments));
  std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  if (verbosity > 0)
    std::fprintf(stderr, "transept: entry '%s', level %s, %d threads, %.3f ms\n", printable(entry->name()).c_str(),
                 model->level().c_str(), session->threads(), taken.count());
  return deliver(session->outputs(), flags, taken.count(), verbosity);
}

} // namespace

void registerRun(CLI::App &app, Command &command) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App *sub = app.add_subcommand("run", "Run an entry on given tensors");
  sub->footer(footer);
  flags->model.add(*sub);
  sub->add_option("--entry", flags->entry, "Entry to run; default: main, or the only one")->type_name("NAME");
  sub->add_option("--inputs", flags->inputs, "Inputs by name")->type_name("FILE.npz");
  sub->add_option("--input", flags->input, "One input: a value as in JSON, or @FILE.npy")
      ->type_name("NAME=VALUE")
      ->type_size(1)
      ->allow_extra_args(false);
  sub->add_option("--outputs", flags->outputs, "Write outputs here instead of printing them")->type_name("FILE.npz");
  sub->add_option("--check", flags->check, "Compare outputs with these; exit code 1 where they differ")
      ->type_name("FILE.npz");
  sub->add_option("--rtol", flags->tolerance.relative, "Relative tolerance of --check")->capture_default_str();
  sub->add_option("--atol", flags->tolerance.absolute, "Absolute tolerance of --check")->capture_default_str();
  sub->add_option("--set", flags->set, "A symbol that no input determines")
      ->type_name("NAME=N")
      ->delimiter(',')
      ->allow_extra_args(false);
  sub->add_flag("--json", flags->json, "Print outputs as one line of JSON");
  sub->callback(
      [flags, &command] { command.action = [flags, &command] { return runModel(*flags, command.verbosity); }; });
}

} // namespace transept::tool
