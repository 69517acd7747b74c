#include "runtime/search/Rules.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace transept;
using namespace transept::search;

namespace {

SpecialSet collect(const Settings &settings, std::vector<int64_t> hypothesis, int64_t prompt = 1, int64_t limit = 20) {
  Rules rules(settings, prompt, limit, 30);
  SpecialSet set;
  rules.collect(hypothesis, set);
  EXPECT_LE(static_cast<int64_t>(set.tokens.size()), rules.capacity());
  return set;
}

using Tokens = std::vector<int32_t>;

TEST(Rules, TokensAreAscendingAndOnce) {
  Settings settings;
  settings.suppressTokens = {9, 3, 9};
  settings.badWordsIds = {{3}, {5, 4}, {7, 7, 1}};
  settings.eosTokenId = {0};
  settings.minLength = 5;
  EXPECT_EQ(collect(settings, {2, 7, 7}).tokens, (Tokens{0, 1, 3, 9}));
  EXPECT_EQ(collect(settings, {2, 1, 1, 1, 5}).tokens, (Tokens{3, 4, 9}));
}

TEST(Rules, ABadWordLongerThanTheContextIsIgnored) {
  Settings settings; // as in transformers: a word of two needs two tokens before
  settings.badWordsIds = {{2, 4}};
  EXPECT_TRUE(collect(settings, {2}).tokens.empty());
  EXPECT_EQ(collect(settings, {5, 2}).tokens, Tokens{4});
}

TEST(Rules, AnEndTokenIsNoBadWord) {
  Settings settings;
  settings.eosTokenId = {1};
  settings.badWordsIds = {{1}};
  EXPECT_TRUE(collect(settings, {2}).tokens.empty());
}

TEST(Rules, ForcedTokensExcludeAllOthers) {
  Settings settings;
  settings.forcedBosTokenId = 7;
  settings.forcedEosTokenId = {1};
  settings.suppressTokens = {4};
  SpecialSet first = collect(settings, {2});
  EXPECT_TRUE(first.forced);
  EXPECT_EQ(first.tokens, Tokens{7});
  EXPECT_FALSE(collect(settings, {2, 7}).forced);
  EXPECT_EQ(collect(settings, std::vector<int64_t>(19, 2)).tokens, Tokens{1});
  // Both at once: the end token holds.
  EXPECT_EQ(collect(settings, {2}, 1, 2).tokens, Tokens{1});
  // A forced token that is suppressed afterwards leaves nothing.
  settings.suppressTokens = {7};
  SpecialSet none = collect(settings, {2});
  std::vector<double> scores = {3.0};
  Rules(settings, 1, 20, 30).apply(none, scores.data());
  EXPECT_EQ(scores[0], -INFINITY);
}

TEST(Rules, ForcedDecoderIdsForcePositions) {
  Settings settings;
  settings.forcedDecoderIds = {{1, 11}, {3, 13}};
  settings.beginSuppressTokens = {5};
  EXPECT_EQ(collect(settings, {2}).tokens, Tokens{11});
  EXPECT_FALSE(collect(settings, {2, 11}).forced);
  EXPECT_EQ(collect(settings, {2, 11, 4}).tokens, Tokens{13});
  EXPECT_EQ(collect(settings, {2, 11, 4, 13}).tokens, Tokens{5}); // the beginning follows the forced part
}

TEST(Rules, NgramsOfTheSourceAreNotCopied) {
  Settings settings;
  settings.encoderNoRepeatNgramSize = 3;
  std::vector<int64_t> source = {4, 5, 6, 4, 5, 7, 99}, hypothesis = {2, 4, 5};
  Rules rules(settings, 1, 20, 30, source);
  SpecialSet set;
  rules.collect(hypothesis, set);
  EXPECT_EQ(set.tokens, (Tokens{6, 7}));
  hypothesis = {2, 5, 7}; // 99 is no token of the target
  rules.collect(hypothesis, set);
  EXPECT_TRUE(set.tokens.empty());
  hypothesis = {4};
  rules.collect(hypothesis, set);
  EXPECT_TRUE(set.tokens.empty());
}

TEST(Rules, PenaltyComesBeforeBans) {
  Settings settings;
  settings.repetitionPenalty = 2;
  settings.suppressTokens = {3};
  SpecialSet set = collect(settings, {2, 3, 2, 8});
  EXPECT_EQ(set.tokens, (Tokens{2, 3, 8}));
  std::vector<double> scores = {1.0, 1.0, -1.0};
  Rules(settings, 1, 20, 30).apply(set, scores.data());
  EXPECT_EQ(scores, (std::vector<double>{0.5, -INFINITY, -2.0}));
}

} // namespace
