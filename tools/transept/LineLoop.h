// Reads lines, computes them in windows, answers in the order of the input.
#ifndef TRANSEPT_TOOLS_LINELOOP_H
#define TRANSEPT_TOOLS_LINELOOP_H

#include "Lines.h"

#include "runtime/search/Generator.h"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace transept::tool {

/// What a command did, for -v and --json.
struct LineSummary {
  int64_t lines = 0, failed = 0, truncated = 0, inputTokens = 0, outputTokens = 0;
  double seconds = 0;
};

struct LineLoopOptions {
  int64_t window = 1; // most lines computed together; fewer where no more are there yet
  bool keepGoing = false;
};

/// `Job` is a search::Request or derives from it. A job whose text needs no computing has `done` set by read().
template <typename Job> struct LineActions {
  /// Sets up a job from a line, which is valid UTF-8. `done`: nothing to compute.
  std::function<Status(const std::string &line, Job &job, bool &done)> read;
  /// Computes jobs; each gets its own status.
  std::function<Status(const std::vector<Job *> &jobs)> compute;
  /// The answer, with its line end; `index` counts lines from 0.
  std::function<std::string(int64_t index, const Job &job)> answer;
  /// What takes the place of an answer with --keep-going.
  std::function<std::string(int64_t index, const Job &job, const Status &status)> failure;
};

/// Stops at the first line that fails, after answering those before it; with keepGoing at the end, and then fails too.
template <typename Job>
Status lineLoop(LineReader &reader, LineWriter &writer, const LineActions<Job> &actions, const LineLoopOptions &options,
                LineSummary &summary) {
  struct Slot {
    Job job;
    int64_t index = 0;
    bool done = false;
  };
  auto start = std::chrono::steady_clock::now();
  Status failure; // the first one
  std::string line;
  std::unique_ptr<Slot> next; // read, but not part of the last window
  bool more = true, stop = false;
  while (!stop && (more || next)) {
    std::vector<std::unique_ptr<Slot>> window;
    while (static_cast<int64_t>(window.size()) < options.window && (next || more)) {
      if (!next) {
        if (!window.empty() && !reader.ready())
          break;
        if (!(more = reader.next(line)))
          break;
        next = std::make_unique<Slot>();
        next->index = reader.number() - 1;
        next->job.status = checkText(line);
        if (next->job.status.ok())
          next->job.status = actions.read(line, next->job, next->done);
      }
      // One that answers in pieces has the output to itself.
      bool alone = next->job.status.ok() && next->job.settings.stream;
      if (alone && !window.empty())
        break;
      bool failed = !next->job.status.ok() && !options.keepGoing;
      window.push_back(std::move(next));
      if (alone || failed)
        break;
    }
    std::vector<Job *> jobs;
    for (auto &slot : window)
      if (slot->job.status.ok() && !slot->done)
        jobs.push_back(&slot->job);
    Status computed = jobs.empty() ? Status() : actions.compute(jobs);
    if (!computed.ok())
      return computed;

    std::string answers;
    for (auto &slot : window) {
      const Job &job = slot->job;
      if (job.status.ok()) {
        answers += actions.answer(slot->index, job);
        summary.inputTokens += job.inputTokens;
        summary.outputTokens += job.outputTokens;
        summary.truncated += job.truncatedTokens > 0;
      } else {
        ++summary.failed;
        if (failure.ok())
          failure = job.status.withContext("line " + std::to_string(slot->index + 1));
        if (!options.keepGoing) {
          stop = true;
          break;
        }
        answers += actions.failure(slot->index, job, job.status);
      }
      ++summary.lines;
    }
    if (!writer.write(answers)) {
      summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      return writer.status(); // ok where nobody reads any more
    }
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!reader.status().ok())
    return reader.status();
  if (SignalGuard::interrupted().load())
    return {Code::Cancelled, "interrupted"};
  if (!failure.ok() && options.keepGoing)
    return {failure.code(), std::to_string(summary.failed) + " of " + std::to_string(summary.lines) +
                                " lines failed; the first: " + failure.message()};
  return failure;
}

} // namespace transept::tool

#endif
