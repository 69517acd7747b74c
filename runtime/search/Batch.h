// Several searches over one stepper, each with its own settings. Finished ones leave; the others are not affected.
#ifndef TRANSEPT_RUNTIME_SEARCH_BATCH_H
#define TRANSEPT_RUNTIME_SEARCH_BATCH_H

#include "runtime/search/RequestSearch.h"
#include "runtime/search/Stepper.h"

#include <atomic>
#include <functional>
#include <limits>

namespace transept::search {

/// A member of a batch: source slot i belongs to member i.
struct BatchMember {
  RequestSearch *search = nullptr;
  Status status;                                              // why this request failed; the others go on
  int64_t sourceLength = std::numeric_limits<int64_t>::max(); // source positions that are no padding
};

struct BatchHooks {
  const std::atomic<bool> *cancelled = nullptr; // looked at before each step
  std::function<void(size_t member)> advanced;  // after each step of a member that streams
};

/// Steps until all members are done or have failed. Fails as a whole where a step fails or on cancellation.
/// A search that is not incremental needs prompts of equal length.
Status runBatch(Stepper &stepper, std::vector<BatchMember> &members, const BatchHooks &hooks = {});

} // namespace transept::search

#endif
