// A device that records an entry's dispatches once and replays the recording, as a GPU command buffer would.
#ifndef TRANSEPT_TESTS_RECORDINGDEVICE_H
#define TRANSEPT_TESTS_RECORDINGDEVICE_H

#include "runtime/Session.h"
#include "transept/abi.h"

#include <string>
#include <vector>

namespace transept::tests {

/// Everything a device would have to know about one dispatch, by value.
struct RecordedDispatch {
  transept_kernel kernel = nullptr;
  std::vector<void *> buffers;
  std::vector<int64_t> sizes;
  int64_t items = 0;
  bool barrier = false;

  bool operator==(const RecordedDispatch &other) const;
};

class Recording {
public:
  /// The list the session would walk for `entry` now. The entry must have no inputs.
  static Recording of(Session &session, const std::string &entry);

  /// Runs the recorded calls, and nothing else of the session. Without a barrier between them, dispatches run in
  /// reverse order: a missing barrier gives wrong results instead of lucky ones.
  void replay() const;

  const std::vector<RecordedDispatch> &dispatches() const { return dispatches_; }
  bool operator==(const Recording &other) const { return dispatches_ == other.dispatches_; }

private:
  std::vector<RecordedDispatch> dispatches_;
};

} // namespace transept::tests

#endif
