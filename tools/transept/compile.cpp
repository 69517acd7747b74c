// `transept compile`: hands over to the compiler, which is a program of its own.

#include "Command.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace transept::tool {

Status runCompiler(const std::vector<std::string> &arguments) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::filesystem::path compiler = self.parent_path() / "transept-compile";
  std::vector<char *> words;
  std::string program = compiler.string();
  words.push_back(program.data());
  std::vector<std::string> copies = arguments;
  for (std::string &word : copies)
    words.push_back(word.data());
  words.push_back(nullptr);
  execv(program.c_str(), words.data());
  const std::string reason = std::strerror(errno);
  return {Code::FileError,
          "cannot start the compiler '" + printable(program) + "': " + reason + "; it is installed beside transept"};
}

void registerCompile(CLI::App &app, Command &command) {
  CLI::App *sub = app.add_subcommand("compile", "Compile a model (see 'transept compile --help')");
  sub->prefix_command();
  sub->callback([sub, &command] {
    std::vector<std::string> arguments = sub->remaining();
    command.action = [arguments] { return runCompiler(arguments); };
  });
}

} // namespace transept::tool
