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

TEST(Rules, EndsOfBeamsAreSetApartAndKeepTheirScores) {
  Settings settings;
  settings.eosTokenId = {1, 4};
  settings.minLength = 3;
  EXPECT_TRUE(collect(settings, {2, 5, 6, 7}).tokens.empty()) << "one hypothesis that ends takes nobody's place";
  settings.numBeams = 3;
  for (size_t length : {2, 4}) {
    SpecialSet set = collect(settings, std::vector<int64_t>(length, 2));
    EXPECT_EQ(set.tokens, (Tokens{1, 4}));
    std::vector<double> scores = {-0.5, 0.25};
    Rules(settings, 1, 20, 30).apply(set, scores.data());
    EXPECT_EQ(scores, length < 3 ? std::vector<double>(2, -INFINITY) : (std::vector<double>{-0.5, 0.25})) << length;
  }
  settings.renormalizeLogits = true;
  EXPECT_TRUE(collect(settings, {2, 5, 6, 7}).tokens.empty());
}

/// For how many more lengths the set stays, found by trying.
int64_t steadyByTrying(const Settings &settings, int64_t prompt, int64_t length, int64_t limit) {
  Rules rules(settings, prompt, limit, 30);
  SpecialSet first, other;
  rules.collect(std::vector<int64_t>(static_cast<size_t>(length), 2), first);
  for (int64_t more = 1; length + more < limit; ++more) {
    rules.collect(std::vector<int64_t>(static_cast<size_t>(length + more), 2), other);
    if (other.tokens != first.tokens || other.actions != first.actions || other.forced != first.forced)
      return more - 1;
  }
  return limit - 1 - length;
}

TEST(Rules, SteadyAreSetsThatOnlyExclude) {
  Settings settings;
  settings.eosTokenId = {1};
  settings.suppressTokens = {4};
  settings.badWordsIds = {{5}};
  settings.minLength = 9;
  settings.forcedEosTokenId = {1};
  settings.beginSuppressTokens = {6};
  settings.forcedDecoderIds = {{3, 7}};
  constexpr int64_t prompt = 1, limit = 20;
  for (int64_t length = 1; length < limit - 1; ++length) {
    if (length == 3)
      continue; // a token is forced: nothing is known of what follows
    Rules rules(settings, prompt, limit, 30);
    SpecialSet set;
    rules.collect(std::vector<int64_t>(static_cast<size_t>(length), 2), set);
    EXPECT_EQ(std::min(rules.steadyFor(length, set), limit - 1 - length),
              steadyByTrying(settings, prompt, length, limit))
        << length;
  }
  auto steady = [&](const Settings &with) {
    Rules rules(with, prompt, limit, 30);
    SpecialSet set;
    rules.collect(std::vector<int64_t>(10, 2), set);
    return rules.steadyFor(10, set);
  };
  EXPECT_GT(steady(settings), 0);
  Settings penalty = settings, ngram = settings, source = settings, words = settings;
  penalty.repetitionPenalty = 1.2;
  ngram.noRepeatNgramSize = 3;
  source.encoderNoRepeatNgramSize = 3;
  words.badWordsIds = {{5, 6}};
  for (const Settings &depends : {penalty, ngram, source, words})
    EXPECT_EQ(steady(depends), 0);
  Settings beams = settings, beamPenalty = penalty;
  beams.numBeams = beamPenalty.numBeams = 2;
  EXPECT_EQ(steady(beams), steady(settings)) << "a token that ends is not gone on with";
  EXPECT_EQ(steady(beamPenalty), 0);
}

} // namespace
