// Values of sacrebleu 2.6 (tokenize "none", smooth_method "none") and jiwer 4.0.
#include "tools/driver/TextScores.h"
#include <gtest/gtest.h>

using mlir::transept::TextScores;

namespace {

TEST(TextScores, ValuesOfTheUsualTools) {
  TextScores scores;
  scores.add("the cat sat on mat today", "the cat sat on the mat today");
  scores.add("it is raining cats and and dogs", "it is raining cats and dogs again");
  scores.add("a b c d e", "  a b\tc d e\n");
  scores.add("one two three four five six seven", "one two three four five six");
  EXPECT_EQ(scores.pairs(), 4);
  EXPECT_NEAR(scores.wordErrorRate(), 0.16, 1e-12);
  EXPECT_NEAR(scores.bleu(), 76.50327009693359, 1e-9);
}

TEST(TextScores, ShortTextsArePenalised) {
  TextScores scores;
  scores.add("one two three four", "one two three four five six");
  EXPECT_NEAR(scores.wordErrorRate(), 1.0 / 3, 1e-12);
  EXPECT_NEAR(scores.bleu(), 60.653065971263366, 1e-9);
}

TEST(TextScores, NothingInCommonIsZero) {
  TextScores scores;
  EXPECT_EQ(scores.wordErrorRate(), 0);
  EXPECT_EQ(scores.bleu(), 0);
  scores.add("", "a");
  scores.add("b", "");
  EXPECT_EQ(scores.wordErrorRate(), 2);
  EXPECT_EQ(scores.bleu(), 0);
}

} // namespace
