// Requests that several sessions take their work from.
#ifndef TRANSEPT_RUNTIME_SEARCH_REQUESTQUEUE_H
#define TRANSEPT_RUNTIME_SEARCH_REQUESTQUEUE_H

#include "runtime/search/Request.h"

#include <cstdint>
#include <vector>

namespace transept::search {

/// Like lengths stand next to each other, so that what is taken together is padded little. Not thread-safe.
class RequestQueue {
public:
  /// A request is passed by about `patience` others before it is taken whatever its length.
  explicit RequestQueue(int64_t patience) : patience_(patience) {}

  /// `request` stays where it is until it is taken; `length` in source positions.
  void add(Request &request, int64_t length);

  /// Appends up to `count` neighbours to `taken`: the longest ones; where one has waited too long, that one with those
  /// that are no longer than it, or next to the shortest.
  void take(int64_t count, std::vector<Request *> &taken);

  int64_t size() const { return static_cast<int64_t>(waiting_.size()); }
  void clear() { waiting_.clear(); }

private:
  struct Waiting {
    Request *request = nullptr;
    int64_t length = 0;
    uint64_t order = 0; // of arrival
    int64_t passed = 0; // requests that had been taken when it arrived
  };

  int64_t patience_;
  std::vector<Waiting> waiting_; // the longest first, equal ones in order of arrival
  uint64_t nextOrder_ = 0;
  int64_t taken_ = 0;
};

/// How many of `waiting` requests one of `sessions` sessions takes that holds `held` unfinished ones, where all of them
/// hold `heldByAll`: enough for a batch of `batch` and one more to choose from; at the end so many that each session
/// has as much left as the others. Not 0 for a session that holds none while some wait.
int64_t requestsToTake(int64_t waiting, int64_t held, int64_t heldByAll, int64_t sessions, int64_t batch);

} // namespace transept::search

#endif
