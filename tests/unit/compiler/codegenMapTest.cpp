// kernel.map: values by plain C++, levels and splits against each other.
#include "tests/unit/compiler/codegenHarness.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace codegen_test;

namespace {

class Map : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Map, testing::ValuesIn(runnableLevels()),
                         [](const auto &info) { return info.param == "x86-64" ? "baseline" : info.param; });

TEST_P(Map, AddsARowToEveryRow) {
  Kernels kernels(R"(
kernel.func @k symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %b: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map domain [#transept.dim<rows>, #transept.dim<37>]
      shapes [#transept.dims<[rows, 37]>, #transept.dims<[37]>, #transept.dims<[rows, 37]>]
      ins(%x, %b) outs(%y) {
  ^bb1(%i: index, %j: index, %xa: !kernel.buffer<f32>, %ba: !kernel.buffer<f32>):
    %0 = kernel.load %xa[%i, %j] : !kernel.buffer<f32> -> f32
    %1 = kernel.load %ba[%j] : !kernel.buffer<f32> -> f32
    %2 = arith.addf %0, %1 : f32
    %c = arith.constant 0.0 : f32
    %3 = arith.maximumf %2, %c : f32
    kernel.yield %3 : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
})",
                  GetParam());
  int64_t rows = 5;
  Array<float> x = randomFloats(rows * 37, 1), b = randomFloats(37, 2), y(rows * 37);
  kernels.run(0, {x.data(), b.data(), y.data()}, {rows}, 3);
  for (int64_t i = 0; i < rows * 37; ++i)
    EXPECT_EQ(y[i], std::max(0.0f, x[i] + b[i % 37]));
}

// An embedding: the row comes from data, out of range is reported and clamped.
TEST_P(Map, GathersRowsAndReportsTheFirstIndexOutOfRange) {
  Kernels kernels(R"(
kernel.func @k symbols ["batch", "source"] from "" {
^bb0(%ids: !kernel.buffer<i64>, %table: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map domain [#transept.dim<batch>, #transept.dim<source>, #transept.dim<20>]
      shapes [#transept.dims<[batch, source]>, #transept.dims<[7, 20]>, #transept.dims<[batch, source, 20]>]
      ins(%ids, %table) outs(%y) {
  ^bb1(%i: index, %j: index, %k: index, %ia: !kernel.buffer<i64>, %ta: !kernel.buffer<f32>):
    %0 = kernel.load %ia[%i, %j] : !kernel.buffer<i64> -> i64
    %1 = arith.index_cast %0 : i64 to index
    %n = kernel.size #transept.dim<7>
    %2 = kernel.bounded %1 below %n reports %1 check "ids" {id = 4 : i64}
    %3 = kernel.load %ta[%2, %k] : !kernel.buffer<f32> -> f32
    kernel.yield %3 : f32
  } : (!kernel.buffer<i64>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
})",
                  GetParam());
  Array<int64_t> ids(std::vector<int64_t>{0, 6, 3, 5, 1, 2});
  Array<float> table = randomFloats(7 * 20, 1), y(6 * 20);
  kernels.run(0, {ids.data(), table.data(), y.data()}, {2, 3}, 2);
  for (int64_t i = 0; i < 6 * 20; ++i)
    EXPECT_EQ(y[i], table[ids[i / 20] * 20 + i % 20]);
  EXPECT_EQ(kernels.error.id, 0);
  ids[4] = 7;
  ids[1] = -9;
  kernels.run(0, {ids.data(), table.data(), y.data()}, {2, 3});
  EXPECT_EQ(kernels.error.id, 4);
  EXPECT_EQ(kernels.error.value, -9);
  EXPECT_EQ(y[4 * 20], table[6 * 20]);
  EXPECT_EQ(y[1 * 20], table[0]);
}

TEST_P(Map, TransposesAndLoops) {
  Kernels kernels(R"(
kernel.func @k symbols ["n", "m"] from "" {
^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>, %z: !kernel.buffer<i1>):
  kernel.map domain [#transept.dim<n>, #transept.dim<m>]
      shapes [#transept.dims<[m, n]>, #transept.dims<[n, m]>, #transept.dims<[n, m]>]
      ins(%x) outs(%y, %z) {
  ^bb1(%i: index, %j: index, %xa: !kernel.buffer<f32>):
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %s = scf.for %k = %c0 to %j step %c1 iter_args(%a = %zero) -> f32 {
      %v = kernel.load %xa[%k, %i] : !kernel.buffer<f32> -> f32
      %t = arith.addf %a, %v : f32
      scf.yield %t : f32
    }
    %p = arith.cmpf ogt, %s, %zero : f32
    kernel.yield %s, %p : f32, i1
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i1>) -> ()
})",
                  GetParam());
  int64_t n = 3, m = 18;
  Array<float> x = randomFloats(n * m, 1), y(n * m);
  Array<uint8_t> z(n * m);
  kernels.run(0, {x.data(), y.data(), z.data()}, {n, m}, 3);
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < m; ++j) {
      EXPECT_EQ(y[i * m + j], sum);
      EXPECT_EQ(z[i * m + j], sum > 0 ? 1 : 0);
      sum += x[j * n + i];
    }
  }
}

// Positions as values, i1 as bytes, integers of several widths, dimensions of size one.
TEST_P(Map, MixesTypes) {
  Kernels kernels(R"(
kernel.func @k symbols ["n"] from "" {
^bb0(%x: !kernel.buffer<i8>, %m: !kernel.buffer<i1>, %y: !kernel.buffer<i64>, %h: !kernel.buffer<f16>, %w: !kernel.buffer<bf16>):
  kernel.map domain [#transept.dim<n>]
      shapes [#transept.dims<[n, 1]>, #transept.dims<[n]>, #transept.dims<[n]>, #transept.dims<[n]>, #transept.dims<[n]>]
      ins(%x, %m) outs(%y, %h, %w) {
  ^bb1(%i: index, %xa: !kernel.buffer<i8>, %ma: !kernel.buffer<i1>):
    %c0 = arith.constant 0 : index
    %0 = kernel.load %xa[%i, %c0] : !kernel.buffer<i8> -> i8
    %1 = arith.extsi %0 : i8 to i64
    %2 = arith.index_cast %i : index to i64
    %3 = arith.divsi %2, %1 : i64
    %4 = kernel.load %ma[%i] : !kernel.buffer<i1> -> i1
    %5 = arith.select %4, %3, %1 : i64
    %6 = arith.sitofp %0 : i8 to f32
    %k = arith.constant 1.0009765 : f32
    %7 = arith.mulf %6, %k : f32
    %8 = arith.truncf %7 : f32 to f16
    %9 = arith.truncf %7 : f32 to bf16
    kernel.yield %5, %8, %9 : i64, f16, bf16
  } : (!kernel.buffer<i8>, !kernel.buffer<i1>, !kernel.buffer<i64>, !kernel.buffer<f16>, !kernel.buffer<bf16>) -> ()
})",
                  GetParam());
  int64_t n = 100;
  Array<int8_t> x(n);
  Array<uint8_t> m(n);
  Array<int64_t> y(n);
  Array<_Float16> h(n);
  Array<uint16_t> w(n);
  for (int64_t i = 0; i < n; ++i) {
    x[i] = int8_t(i * 37);
    m[i] = i % 3 == 0 ? 0 : uint8_t(i); // any non-zero byte is true
  }
  x[5] = 0; // no trap
  x[7] = -1;
  kernels.run(0, {x.data(), m.data(), y.data(), h.data(), w.data()}, {n});
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(y[i], m[i] ? (x[i] ? i / x[i] : 0) : x[i]) << i;
    float scaled = float(x[i]) * 1.0009765f;
    EXPECT_EQ(float(h[i]), float(_Float16(scaled))) << i;
    uint32_t bits;
    memcpy(&bits, &scaled, 4);
    EXPECT_EQ(w[i], (bits + 0x7fff + (bits >> 16 & 1)) >> 16) << i;
  }
}

// Adjacent dimensions become one: seen by the number of items, which follows from long chunks.
TEST(MapSchedule, MergesDimensions) {
  mlir::MLIRContext context;
  Kernels kernels(R"(
kernel.func @k symbols ["a", "b"] from "" {
^bb0(%x: !kernel.buffer<f32>, %s: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.map domain [#transept.dim<a>, #transept.dim<b>, #transept.dim<3>]
      shapes [#transept.dims<[a, b, 3]>, #transept.dims<[]>, #transept.dims<[a, b, 3]>]
      ins(%x, %s) outs(%y) {
  ^bb1(%i: index, %j: index, %k: index, %xa: !kernel.buffer<f32>, %sa: !kernel.buffer<f32>):
    %0 = kernel.load %xa[%i, %j, %k] : !kernel.buffer<f32> -> f32
    %1 = kernel.load %sa[] : !kernel.buffer<f32> -> f32
    %2 = arith.divf %0, %1 : f32
    kernel.yield %2 : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
})",
                  runnableLevels().front());
  EXPECT_EQ(mlir::transept::toString(kernels.items(0)), "floordiv(3 * a * b + 1023, 1024)");
  Array<float> x = randomFloats(7 * 100 * 3, 1), s(1, 3.0f), y(7 * 100 * 3);
  kernels.run(0, {x.data(), s.data(), y.data()}, {7, 100}, 2);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(y[i], x[i] / 3.0f);
}

} // namespace
