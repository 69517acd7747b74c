// The list of a batch: the union of what its rows may generate.
#include "runtime/search/ListedTokens.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::search;

namespace {

StepRow rowOf(const std::vector<int32_t> &allowed) {
  StepRow row;
  row.allowed = {allowed.data(), allowed.size()};
  return row;
}

std::vector<int32_t> listOf(const ListedTokens &list) { return {list.tokens().begin(), list.tokens().end()}; }

std::vector<int32_t> padded(std::vector<int32_t> tokens, size_t size) {
  tokens.resize(size, -1);
  return tokens;
}

TEST(ListedTokens, GrowsInPlaceAndSaysWhatIsNew) {
  const std::vector<int32_t> first = {3, 7, 9}, second = {1, 7, 200};
  ListedTokens list;
  list.reset(300, 128);
  std::vector<StepRow> rows = {rowOf(first)};
  ASSERT_TRUE(list.cover(rows));
  EXPECT_EQ(listOf(list), padded({3, 7, 9}, 64));
  EXPECT_EQ(list.panels(), 1);
  EXPECT_EQ(list.firstFresh(), 0);
  list.settle();
  ASSERT_TRUE(list.cover(rows));
  rows.push_back(rowOf(second));
  ASSERT_TRUE(list.cover(rows));
  EXPECT_EQ(listOf(list), padded({3, 7, 9, 1, 200}, 64));
  EXPECT_EQ(list.firstFresh(), 0); // the last panel is filled up
  for (int32_t place = 0; place < 5; ++place)
    EXPECT_EQ(list.places()[list.tokens()[place]], place);
  EXPECT_EQ(list.places()[2], -1);

  std::vector<int32_t> many;
  for (int32_t token = 10; token < 80; ++token)
    many.push_back(token);
  list.settle();
  rows[1] = rowOf(many);
  ASSERT_TRUE(list.cover(rows));
  EXPECT_EQ(list.panels(), 2);
  list.settle();
  EXPECT_EQ(list.firstFresh(), 1);
}

TEST(ListedTokens, BeginsAnewWhereItIsFull) {
  std::vector<int32_t> low, high, all;
  for (int32_t token = 0; token < 120; ++token)
    (token < 60 ? low : high).push_back(token), all.push_back(token);
  ListedTokens list;
  list.reset(200, 64);
  std::vector<StepRow> rows = {rowOf(low)};
  ASSERT_TRUE(list.cover(rows));
  list.settle();
  rows[0] = rowOf(high); // those of before are gone
  ASSERT_TRUE(list.cover(rows));
  EXPECT_EQ(listOf(list), padded(high, 64));
  EXPECT_EQ(list.firstFresh(), 0);
  EXPECT_EQ(list.places()[0], -1);

  rows.push_back(rowOf(low)); // together they are too many
  EXPECT_FALSE(list.cover(rows));
  rows.assign(1, rowOf(low));
  EXPECT_TRUE(list.cover(rows));
  rows.assign(1, rowOf(all));
  EXPECT_FALSE(list.cover(rows));
}

TEST(ListedTokens, CoversNoRowThatMayGenerateAnything) {
  const std::vector<int32_t> some = {4};
  ListedTokens list;
  list.reset(10, 64);
  std::vector<StepRow> rows = {rowOf(some), StepRow()};
  EXPECT_FALSE(list.cover(rows));
}

} // namespace
