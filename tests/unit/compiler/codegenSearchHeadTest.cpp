// kernel.search_head against sorting.
#include "tests/unit/compiler/codegenHarness.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace codegen_test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

class SearchHead : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, SearchHead, testing::ValuesIn(runnableLevels()), [](const auto &info) {
  return info.param == "x86-64" ? std::string("baseline") : info.param;
});

const char *text = R"(
kernel.func @k symbols ["rows", "specials", "topk"] from "" {
^bb0(%l: !kernel.buffer<f32>, %s: !kernel.buffer<i32>, %m: !kernel.buffer<f32>, %t: !kernel.buffer<f32>, %v: !kernel.buffer<f32>, %k: !kernel.buffer<i32>, %r: !kernel.buffer<f32>):
  kernel.search_head shapes [#transept.dims<[rows, 2500]>, #transept.dims<[rows, specials]>, #transept.dims<[rows, 3]>, #transept.dims<[rows, 3]>,
      #transept.dims<[rows, 3, topk]>, #transept.dims<[rows, 3, topk]>, #transept.dims<[rows, specials]>] ins(%l, %s) outs(%m, %t, %v, %k, %r)
      {vocabulary = 2500 : i64, blockSize = 1024 : i64}
      : (!kernel.buffer<f32>, !kernel.buffer<i32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i32>, !kernel.buffer<f32>) -> ()
}
)";

TEST_P(SearchHead, FindsTheBestOutsideTheSpecialSet) {
  const int64_t V = 2500, VB = 3, rows = 4, specials = 3;
  Kernels kernels(text, GetParam());
  for (int64_t topk : {1, 2, 5, 14, 16, 17, 500}) {
    Array<float> logits(rows * V), original(rows * V);
    std::mt19937 generator(1);
    for (float &logit : original)
      logit = float(generator() % 2000) / 64 - 10; // many ties
    for (int64_t j = 1024; j < 2048; ++j)
      original[3 * V + j] = -infinity; // a block without candidates
    std::copy(original.begin(), original.end(), logits.begin());
    Array<int32_t> special(std::vector<int32_t>{0, 7, 2499, 5, 1024, -1, -1, -1, -1, 3, 4, 2048});
    Array<float> maxima(rows * VB), sums(rows * VB), values(rows * VB * topk), raw(rows * specials, -9.0f);
    Array<int32_t> tokens(rows * VB * topk);
    kernels.run(0,
                {logits.data(), special.data(), maxima.data(), sums.data(), values.data(), tokens.data(), raw.data()},
                {rows, specials, topk}, 3);
    for (int64_t r = 0; r < rows; ++r) {
      auto isSpecial = [&](int64_t token) {
        return std::count(special.begin() + r * specials, special.begin() + (r + 1) * specials, token) > 0;
      };
      for (int64_t s = 0; s < specials; ++s)
        if (int32_t token = special[r * specials + s]; token >= 0)
          EXPECT_EQ(raw[r * specials + s], original[r * V + token]);
      for (int64_t b = 0; b < VB; ++b) {
        int64_t from = b * 1024, to = std::min<int64_t>(V, from + 1024);
        const float *row = original.begin() + r * V;
        float maximum = *std::max_element(row + from, row + to);
        EXPECT_EQ(maxima[r * VB + b], maximum);
        double sum = 0;
        std::vector<int64_t> order;
        for (int64_t j = from; j < to; ++j) {
          sum += maximum == -infinity ? 0 : std::exp(double(row[j]) - maximum);
          if (!isSpecial(j) && row[j] > -infinity)
            order.push_back(j);
        }
        EXPECT_NEAR(sums[r * VB + b], sum, 1e-5 * sum);
        std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return row[x] > row[y]; });
        for (int64_t i = 0; i < topk; ++i) {
          bool there = i < int64_t(order.size());
          ASSERT_EQ(tokens[(r * VB + b) * topk + i], there ? order[i] : -1) << r << " " << b << " " << i;
          ASSERT_EQ(values[(r * VB + b) * topk + i], there ? row[order[i]] : -infinity);
        }
      }
    }
  }
}

TEST_P(SearchHead, PassesOverSpecialTokensAboveAllOthers) {
  const int64_t V = 2500, specials = 8, topk = 8;
  Kernels kernels(text, GetParam());
  Array<float> logits = randomFloats(V, 1);
  Array<int32_t> special(specials), tokens(3 * topk);
  std::vector<float> candidates(logits.begin(), logits.begin() + 1024);
  for (int64_t s = 0; s < specials; ++s) { // of one block, and of different lanes
    special[s] = static_cast<int32_t>(100 + 17 * s);
    logits[special[s]] = 100;
    candidates[special[s]] = -infinity;
  }
  Array<float> maxima(3), sums(3), values(3 * topk), raw(specials);
  kernels.run(0, {logits.data(), special.data(), maxima.data(), sums.data(), values.data(), tokens.data(), raw.data()},
              {1, specials, topk});
  std::sort(candidates.rbegin(), candidates.rend());
  EXPECT_EQ(maxima[0], 100);
  for (int64_t i = 0; i < topk; ++i)
    EXPECT_EQ(values[i], candidates[i]) << i;
}

/// What a head finds of one row without special tokens, of the two best tokens per block.
struct Found {
  Array<float> maxima{3}, sums{3}, values{6}, raw{1};
  Array<int32_t> tokens{6};

  Found(Kernels &kernels, const std::vector<float> &row, int32_t *word) {
    Array<float> logits(row);
    Array<int32_t> special(1, -1);
    std::vector<void *> buffers = {logits.data(), special.data()};
    if (word)
      buffers.push_back(word);
    for (void *output : {maxima.data(), sums.data(), values.data(), tokens.data(), raw.data()})
      buffers.push_back(output);
    kernels.run(0, buffers, {1, 1, 2});
  }
};

TEST_P(SearchHead, LeavesOutSumsWhereOnlyTheBestIsWanted) {
  std::string withWord = text;
  auto replace = [&](const std::string &old, const std::string &by) {
    ASSERT_NE(withWord.find(old), std::string::npos) << old;
    withWord.replace(withWord.find(old), old.size(), by);
  };
  replace("%m: !kernel", "%w: !kernel.buffer<i32>, %m: !kernel");
  replace("specials]>, #transept.dims<[rows, 3]>", "specials]>, #transept.dims<[1]>, #transept.dims<[rows, 3]>");
  replace("ins(%l, %s)", "ins(%l, %s, %w)");
  replace("(!kernel.buffer<f32>, !kernel.buffer<i32>,",
          "(!kernel.buffer<f32>, !kernel.buffer<i32>, !kernel.buffer<i32>,");
  Kernels plain(text, GetParam()), kernels(withWord, GetParam());
  auto same = [](auto &x, auto &y) { return std::memcmp(x.data(), y.data(), x.size() * sizeof(x[0])) == 0; };
  Array<float> random = randomFloats(2500, 1);
  std::vector<float> row(random.begin(), random.end());
  for (bool bad : {false, true}) {
    if (bad)
      row[2047] = std::numeric_limits<float>::quiet_NaN();
    int32_t all = 0, best = 1;
    Found expected(plain, row, nullptr), whole(kernels, row, &all), some(kernels, row, &best);
    EXPECT_TRUE(same(whole.sums, expected.sums));
    for (const Found *found : {&whole, &some}) {
      EXPECT_EQ(std::isnan(found->maxima[1]), bad);
      EXPECT_TRUE(same(found->maxima, expected.maxima) && same(found->values, expected.values) &&
                  same(found->tokens, expected.tokens));
    }
    for (float sum : some.sums)
      EXPECT_EQ(sum, 1);
  }
}

TEST_P(SearchHead, ShowsWhatIsNotFinite) {
  Kernels kernels(text, GetParam());
  for (float bad : {infinity, std::numeric_limits<float>::quiet_NaN()})
    for (int64_t place : {0, 17, 2048, 2499}) {
      Array<float> logits = randomFloats(2500, 1), maxima(3), sums(3), values(3), raw(1);
      Array<int32_t> special(1, -1), tokens(3);
      logits[place] = bad;
      kernels.run(0,
                  {logits.data(), special.data(), maxima.data(), sums.data(), values.data(), tokens.data(), raw.data()},
                  {1, 1, 1});
      for (int64_t b = 0; b < 3; ++b)
        EXPECT_EQ(std::isfinite(maxima[b]) && std::isfinite(sums[b]), b != place / 1024) << place;
    }
}

} // namespace
