// Several searches over one stepper, each with its own settings. They join between steps, and leave when they are done;
// the others are not affected.
#ifndef TRANSEPT_RUNTIME_SEARCH_BATCH_H
#define TRANSEPT_RUNTIME_SEARCH_BATCH_H

#include "runtime/search/RequestSearch.h"
#include "runtime/search/Stepper.h"

#include <limits>
#include <vector>

namespace transept::search {

struct BatchMember {
  RequestSearch *search = nullptr;
  Status status;                                              // why this request failed; the others go on
  int64_t sourceLength = std::numeric_limits<int64_t>::max(); // source positions that are no padding
  int32_t source = 0;                                         // slot of its source
  int32_t first = -1; // its first row in the last step; -1: it was not part of it

  bool active() const { return status.ok() && !search->done(); }
};

class Batch {
public:
  explicit Batch(Stepper &stepper) : stepper_(stepper) {}

  /// `member` is part of the steps that follow until remove(), and must stay where it is.
  void join(BatchMember &member);
  void remove(const BatchMember &member);
  void clear() { members_.clear(); }

  const std::vector<BatchMember *> &members() const { return members_; }
  /// Most rows that the members can have.
  int64_t width() const;

  /// One step of all active members; nothing where there are none. Fails as a whole where the stepper does; a member's
  /// own failure is its status. A search that is not incremental needs prompts of equal length.
  Status step();

private:
  Stepper &stepper_;
  std::vector<BatchMember *> members_;
  size_t joined_ = 0; // since the last step: these have the first rows, so that a prefill covers no others
  std::vector<StepRow> rows_;
  std::vector<StepResult> results_;
};

} // namespace transept::search

#endif
