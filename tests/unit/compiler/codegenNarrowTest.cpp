// kernel.contract with narrow weights: integers against exact sums, bf16 against the stated order of additions.
#include "tests/unit/compiler/codegenHarness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace codegen_test;

namespace {

std::string nameOf(const testing::TestParamInfo<std::string> &info) {
  return info.param == "x86-64" ? "baseline" : info.param;
}

/// Panels [N / 64][ceil(K / g)][64][g] from a matrix [k, n], filled with zeros.
template <typename T> Array<T> pack(const std::vector<T> &matrix, int64_t k, std::vector<int64_t> parts) {
  const int64_t group = 4 / sizeof(T);
  std::vector<T> packed;
  int64_t all = 0, first = 0;
  for (int64_t part : parts)
    all += part;
  for (int64_t part : parts) {
    for (int64_t panel = 0; panel < part; panel += 64)
      for (int64_t i = 0; i < k; i += group)
        for (int64_t j = panel; j < panel + 64; ++j)
          for (int64_t l = i; l < i + group; ++l)
            packed.push_back(j < part && l < k ? matrix[l * all + first + j] : T(0));
    first += part;
  }
  return Array<T>(packed);
}

/// Two parts, the first with scales and bias.
std::string contraction(int64_t k, const std::string &element, bool quantised) {
  const std::string group = element == "bf16" ? "2" : "4";
  std::string text = R"(
kernel.func @k symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<TYPE>, %b: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %z: !kernel.buffer<f32>):
  kernel.contract rows #transept.dim<rows> k DEPTH parts [100, 5]
      shapes [#transept.dims<[rows, DEPTH]>, #transept.dims<[3, GROUPS, 64, WIDTH]>, #transept.dims<[100]>, #transept.dims<[rows, 100]>, #transept.dims<[rows, 5]>]
      ins(%x, %w, %b) outs(%y, %z) attributes {FLAGS} {
  ^bb1(%i: index, %j: index, %s: f32, %ba: !kernel.buffer<f32>):
    %0 = kernel.load %ba[%j] : !kernel.buffer<f32> -> f32
    %1 = arith.addf %s, %0 : f32
    kernel.yield %1 : f32
  }, {
  ^bb1(%i: index, %j: index, %s: f32, %ba: !kernel.buffer<f32>):
    kernel.yield %s : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<TYPE>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
})";
  auto replace = [&](const std::string &word, const std::string &by) {
    for (size_t at; (at = text.find(word)) != std::string::npos;)
      text.replace(at, word.size(), by);
  };
  replace("TYPE", element);
  replace("DEPTH", std::to_string(k));
  replace("GROUPS", std::to_string((k + std::stoi(group) - 1) / std::stoi(group)));
  replace("WIDTH", group);
  replace("FLAGS", quantised ? "quantised" : "");
  return text;
}

constexpr int64_t n = 105;

/// A product and what is needed to run it: y [rows, 100] with bias, z [rows, 5] without.
template <typename T> struct Product {
  int64_t k;
  std::vector<T> matrix;
  Array<T> packed;
  Array<float> bias = randomFloats(100, 3);
  Product(int64_t k, std::vector<T> matrix) : k(k), matrix(matrix), packed(pack(matrix, k, {100, 5})) {}

  /// expected(row, column) is the accumulated value.
  template <typename F> void check(Kernels &kernels, const Array<float> &x, int64_t rows, int parts, F expected) {
    Array<float> y(rows * 100), z(rows * 5);
    kernels.run(0, {x.data(), packed.data(), bias.data(), y.data(), z.data()}, {rows}, parts);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = expected(i, j), got = j < 100 ? y[i * 100 + j] : z[i * 5 + j - 100];
        ASSERT_EQ(got, j < 100 ? sum + bias[j] : sum) << rows << " rows, " << k << " deep: " << i << " " << j;
      }
  }
};

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

//===- Integers ---------------------------------------------------------------------------------------------------===//

class Int8Contract : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Int8Contract, testing::ValuesIn(runnableLevels("int8")), nameOf);

struct QuantisedRow {
  float scale;
  std::vector<int> elements;
};

/// The definition: 127 steps up to the largest magnitude, nearest, ties to even.
QuantisedRow quantised(const float *x, int64_t k) {
  float largest = 0;
  for (int64_t i = 0; i < k; ++i)
    largest = std::max(largest, std::fabs(x[i]));
  QuantisedRow row{largest / 127, {}};
  float inverse = largest >= 1e-35f ? 127 / largest : 0;
  for (int64_t i = 0; i < k; ++i)
    row.elements.push_back(static_cast<int>(std::nearbyint(x[i] * inverse)));
  return row;
}

void checkInt8(Kernels &kernels, Product<uint8_t> &run, const Array<float> &x, int64_t rows, int parts) {
  std::vector<QuantisedRow> quantisedRows;
  for (int64_t i = 0; i < rows; ++i)
    quantisedRows.push_back(quantised(x.begin() + i * run.k, run.k));
  run.check(kernels, x, rows, parts, [&](int64_t i, int64_t j) {
    int64_t sum = 0;
    for (int64_t l = 0; l < run.k; ++l)
      sum += quantisedRows[i].elements[l] * (run.matrix[l * n + j] - 128);
    return static_cast<float>(sum) * quantisedRows[i].scale;
  });
}

std::vector<uint8_t> randomBytes(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t &byte : bytes)
    byte = 1 + generator() % 255;
  return bytes;
}

// Bytes times bytes: the sum itself, and what an epilogue makes of it.
TEST_P(Int8Contract, ProductsOfBytesAreExact) {
  for (int64_t k : {1, 3, 4, 21, 62}) {
    std::string text = R"(
kernel.func @k symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<i8>, %w: !kernel.buffer<ui8>, %s: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %z: !kernel.buffer<i32>):
  kernel.contract rows #transept.dim<rows> k DEPTH parts [100, 5]
      shapes [#transept.dims<[rows, DEPTH]>, #transept.dims<[3, GROUPS, 64, 4]>, #transept.dims<[100]>, #transept.dims<[rows, 100]>, #transept.dims<[rows, 5]>]
      ins(%x, %w, %s) outs(%y, %z) {
  ^bb1(%i: index, %j: index, %a: i32, %sa: !kernel.buffer<f32>):
    %0 = arith.sitofp %a : i32 to f32
    %1 = kernel.load %sa[%j] : !kernel.buffer<f32> -> f32
    %2 = arith.mulf %0, %1 : f32
    kernel.yield %2 : f32
  }, {
  ^bb1(%i: index, %j: index, %a: i32, %sa: !kernel.buffer<f32>):
    kernel.yield %a : i32
  } : (!kernel.buffer<i8>, !kernel.buffer<ui8>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i32>) -> ()
})";
    for (auto [word, number] : {std::pair<std::string, int64_t>{"DEPTH", k}, {"GROUPS", (k + 3) / 4}})
      for (size_t at; (at = text.find(word)) != std::string::npos;)
        text.replace(at, word.size(), std::to_string(number));
    std::mt19937 generator(7);
    std::vector<uint8_t> matrix(k * n);
    for (uint8_t &byte : matrix)
      byte = generator() % 8 ? generator() % 256 : generator() % 2 * 255;
    Array<uint8_t> packed = pack(matrix, k, {100, 5});
    Array<float> scales = randomFloats(100, 3);
    Kernels kernels(text, GetParam());
    for (int64_t rows : {1, 5, 40}) {
      Array<int8_t> x(rows * k, 0);
      for (int8_t &byte : x)
        byte = static_cast<int8_t>(generator() % 256);
      x[0] = -128;
      Array<float> y(rows * 100);
      Array<int32_t> z(rows * 5, 0);
      kernels.run(0, {x.data(), packed.data(), scales.data(), y.data(), z.data()}, {rows}, 3);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < n; ++j) {
          int32_t sum = 0;
          for (int64_t l = 0; l < k; ++l)
            sum += x[i * k + l] * (matrix[l * n + j] - 128);
          if (j < 100)
            ASSERT_EQ(y[i * 100 + j], static_cast<float>(sum) * scales[j]);
          else
            ASSERT_EQ(z[i * 5 + j - 100], sum);
        }
    }
  }
}

TEST_P(Int8Contract, SumsAreExactForAllTilesAndDepths) {
  for (int64_t k : {1, 3, 4, 21, 62}) {
    Kernels kernels(contraction(k, "ui8", true), GetParam());
    Product<uint8_t> run(k, randomBytes(k * n, 5));
    for (int64_t rows : {0, 1, 2, 3, 4, 5, 6, 7, 97, 200})
      for (int parts : {1, 3})
        checkInt8(kernels, run, randomFloats(rows * k, 7), rows, parts);
  }
}

TEST_P(Int8Contract, NothingSaturates) {
  const int64_t k = 4096;
  Kernels kernels(contraction(k, "ui8", true), GetParam());
  for (uint8_t weight : {uint8_t(1), uint8_t(255)}) {
    Product<uint8_t> run(k, std::vector<uint8_t>(k * n, weight));
    for (float value : {-1.0f, 1.0f})
      checkInt8(kernels, run, Array<float>(2 * k, value), 2, 1);
  }
}

TEST_P(Int8Contract, RowsThatCannotBeScaled) {
  const int64_t k = 20;
  const float infinity = std::numeric_limits<float>::infinity();
  Kernels kernels(contraction(k, "ui8", true), GetParam());
  Product<uint8_t> run(k, randomBytes(k * n, 5));
  // Zeros, denormal numbers, the largest ones, halves between two steps.
  Array<float> x(4 * k, 0.0f), y(4 * 100), z(4 * 5);
  for (int64_t i = 0; i < k; ++i) {
    x[k + i] = std::numeric_limits<float>::denorm_min() * i;
    x[2 * k + i] = std::numeric_limits<float>::max();
    x[3 * k + i] = i == 0 ? 127.0f : i - 10.5f;
  }
  checkInt8(kernels, run, x, 4, 1);
  // What is not finite is seen in every column, and in no other row.
  Array<float> w(3 * k, 1.0f);
  w[3] = infinity;
  w[k + 3] = std::nanf("");
  kernels.run(0, {w.data(), run.packed.data(), run.bias.data(), y.data(), z.data()}, {3});
  for (int64_t j = 0; j < 100; ++j) {
    EXPECT_FALSE(std::isfinite(y[j])) << j;
    EXPECT_TRUE(std::isnan(y[100 + j])) << j;
    EXPECT_TRUE(std::isfinite(y[200 + j])) << j;
  }
}

//===- bf16 -------------------------------------------------------------------------------------------------------===//

uint16_t roundToBf16(float value) { return (bitsOf(value) + 0x7fff + (bitsOf(value) >> 16 & 1)) >> 16; }
float valueOfBf16(uint16_t bits) { return floatOf(static_cast<uint32_t>(bits) << 16); }

class Bf16Contract : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Bf16Contract, testing::ValuesIn(runnableLevels("bf16")), nameOf);

std::vector<uint16_t> randomBf16(int64_t count, unsigned seed) {
  Array<float> floats = randomFloats(count, seed);
  std::vector<uint16_t> bits;
  for (float value : floats)
    bits.push_back(roundToBf16(value));
  return bits;
}

TEST_P(Bf16Contract, IsOneChainOverRoundedFactors) {
  const std::string level = GetParam();
  for (int64_t k : {1, 2, 23}) {
    Kernels kernels(contraction(k, "bf16", false), level);
    Product<uint16_t> run(k, randomBf16(k * n, 5));
    for (int64_t rows : {0, 1, 2, 3, 4, 5, 6, 7, 97, 200}) {
      Array<float> x = randomFloats(rows * k, 7);
      auto factors = [&](int64_t i, int64_t j, int64_t l) {
        return std::pair(valueOfBf16(roundToBf16(x[i * k + l])), valueOfBf16(run.matrix[l * n + j]));
      };
      // The instruction for pairs adds in an order of its own; that differs in the last bits only.
      if (level == "avx512bf16") {
        Array<float> y(rows * 100), z(rows * 5);
        kernels.run(0, {x.data(), run.packed.data(), run.bias.data(), y.data(), z.data()}, {rows}, 3);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < 5; ++j) {
            double sum = 0, magnitude = 0;
            for (int64_t l = 0; l < k; ++l) {
              auto [a, b] = factors(i, j + 100, l);
              sum += double(a) * b;
              magnitude += std::fabs(double(a) * b);
            }
            ASSERT_NEAR(z[i * 5 + j], sum, magnitude * k * 6e-8 + 1e-30) << rows << " " << k;
          }
        continue;
      }
      run.check(kernels, x, rows, 3, [&](int64_t i, int64_t j) {
        float sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          auto [a, b] = factors(i, j, l);
          sum = level == "x86-64" ? sum + a * b : std::fma(a, b, sum);
        }
        return sum;
      });
    }
  }
}

TEST_P(Bf16Contract, ARowHasTheSameBitsInEveryTile) {
  const int64_t k = 37, rows = 13;
  Kernels kernels(contraction(k, "bf16", false), GetParam());
  Product<uint16_t> run(k, randomBf16(k * n, 5));
  Array<float> x = randomFloats(rows * k, 7), y(rows * 100), z(rows * 5), one(100), other(5);
  kernels.run(0, {x.data(), run.packed.data(), run.bias.data(), y.data(), z.data()}, {rows}, 2);
  for (int64_t i = 0; i < rows; ++i) {
    kernels.run(0, {x.begin() + i * k, run.packed.data(), run.bias.data(), one.data(), other.data()}, {1});
    EXPECT_EQ(std::memcmp(one.data(), y.begin() + i * 100, 400), 0) << i;
    EXPECT_EQ(std::memcmp(other.data(), z.begin() + i * 5, 20), 0) << i;
  }
}

//===- Integer weights, floats in between -------------------------------------------------------------------------===//

class Int8WeightsContract : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Int8WeightsContract, testing::ValuesIn(runnableLevels("int8-weights")), nameOf);

TEST_P(Int8WeightsContract, IsOneChainOfMultiplyAddsPerElement) {
  bool fused = GetParam() != "x86-64";
  for (int64_t k : {1, 2, 3, 4, 23}) {
    Kernels kernels(contraction(k, "ui8", false), GetParam());
    Product<uint8_t> run(k, randomBytes(k * n, 5));
    for (int64_t rows : {0, 1, 2, 3, 4, 5, 6, 7, 97}) {
      Array<float> x = randomFloats(rows * k, 7);
      run.check(kernels, x, rows, 3, [&](int64_t i, int64_t j) {
        float sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          float weight = run.matrix[l * n + j] - 128;
          sum = fused ? std::fma(x[i * k + l], weight, sum) : sum + x[i * k + l] * weight;
        }
        return sum;
      });
    }
  }
}

} // namespace
