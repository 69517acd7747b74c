#include "tools/transept/Sessions.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::tool;

namespace {

program::Expr constant(int64_t value) {
  program::Expr expr;
  expr.add_terms()->set_value(value);
  return expr;
}

/// A step of two dispatches that read `bytes` of weights together, and caches of 100 bytes per position and source.
program::Manifest manifestWith(int64_t bytes) {
  program::Manifest manifest;
  manifest.mutable_generation()->set_step("step");
  manifest.mutable_generation()->set_position_limit(30);
  manifest.add_kernels();
  for (const char *name : {"encode", "step"}) {
    program::Entry &entry = *manifest.add_entries();
    entry.set_name(name);
    program::Buffer &weights = *entry.add_buffers();
    weights.set_storage(program::CONSTANT);
    *weights.mutable_offset() = constant(0);
    *weights.mutable_bytes() = constant(bytes);
    for (int i = 0; i < 2; ++i)
      entry.add_dispatches()->add_buffers(0);
  }
  program::State &self = *manifest.add_states(), &cross = *manifest.add_states();
  self.set_role("self-cache");
  cross.set_role("cross-cache");
  for (program::State *state : {&self, &cross})
    state->set_dtype(program::U8);
  *self.add_dims() = constant(16 * 100); // a block of 16 positions
  *cross.add_dims() = constant(100);
  return manifest;
}

constexpr int64_t plenty = int64_t(1) << 50;

} // namespace

TEST(Sessions, NeedsAreThoseOfAStep) {
  const SessionNeeds needs = sessionNeeds(manifestWith(5000), 8);
  EXPECT_EQ(needs.work, 8 * 5000 / 2);
  EXPECT_EQ(needs.bytes, 8 * (30 * 100 + 100));
  EXPECT_EQ(sessionNeeds(program::Manifest(), 8).work, 0); // a plain graph
}

TEST(Sessions, ShortDispatchesAreNotShared) {
  EXPECT_EQ(suitableSessions({18e6, 1e6}, 8, plenty), 8);  // 64 rows of a small model
  EXPECT_EQ(suitableSessions({70e6, 1e6}, 8, plenty), 8);  // 32 rows of the base model
  EXPECT_EQ(suitableSessions({400e6, 1e6}, 8, plenty), 2); // threads have enough to do in fours
  EXPECT_EQ(suitableSessions({1e12, 1e6}, 8, plenty), 1);
  EXPECT_EQ(suitableSessions({300e6, 1e6}, 2, plenty), 1);
  EXPECT_EQ(suitableSessions({1e6, 1e6}, 1, plenty), 1);
  EXPECT_EQ(suitableSessions({0, 0}, 4, plenty), 4);
}

TEST(Sessions, CachesTakeAQuarterOfTheMemory) {
  EXPECT_EQ(suitableSessions({1e6, 100e6}, 64, int64_t(4) << 30), 10);
  EXPECT_EQ(suitableSessions({1e6, 100e9}, 64, int64_t(4) << 30), 1);
}
