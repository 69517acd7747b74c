// Reads lines, lets them be computed together, answers in the order of the input.
#ifndef TRANSEPT_TOOLS_LINELOOP_H
#define TRANSEPT_TOOLS_LINELOOP_H

#include "Lines.h"

#include "runtime/search/Generator.h"

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace transept::tool {

/// What a command did, for -v and --json.
struct LineSummary {
  int64_t lines = 0, failed = 0, truncated = 0, inputTokens = 0, outputTokens = 0;
  double seconds = 0;
  int sessions = 1; // that computed
};

struct LineLoopOptions {
  int64_t window = 1; // most lines that are read and not answered
  bool keepGoing = false;
};

/// `Job` is a search::Request or derives from it. A job whose text needs no computing has `done` set by read().
template <typename Job> struct LineActions {
  /// Sets up a job from a line, which is valid UTF-8. `done`: nothing to compute.
  std::function<Status(const std::string &line, Job &job, bool &done)> read;
  /// Hands over a job, which stays where it is.
  std::function<void(Job &job)> submit;
  /// Computes some more of what was handed over; returns those that are done, each with its own status.
  std::function<Status(std::vector<Job *> &done)> step;
  /// The answer, with its line end; `index` counts lines from 0.
  std::function<std::string(int64_t index, const Job &job)> answer;
  /// Lets go of what was handed over and is not done: jobs are gone afterwards. May be empty.
  std::function<void()> forget;
  /// What takes the place of an answer with --keep-going.
  std::function<std::string(int64_t index, const Job &job, const Status &status)> failure;
  /// Told after each step what has been answered so far; may be empty.
  std::function<void(const LineSummary &summary)> progress;
};

/// One run over the input.
template <typename Job> class LineLoop {
public:
  LineLoop(LineReader &reader, LineWriter &writer, const LineActions<Job> &actions, const LineLoopOptions &options,
           LineSummary &summary)
      : reader_(reader), writer_(writer), actions_(actions), options_(options), summary_(summary) {}
  ~LineLoop() {
    if (actions_.forget) // before the jobs go
      actions_.forget();
  }
  LineLoop(const LineLoop &) = delete;
  LineLoop &operator=(const LineLoop &) = delete;

  Status run() {
    const auto start = std::chrono::steady_clock::now();
    Status status = answerAll();
    summary_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return status;
  }

private:
  struct Slot {
    Job job;
    int64_t index = 0;
    bool done = false;
  };

  Status answerAll() {
    while (!stopped_) {
      readLines();
      if (slots_.empty())
        break;
      if (computing_ > 0) {
        finished_.clear();
        TRANSEPT_TRY(actions_.step(finished_));
        for (Job *job : finished_)
          for (auto &slot : slots_)
            if (&slot->job == job)
              slot->done = true;
        computing_ -= static_cast<int64_t>(finished_.size());
      }
      if (!writer_.write(answers()))
        return writer_.status(); // ok where nobody reads any more
      if (actions_.progress)
        actions_.progress(summary_);
    }
    if (!reader_.status().ok())
      return reader_.status();
    if (SignalGuard::interrupted().load())
      return {Code::Cancelled, "interrupted"};
    if (!failure_.ok() && options_.keepGoing)
      return {failure_.code(), std::to_string(summary_.failed) + " of " + std::to_string(summary_.lines) +
                                   " lines failed; the first: " + failure_.message()};
    return failure_;
  }

  /// Fills the window with what can be read without waiting; waits only where there is nothing else to do.
  void readLines() {
    while (more_ && static_cast<int64_t>(slots_.size()) < options_.window) {
      if (!next_) {
        if (!slots_.empty() && !reader_.ready())
          return;
        if (!(more_ = reader_.next(line_)))
          return;
        next_ = readLine();
      }
      // One that answers in pieces has the output to itself.
      const bool alone = next_->job.status.ok() && next_->job.settings.stream;
      if (!slots_.empty() && (alone || streaming_))
        return;
      streaming_ = alone;
      if (!next_->job.status.ok())
        more_ = options_.keepGoing; // those before it are still answered
      slots_.push_back(std::move(next_));
      Slot &slot = *slots_.back();
      slot.done = slot.done || !slot.job.status.ok();
      if (!slot.done) {
        ++computing_;
        actions_.submit(slot.job);
      }
    }
  }

  std::unique_ptr<Slot> readLine() {
    auto slot = std::make_unique<Slot>();
    slot->index = reader_.number() - 1;
    slot->job.status = checkText(line_);
    if (slot->job.status.ok())
      slot->job.status = actions_.read(line_, slot->job, slot->done);
    return slot;
  }

  /// Takes the answers whose turn it is.
  std::string answers() {
    std::string text;
    for (; !slots_.empty() && slots_.front()->done; slots_.pop_front()) {
      const Slot &slot = *slots_.front();
      const Job &job = slot.job;
      if (job.status.ok()) {
        text += actions_.answer(slot.index, job);
        summary_.inputTokens += job.inputTokens;
        summary_.outputTokens += job.outputTokens;
        summary_.truncated += job.truncatedTokens > 0;
      } else {
        ++summary_.failed;
        if (failure_.ok())
          failure_ = job.status.withContext("line " + std::to_string(slot.index + 1));
        if (!options_.keepGoing) {
          stopped_ = true;
          break;
        }
        text += actions_.failure(slot.index, job, job.status);
      }
      ++summary_.lines;
    }
    return text;
  }

  LineReader &reader_;
  LineWriter &writer_;
  const LineActions<Job> &actions_;
  const LineLoopOptions options_;
  LineSummary &summary_;
  std::deque<std::unique_ptr<Slot>> slots_; // read and not answered
  std::unique_ptr<Slot> next_;              // read, but its turn has not come
  std::vector<Job *> finished_;
  std::string line_;
  Status failure_; // the first one
  int64_t computing_ = 0;
  bool more_ = true, stopped_ = false, streaming_ = false;
};

/// Stops at the first line that fails, after answering those before it; with keepGoing at the end, and then fails too.
/// Jobs that were handed over and are not done are gone afterwards.
template <typename Job>
Status lineLoop(LineReader &reader, LineWriter &writer, const LineActions<Job> &actions, const LineLoopOptions &options,
                LineSummary &summary) {
  return LineLoop<Job>(reader, writer, actions, options, summary).run();
}

} // namespace transept::tool

#endif
