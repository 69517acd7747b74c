#include "runtime/search/BlockPool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

using namespace transept;
using namespace transept::search;

namespace {

TEST(BlockPool, OneRowFillsBlockAfterBlock) {
  BlockPool pool(1, 40, BlockPool::blocksFor(1, 40));
  std::vector<int32_t> table(40, -1);
  for (int64_t position = 0; position < 40; ++position) {
    std::vector<BlockPool::Move> moves = {{position ? 0 : -1, position}};
    ASSERT_TRUE(pool.advance(moves, table.data()).ok());
    EXPECT_EQ(table[position], position / 16);
  }
  EXPECT_EQ(pool.used(), 3);
}

TEST(BlockPool, SiblingsShareTheirPastAndWriteApart) {
  BlockPool pool(2, 16, 2);
  std::vector<int32_t> table(32, -1);
  std::vector<BlockPool::Move> start = {{-1, 0}}, fork = {{0, 1}, {0, 1}};
  ASSERT_TRUE(pool.advance(start, table.data()).ok());
  ASSERT_TRUE(pool.advance(fork, table.data()).ok());
  EXPECT_EQ(table[0], table[16]);
  EXPECT_NE(table[1], table[17]);
  EXPECT_EQ(pool.references(table[0], 0), 2);
}

TEST(BlockPool, ANewRowMayBeginWithManyPositions) {
  BlockPool pool(2, 32, BlockPool::blocksFor(2, 32));
  std::vector<int32_t> table(64, -1);
  std::vector<BlockPool::Move> prompts = {{-1, 19}, {-1, 2}}, next = {{0, 20}, {1, 3}};
  ASSERT_TRUE(pool.advance(prompts, table.data()).ok());
  EXPECT_EQ(pool.used(), 3);
  for (int64_t position = 0; position < 20; ++position)
    EXPECT_EQ(table[position], table[position / 16 * 16]) << position;
  EXPECT_NE(table[0], table[16]);
  EXPECT_NE(table[0], table[32]);
  EXPECT_EQ(table[35], -1); // behind the second prompt
  std::vector<int32_t> before = table;
  ASSERT_TRUE(pool.advance(next, table.data()).ok());
  EXPECT_TRUE(std::equal(table.begin(), table.begin() + 20, before.begin()));
  EXPECT_EQ(table[20], table[16]);
  EXPECT_EQ(table[35], table[32]);
}

TEST(BlockPool, AShortenedRowGoesOnFromThere) {
  BlockPool pool(2, 48, BlockPool::blocksFor(2, 48));
  std::vector<int32_t> table(96, -1);
  std::vector<BlockPool::Move> start = {{-1, 9}, {-1, 0}};
  ASSERT_TRUE(pool.advance(start, table.data()).ok());
  for (int64_t step = 1; step <= 30; ++step) {
    std::vector<BlockPool::Move> next = {{0, 9 + step}, {1, step}};
    ASSERT_TRUE(pool.advance(next, table.data()).ok());
  }
  EXPECT_EQ(pool.used(), 5);
  pool.shorten(0, 17);
  pool.shorten(1, 31); // has no more
  EXPECT_EQ(pool.used(), 4);
  std::vector<BlockPool::Move> next = {{0, 17}, {1, 31}}, wrong = {{0, 17}, {1, 32}};
  ASSERT_TRUE(pool.advance(next, table.data()).ok());
  EXPECT_EQ(table[17], table[16]);
  EXPECT_FALSE(pool.advance(wrong, table.data()).ok());
}

TEST(BlockPool, RefusesWhatDoesNotContinueItsParent) {
  BlockPool pool(2, 16, 2);
  std::vector<int32_t> table(32, -1);
  std::vector<BlockPool::Move> tooLong = {{-1, 16}}, unknown = {{0, 1}}, many = {{-1, 0}, {-1, 0}, {-1, 0}};
  for (const auto &moves : {tooLong, unknown, many})
    EXPECT_EQ(pool.advance(moves, table.data()).code(), Code::Internal);
}

TEST(BlockPool, RandomFamiliesNeverLoseAPosition) {
  // The smallest pool, requests of random shape that come and go: every position keeps what was written for it, and no
  // two rows with different pasts share a place.
  std::mt19937 random(7);
  constexpr int64_t rows = 12, capacity = 37, blocks = BlockPool::blocksFor(rows, capacity);
  BlockPool pool(rows, capacity, blocks);
  std::vector<int32_t> table(rows * capacity, -1);
  std::map<std::pair<int32_t, int64_t>, int> content; // (block, place) -> what was written
  std::vector<std::vector<int>> written;              // per row, per position
  int next = 0;
  for (int step = 0; step < 3000; ++step) {
    std::vector<BlockPool::Move> moves;
    std::vector<std::vector<int>> following;
    size_t count = 1 + random() % rows;
    while (moves.size() < count) {
      int32_t parent = written.empty() || random() % 20 == 0 ? -1 : static_cast<int32_t>(random() % written.size());
      if (parent >= 0 && written[parent].size() == capacity)
        parent = -1;
      int64_t position = parent < 0 ? 0 : static_cast<int64_t>(written[parent].size());
      moves.push_back({parent, position});
      following.push_back(parent < 0 ? std::vector<int>() : written[parent]);
    }
    ASSERT_TRUE(pool.advance(moves, table.data()).ok());
    written = following;
    for (size_t row = 0; row < moves.size(); ++row) {
      content[{table[row * capacity + moves[row].position], moves[row].position % 16}] = next;
      written[row].push_back(next++);
    }
    std::set<int32_t> used;
    for (size_t row = 0; row < moves.size(); ++row)
      for (size_t position = 0; position < written[row].size(); ++position) {
        int32_t block = table[row * capacity + position];
        ASSERT_TRUE(block >= 0 && block < blocks);
        ASSERT_EQ((content[{block, static_cast<int64_t>(position % 16)}]), written[row][position]);
        used.insert(block);
      }
    ASSERT_EQ(pool.used(), static_cast<int64_t>(used.size()));
  }
}

} // namespace
