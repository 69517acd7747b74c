#include "runtime/search/RequestQueue.h"

#include <algorithm>

namespace transept::search {

void RequestQueue::add(Request &request, int64_t length) {
  const Waiting next{&request, length, nextOrder_++, taken_};
  auto before = [](const Waiting &a, const Waiting &b) {
    return a.length != b.length ? a.length > b.length : a.order < b.order;
  };
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), next, before), next);
}

void RequestQueue::take(int64_t count, std::vector<Request *> &taken) {
  count = std::clamp<int64_t>(count, 0, size());
  if (count == 0)
    return;
  auto oldest = std::min_element(waiting_.begin(), waiting_.end(),
                                 [](const Waiting &a, const Waiting &b) { return a.order < b.order; });
  auto first = taken_ - oldest->passed > patience_ ? std::min(oldest, waiting_.end() - count) : waiting_.begin();
  for (auto next = first; next != first + count; ++next)
    taken.push_back(next->request);
  waiting_.erase(first, first + count);
  taken_ += count;
}

int64_t requestsToTake(int64_t waiting, int64_t held, int64_t heldByAll, int64_t sessions, int64_t batch) {
  if (held > batch + batch / 2) // some at a time: neighbours
    return 0;
  const int64_t share = (waiting + heldByAll + sessions - 1) / sessions;
  return std::clamp<int64_t>(std::min(share, 2 * batch) - held, 0, waiting);
}

} // namespace transept::search
