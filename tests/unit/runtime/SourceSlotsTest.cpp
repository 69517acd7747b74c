#include "TinyModel.h"

#include "runtime/Plan.h"
#include "runtime/search/SourceSlots.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace transept;
using namespace transept::search;
using namespace transept::tests;

namespace {

const std::vector<std::string> symbols = {"rows", "batch", "source"};

/// An encoder that writes one state.
program::Manifest manifestWith(const std::vector<std::string> &dims) {
  program::Manifest manifest;
  for (const std::string &name : symbols)
    manifest.add_generation_symbols()->set_name(name);
  program::State *state = manifest.add_states();
  state->set_name("memory");
  state->set_dtype(program::I32);
  for (const std::string &dim : dims)
    *state->add_dims() = postfix(dim, symbols);
  program::Entry *encode = manifest.add_entries();
  encode->set_name("encode");
  program::Buffer *buffer = encode->add_buffers();
  buffer->set_name("memory");
  buffer->set_storage(program::STATE);
  manifest.mutable_generation()->set_encode("encode");
  return manifest;
}

/// The state after `moves` out of a call over 2 sources of 3 positions, in a session with 5 slots of 4 positions. What
/// the call wrote is numbered from 100 on; what nobody wrote is 0.
std::vector<int32_t> moved(const program::Manifest &manifest, Span<const SlotMove> moves) {
  std::vector<int64_t> dims;
  const std::vector<int64_t> call = {1, 2, 3}, session = {1, 5, 4};
  const program::State &state = manifest.states(0);
  const int64_t written = *denseBytes(program::I32, state.dims(), call, dims) / 4;
  std::vector<int32_t> memory(static_cast<size_t>(*denseBytes(program::I32, state.dims(), session, dims) / 4));
  std::iota(memory.begin(), memory.begin() + written, 100);
  std::optional<SourceSlots> slots = SourceSlots::create(manifest);
  EXPECT_TRUE(slots);
  std::vector<StateCopy> copies;
  Status status = slots->appendCopies(moves, 2, 3, -1, session, copies);
  EXPECT_TRUE(status.ok()) << status.message();
  for (const StateCopy &copy : copies) {
    EXPECT_EQ(copy.state, 0u);
    EXPECT_TRUE(copy.from + copy.bytes <= copy.to || copy.to + copy.bytes <= copy.from);
    std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(copy.from / 4), copy.bytes / 4,
                memory.begin() + static_cast<std::ptrdiff_t>(copy.to / 4));
  }
  std::fill_n(memory.begin(), written, 0);
  return memory;
}

TEST(SourceSlots, AMaskIsRepeatedBehindItsSource) {
  const std::vector<SlotMove> moves = {{0, 4}, {1, 2}};
  EXPECT_EQ(moved(manifestWith({"batch", "source"}), moves),
            (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 0, 0, 103, 104, 105, 105, 0, 0, 0, 0, 100, 101, 102, 102}));
}

TEST(SourceSlots, PaddingOfAnotherCallIsBehindASourceWithoutPadding) {
  const program::Manifest manifest = manifestWith({"batch", "2", "source"});
  std::optional<SourceSlots> slots = SourceSlots::create(manifest);
  ASSERT_TRUE(slots);
  const std::vector<int64_t> session = {1, 5, 4};
  // A call over 2 sources of 3 positions, of which the second one has 2: its last position goes to slot 4.
  std::vector<int32_t> memory(40);
  std::iota(memory.begin(), memory.begin() + 12, 100);
  std::vector<StateCopy> copies;
  ASSERT_TRUE(slots->appendPadding({1, 4}, 2, 3, session, copies).ok());
  auto apply = [&] {
    for (const StateCopy &copy : copies)
      std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(copy.from / 4), copy.bytes / 4,
                  memory.begin() + static_cast<std::ptrdiff_t>(copy.to / 4));
    copies.clear();
  };
  apply();
  EXPECT_EQ(memory[32], 108);
  EXPECT_EQ(memory[36], 111);
  // A later call: the first source fills it, the second one has padding of its own.
  std::iota(memory.begin(), memory.begin() + 12, 200);
  const std::vector<SlotMove> moves = {{0, 2, 3}, {1, 3, 2}};
  ASSERT_TRUE(slots->appendCopies(moves, 2, 3, 4, session, copies).ok());
  apply();
  EXPECT_EQ(std::vector<int32_t>(memory.begin() + 16, memory.begin() + 32),
            (std::vector<int32_t>{200, 201, 202, 108, 203, 204, 205, 111, 206, 207, 208, 208, 209, 210, 211, 211}));
}

TEST(SourceSlots, TheSourceMayBeAnyLaterAxis) {
  const std::vector<SlotMove> move = {{1, 3}};
  std::vector<int32_t> memory = moved(manifestWith({"1", "batch", "2", "source 1 +", "1"}), move);
  // Two rows of 4 numbers in the call, of 5 in the session.
  EXPECT_EQ(std::vector<int32_t>(memory.begin() + 30, memory.begin() + 40),
            (std::vector<int32_t>{108, 109, 110, 111, 111, 112, 113, 114, 115, 115}));
}

TEST(SourceSlots, KeysBehindTheSourceStay) {
  const std::vector<SlotMove> move = {{0, 4}};
  std::vector<int32_t> memory = moved(manifestWith({"batch", "source", "40"}), move);
  for (int32_t i = 0; i < 160; ++i)
    EXPECT_EQ(memory[640 + static_cast<size_t>(i)], i < 120 ? 100 + i : 0);
}

TEST(SourceSlots, ValuesOfAllSourcesTogetherDoNotMove) {
  EXPECT_FALSE(SourceSlots::create(manifestWith({"source", "4"})));
  EXPECT_FALSE(SourceSlots::create(manifestWith({"1", "source"})));
  EXPECT_FALSE(SourceSlots::create(manifestWith({"batch 2 *", "source"})));
  EXPECT_FALSE(SourceSlots::create(manifestWith({"source", "batch"})));
  EXPECT_FALSE(SourceSlots::create(manifestWith({"2", "batch", "source"})));
  EXPECT_FALSE(SourceSlots::create(manifestWith({"batch", "source", "source"})));
  EXPECT_TRUE(SourceSlots::create(manifestWith({"batch", "source", "8"})));
  program::Manifest none = manifestWith({"batch"});
  none.mutable_generation()->clear_encode(); // a decoder alone: nothing to move
  EXPECT_TRUE(SourceSlots::create(none));
}

TEST(SourceSlots, RefusesWhatDoesNotFit) {
  const program::Manifest manifest = manifestWith({"batch", "source"});
  std::optional<SourceSlots> slots = SourceSlots::create(manifest);
  ASSERT_TRUE(slots);
  std::vector<StateCopy> copies;
  const std::vector<int64_t> session = {1, 5, 4};
  const std::vector<SlotMove> outside = {{0, 5}}, inside = {{0, 4}};
  EXPECT_FALSE(slots->appendCopies(outside, 2, 3, -1, session, copies).ok());
  EXPECT_FALSE(slots->appendCopies(inside, 2, 5, -1, session, copies).ok());
}

} // namespace
