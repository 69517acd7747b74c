#include "runtime/search/Shortlist.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::search;

namespace {

using Ids = std::vector<int64_t>;

std::shared_ptr<const Shortlist> parsed(const std::string &text) {
  Result<std::shared_ptr<const Shortlist>> result = Shortlist::parse(text, 100, "list");
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : nullptr;
}

TEST(Shortlist, UnitesWhatHoldsForEveryNgramOfTheSource) {
  auto list = parsed("\t7 3\n5\t20 10\n6 5\t30\r\n5 6\t31\n5\t11 10\n9\t\n5 6 5\t40");
  auto of = [&](Ids source) { return list->candidates(source); };
  EXPECT_EQ(of({}), (Ids{3, 7}));
  EXPECT_EQ(of({8, 9}), (Ids{3, 7}));
  EXPECT_EQ(of({5}), (Ids{3, 7, 10, 11, 20}));
  EXPECT_EQ(of({6, 5}), (Ids{3, 7, 10, 11, 20, 30}));
  EXPECT_EQ(of({5, 6}), (Ids{3, 7, 10, 11, 20, 31}));
  EXPECT_EQ(of({5, 6, 5}), (Ids{3, 7, 10, 11, 20, 30, 31, 40}));
  EXPECT_EQ(parsed("")->candidates(Ids{5}), Ids());
  EXPECT_EQ(parsed("4\t1\n")->candidates(Ids{5}), Ids());
}

TEST(Shortlist, SaysWhichLineIsWrong) {
  const std::string form = ", not ids of source tokens, a tab and ids of target tokens, with one space between two ids";
  const std::pair<std::string, std::string> cases[] = {
      {"5\t6\n7", "line 2 is '7'" + form},
      {"5\t6\n\n7\t8", "line 2 is ''" + form},
      {"5\tx", "line 1 is '5"},
      {"5\t6 ", "line 1 is '5"},
      {"5 \t6", "line 1 is '5 "},
      {"5\t6  7", "line 1 is '5"},
      {"-5\t6", "line 1 is '-5"},
      {"5\t-6", "line 1 is '5"},
      {"5\t6\t7", "line 1 is '5"},
      {"5.0\t6", "line 1 is '5.0"},
      {"99999999999999999999\t6", "line 1 is '99999999999999999999"},
      {"5\t6\n5\t99\n5\t1 100 2", "line 3 has target token 100, the vocabulary has 100"},
      {"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\t1", "line 1 has 17 source tokens, at most 16"},
  };
  for (const auto &[text, message] : cases) {
    Result<std::shared_ptr<const Shortlist>> result = Shortlist::parse(text, 100, "list");
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().code(), Code::InvalidInput);
    EXPECT_EQ(result.status().message().rfind("list: " + message, 0), 0u) << result.status().message();
  }
}

TEST(Shortlist, IsAFile) { EXPECT_EQ(Shortlist::read("/nonexistent/shortlist", 10).status().code(), Code::FileError); }

} // namespace
