#include "runtime/search/BlockPool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

using namespace transept;
using namespace transept::search;

namespace {

Status advance(BlockPool &pool, const std::vector<BlockPool::Move> &moves, std::vector<int32_t> &table) {
  Status status = pool.advance(moves);
  if (status.ok())
    pool.show(table.data());
  return status;
}

TEST(BlockPool, OneRowFillsBlockAfterBlock) {
  BlockPool pool(1, 40, BlockPool::blocksFor(1, 40));
  std::vector<int32_t> table(40, -1);
  for (int64_t position = 0; position < 40; ++position) {
    std::vector<BlockPool::Move> moves = {{position ? 0 : -1, position}};
    ASSERT_TRUE(advance(pool, moves, table).ok());
    EXPECT_EQ(table[position], position / 16);
  }
  EXPECT_EQ(pool.used(), 3);
}

TEST(BlockPool, SiblingsShareTheirPastAndWriteApart) {
  BlockPool pool(2, 16, 2);
  std::vector<int32_t> table(32, -1);
  std::vector<BlockPool::Move> start = {{-1, 0}}, fork = {{0, 1}, {0, 1}};
  ASSERT_TRUE(advance(pool, start, table).ok());
  ASSERT_TRUE(advance(pool, fork, table).ok());
  EXPECT_EQ(table[0], table[16]);
  EXPECT_NE(table[1], table[17]);
  EXPECT_EQ(pool.references(table[0], 0), 2);
}

TEST(BlockPool, ANewRowMayBeginWithManyPositions) {
  BlockPool pool(2, 32, BlockPool::blocksFor(2, 32));
  std::vector<int32_t> table(64, -1);
  std::vector<BlockPool::Move> prompts = {{-1, 19}, {-1, 2}}, next = {{0, 20}, {1, 3}};
  ASSERT_TRUE(advance(pool, prompts, table).ok());
  EXPECT_EQ(pool.used(), 3);
  for (int64_t position = 0; position < 20; ++position)
    EXPECT_EQ(table[position], table[position / 16 * 16]) << position;
  EXPECT_NE(table[0], table[16]);
  EXPECT_NE(table[0], table[32]);
  EXPECT_EQ(table[35], -1); // behind the second prompt
  std::vector<int32_t> before = table;
  ASSERT_TRUE(advance(pool, next, table).ok());
  EXPECT_TRUE(std::equal(table.begin(), table.begin() + 20, before.begin()));
  EXPECT_EQ(table[20], table[16]);
  EXPECT_EQ(table[35], table[32]);
}

TEST(BlockPool, AReservedPlaceIsTakenOrReleased) {
  // The smallest pool: two rows of 40 positions, and what is reserved counts.
  BlockPool pool(2, 40, BlockPool::blocksFor(2, 40));
  std::vector<int32_t> table(80, -1);
  std::vector<BlockPool::Move> start = {{-1, 13}, {-1, 13}};
  ASSERT_TRUE(advance(pool, start, table).ok());
  std::vector<int32_t> reserved[2] = {{table[13]}, {table[53]}}; // of each row, from position 13 on
  for (int64_t position = 14; position < 40; ++position)
    for (std::vector<int32_t> &own : reserved) {
      own.push_back(pool.reserve(position, own.back()));
      ASSERT_GE(own.back(), 0);
      EXPECT_EQ(pool.references(own.back(), position % 16), 1);
      EXPECT_TRUE(position % 16 == 0 || own.back() == own[own.size() - 2]) << "neighbours in one block";
    }
  EXPECT_EQ(pool.used(), 6);
  // Both rows continue the second one; then the first one alone, and nobody takes the other's.
  std::vector<BlockPool::Move> fork = {{1, 14}, {1, 14}}, first = {{0, 15}};
  std::vector<int32_t> ofFork = {reserved[0][1], reserved[1][1]}, ofFirst = {reserved[0][2]};
  const int32_t second = table[40];
  ASSERT_TRUE(pool.advance(fork, ofFork).ok());
  ASSERT_TRUE(pool.advance(first, ofFirst).ok());
  pool.show(table.data());
  for (int64_t position = 0; position < 16; ++position) {
    EXPECT_EQ(table[position], position < 14 ? second : ofFirst[0]);
    EXPECT_EQ(pool.references(table[position], position), 1);
  }
  EXPECT_EQ(pool.references(reserved[1][1], 14), 0) << "of the row that has left";
  for (int64_t position = 15; position < 40; ++position)
    for (int row = position == 15 ? 1 : 0; row < 2; ++row)
      pool.release(reserved[row][position - 13], position);
  EXPECT_EQ(pool.used(), 2);
  std::vector<BlockPool::Move> twice = {{0, 16}, {0, 16}}, fresh = {{-1, 0}, {0, 16}};
  EXPECT_EQ(pool.advance(twice, ofFirst).code(), Code::Internal) << "a place for each row";
  EXPECT_EQ(pool.advance(fresh, ofFork).code(), Code::Internal) << "a new row has no place yet";
  EXPECT_TRUE(advance(pool, twice, table).ok());
}

TEST(BlockPool, RefusesWhatDoesNotContinueItsParent) {
  BlockPool pool(2, 16, 2);
  std::vector<int32_t> table(32, -1);
  std::vector<BlockPool::Move> tooLong = {{-1, 16}}, unknown = {{0, 1}}, many = {{-1, 0}, {-1, 0}, {-1, 0}};
  for (const auto &moves : {tooLong, unknown, many})
    EXPECT_EQ(advance(pool, moves, table).code(), Code::Internal);
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
    ASSERT_TRUE(advance(pool, moves, table).ok());
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
