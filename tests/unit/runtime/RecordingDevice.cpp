#include "RecordingDevice.h"

#include "runtime/SessionState.h"

#include <gtest/gtest.h>

namespace transept {

/// Reads prepared lists of a session.
class SessionProbe {
public:
  static Result<Plan *> plan(Session &session, int entry) { return session.state_->prepare(entry, {}); }
};

} // namespace transept

namespace transept::tests {

bool RecordedDispatch::operator==(const RecordedDispatch &other) const {
  return kernel == other.kernel && buffers == other.buffers && sizes == other.sizes && items == other.items &&
         barrier == other.barrier;
}

Recording Recording::of(Session &session, const std::string &entry) {
  Recording recording;
  int index = session.model().findEntry(entry);
  Result<Plan *> plan = SessionProbe::plan(session, index);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  const program::Entry &description = session.model().manifest().entries(index);
  for (size_t i = 0; plan.ok() && i < (*plan)->dispatches().size(); ++i) {
    const PlannedDispatch &planned = (*plan)->dispatches()[i];
    const program::Dispatch &dispatch = description.dispatches(static_cast<int>(i));
    recording.dispatches_.push_back({planned.function,
                                     {planned.call.buffers, planned.call.buffers + dispatch.buffers_size()},
                                     {planned.call.sizes, planned.call.sizes + dispatch.sizes_size()},
                                     planned.items,
                                     planned.barrier});
  }
  return recording;
}

void Recording::replay() const {
  transept_error_word error = {};
  std::vector<char> scratch(1 << 20);
  for (size_t begin = 0; begin < dispatches_.size();) {
    size_t end = begin + 1;
    while (end < dispatches_.size() && !dispatches_[end].barrier)
      ++end;
    for (size_t i = end; i-- > begin;) {
      const RecordedDispatch &dispatch = dispatches_[i];
      transept_dispatch call = {dispatch.buffers.data(), dispatch.sizes.data(), &error};
      if (dispatch.items > 0)
        dispatch.kernel(&call, 0, dispatch.items, scratch.data());
    }
    begin = end;
  }
  EXPECT_EQ(error.id, 0);
}

} // namespace transept::tests
