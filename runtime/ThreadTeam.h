// A fixed set of threads that compute the items of dispatches together.
#ifndef TRANSEPT_RUNTIME_THREADTEAM_H
#define TRANSEPT_RUNTIME_THREADTEAM_H

#include "runtime/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace transept {

/// Threads this process may run on at the same time: the size of its affinity mask, at least 1.
int availableThreads();

/// Waits for all threads of a team. Reusable at once.
class SpinBarrier {
public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  /// Memory written before the call by any thread is visible to all after it.
  void wait();

private:
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> round_{0};
  alignas(64) const int threads_;
};

/// Spins while work follows closely, gives way after about 10 µs, sleeps after about 2 ms without work.
/// run() is for one thread at a time; that thread is member 0.
class ThreadTeam {
public:
  using Work = void (*)(void *context, int thread, int threads);

  /// `threads` 0 means availableThreads(); more than that are never started. Fewer are started when the system
  /// refuses a thread.
  static std::unique_ptr<ThreadTeam> create(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

  int size() const;

  /// Calls `work` once on every member and waits for all. Floating point is in its default mode meanwhile (round to
  /// nearest, denormals kept, no traps); the caller's mode is restored. `work` must not throw.
  /// Fails in the child of a fork, which has no threads.
  Status run(Work work, void *context);

  /// For use inside `work`: waits for all members.
  void barrier();

private:
  ThreadTeam();
  struct State;
  std::unique_ptr<State> state_;
};

/// The contiguous share [begin, end) of member `thread` of `threads` in `items`; differs by at most one item.
struct Share {
  int64_t begin, end;
};
inline Share shareOf(int64_t items, int thread, int threads) {
  int64_t whole = items / threads, rest = items % threads;
  int64_t begin = whole * thread + (thread < rest ? thread : rest);
  return {begin, begin + whole + (thread < rest ? 1 : 0)};
}

} // namespace transept

#endif
