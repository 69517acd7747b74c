//===- Supervise.cpp - a compilation that cannot leave anything behind ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/compile/Supervise.h"
#include "ir/Diagnostic.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace mlir::transept;

namespace {

//===- The directory for temporary files ----------------------------------------------------------------------===//

constexpr const char *temporaryPrefix = "transept-compile-";

/// Empties and removes a directory of plain files.
void removeDirectory(const std::string &path) {
  if (DIR *listing = opendir(path.c_str())) {
    while (dirent *item = readdir(listing))
      if (std::strcmp(item->d_name, ".") != 0 && std::strcmp(item->d_name, "..") != 0)
        unlinkat(dirfd(listing), item->d_name, 0);
    closedir(listing);
  }
  rmdir(path.c_str());
}

/// A directory of our own, locked while its owner lives. Those of killed processes are removed.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    const char *wanted = std::getenv("TMPDIR");
    for (const char *parent : {wanted ? wanted : "/tmp", "/tmp", "/dev/shm", "."}) {
      std::string pattern = std::string(parent) + "/" + temporaryPrefix + "XXXXXX";
      removeStale(parent);
      if (!mkdtemp(pattern.data()))
        continue;
      path = pattern;
      lock = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (lock >= 0)
        flock(lock, LOCK_EX | LOCK_NB);
      return;
    }
  }
  ~TemporaryDirectory() {
    if (!path.empty())
      removeDirectory(path);
    if (lock >= 0)
      close(lock);
  }
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;

  /// Empty where no directory could be made.
  std::string path;

private:
  static void removeStale(const std::string &parent) {
    DIR *listing = opendir(parent.c_str());
    if (!listing)
      return;
    while (dirent *item = readdir(listing)) {
      if (std::strncmp(item->d_name, temporaryPrefix, std::strlen(temporaryPrefix)) != 0)
        continue;
      std::string path = parent + "/" + item->d_name;
      int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (file < 0)
        continue;
      if (flock(file, LOCK_EX | LOCK_NB) == 0)
        removeDirectory(path);
      close(file);
    }
    closedir(listing);
  }

  int lock = -1;
};

//===- The child's last words ---------------------------------------------------------------------------------===//

/// Text in memory that parent and child share.
class SharedActivity : public Activity {
public:
  SharedActivity() {
    void *page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    text = page == MAP_FAILED ? nullptr : static_cast<char *>(page);
  }
  void set(const std::string &what) override {
    if (text)
      std::snprintf(text, size, "%s", what.c_str());
  }
  std::string get() const { return text ? std::string(text, strnlen(text, size)) : ""; }

private:
  static constexpr size_t size = 256;
  char *text;
};

//===- Signals ------------------------------------------------------------------------------------------------===//

// Signal handlers have no other way to learn of them.
volatile sig_atomic_t childProcess = 0;
volatile sig_atomic_t received = 0;

void forwardSignal(int signal) {
  received = signal;
  if (childProcess > 0)
    kill(childProcess, signal);
}

constexpr int forwarded[] = {SIGINT, SIGTERM, SIGHUP};

void setHandlers(void (*handler)(int)) {
  for (int signal : forwarded) {
    struct sigaction action{}, old{};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    // What was ignored when we were started (nohup) stays ignored.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
  }
}

int reportDeath(int signal, const std::string &activity) {
  std::string place = activity.empty() ? "" : " in " + activity;
  if (signal == SIGKILL)
    std::fprintf(stderr, "transept: error: the compiler was killed%s; the system may be out of memory\n",
                 place.c_str());
  else
    std::fprintf(stderr,
                 "transept: error: internal error: the compiler crashed%s (%s); run it with --dump-ir DIR and report "
                 "the last file\n",
                 place.c_str(), strsignal(signal));
  return ExitInternal;
}

} // namespace

int mlir::transept::supervise(const std::function<int(Activity &)> &work, const std::function<void()> &cleanUp) {
  SharedActivity activity;
  TemporaryDirectory temporary;
  std::fflush(nullptr);
  setHandlers(forwardSignal);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) {
    std::fprintf(stderr, "transept: error: cannot start a process: %s\n", std::strerror(errno));
    return ExitMemory;
  }
  if (child == 0) {
    setHandlers(SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // A signal that came before the handlers were reset ends the child as a later one would.
    if (received)
      raise(received);
    if (getppid() != parent)
      _exit(ExitInternal);
    if (!temporary.path.empty())
      setenv("TMPDIR", temporary.path.c_str(), 1);
    int code = work(activity);
    std::fflush(nullptr);
    _exit(code);
  }
  childProcess = child;
  if (received)
    kill(child, received);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  childProcess = 0;
  if (WIFEXITED(status))
    return WEXITSTATUS(status);
  cleanUp();
  return received ? 128 + received : reportDeath(WTERMSIG(status), activity.get());
}
