#include "runtime/search/HeadResults.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace transept;
using namespace transept::search;

namespace {

constexpr float nothing = -std::numeric_limits<float>::infinity();

TEST(HeadResults, JoinsBlocksWithTheLowerTokenFirst) {
  HeadResults results(1, 3, 2);
  std::vector<float> maxima = {1, 3, 3}, sums = {1, 2, 1}, values = {1, 0.5, 3, 1, 3, nothing};
  std::vector<int32_t> tokens = {4, 2, 2050, 2049, 4100, -1};
  StepResult result = results.join(0, {maxima.data(), sums.data(), values.data(), tokens.data()});
  EXPECT_TRUE(result.finite);
  EXPECT_NEAR(result.logSum, 3 + std::log(3 + std::exp(-2.0)), 1e-12);
  ASSERT_EQ(result.count, 2);
  EXPECT_EQ(result.tokens[0], 2050);
  EXPECT_EQ(result.tokens[1], 4100);
  EXPECT_EQ(result.values[1], 3);
}

TEST(HeadResults, FewerCandidatesThanAskedFor) {
  HeadResults results(1, 2, 3);
  std::vector<float> maxima = {1, 2}, sums = {1, 1}, values = {1, nothing, nothing, nothing, nothing, nothing};
  std::vector<int32_t> tokens = {0, -1, -1, -1, -1, -1};
  EXPECT_EQ(results.join(0, {maxima.data(), sums.data(), values.data(), tokens.data()}).count, 1);
}

TEST(HeadResults, SeesLogitsThatAreNotFinite) {
  for (float bad : {std::nanf(""), -nothing}) {
    for (bool inMaximum : {true, false}) {
      HeadResults results(1, 2, 1);
      std::vector<float> maxima = {1, 2}, sums = {1, 1}, values = {1, 2};
      std::vector<int32_t> tokens = {0, 2048};
      (inMaximum ? maxima : sums)[1] = bad;
      EXPECT_FALSE(results.join(0, {maxima.data(), sums.data(), values.data(), tokens.data()}).finite);
    }
  }
}

TEST(HeadResults, ABlockOfImpossibleTokensIsNoError) {
  HeadResults results(1, 2, 1);
  std::vector<float> maxima = {nothing, 2}, sums = {std::nanf(""), 1}, values = {nothing, 2};
  std::vector<int32_t> tokens = {0, 2048};
  StepResult result = results.join(0, {maxima.data(), sums.data(), values.data(), tokens.data()});
  EXPECT_TRUE(result.finite);
  EXPECT_EQ(result.logSum, 2);
  EXPECT_EQ(result.tokens[0], 2048);
  maxima[1] = nothing;
  EXPECT_FALSE(results.join(0, {maxima.data(), sums.data(), values.data(), tokens.data()}).finite);
}

} // namespace
