// Attention that is kept for hypotheses with common beginnings, and the random numbers of sampling.
#include "runtime/search/AlignmentLog.h"
#include "runtime/search/Philox.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::search;

namespace {

/// Two layers, of two heads and of one; weights say layer, head, row, step and source position.
class Weights final : public Stepper {
public:
  bool incremental() const override { return true; }
  int64_t vocabulary() const override { return 1; }
  Status step(Span<const StepRow>, StepWants) override {
    ++steps;
    return {};
  }
  StepResult result(int32_t) const override { return {}; }
  int64_t attentionLayers() const override { return 2; }
  AttentionWeights attention(int64_t layer, int32_t row) const override {
    int64_t heads = layer == 0 ? 2 : 1;
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t i = 0; i < 3; ++i)
        kept[head * 3 + i] = static_cast<float>(10000 * layer + 1000 * head + 100 * row + 10 * steps + i);
    return {kept, heads, 3};
  }
  int steps = 0;
  mutable float kept[6] = {};
};

TEST(AlignmentLog, FollowsParents) {
  Weights stepper;
  AlignmentLog log(Alignments::All);
  ASSERT_TRUE(stepper.step({}, {true}).ok());
  int32_t first = log.keep(stepper, 0, 2, -1); // the source has two positions and one of padding
  ASSERT_TRUE(stepper.step({}, {true}).ok());
  int32_t left = log.keep(stepper, 0, 2, first), right = log.keep(stepper, 1, 2, first);
  ASSERT_TRUE(stepper.step({}, {true}).ok());
  int32_t last = log.keep(stepper, 0, 2, right); // the other one is dropped
  Alignment alignment = log.upTo(last);
  EXPECT_EQ(alignment.heads, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(alignment.toJson().dump(), "[[[[10.0,11.0],[120.0,121.0],[30.0,31.0]],[[1010.0,1011.0],[1120.0,1121.0],"
                                       "[1030.0,1031.0]]],[[[10010.0,10011.0],[10120.0,10121.0],[10030.0,10031.0]]]]");
  EXPECT_EQ(log.upTo(left).target, 2);
  EXPECT_EQ(log.upTo(-1).target, 0);
}

TEST(AlignmentLog, Mean) {
  Weights stepper;
  AlignmentLog log(Alignments::Mean);
  ASSERT_TRUE(stepper.step({}, {true}).ok());
  Alignment alignment = log.upTo(log.keep(stepper, 0, 3, -1));
  ASSERT_EQ(alignment.weights.size(), 3u);
  for (int i = 0; i < 3; ++i) // of 0, 1000 and 10000
    EXPECT_NEAR(alignment.weights[i], 11000.0 / 3 + 10 + i, 1e-2);
  EXPECT_EQ(alignment.toJson().size(), 1u);
  EXPECT_EQ(alignment.toJson()[0].size(), 3u);
}

// The known answers of Random123, the authors' own library.
TEST(Philox, KnownAnswers) {
  constexpr uint32_t ones = 0xFFFFFFFF;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (std::array<uint32_t, 4>{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (std::array<uint32_t, 4>{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(philox({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, {0xA4093822, 0x299F31D0}),
            (std::array<uint32_t, 4>{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(Philox, UniformNumbersFillTheUnitInterval) {
  double sum = 0, squares = 0, least = 1, most = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    double number = uniformNumber(7, i % 3, i);
    sum += number;
    squares += number * number;
    least = std::min(least, number);
    most = std::max(most, number);
  }
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
  EXPECT_NEAR(squares / 20000, 1.0 / 3, 0.01);
  EXPECT_GE(least, 0);
  EXPECT_LT(most, 1);
}

} // namespace
