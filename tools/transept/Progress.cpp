#include "Progress.h"

#include <cstdio>
#include <unistd.h>

namespace transept::tool {

namespace {
constexpr std::chrono::milliseconds pause(200);
constexpr const char *eraseLine = "\r\033[K";
} // namespace

Progress::Progress(bool quiet)
    : enabled_(!quiet && isatty(STDERR_FILENO) && !isatty(STDIN_FILENO) && !isatty(STDOUT_FILENO)) {}

Progress::~Progress() {
  if (shown_)
    std::fputs(eraseLine, stderr);
}

void Progress::show(const LineSummary &summary) {
  if (!enabled_)
    return;
  const Clock::time_point now = Clock::now();
  if (now - last_ < pause)
    return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::fprintf(stderr, "%s%lld lines, %lld tokens, %.0f tokens/s", eraseLine, static_cast<long long>(summary.lines),
               static_cast<long long>(summary.outputTokens), static_cast<double>(summary.outputTokens) / seconds);
  std::fflush(stderr);
}

} // namespace transept::tool
