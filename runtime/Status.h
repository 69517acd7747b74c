// The outcome of everything in the runtime that can fail. Libraries never print and never throw across their API.
#ifndef TRANSEPT_RUNTIME_STATUS_H
#define TRANSEPT_RUNTIME_STATUS_H

#include <optional>
#include <string>
#include <utility>

namespace transept {

/// The values are the exit codes of the tools.
enum class Code : int {
  Ok = 0,
  Differs = 1, // a requested comparison found a difference
  Usage = 2,
  ModelInvalid = 3,
  Unsupported = 4,
  LimitExceeded = 5,
  FileError = 6,
  ArtifactRefused = 7,
  InvalidInput = 8,
  OutOfMemory = 9,
  DeviceError = 10,
  Busy = 11, // a session was used by two threads at once
  Internal = 70,
  Cancelled = 130,
};

/// A code and one sentence without a trailing newline. Ok has no sentence.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status success() { return {}; }

  bool ok() const { return code_ == Code::Ok; }
  Code code() const { return code_; }
  int exitCode() const { return static_cast<int>(code_); }
  const std::string &message() const { return message_; }

  /// The same code, with `context` and a colon before the sentence.
  Status withContext(const std::string &context) const {
    return ok() ? *this : Status(code_, context + ": " + message_);
  }

private:
  Code code_ = Code::Ok;
  std::string message_;
};

/// A value or the reason why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  /// `status` must not be ok.
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status &status() const { return status_; }

  T &operator*() { return *value_; }
  const T &operator*() const { return *value_; }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }
  T take() { return std::move(*value_); }

private:
  std::optional<T> value_;
  Status status_;
};

/// `text` fit for one line of a message: control characters and invalid UTF-8 escaped, at most `limit` bytes.
std::string printable(const std::string &text, size_t limit = 200);

} // namespace transept

/// Returns from the enclosing function when `expression` is a status that is not ok.
#define TRANSEPT_TRY(expression)                                                                                       \
  do {                                                                                                                 \
    if (::transept::Status transeptStatus = (expression); !transeptStatus.ok())                                        \
      return transeptStatus;                                                                                           \
  } while (false)

#define TRANSEPT_CONCAT_(a, b) a##b
#define TRANSEPT_CONCAT(a, b) TRANSEPT_CONCAT_(a, b)

/// Declares `declaration` from the value of a Result, or returns its status.
#define TRANSEPT_ASSIGN(declaration, expression)                                                                       \
  auto TRANSEPT_CONCAT(transeptResult, __LINE__) = (expression);                                                       \
  if (!TRANSEPT_CONCAT(transeptResult, __LINE__).ok())                                                                 \
    return TRANSEPT_CONCAT(transeptResult, __LINE__).status();                                                         \
  declaration = TRANSEPT_CONCAT(transeptResult, __LINE__).take()

#endif
