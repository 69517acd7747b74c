#include "Lines.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <unistd.h>

namespace transept::tool {

namespace {

constexpr size_t readBytes = 1 << 16;

std::atomic<bool> interruptedFlag{false};
struct sigaction oldInterrupt, oldTerminate, oldPipe;

void onInterrupt(int) { interruptedFlag.store(true, std::memory_order_relaxed); }

/// Bytes of the well-formed UTF-8 character at the beginning of `text`, 0 where there is none.
size_t characterLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t first = byte(0);
  if (first < 0x80)
    return 1;
  size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  uint8_t second = byte(1);
  bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  bool outside = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || outside ? 0 : length;
}

} // namespace

bool LineReader::fill() {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    searched_ -= begin_;
    begin_ = 0;
  }
  size_t old = buffer_.size();
  buffer_.resize(old + readBytes);
  ssize_t got;
  do {
    if (interrupted_ && interrupted_->load(std::memory_order_relaxed)) {
      buffer_.resize(old);
      return false;
    }
    got = ::read(file_, buffer_.data() + old, readBytes);
  } while (got < 0 && errno == EINTR);
  int error = errno;
  buffer_.resize(old + (got > 0 ? static_cast<size_t>(got) : 0));
  if (got < 0)
    status_ = {Code::FileError, std::string("cannot read standard input: ") + std::strerror(error)};
  ended_ = got <= 0;
  return got > 0;
}

bool LineReader::next(std::string &line) {
  size_t end;
  while ((end = buffer_.find('\n', searched_)) == std::string::npos) {
    searched_ = buffer_.size();
    if (ended_ || !fill()) {
      if (!ended_ || !status_.ok() || begin_ == buffer_.size())
        return false;
      end = buffer_.size();
      break;
    }
  }
  line.assign(buffer_, begin_, end - begin_);
  begin_ = searched_ = std::min(end + 1, buffer_.size());
  if (!line.empty() && line.back() == '\r')
    line.pop_back();
  if (number_ == 0 && line.compare(0, 3, "\xEF\xBB\xBF") == 0)
    line.erase(0, 3);
  ++number_;
  return true;
}

bool LineReader::ready() {
  if (ended_ || buffer_.find('\n', begin_) != std::string::npos)
    return true;
  pollfd waiting{file_, POLLIN, 0};
  while (::poll(&waiting, 1, 0) == 1 && (waiting.revents & (POLLIN | POLLHUP | POLLERR))) {
    if (!fill() || buffer_.find('\n', begin_) != std::string::npos)
      return true;
  }
  return false;
}

bool LineWriter::write(std::string_view lines) {
  while (!lines.empty() && !closed_ && status_.ok()) {
    ssize_t put = ::write(file_, lines.data(), lines.size());
    if (put >= 0)
      lines.remove_prefix(static_cast<size_t>(put));
    else if (errno == EPIPE)
      closed_ = true;
    else if (errno == EAGAIN) {
      pollfd waiting{file_, POLLOUT, 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR)
      status_ = {Code::FileError, std::string("cannot write to standard output: ") + std::strerror(errno)};
  }
  return !closed_ && status_.ok();
}

Status checkText(std::string_view line) {
  for (size_t at = 0; at < line.size();) {
    if (line[at] == '\0')
      return {Code::InvalidInput, "a zero byte at byte " + std::to_string(at + 1)};
    size_t length = characterLength(line.substr(at));
    if (length == 0)
      return {Code::InvalidInput, "malformed UTF-8 at byte " + std::to_string(at + 1)};
    at += length;
  }
  return {};
}

std::string oneLine(std::string_view text) {
  std::string line;
  for (char c : text)
    if (c == '\n')
      line += "\\n";
    else if (c == '\r')
      line += "\\r";
    else
      line += c;
  return line;
}

SignalGuard::SignalGuard() {
  interruptedFlag.store(false, std::memory_order_relaxed);
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  action.sa_flags = SA_RESETHAND; // a second one ends the process at once; reads return early
  sigaction(SIGINT, &action, &oldInterrupt);
  sigaction(SIGTERM, &action, &oldTerminate);
  action.sa_handler = SIG_IGN;
  action.sa_flags = 0;
  sigaction(SIGPIPE, &action, &oldPipe);
}

SignalGuard::~SignalGuard() {
  sigaction(SIGINT, &oldInterrupt, nullptr);
  sigaction(SIGTERM, &oldTerminate, nullptr);
  sigaction(SIGPIPE, &oldPipe, nullptr);
}

const std::atomic<bool> &SignalGuard::interrupted() { return interruptedFlag; }

} // namespace transept::tool
