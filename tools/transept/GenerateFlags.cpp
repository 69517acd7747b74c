#include "GenerateFlags.h"

#include "Npz.h"
#include "Progress.h"
#include "Sessions.h"

#include "runtime/ThreadTeam.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace transept::tool {

using nlohmann::json;

namespace {

std::string kebab(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// A file of the tokenizer as the tokenizer knows it: sections may have a folder in front.
std::string baseName(const std::string &section) { return section.substr(section.rfind('/') + 1); }

Result<std::shared_ptr<const Tokenizer>> openTokenizer(const Model &model) {
  const program::Tokenizer &tokenizer = model.manifest().tokenizer();
  if (tokenizer.kind().empty() || tokenizer.kind() == "none")
    return std::shared_ptr<const Tokenizer>();
  std::vector<TokenizerFile> files;
  for (const std::string &name : tokenizer.files()) {
    Span<const uint8_t> bytes = model.artifact().section(name);
    files.push_back({baseName(name), {reinterpret_cast<const char *>(bytes.data()), bytes.size()}});
  }
  TRANSEPT_ASSIGN(std::unique_ptr<Tokenizer> made, makeTokenizer(tokenizer.kind(), files, tokenizer.config_json()));
  return std::shared_ptr<const Tokenizer>(std::move(made));
}

int defaultSessions(const GenerateFlags &flags, const Model &model) {
  // One input at a time is to be done soon, and a device has no threads.
  if (flags.batch == 1 || model.device().name() != "cpu")
    return 1;
  const int threads = flags.model.threads > 0 ? std::min(flags.model.threads, availableThreads()) : availableThreads();
  const int64_t memory = int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return suitableSessions(sessionNeeds(model.manifest(), flags.batch), threads, memory);
}

/// What generators are made of.
struct Parts {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  search::GeneratorOptions options;
};

Result<Parts> loadParts(const GenerateFlags &flags) {
  Parts parts;
  TRANSEPT_ASSIGN(parts.model, flags.model.load());
  // Token ids work without it.
  Result<std::shared_ptr<const Tokenizer>> opened = openTokenizer(*parts.model);
  search::GeneratorOptions &options = parts.options;
  options.noTokenizer = opened.status();
  parts.tokenizer = opened.ok() ? opened.take() : nullptr;
  options.threads = flags.model.threads;
  options.batch = flags.batch;
  options.batchTokens = flags.batchTokens;
  options.ahead = flags.ahead;
  options.truncate = flags.overlong == "truncate";
  options.readInputs = readSource;
  if (!flags.shortlist.empty()) {
    const program::Manifest &manifest = parts.model->manifest();
    if (manifest.has_generation() && manifest.generation().encode().empty())
      return Status(Code::InvalidInput, flags.model.path + ": has no encoder, so --shortlist finds no source tokens");
    TRANSEPT_ASSIGN(options.shortlist, search::Shortlist::read(flags.shortlist, manifest.generation().vocabulary()));
  }
  options.cancelled = &SignalGuard::interrupted();
  return parts;
}

} // namespace

void GenerateFlags::add(CLI::App &app, const std::set<std::string> &without) {
  model.add(app);
  if (!without.count("sessions"))
    app.add_option(
           "--sessions", sessions,
           "Sessions that compute inputs side by side, each with its share of --threads and a batch of its own; "
           "answers do not depend on it; default: one per thread where steps are small, else fewer")
        ->check(CLI::Range(1, 1024))
        ->type_name("N");
  if (!without.count("steps_ahead"))
    app.add_option("--steps-ahead", ahead,
                   "Most steps that a Vulkan device computes at once; answers do not depend on it")
        ->check(CLI::Range(1, 256))
        ->type_name("N");
  app.add_option("--batch", batch, "Most inputs computed together; answers do not depend on it")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->type_name("N");
  if (!without.count("batch_tokens"))
    app.add_option(
           "--batch-tokens", batchTokens,
           "Most source tokens of the inputs that are computed together, padding counted, where more than one is; "
           "answers do not depend on it; default: no limit")
        ->check(CLI::Range(int64_t(1), int64_t(1) << 30))
        ->type_name("N");
  app.add_option("--overlong", overlong, "Input longer than the model takes: error or truncate")
      ->check(CLI::IsMember({"error", "truncate"}))
      ->capture_default_str();
  app.add_flag("--keep-going", keepGoing, "Put errors in the place of their lines and fail at the end");
  app.add_flag("--json", jsonSummary, "Print a summary as JSON on standard error");
  for (const search::SettingInfo &info : search::settingInfos()) {
    if (!info.implemented || without.count(info.name))
      continue;
    std::string flag = "--" + kebab(info.name) + (info.name == "num_beams" ? ",--beam" : "");
    bool isSwitch = info.values == "true or false";
    CLI::Option *option = app.add_option_function<std::string>(
        flag, [this, name = info.name](const std::string &value) { settings[name] = value.empty() ? "true" : value; },
        info.summary);
    option->group("Settings")->type_name(isSwitch ? "[true|false]" : "VALUE");
    if (isSwitch)
      option->expected(0, 1);
    else
      option->allow_extra_args(false);
  }
  for (const search::ControlInfo &info : search::controlInfos())
    app.add_option("--" + kebab(info.name), controls[info.name], info.summary)->group("Text")->type_name("NAME");
}

void GenerateFlags::addShortlist(CLI::App &app) {
  app.add_option("--shortlist", shortlist,
                 "Generate only candidates of the source's tokens: lines of source ids, a tab, target ids")
      ->type_name("FILE");
}

Result<json> GenerateFlags::settingsJson() const {
  json object = json::object();
  search::Settings scratch;
  for (const auto &[name, text] : settings) {
    TRANSEPT_ASSIGN(json value, search::settingFromText(name, text));
    if (Status status = search::applySetting(scratch, name, value, search::Origin::Request); !status.ok()) {
      std::string quoted = "'" + name + "'", message = status.message();
      if (message.compare(0, quoted.size(), quoted) == 0)
        message = "--" + kebab(name) + message.substr(quoted.size());
      return Status(Code::Usage, message);
    }
    object[name] = std::move(value);
  }
  for (const auto &[name, text] : controls)
    if (!text.empty())
      object[name] = text;
  return object;
}

LineLoopOptions GenerateFlags::loop(int sessions) const {
  // Like lengths are looked for inside a window; alone, a line is answered before the next one is read.
  return {batch == 1 && sessions == 1 ? 1 : batch * 16 * sessions, keepGoing};
}

Result<std::vector<search::SourceTensor>> readSource(const std::string &path) {
  TRANSEPT_ASSIGN(std::vector<Array> arrays, readArrays(path));
  std::vector<search::SourceTensor> tensors;
  for (Array &array : arrays)
    tensors.push_back({array.name, array.dtype, array.dims, std::move(array.data)});
  return tensors;
}

Result<std::unique_ptr<search::Generator>> openGenerator(const GenerateFlags &flags) {
  TRANSEPT_ASSIGN(Parts parts, loadParts(flags));
  return search::Generator::create(std::move(parts.model), std::move(parts.tokenizer), std::move(parts.options));
}

Result<std::unique_ptr<search::GeneratorPool>> openGenerators(const GenerateFlags &flags) {
  TRANSEPT_ASSIGN(Parts parts, loadParts(flags));
  const int sessions = flags.sessions > 0 ? flags.sessions : defaultSessions(flags, *parts.model);
  return search::GeneratorPool::create(std::move(parts.model), std::move(parts.tokenizer), parts.options, sessions);
}

Status generateLines(const GenerateFlags &flags, search::GeneratorPool &generators, LineReader &reader,
                     LineWriter &writer, LineActions<search::Request> actions, int verbosity) {
  LineSummary summary;
  Status status;
  {
    Progress progress(verbosity < 0);
    actions.submit = [&](search::Request &request) { generators.submit(request); };
    actions.step = [&](std::vector<search::Request *> &done) -> Status {
      TRANSEPT_TRY(generators.step());
      done = generators.collect();
      return {};
    };
    actions.forget = [&] { generators.forget(); };
    actions.progress = [&](const LineSummary &sofar) { progress.show(sofar); };
    status = lineLoop(reader, writer, actions, flags.loop(generators.sessions()), summary);
    summary.sessions = generators.sessions();
  }
  report(flags, summary, verbosity);
  return flags.model.finish(status, generators.front().model());
}

void report(const GenerateFlags &flags, const LineSummary &summary, int verbosity) {
  if (summary.truncated > 0 && verbosity >= 0)
    std::fprintf(stderr, "transept: warning: inputs cut to the length the model takes: %lld\n",
                 static_cast<long long>(summary.truncated));
  double perSecond = summary.seconds > 0 ? static_cast<double>(summary.outputTokens) / summary.seconds : 0;
  if (flags.jsonSummary) {
    nlohmann::ordered_json object = {{"lines", summary.lines},
                                     {"failed", summary.failed},
                                     {"truncated", summary.truncated},
                                     {"input_tokens", summary.inputTokens},
                                     {"output_tokens", summary.outputTokens},
                                     {"seconds", summary.seconds},
                                     {"tokens_per_second", perSecond},
                                     {"sessions", summary.sessions}};
    std::fprintf(stderr, "%s\n", object.dump().c_str());
  } else if (verbosity > 0) {
    std::fprintf(stderr, "transept: %lld lines, %lld tokens in, %lld tokens out, %.2f s, %.1f tokens/s\n",
                 static_cast<long long>(summary.lines), static_cast<long long>(summary.inputTokens),
                 static_cast<long long>(summary.outputTokens), summary.seconds, perSecond);
  }
}

} // namespace transept::tool
