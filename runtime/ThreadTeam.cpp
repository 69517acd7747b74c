#include "runtime/ThreadTeam.h"

#include "runtime/CpuAffinity.h"
#include "runtime/FloatMode.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace transept {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto spinTime = std::chrono::microseconds(10);
constexpr auto idleTime = std::chrono::milliseconds(2);
constexpr int maxThreads = 1024;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// Waits for `ready`, giving way after spinTime; false when `limit` has passed.
template <typename Ready> bool spinUntil(Ready ready, Clock::duration limit) {
  for (int i = 0; i < 64; ++i) { // shorter than reading the clock
    if (ready())
      return true;
    pause();
  }
  const Clock::time_point begin = Clock::now();
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (ready())
        return true;
      pause();
    }
    Clock::duration waited = Clock::now() - begin;
    if (waited > limit)
      return false;
    if (waited > spinTime)
      sched_yield();
  }
}

} // namespace

int availableThreads() { return std::clamp(static_cast<int>(availableCpus().size()), 1, maxThreads); }

void SpinBarrier::wait() {
  uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    return;
  }
  spinUntil([&] { return round_.load(std::memory_order_acquire) != round; }, Clock::duration::max());
}

struct ThreadTeam::State {
  explicit State(int members)
      : size(members), barrier(members), cpus(availableCpus()), places(static_cast<size_t>(members)) {}

  /// Two members on one processor wait for each other at every barrier, and the system takes long to notice: the later
  /// one moves to a processor without a member.
  void spread(size_t index) {
    int cpu = currentCpu();
    auto isTaken = [&](int candidate, size_t members) {
      return std::any_of(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(members),
                         [&](const Place &place) { return place.cpu.load(std::memory_order_relaxed) == candidate; });
    };
    if (isTaken(cpu, index)) {
      places[index].cpu.store(-1, std::memory_order_relaxed);
      auto free = std::find_if(cpus.begin(), cpus.end(), [&](int other) { return !isTaken(other, places.size()); });
      if (free != cpus.end())
        moveToCpu(cpu = *free, cpus);
    }
    places[index].cpu.store(cpu, std::memory_order_relaxed);
  }

  /// Sleeps until the epoch differs from `seen`.
  void park(uint64_t seen) {
    std::unique_lock<std::mutex> lock(mutex);
    // Sequentially consistent with run(): either the caller sees this thread asleep or it sees the new epoch.
    sleeping.fetch_add(1);
    wake.wait(lock, [&] { return epoch.load() != seen; });
    sleeping.fetch_sub(1);
  }

  /// Starts the members on whatever `work` says.
  void publish() {
    epoch.fetch_add(1);
    if (sleeping.load() == 0)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    wake.notify_all();
  }

  void member(int index) {
    FloatMode mode;
    for (uint64_t seen = 0;;) {
      auto called = [&] { return epoch.load(std::memory_order_acquire) != seen; };
      if (!spinUntil(called, idleTime))
        park(seen);
      ++seen;
      if (stopping)
        return;
      spread(static_cast<size_t>(index));
      work(context, index, size);
      barrier->wait();
    }
  }

  /// Where a member was when it began its work.
  struct alignas(64) Place {
    std::atomic<int> cpu{-1};
  };

  int size;
  std::optional<SpinBarrier> barrier;
  const std::vector<int> cpus; // when the team was created
  std::vector<Place> places;
  std::vector<std::thread> threads;
  pid_t owner = getpid(); // a forked child has no such threads

  // Written by the caller before the epoch changes, read by members after it.
  Work work = nullptr;
  void *context = nullptr;
  bool stopping = false;

  alignas(64) std::atomic<uint64_t> epoch{0};
  alignas(64) std::atomic<int> sleeping{0};
  std::mutex mutex;
  std::condition_variable wake;
};

ThreadTeam::ThreadTeam() = default;

std::unique_ptr<ThreadTeam> ThreadTeam::create(int threads) {
  int available = availableThreads();
  std::unique_ptr<ThreadTeam> team(new ThreadTeam);
  team->state_ = std::make_unique<State>(threads <= 0 ? available : std::min(threads, available));
  State &state = *team->state_;
  try {
    for (int i = 1; i < state.size; ++i)
      state.threads.emplace_back([&state, i] { state.member(i); });
  } catch (const std::system_error &) {
    state.size = 1 + static_cast<int>(state.threads.size());
    state.barrier.emplace(state.size);
  }
  return team;
}

ThreadTeam::~ThreadTeam() {
  if (getpid() != state_->owner) {
    // The child of a fork has no such threads: nothing here can be joined, woken or destroyed.
    state_.release();
    return;
  }
  state_->stopping = true;
  state_->publish();
  for (std::thread &thread : state_->threads)
    thread.join();
}

int ThreadTeam::size() const { return state_->size; }

Status ThreadTeam::run(Work work, void *context) {
  if (state_->size > 1 && getpid() != state_->owner)
    return {Code::InvalidInput, "a session cannot be used in a forked process; create it after the fork"};
  FloatMode mode;
  if (state_->size > 1) {
    state_->work = work;
    state_->context = context;
    state_->places[0].cpu.store(currentCpu(), std::memory_order_relaxed);
    state_->publish();
  }
  work(context, 0, state_->size);
  if (state_->size > 1)
    state_->barrier->wait();
  return {};
}

void ThreadTeam::barrier() {
  if (state_->size > 1)
    state_->barrier->wait();
}

} // namespace transept
