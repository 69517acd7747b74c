#include "runtime/ThreadTeam.h"

#include "runtime/CpuAffinity.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

using namespace transept;

namespace {

TEST(Share, CoversAllItemsOnceInOrder) {
  for (int threads : {1, 2, 3, 7, 64})
    for (int64_t items : {0, 1, 2, 5, 63, 64, 65, 1000}) {
      int64_t next = 0, least = items, most = 0;
      for (int thread = 0; thread < threads; ++thread) {
        Share share = shareOf(items, thread, threads);
        EXPECT_EQ(share.begin, next);
        next = share.end;
        least = std::min(least, share.end - share.begin);
        most = std::max(most, share.end - share.begin);
      }
      EXPECT_EQ(next, items);
      EXPECT_LE(most - least, 1);
    }
}

TEST(ThreadTeam, NeverMoreThanTheAffinityMask) {
  EXPECT_GE(availableThreads(), 1);
  EXPECT_EQ(ThreadTeam::create(0)->size(), availableThreads());
  EXPECT_EQ(ThreadTeam::create(1 << 20)->size(), availableThreads());
  EXPECT_EQ(ThreadTeam::create(1)->size(), 1);
}

struct Rounds {
  ThreadTeam *team;
  std::vector<int64_t> counts;
  std::atomic<int> wrong{0};
};

TEST(ThreadTeam, BarriersSeparateRounds) {
  auto team = ThreadTeam::create(0);
  Rounds rounds{team.get(), std::vector<int64_t>(static_cast<size_t>(team->size()) * 16), {}};
  for (int run = 0; run < 50; ++run) {
    std::fill(rounds.counts.begin(), rounds.counts.end(), 0);
    ASSERT_TRUE(team->run(
                        [](void *context, int thread, int threads) {
                          Rounds &rounds = *static_cast<Rounds *>(context);
                          for (int64_t round = 1; round <= 40; ++round) {
                            rounds.counts[static_cast<size_t>(thread) * 16] = round;
                            rounds.team->barrier();
                            for (int other = 0; other < threads; ++other)
                              rounds.wrong += rounds.counts[static_cast<size_t>(other) * 16] != round;
                            rounds.team->barrier();
                          }
                        },
                        &rounds)
                    .ok());
    EXPECT_EQ(rounds.wrong, 0);
  }
}

TEST(ThreadTeam, WakesAfterSleeping) {
  auto team = ThreadTeam::create(0);
  std::atomic<int> calls{0};
  for (int run = 0; run < 5; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(8)); // members are parked by now
    ASSERT_TRUE(team->run([](void *context, int, int) { ++*static_cast<std::atomic<int> *>(context); }, &calls).ok());
    EXPECT_EQ(calls, (run + 1) * team->size());
  }
}

TEST(ThreadTeam, KeepsDenormalsAndRestoresTheHostsMode) {
  auto team = ThreadTeam::create(0);
  const unsigned host = 0x9FC0 | 0x6000; // flush to zero, denormals are zero, round towards zero
  unsigned before = _mm_getcsr();
  _mm_setcsr(host);
  std::atomic<int> kept{0};
  ASSERT_TRUE(team->run(
                      [](void *context, int, int) {
                        volatile float tiny = std::numeric_limits<float>::denorm_min(), two = 2;
                        volatile float third = 1.0f;
                        volatile float rounded = 1.0f + std::ldexp(third, -24) * 3; // nearest: 1 + 2^-22 - … rounds up
                        if (tiny * two > 0 && rounded == 1.0f + std::ldexp(1.0f, -22))
                          ++*static_cast<std::atomic<int> *>(context);
                      },
                      &kept)
                  .ok());
  unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(after, host);
  EXPECT_EQ(kept, team->size());
}

TEST(ThreadTeam, MembersDoNotShareAProcessor) {
  std::vector<int> cpus = availableCpus();
  auto team = ThreadTeam::create(2);
  ASSERT_EQ(team->size(), std::min<int>(2, static_cast<int>(cpus.size())));
  if (team->size() < 2) // one processor: nobody is there to share it with
    return;
  std::thread caller([&] { // a thread of its own, because it changes its mask
    moveToCpu(cpus[1], {cpus[1]});
    for (int i = 0; i < 20; ++i) {
      struct {
        int target;
        std::atomic<int> member;
      } places{cpus[1], {-1}};
      auto report = [](void *context, int thread, int) {
        if (thread == 1)
          static_cast<decltype(places) *>(context)->member = currentCpu();
      };
      auto collide = [](void *context, int thread, int) {
        if (thread == 1)
          moveToCpu(static_cast<decltype(places) *>(context)->target, availableCpus());
      };
      ASSERT_TRUE(team->run(collide, &places).ok());
      ASSERT_TRUE(team->run(report, &places).ok());
      EXPECT_NE(places.member, cpus[1]);
    }
  });
  caller.join();
  EXPECT_EQ(availableCpus(), cpus);
}

TEST(ThreadTeam, RefusesWorkInAForkedProcess) {
  auto team = ThreadTeam::create(2);
  ASSERT_EQ(team->size(), std::min<int>(2, static_cast<int>(availableCpus().size())));
  if (team->size() < 2) // one processor: no thread is lost by the fork
    return;
  pid_t child = fork();
  if (child == 0) {
    Status status = team->run([](void *, int, int) {}, nullptr);
    team.reset();
    _exit(status.code() == Code::InvalidInput ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFEXITED(result) && WEXITSTATUS(result) == 0);
}

} // namespace
