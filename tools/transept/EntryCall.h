// One entry, its inputs and a session for them, as `run` and `bench` need it.
#ifndef TRANSEPT_TOOLS_ENTRYCALL_H
#define TRANSEPT_TOOLS_ENTRYCALL_H

#include "Array.h"
#include "Command.h"

#include <memory>
#include <string>
#include <vector>

namespace transept::tool {

/// Flags that say what is called with what.
struct CallFlags {
  std::string entry, inputs;
  std::vector<std::string> input, set;

  void add(CLI::App &app);
};

class EntryCall {
public:
  /// Reads the inputs and creates the session. Generation symbols are taken from --set, else from the inputs' shapes,
  /// else small.
  static Result<std::unique_ptr<EntryCall>> create(std::shared_ptr<const Model> model, const CallFlags &flags,
                                                   int threads);

  Status run() { return session_->run(entry_->name(), arguments_); }
  const program::Entry &entry() const { return *entry_; }
  Session &session() { return *session_; }

private:
  EntryCall() = default;
  const program::Entry *entry_ = nullptr;
  std::vector<Array> arrays_;
  RunArguments arguments_;
  std::unique_ptr<Session> session_;
};

} // namespace transept::tool

#endif
