// kernel.search_head over approximations: the best token of the f32 logits, whatever the approximations are worth.
#include "passes/NarrowMatrix.h"
#include "tests/unit/compiler/codegenHarness.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace codegen_test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), notANumber = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t V = 500, K = 70, panels = 8, specials = 3;

class ScreenedHead : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, ScreenedHead, testing::ValuesIn(runnableLevels()), [](const auto &info) {
  return info.param == "x86-64" ? std::string("baseline") : info.param;
});

// The product as @step has it, the approximate one, and the head.
const char *text = R"(
kernel.func @exact symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<f32>, %b: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.contract rows #transept.dim<rows> k 70 parts [500]
      shapes [#transept.dims<[rows, 70]>, #transept.dims<[8, 70, 64]>, #transept.dims<[500]>, #transept.dims<[rows, 500]>]
      ins(%x, %w, %b) outs(%y) {
  ^bb1(%r: index, %n: index, %sum: f32, %bias: !kernel.buffer<f32>):
    %0 = kernel.load %bias[%n] : !kernel.buffer<f32> -> f32
    %1 = arith.addf %sum, %0 : f32
    kernel.yield %1 : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
}
kernel.func @approximate symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<i8>, %s: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.contract rows #transept.dim<rows> k 70 parts [500]
      shapes [#transept.dims<[rows, 70]>, #transept.dims<[8, 18, 64, 4]>, #transept.dims<[500]>, #transept.dims<[rows, 500]>]
      ins(%x, %w, %s) outs(%y) attributes {quantised} {
  ^bb1(%r: index, %n: index, %sum: f32, %scales: !kernel.buffer<f32>):
    %0 = kernel.load %scales[%n] : !kernel.buffer<f32> -> f32
    %1 = arith.mulf %sum, %0 : f32
    kernel.yield %1 : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<i8>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
}
kernel.func @head symbols ["rows", "specials", "topk"] from "" {
^bb0(%l: !kernel.buffer<f32>, %s: !kernel.buffer<i32>, %x: !kernel.buffer<f32>, %w: !kernel.buffer<f32>, %e: !kernel.buffer<f32>, %n: !kernel.buffer<f32>, %b: !kernel.buffer<f32>,
     %m: !kernel.buffer<f32>, %t: !kernel.buffer<f32>, %v: !kernel.buffer<f32>, %k: !kernel.buffer<i32>, %r: !kernel.buffer<f32>):
  kernel.search_head shapes [#transept.dims<[rows, 500]>, #transept.dims<[rows, specials]>, #transept.dims<[rows, 70]>, #transept.dims<[8, 70, 64]>,
      #transept.dims<[500]>, #transept.dims<[500]>, #transept.dims<[500]>, #transept.dims<[rows, 1]>, #transept.dims<[rows, 1]>,
      #transept.dims<[rows, 1, topk]>, #transept.dims<[rows, 1, topk]>, #transept.dims<[rows, specials]>] ins(%l, %s, %x, %w, %e, %n, %b) outs(%m, %t, %v, %k, %r)
      {vocabulary = 500 : i64, blockSize = 2048 : i64}
      : (!kernel.buffer<f32>, !kernel.buffer<i32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>,
         !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i32>, !kernel.buffer<f32>) -> ()
}
)";

/// A matrix [V, K] and everything that is made of it.
struct Vocabulary {
  explicit Vocabulary(const std::vector<float> &matrix)
      : packed(panels * K * 64), narrow(panels * 18 * 64 * 4), scales(V), errors(V), norms(V) {
    mlir::transept::Int8Matrix made = mlir::transept::quantiseColumns(matrix, K, V, /*transposed=*/true);
    std::fill(packed.begin(), packed.end(), 0.0f);
    std::fill(narrow.begin(), narrow.end(), static_cast<uint8_t>(128));
    for (int64_t n = 0; n < V; ++n) {
      double missed = 0, kept = 0;
      scales[n] = made.scales[n];
      for (int64_t k = 0; k < K; ++k) {
        const auto byte = static_cast<uint8_t>(made.elements[n * K + k]);
        const double value = (byte - 128) * static_cast<double>(made.scales[n]), element = matrix[n * K + k];
        missed += (element - value) * (element - value);
        kept += value * value;
        packed[(n / 64 * K + k) * 64 + n % 64] = matrix[n * K + k];
        narrow[((n / 64 * 18 + k / 4) * 64 + n % 64) * 4 + k % 4] = byte;
      }
      errors[n] = std::nextafter(static_cast<float>(std::sqrt(missed)), infinity);
      norms[n] = std::nextafter(static_cast<float>(std::sqrt(kept)), infinity);
    }
  }
  Array<float> packed;
  Array<uint8_t> narrow;
  Array<float> scales, errors, norms;
};

struct Found {
  int32_t token;
  float value, maximum, computed;
};

/// Checks all rows of x against the logits that the product gives; returns the rows' results.
std::vector<Found> check(Kernels &kernels, const Vocabulary &vocabulary, const Array<float> &x,
                         const Array<float> &bias, const std::vector<int32_t> &special) {
  const int64_t rows = static_cast<int64_t>(x.size()) / K, topk = 2;
  Array<float> exact(rows * V), approximate(rows * V), maxima(rows), computed(rows), values(rows * topk),
      raw(rows * specials, -9.0f);
  Array<int32_t> tokens(rows * topk), set(special);
  kernels.run(0, {x.data(), vocabulary.packed.data(), bias.data(), exact.data()}, {rows});
  kernels.run(1, {x.data(), vocabulary.narrow.data(), vocabulary.scales.data(), approximate.data()}, {rows});
  kernels.run(2,
              {approximate.data(), set.data(), x.data(), vocabulary.packed.data(), vocabulary.errors.data(),
               vocabulary.norms.data(), bias.data(), maxima.data(), computed.data(), values.data(), tokens.data(),
               raw.data()},
              {rows, specials, topk}, 2);
  std::vector<Found> results;
  for (int64_t r = 0; r < rows; ++r) {
    auto isSpecial = [&](int64_t token) {
      return std::count(special.begin() + r * specials, special.begin() + (r + 1) * specials, token) > 0;
    };
    int32_t best = -1;
    bool finite = true;
    for (int64_t n = 0; n < V; ++n) {
      const float logit = exact[r * V + n];
      finite = finite && !std::isnan(logit) && logit < infinity;
      if (!isSpecial(n) && logit > -infinity && (best < 0 || logit > exact[r * V + best]))
        best = static_cast<int32_t>(n);
    }
    EXPECT_EQ(!std::isnan(maxima[r]) && maxima[r] < infinity, finite) << "row " << r;
    for (int64_t s = 0; s < specials; ++s)
      if (int32_t token = special[r * specials + s]; finite && token >= 0)
        EXPECT_EQ(raw[r * specials + s], exact[r * V + token]);
    EXPECT_EQ(tokens[r * topk + 1], -1);
    if (finite) {
      EXPECT_EQ(tokens[r * topk], best) << "row " << r;
      if (best >= 0)
        EXPECT_EQ(values[r * topk], exact[r * V + best]);
    }
    results.push_back({tokens[r * topk], values[r * topk], maxima[r], computed[r]});
  }
  return results;
}

std::vector<float> randomMatrix(unsigned seed, float bound = 1) {
  Array<float> values = randomFloats(V * K, seed, bound);
  return {values.begin(), values.end()};
}

TEST_P(ScreenedHead, FindsTheBestAndComputesFew) {
  Kernels kernels(text, GetParam());
  Vocabulary vocabulary(randomMatrix(1));
  Array<float> x = randomFloats(40 * K, 2, 3), bias = randomFloats(V, 3);
  std::vector<int32_t> special;
  for (int32_t r = 0; r < 40; ++r)
    special.insert(special.end(), {r % 7, 100 + r, r % 2 ? 499 : -1});
  double computed = 0;
  for (const Found &found : check(kernels, vocabulary, x, bias, special))
    computed += found.computed;
  EXPECT_LT(computed / 40, V / 10);
}

TEST_P(ScreenedHead, TiesAndNearTies) {
  Kernels kernels(text, GetParam());
  std::vector<float> matrix = randomMatrix(4);
  // Many equal rows, and some that differ in one last bit, up or down, all better than the others.
  for (int64_t n = 10; n < V; n += 7)
    for (int64_t k = 0; k < K; ++k)
      matrix[n * K + k] = k == n % K && n % 3 == 0 ? std::nextafter(1.25f, n % 2 ? 2.0f : 0.0f) : 1.25f;
  Vocabulary vocabulary(matrix);
  Array<float> x = randomFloats(30 * K, 5), bias(V, 0.0f);
  for (float &element : x)
    element = std::fabs(element);
  std::vector<int32_t> special;
  for (int32_t r = 0; r < 30; ++r)
    special.insert(special.end(), {10, 17, 24});
  check(kernels, vocabulary, x, bias, special);
  std::fill(x.begin(), x.end(), 0.0f); // all logits are equal
  check(kernels, vocabulary, x, bias, special);
}

TEST_P(ScreenedHead, LargeAndSmallNorms) {
  Kernels kernels(text, GetParam());
  for (float scale : {1e-42f, 1e-36f, 1e-30f, 1e-20f, 1e10f, 1e18f, 3e19f, 1e25f, 1e38f}) {
    std::vector<float> matrix = randomMatrix(6);
    for (int64_t n = 0; n < V; n += 5) // one column outweighs the others
      matrix[n * K + n % K] *= 1000;
    Vocabulary vocabulary(matrix);
    Array<float> x = randomFloats(12 * K, 7), bias(V, 0.0f);
    for (float &element : x)
      element *= scale;
    check(kernels, vocabulary, x, bias, std::vector<int32_t>(36, -1));
    Array<float> uneven = randomFloats(12 * K, 8);
    uneven[5] = 1e6f; // the row's integers are nearly all zero
    for (float &element : matrix)
      element *= std::min(scale, 1e30f);
    check(kernels, Vocabulary(matrix), uneven, bias, std::vector<int32_t>(36, -1));
  }
}

TEST_P(ScreenedHead, BiasesThatAreInfiniteAndWhatIsNotANumber) {
  Kernels kernels(text, GetParam());
  Vocabulary vocabulary(randomMatrix(9));
  Array<float> x = randomFloats(4 * K, 10), bias = randomFloats(V, 11);
  for (int64_t n = 0; n < V; n += 2)
    bias[n] = -infinity;
  std::vector<int32_t> special(12, -1);
  check(kernels, vocabulary, x, bias, special);
  for (float bad : {infinity, notANumber})
    for (int64_t place : {0, 31, 499}) {
      Array<float> broken = randomFloats(V, 11);
      broken[place] = bad;
      check(kernels, vocabulary, x, broken, special);
      Array<float> row = randomFloats(4 * K, 12);
      row[K + place % K] = bad;
      check(kernels, vocabulary, row, bias, special);
    }
  Array<float> none(V, -infinity); // nothing is allowed
  for (const Found &found : check(kernels, vocabulary, x, none, special))
    EXPECT_EQ(found.token, -1);
}

} // namespace
