// A warm session allocates nothing.

#include "TinyModel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};

void *counted(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
} // namespace

void *operator new(size_t bytes) { return counted(bytes); }
void *operator new[](size_t bytes) { return counted(bytes); }
// Sanitizers have one of their own, whose memory would come to the operators below.
void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes ? bytes : 1);
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, size_t) noexcept { std::free(memory); }

using namespace transept;
using namespace transept::tests;

namespace {

TEST(Allocation, StepsAllocateNothingFromTheFirstOn) {
  for (int threads : {1, 0}) {
    auto session = tinyModel()->createSession({threads, {{"batch", 2}, {"source", 5}, {"rows", 6}}}).take();
    int64_t before = allocations.load();
    for (int step = 0; step < 100; ++step)
      if (!session->run("step").ok())
        FAIL();
    EXPECT_EQ(allocations.load() - before, 0);
  }
}

TEST(Allocation, ACallOfAKnownShapeAllocatesNothing) {
  auto session = tinyModel()->createSession({0, {{"batch", 2}, {"source", 5}, {"rows", 6}}}).take();
  std::vector<int64_t> dims = {9, 4}, idDims = {9};
  std::vector<float> x(36);
  std::vector<int64_t> ids(9);
  RunArguments arguments = {{view("x", dims, x), view("ids", idDims, ids)}, {}};
  ASSERT_TRUE(session->run("main", arguments).ok());
  int64_t before = allocations.load();
  for (int i = 0; i < 10; ++i)
    if (!session->run("main", arguments).ok())
      FAIL();
  EXPECT_EQ(allocations.load() - before, 0);
}

} // namespace
