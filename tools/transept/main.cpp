// The command-line tool: parses, runs one subcommand, prints at most one error line.

#include "Command.h"

#include "runtime/ArtifactFormat.h"
#include "transept/abi.h"
#include "transept/version.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>

using namespace transept;
using namespace transept::tool;

namespace {

constexpr const char *footer = R"(Examples:
  transept compile opus-export/ -o model.tsp       compile an export directory, or one .onnx file
  transept translate model.tsp < in.txt            text in, text out
  transept run model.tsp --inputs x.npz            tensors in, tensors out
  transept inspect model.tsp --plan                what is in the file

Exit codes: 0 ok, 1 a comparison differs, 2 usage, 3 model invalid, 4 unsupported, 5 over a limit, 6 file or disk,
7 artifact refused, 8 wrong inputs, 9 out of memory, 10 device, 70 internal error.)";

std::string versionText() {
  return "transept " TRANSEPT_VERSION " (artifact format " + std::to_string(artifactFormatVersion) + ", ABI " +
         std::to_string(TRANSEPT_ABI_VERSION) + ", " __VERSION__ "); the compiler: transept compile --version";
}

/// A closed standard stream would be the next file that is opened, an artifact for one. Instead every call on it fails.
void keepStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      (void)!open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY); // gets the lowest free number
}

int fail(const Status &status) {
  std::fflush(stdout);
  std::fprintf(stderr, "transept: error: %s\n", printable(status.message(), 1000).c_str());
  return status.code() == Code::Busy ? static_cast<int>(Code::Internal) : status.exitCode();
}

/// Parses; the status is Usage for a wrong command line. `done` where help or the version was printed.
Status parse(CLI::App &app, int argc, char **argv, bool &done) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    done = error.get_exit_code() == 0;
    if (done) {
      app.exit(error);
      return {};
    }
    std::string what = error.what();
    CLI::App *named = &app;
    for (CLI::App *sub : app.get_subcommands())
      named = sub;
    return {Code::Usage, what.substr(0, what.find('\n')) + " (see 'transept" +
                             (named == &app ? std::string() : " " + named->get_name()) + " --help')"};
  }
  return {};
}

int runTool(int argc, char **argv) {
  // All words after it belong to the compiler, flags that exist here too among them.
  if (argc > 1 && std::string(argv[1]) == "compile")
    return fail(runCompiler({argv + 2, argv + argc}));
  CLI::App app("Compiles and runs encoder-decoder models.", "transept");
  app.footer(footer);
  app.set_version_flag("--version", versionText());
  app.require_subcommand(1);
  app.fallthrough();
  Command command;
  app.add_flag_callback("-q,--quiet", [&] { command.verbosity = -1; }, "Errors only");
  app.add_flag_callback("-v,--verbose", [&] { command.verbosity = 1; }, "Say what is done");
  registerCompile(app, command);
  registerGenerate(app, command);
  registerRun(app, command);
  registerInspect(app, command);
  registerBench(app, command);
  registerDevices(app, command);

  bool done = false;
  Status status = parse(app, argc, argv, done);
  if (status.ok() && !done)
    status = command.action();
  if (status.ok() && (std::fflush(stdout) != 0 || std::ferror(stdout)))
    status = {Code::FileError, "cannot write to standard output"};
  return status.ok() ? 0 : fail(status);
}

} // namespace

int main(int argc, char **argv) {
  try {
    keepStandardStreams();
    return runTool(argc, argv);
  } catch (const std::bad_alloc &) {
    return fail({Code::OutOfMemory, "out of memory"});
  } catch (const std::exception &error) {
    return fail({Code::Internal, error.what()});
  }
}
