// kernel.contract and kernel.rows: values by plain C++ in the stated order of additions.
#include "tests/unit/compiler/codegenHarness.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace codegen_test;

namespace {

std::string nameOf(const testing::TestParamInfo<std::string> &info) {
  return info.param == "x86-64" ? "baseline" : info.param;
}

/// Lane l takes elements l, l + 16, …; then the tree 8, 4, 2, 1.
template <typename F> float sumOfLanes(int64_t length, F element) {
  float lanes[16];
  std::fill(lanes, lanes + 16, -0.0f);
  for (int64_t i = 0; i < length; ++i)
    lanes[i % 16] += element(i);
  for (int width = 8; width; width /= 2)
    for (int i = 0; i < width; ++i)
      lanes[i] += lanes[i + width];
  return lanes[0];
}

/// Panels of 64 columns from a matrix [k, n], padded with zeros.
Array<float> pack(const Array<float> &matrix, int64_t k, std::vector<int64_t> parts) {
  std::vector<float> packed;
  int64_t all = 0, first = 0;
  for (int64_t part : parts)
    all += part;
  for (int64_t part : parts) {
    for (int64_t panel = 0; panel < part; panel += 64)
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = panel; j < panel + 64; ++j)
          packed.push_back(j < part ? matrix[i * all + first + j] : 0);
    first += part;
  }
  return Array<float>(packed);
}

class Contract : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Contract, testing::ValuesIn(runnableLevels()), nameOf);

// Two parts with ragged widths, bias, an activation, a residual; every number of rows that tiles distinguish.
TEST_P(Contract, IsOneChainOfMultiplyAddsPerElement) {
  Kernels kernels(R"(
kernel.func @k symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<f32>, %b: !kernel.buffer<f32>, %r: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %z: !kernel.buffer<f32>):
  kernel.contract rows #transept.dim<rows> k 23 parts [100, 5]
      shapes [#transept.dims<[rows, 23]>, #transept.dims<[3, 23, 64]>, #transept.dims<[100]>, #transept.dims<[rows, 5]>, #transept.dims<[rows, 100]>, #transept.dims<[rows, 5]>]
      ins(%x, %w, %b, %r) outs(%y, %z) {
  ^bb1(%i: index, %j: index, %s: f32, %ba: !kernel.buffer<f32>, %ra: !kernel.buffer<f32>):
    %0 = kernel.load %ba[%j] : !kernel.buffer<f32> -> f32
    %1 = arith.addf %s, %0 : f32
    %c = arith.constant 0.0 : f32
    %2 = arith.maximumf %1, %c : f32
    kernel.yield %2 : f32
  }, {
  ^bb1(%i: index, %j: index, %s: f32, %ba: !kernel.buffer<f32>, %ra: !kernel.buffer<f32>):
    %0 = kernel.load %ra[%i, %j] : !kernel.buffer<f32> -> f32
    %1 = arith.addf %s, %0 : f32
    kernel.yield %1 : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
})",
                  GetParam());
  bool fused = GetParam() != "x86-64";
  const int64_t k = 23, n = 105;
  Array<float> w = randomFloats(k * n, 2), b = randomFloats(100, 3), packed = pack(w, k, {100, 5});
  for (int64_t rows : {0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 97, 200}) {
    Array<float> x = randomFloats(rows * k, 1), r = randomFloats(rows * 5, 4), y(rows * 100), z(rows * 5);
    kernels.run(0, {x.data(), packed.data(), b.data(), r.data(), y.data(), z.data()}, {rows}, 3);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum = fused ? std::fma(x[i * k + l], w[l * n + j], sum) : sum + x[i * k + l] * w[l * n + j];
        if (j < 100)
          ASSERT_EQ(y[i * 100 + j], std::max(0.0f, sum + b[j])) << rows << " " << i << " " << j;
        else
          ASSERT_EQ(z[i * 5 + j - 100], sum + r[i * 5 + j - 100]) << rows << " " << i << " " << j;
      }
  }
}

TEST_P(Contract, SkipsRowsThatAreNotLive) {
  Kernels kernels(R"(
kernel.func @k symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %live: !kernel.buffer<i32>):
  kernel.contract rows #transept.dim<rows> k 4 parts [64]
      shapes [#transept.dims<[rows, 4]>, #transept.dims<[1, 4, 64]>, #transept.dims<[rows, 64]>]
      ins(%x, %w) outs(%y) live(%live) {
  ^bb1(%i: index, %j: index, %s: f32):
    kernel.yield %s : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i32>) -> ()
})",
                  GetParam());
  Array<float> x(8 * 4, 1.0f), w(4 * 64, 2.0f), y(8 * 64, -1.0f);
  Array<int32_t> live(1, 3);
  kernels.run(0, {x.data(), w.data(), y.data(), live.data()}, {8});
  for (int64_t i = 0; i < 8 * 64; ++i)
    ASSERT_EQ(y[i], i < 3 * 64 ? 8.0f : -1.0f);
}

// Whoever has half of the items has half of those that are live, however few.
TEST_P(Contract, SharesLiveRows) {
  Kernels kernels(R"(
kernel.func @contract symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %live: !kernel.buffer<i32>):
  kernel.contract rows #transept.dim<rows> k 4 parts [128]
      shapes [#transept.dims<[rows, 4]>, #transept.dims<[2, 4, 64]>, #transept.dims<[rows, 128]>]
      ins(%x, %w) outs(%y) live(%live) {
  ^bb1(%i: index, %j: index, %s: f32):
    kernel.yield %s : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i32>) -> ()
}
kernel.func @integers symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<ui8>, %y: !kernel.buffer<f32>, %live: !kernel.buffer<i32>):
  kernel.contract rows #transept.dim<rows> k 4 parts [128]
      shapes [#transept.dims<[rows, 4]>, #transept.dims<[2, 1, 64, 4]>, #transept.dims<[rows, 128]>]
      ins(%x, %w) outs(%y) live(%live) attributes {quantised} {
  ^bb1(%i: index, %j: index, %s: f32):
    kernel.yield %s : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<ui8>, !kernel.buffer<f32>, !kernel.buffer<i32>) -> ()
}
kernel.func @map symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %live: !kernel.buffer<i32>):
  kernel.map domain [#transept.dim<rows>, #transept.dim<4>, #transept.dim<32>]
      shapes [#transept.dims<[rows, 4]>, #transept.dims<[rows, 4, 32]>] ins(%x) outs(%y) live(%live) {
  ^bb1(%i: index, %j: index, %l: index, %xa: !kernel.buffer<f32>):
    %0 = kernel.load %xa[%i, %j] : !kernel.buffer<f32> -> f32
    kernel.yield %0 : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i32>) -> ()
})",
                  GetParam());
  const int64_t rows = 200, columns = 128;
  Array<float> x(rows * 4, 1.0f), w(4 * columns, 2.0f);
  Array<uint8_t> narrow(4 * columns, 129);
  for (int32_t count : {0, 1, 10, 97, 200}) {
    Array<int32_t> live(1, count);
    for (unsigned kernel : {0, 1, 2}) {
      int64_t written[2], all = 0;
      for (int part : {0, 1}) {
        Array<float> y(rows * columns, -1.0f);
        std::vector<void *> buffers = {x.data(), kernel ? static_cast<void *>(narrow.data()) : w.data(), y.data(),
                                       live.data()};
        if (kernel == 2)
          buffers.erase(buffers.begin() + 1);
        kernels.runPart(kernel, buffers, {rows}, part, 2);
        written[part] = std::count_if(y.begin(), y.end(), [](float value) { return value != -1; });
        all += written[part];
      }
      EXPECT_EQ(all, count * columns) << kernel;
      // An item has 32 elements, or one panel and as many rows as the others, give or take one.
      EXPECT_LE(std::abs(written[0] - written[1]), kernel == 2  ? 32
                                                   : count > 96 ? 2 * 64
                                                                : 0)
          << kernel << " " << count;
    }
  }
}

class Rows : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Rows, testing::ValuesIn(runnableLevels()), nameOf);

// A layer norm without scale that also returns its means.
TEST_P(Rows, ReducesInLanesAndMaps) {
  Kernels kernels(R"(
kernel.func @k symbols ["rows", "n"] from "" {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %m: !kernel.buffer<f32>):
  kernel.rows rows #transept.dim<rows> length #transept.dim<n>
      shapes [#transept.dims<[rows, n]>, #transept.dims<[rows, n]>, #transept.dims<[rows]>]
      ins(%x) outs(%y, %m) {
  ^bb1(%row: index, %xa: !kernel.buffer<f32>):
    %sum = kernel.row_reduce "add" {
    ^bb2(%j: index):
      %0 = kernel.load %xa[%row, %j] : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    %n = kernel.size #transept.dim<n>
    %ni = arith.index_cast %n : index to i64
    %nf = arith.sitofp %ni : i64 to f32
    %mean = arith.divf %sum, %nf : f32
    %square = kernel.row_reduce "add" {
    ^bb2(%j: index):
      %0 = kernel.load %xa[%row, %j] : !kernel.buffer<f32> -> f32
      %1 = arith.subf %0, %mean : f32
      %2 = arith.mulf %1, %1 : f32
      kernel.yield %2 : f32
    } : f32
    %variance = arith.divf %square, %nf : f32
    %scale = math.rsqrt %variance : f32
    kernel.row_map 0 {
    ^bb2(%j: index):
      %0 = kernel.load %xa[%row, %j] : !kernel.buffer<f32> -> f32
      %1 = arith.subf %0, %mean : f32
      %2 = arith.mulf %1, %scale : f32
      kernel.yield %2 : f32
    }
    kernel.yield %mean : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
})",
                  GetParam());
  for (int64_t n : {1, 15, 16, 17, 48, 513}) {
    const int64_t rows = 3;
    Array<float> x = randomFloats(rows * n, 7), y(rows * n), m(rows);
    kernels.run(0, {x.data(), y.data(), m.data()}, {rows, n}, 2);
    for (int64_t i = 0; i < rows; ++i) {
      const float *row = x.begin() + i * n;
      float mean = sumOfLanes(n, [&](int64_t j) { return row[j]; }) / float(n);
      float variance = sumOfLanes(n, [&](int64_t j) { return (row[j] - mean) * (row[j] - mean); }) / float(n);
      float scale = 1 / std::sqrt(variance);
      EXPECT_EQ(m[i], mean) << n;
      for (int64_t j = 0; n > 1 && j < n; ++j)
        ASSERT_EQ(y[i * n + j], (row[j] - mean) * scale) << n;
    }
  }
}

// Reductions of integers, and one whose elements are strided (one at a time, but in the same lanes).
TEST_P(Rows, ReducesStridedAndIntegers) {
  Kernels kernels(R"(
kernel.func @k symbols ["rows", "n"] from "" {
^bb0(%x: !kernel.buffer<f32>, %t: !kernel.buffer<i64>, %s: !kernel.buffer<f32>, %a: !kernel.buffer<i64>):
  kernel.rows rows #transept.dim<rows> length #transept.dim<n>
      shapes [#transept.dims<[n, rows]>, #transept.dims<[rows, n]>, #transept.dims<[rows]>, #transept.dims<[rows]>]
      ins(%x, %t) outs(%s, %a) {
  ^bb1(%row: index, %xa: !kernel.buffer<f32>, %ta: !kernel.buffer<i64>):
    %sum = kernel.row_reduce "add" {
    ^bb2(%j: index):
      %0 = kernel.load %xa[%j, %row] : !kernel.buffer<f32> -> f32
      kernel.yield %0 : f32
    } : f32
    %most = kernel.row_reduce "max" {
    ^bb2(%j: index):
      %0 = kernel.load %ta[%row, %j] : !kernel.buffer<i64> -> i64
      kernel.yield %0 : i64
    } : i64
    kernel.yield %sum, %most : f32, i64
  } : (!kernel.buffer<f32>, !kernel.buffer<i64>, !kernel.buffer<f32>, !kernel.buffer<i64>) -> ()
})",
                  GetParam());
  const int64_t rows = 3, n = 37;
  Array<float> x = randomFloats(rows * n, 7), s(rows);
  Array<int64_t> t(rows * n), a(rows);
  for (int64_t i = 0; i < rows * n; ++i)
    t[i] = -1000 + i * 7919 % 501;
  kernels.run(0, {x.data(), t.data(), s.data(), a.data()}, {rows, n});
  for (int64_t i = 0; i < rows; ++i) {
    EXPECT_EQ(s[i], sumOfLanes(n, [&](int64_t j) { return x[j * rows + i]; }));
    EXPECT_EQ(a[i], *std::max_element(t.begin() + i * n, t.begin() + (i + 1) * n));
  }
}

} // namespace
