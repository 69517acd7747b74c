//===- Workers.cpp - many small jobs in processes of their own ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tests/conformance/Workers.h"
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace mlir::transept;
using Clock = std::chrono::steady_clock;

namespace {

bool readAll(int descriptor, void *data, size_t bytes) {
  auto *at = static_cast<char *>(data);
  while (bytes > 0) {
    ssize_t got = read(descriptor, at, bytes);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

/// A process that is gone is no signal to the sender.
bool writeAll(int descriptor, const void *data, size_t bytes) {
  const auto *at = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t sent = send(descriptor, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent <= 0)
      return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

struct Worker {
  pid_t process = -1;
  int socket = -1;
  std::optional<size_t> job;
  Clock::time_point begun;
};

class Team {
public:
  Team(size_t count, const WorkerOptions &options, const std::function<std::string(size_t, unsigned)> &job,
       const std::function<void(size_t, const std::string &)> &done)
      : count(count), options(options), job(job), done(done), workers(options.processes) {}

  bool run() {
    for (Worker &worker : workers)
      if (next < count && !(start(worker) && give(worker)))
        return false;
    while (finished < count)
      if (!step())
        return false;
    for (Worker &worker : workers)
      stop(worker);
    return true;
  }

private:
  bool start(Worker &worker) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
      return false;
    worker.process = fork();
    if (worker.process == 0) {
      for (Worker &other : workers)
        if (other.socket >= 0)
          close(other.socket);
      close(pair[0]);
      serve(pair[1], static_cast<unsigned>(&worker - workers.data()));
      _exit(0);
    }
    close(pair[1]);
    worker.socket = pair[0];
    return worker.process > 0;
  }

  /// The life of a worker process: jobs in, results out, until the other end closes.
  void serve(int socket, unsigned number) {
    uint64_t index;
    while (readAll(socket, &index, sizeof index)) {
      std::string result = job(index, number);
      uint64_t length = result.size();
      if (!writeAll(socket, &length, sizeof length) || !writeAll(socket, result.data(), result.size()))
        return;
    }
  }

  /// The next job, if there is one.
  bool give(Worker &worker) {
    if (next == count)
      return true;
    uint64_t index = next++;
    worker.job = index;
    worker.begun = Clock::now();
    return writeAll(worker.socket, &index, sizeof index);
  }

  void finish(Worker &worker, const std::string &result) {
    ++finished;
    done(*worker.job, result);
    worker.job.reset();
  }

  /// Ends the process and says how it ended.
  std::string stop(Worker &worker) {
    if (worker.process < 0)
      return {};
    close(worker.socket);
    int status = 0;
    waitpid(worker.process, &status, 0);
    worker.process = worker.socket = -1;
    return WIFSIGNALED(status) ? std::string("died of signal ") + strsignal(WTERMSIG(status))
                               : "ended with code " + std::to_string(WEXITSTATUS(status));
  }

  bool replace(Worker &worker, const std::string &reason) {
    std::string end = stop(worker);
    finish(worker, reason.empty() ? end : reason);
    return next == count || (start(worker) && give(worker));
  }

  /// Waits for one event and handles it.
  bool step() {
    std::vector<pollfd> polls;
    for (Worker &worker : workers)
      polls.push_back({worker.job ? worker.socket : -1, POLLIN, 0});
    poll(polls.data(), polls.size(), 1000);
    for (size_t i = 0; i < workers.size(); ++i) {
      Worker &worker = workers[i];
      if (!worker.job)
        continue;
      bool late = Clock::now() - worker.begun > std::chrono::seconds(options.secondsPerJob);
      if (polls[i].revents == 0 && !late)
        continue;
      std::optional<std::string> result = polls[i].revents ? receive(worker) : std::nullopt;
      if (result) {
        finish(worker, *result);
        if (!give(worker))
          return false;
        continue;
      }
      if (late)
        kill(worker.process, SIGKILL);
      if (!replace(worker, late ? "takes more than " + std::to_string(options.secondsPerJob) + " s" : ""))
        return false;
    }
    return true;
  }

  std::optional<std::string> receive(Worker &worker) {
    uint64_t length;
    if (!readAll(worker.socket, &length, sizeof length))
      return std::nullopt;
    std::string result(length, '\0');
    return readAll(worker.socket, result.data(), length) ? std::optional(result) : std::nullopt;
  }

  size_t count, next = 0, finished = 0;
  const WorkerOptions &options;
  const std::function<std::string(size_t, unsigned)> &job;
  const std::function<void(size_t, const std::string &)> &done;
  std::vector<Worker> workers;
};

} // namespace

bool mlir::transept::runInWorkers(size_t count, const WorkerOptions &options,
                                  const std::function<std::string(size_t, unsigned)> &job,
                                  const std::function<void(size_t, const std::string &)> &done) {
  return Team(count, options, job, done).run();
}
