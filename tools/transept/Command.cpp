#include "Command.h"

#include <charconv>

namespace transept::tool {

void ModelFlags::add(CLI::App &app) {
  app.add_option("model", path, "The compiled model (.tsp)")->required()->type_name("FILE");
  app.add_option("--threads", threads, "Threads that compute; 0: as many as this process may use")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  app.add_option("--cpu", model.cpu, "CPU level to use: avx512, avx2 or x86-64; default: the best that runs here")
      ->type_name("LEVEL");
  app.add_flag("--mmap", model.mapWeights,
               "Map weights instead of reading them: pages are shared between processes, and the process may be killed "
               "if the file is changed in place");
}

Result<std::shared_ptr<const Model>> ModelFlags::load() const {
  ModelOptions options = model;
  options.threads = threads;
  return Model::load(path, options);
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
