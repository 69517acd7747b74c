#include "Command.h"

#include "runtime/AtomicFile.h"

#include <charconv>
#include <cstdlib>

namespace transept::tool {

namespace {

/// As the XDG base directory specification says: relative paths are ignored; empty where there is no home.
std::string cacheFolder() {
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/')
    return std::string(cache) + "/transept";
  const char *home = std::getenv("HOME");
  return home && home[0] == '/' ? std::string(home) + "/.cache/transept" : std::string();
}

} // namespace

void ModelFlags::add(CLI::App &app) {
  app.add_option("model", path, "The compiled model (.tsp)")->required()->type_name("FILE");
  app.add_option("--threads", threads, "Threads that compute; 0: as many as this process may use")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  app.add_option("--cpu", model.cpu, "CPU level to use, of those that inspect lists; default: the best that runs here")
      ->type_name("LEVEL");
  app.add_option(
         "--device", model.device,
         "Where to compute: cpu, vulkan:0 ... ('transept devices' lists them); default: cpu where the model has "
         "code for it")
      ->type_name("DEVICE");
  app.add_flag("--vulkan-validation", model.vulkan.validate,
               "Run a Vulkan device under the Khronos validation layer; what it says is an error");
  app.add_option(
         "--vulkan-features", vulkanFeatures,
         "Features that shaders may use where a Vulkan device has them, of those that devices lists; each must be "
         "there; none: no more than every device has; default: all of the device")
      ->delimiter(',')
      ->type_name("NAME,...");
  app.add_option("--trace", trace,
                 "Write when which kernel ran on which thread or device, for Perfetto or chrome://tracing")
      ->type_name("FILE.json");
  app.add_flag("--mmap", model.mapWeights,
               "Map weights instead of reading them: pages are shared between processes, and the process may be killed "
               "if the file is changed in place");
}

Result<std::shared_ptr<const Model>> ModelFlags::load() const {
  ModelOptions options = model;
  options.threads = threads;
  options.vulkan.cacheFolder = cacheFolder();
  if (!vulkanFeatures.empty())
    options.vulkan.features =
        vulkanFeatures == std::vector<std::string>{"none"} ? std::vector<std::string>() : vulkanFeatures;
  options.trace = !trace.empty();
  if (options.trace)
    TRANSEPT_TRY(AtomicFile::create(trace).status()); // better known now than after the work
  return Model::load(path, options);
}

Status ModelFlags::finish(const Status &status, const Model &model) const {
  if (!model.trace())
    return status;
  Status written = model.trace()->write(model.manifest(), trace);
  return status.ok() ? written : status;
}

bool splitAssignment(const std::string &word, std::string &name, std::string &value) {
  size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0)
    return false;
  name = word.substr(0, equals);
  value = word.substr(equals + 1);
  return true;
}

Result<SymbolValues> parseSymbols(const std::vector<std::string> &words) {
  SymbolValues symbols;
  for (const std::string &word : words) {
    SymbolValue symbol;
    std::string value;
    bool valid = splitAssignment(word, symbol.name, value);
    if (valid) {
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), symbol.value);
      valid = error == std::errc() && end == value.data() + value.size() && symbol.value >= 0;
    }
    if (!valid)
      return Status(Code::Usage, "--set takes NAME=NUMBER, not '" + printable(word) + "'");
    symbols.push_back(std::move(symbol));
  }
  return symbols;
}

} // namespace transept::tool
