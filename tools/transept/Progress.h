// How far a command has come, on a terminal.
#ifndef TRANSEPT_TOOLS_PROGRESS_H
#define TRANSEPT_TOOLS_PROGRESS_H

#include "LineLoop.h"

#include <chrono>

namespace transept::tool {

/// One line on standard error that is written again and again, and gone at the end. Shows nothing where standard error
/// is no terminal, or where lines are typed or answered on one.
class Progress {
public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// At most a few times a second.
  void show(const LineSummary &summary);

private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  bool enabled_;
  bool shown_ = false;
};

} // namespace transept::tool

#endif
