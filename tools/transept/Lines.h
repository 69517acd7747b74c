// Lines in and lines out, for the commands that answer each line of their input.
#ifndef TRANSEPT_TOOLS_LINES_H
#define TRANSEPT_TOOLS_LINES_H

#include "runtime/Status.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace transept::tool {

/// Splits a file descriptor's bytes into lines: without "\n", "\r\n" or a leading byte order mark; a last line without
/// an end counts, nothing after the last end does not.
class LineReader {
public:
  explicit LineReader(int file, const std::atomic<bool> *interrupted = nullptr)
      : file_(file), interrupted_(interrupted) {}

  /// Waits for the next line. False at the end of the input, after an interruption and where reading fails.
  bool next(std::string &line);

  /// Whether next() would return without waiting.
  bool ready();

  /// Lines returned so far.
  int64_t number() const { return number_; }
  /// Why reading failed; ok at the end of the input.
  const Status &status() const { return status_; }

private:
  bool fill();

  int file_;
  const std::atomic<bool> *interrupted_;
  std::string buffer_;
  size_t begin_ = 0, searched_ = 0;
  int64_t number_ = 0;
  bool ended_ = false;
  Status status_;
};

/// Writes whole lines: once a line has begun it is finished, whatever signal arrives.
class LineWriter {
public:
  explicit LineWriter(int file) : file_(file) {}

  /// `lines` ends with "\n" or is empty. False once nobody reads any more, or where writing fails.
  bool write(std::string_view lines);

  /// The reader went away, which is no error.
  bool closed() const { return closed_; }
  const Status &status() const { return status_; }

private:
  int file_;
  bool closed_ = false;
  Status status_;
};

/// Code::InvalidInput for a zero byte or malformed UTF-8, with its position.
Status checkText(std::string_view line);

/// Line ends inside a text as \n and \r, so that it stays one line.
std::string oneLine(std::string_view text);

/// While it lives, the first SIGINT or SIGTERM only sets a flag, and a closed pipe is an error code instead of a
/// signal.
class SignalGuard {
public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard &) = delete;
  SignalGuard &operator=(const SignalGuard &) = delete;
  static const std::atomic<bool> &interrupted();
};

} // namespace transept::tool

#endif
