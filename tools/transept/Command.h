// What the subcommands of the tool share.
#ifndef TRANSEPT_TOOLS_COMMAND_H
#define TRANSEPT_TOOLS_COMMAND_H

#include "runtime/Model.h"
#include "runtime/Status.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace transept::tool {

/// A subcommand sets `action` when it was named; main runs it and turns its status into a line and an exit code.
struct Command {
  int verbosity = 0; // -1 with -q, 1 with -v
  std::function<Status()> action;
};

/// Options of every command that loads a model.
struct ModelFlags {
  std::string path;
  ModelOptions model;
  int threads = 0;
  std::string trace;                       // file; empty: none
  std::vector<std::string> vulkanFeatures; // "none" alone, or names; empty: all

  void add(CLI::App &app);
  Result<std::shared_ptr<const Model>> load() const;
  /// After a command that ended with `status`: writes the trace of the model, if there is to be one.
  Status finish(const Status &status, const Model &model) const;
};

/// "name=value" pairs with integer values, for --set.
Result<SymbolValues> parseSymbols(const std::vector<std::string> &words);

/// Splits at the first '='; false where there is none or the name is empty.
bool splitAssignment(const std::string &word, std::string &name, std::string &value);

void registerRun(CLI::App &app, Command &command);
void registerInspect(CLI::App &app, Command &command);
void registerBench(CLI::App &app, Command &command);
void registerDevices(CLI::App &app, Command &command);
void registerCompile(CLI::App &app, Command &command);

/// Hands over to transept-compile beside this program; returns only where that fails.
Status runCompiler(const std::vector<std::string> &arguments);

/// Registers `translate` and `score` too.
void registerGenerate(CLI::App &app, Command &command);

} // namespace transept::tool

#endif
