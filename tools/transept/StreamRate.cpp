#include "StreamRate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>

#include <unistd.h>

namespace transept::tool {

namespace {

using Clock = std::chrono::steady_clock;
using Vector = uint64_t __attribute__((vector_size(16)));

constexpr int64_t vectorsAtOnce = 16; // independent sums: loads need not wait for additions
constexpr int64_t leastBytes = int64_t(128) << 20, mostBytes = int64_t(1) << 30;
constexpr int leastPasses = 3;
constexpr std::chrono::milliseconds longEnough(500);

int64_t bufferBytes() {
  long cache = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
  cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  return std::clamp<int64_t>(static_cast<int64_t>(cache) * 4, leastBytes, mostBytes);
}

uint64_t sumOf(const Vector *begin, const Vector *end) {
  Vector sums[vectorsAtOnce] = {};
  for (; end - begin >= vectorsAtOnce; begin += vectorsAtOnce)
    for (int64_t i = 0; i < vectorsAtOnce; ++i)
      sums[i] += begin[i];
  for (int64_t i = 1; i < vectorsAtOnce; ++i)
    sums[0] += sums[i];
  return sums[0][0] + sums[0][1];
}

struct Pass {
  Vector *data;
  int64_t vectors;
  bool write;
  std::atomic<uint64_t> sum{0}; // used, so that nothing is optimised away
};

void work(void *context, int thread, int threads) {
  auto &pass = *static_cast<Pass *>(context);
  const Share share = shareOf(pass.vectors / vectorsAtOnce, thread, threads);
  Vector *begin = pass.data + share.begin * vectorsAtOnce, *end = pass.data + share.end * vectorsAtOnce;
  if (pass.write)
    std::fill(begin, end, Vector{1, 1}); // pages that were never written are all the same one
  else
    pass.sum += sumOf(begin, end);
}

} // namespace

Result<double> streamRate(ThreadTeam &team) {
  const int64_t vectors = bufferBytes() / static_cast<int64_t>(sizeof(Vector));
  std::unique_ptr<Vector[]> data(new (std::nothrow) Vector[static_cast<size_t>(vectors)]);
  if (!data)
    return Status(Code::OutOfMemory, "no memory to measure the rate of reading it");
  Pass pass{data.get(), vectors, /*write=*/true};
  TRANSEPT_TRY(team.run(work, &pass));
  pass.write = false;
  double best = 0;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < leastPasses || Clock::now() - start < longEnough; ++i) {
    const Clock::time_point begin = Clock::now();
    TRANSEPT_TRY(team.run(work, &pass));
    const std::chrono::duration<double> taken = Clock::now() - begin;
    best = std::max(best, static_cast<double>(vectors) * sizeof(Vector) / taken.count());
  }
  return pass.sum > 0 ? Result<double>(best) : Result<double>(Status(Code::Internal, "the sums of a buffer are lost"));
}

} // namespace transept::tool
