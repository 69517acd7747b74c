// `transept inspect`: what is in an artifact.

#include "Command.h"
#include "Description.h"

#include <cstdio>

namespace transept::tool {

namespace {

constexpr const char *footer = R"(Examples:
  transept inspect model.tsp
  transept inspect model.tsp --plan --set batch=1,source=32,rows=4,capacity=128,blocks=32
  transept inspect model.tsp --kernels --json)";

struct InspectFlags {
  std::string path;
  std::vector<std::string> set;
  bool plan = false, kernels = false, json = false, verify = false;
};

Status inspect(const InspectFlags &flags) {
  TRANSEPT_ASSIGN(SymbolValues set, parseSymbols(flags.set));
  ArtifactOptions options;
  options.weights = flags.verify ? ArtifactOptions::Weights::Read : ArtifactOptions::Weights::Skip;
  Result<Artifact> artifact = Artifact::read(flags.path, options);
  if (!artifact.ok())
    return artifact.status().withContext(printable(flags.path));
  nlohmann::ordered_json description = describe(*artifact, set, {flags.plan, flags.kernels});
  std::string text = flags.json
                         ? description.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                         : descriptionText(description);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

} // namespace

void registerInspect(CLI::App &app, Command &command) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App *sub = app.add_subcommand("inspect", "Show what is in a compiled model");
  sub->footer(footer);
  sub->add_option("model", flags->path, "The compiled model (.tsp)")->required()->type_name("FILE");
  sub->add_flag("--plan", flags->plan, "Memory: states and caches, arenas, dispatches");
  sub->add_flag("--kernels", flags->kernels, "Kernels, with the model's nodes they come from");
  sub->add_option("--set", flags->set, "Values of symbols, to get numbers beside formulae")
      ->type_name("NAME=N,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  sub->add_flag("--verify", flags->verify, "Also read the weights and check their hashes");
  sub->add_flag("--json", flags->json, "Print JSON");
  sub->callback([flags, &command] { command.action = [flags] { return inspect(*flags); }; });
}

} // namespace transept::tool
