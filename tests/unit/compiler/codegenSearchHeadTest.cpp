// kernel.search_head against sorting.
#include "tests/unit/compiler/codegenHarness.h"
#include <algorithm>
#include <cmath>
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
  for (int64_t topk : {1, 2, 5, 500}) {
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
