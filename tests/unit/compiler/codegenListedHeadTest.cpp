// kernel.search_head of listed tokens: the logits of the whole product, bit for bit, from columns kept between steps.
#include "tests/unit/compiler/codegenHarness.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace codegen_test;

namespace {

constexpr int64_t V = 500, K = 70, panels = 8, listed = 128;

class ListedHead : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, ListedHead, testing::ValuesIn(runnableLevels()), [](const auto &info) {
  return info.param == "x86-64" ? std::string("baseline") : info.param;
});

// The product as @step has it, with and without bias, and the heads.
const char *text = R"(
kernel.func @whole symbols ["rows"] from "" {
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
kernel.func @plain symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.contract rows #transept.dim<rows> k 70 parts [500]
      shapes [#transept.dims<[rows, 70]>, #transept.dims<[8, 70, 64]>, #transept.dims<[rows, 500]>] ins(%x, %w) outs(%y) {
  ^bb1(%r: index, %n: index, %sum: f32):
    kernel.yield %sum : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
}
kernel.func @listed symbols ["rows", "listed"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<f32>, %t: !kernel.buffer<i32>, %f: !kernel.buffer<i32>, %c: !kernel.buffer<f32>, %b: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.search_head shapes [#transept.dims<[rows, 70]>, #transept.dims<[8, 70, 64]>, #transept.dims<[listed * 64]>, #transept.dims<[listed]>,
      #transept.dims<[listed, 71, 64]>, #transept.dims<[500]>, #transept.dims<[rows, listed * 64]>] ins(%x, %w, %t, %f, %c, %b) outs(%y)
      {vocabulary = 500 : i64, blockSize = 2048 : i64, listed}
      : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i32>, !kernel.buffer<i32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
}
kernel.func @listed_plain symbols ["rows", "listed"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<f32>, %t: !kernel.buffer<i32>, %f: !kernel.buffer<i32>, %c: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.search_head shapes [#transept.dims<[rows, 70]>, #transept.dims<[8, 70, 64]>, #transept.dims<[listed * 64]>, #transept.dims<[listed]>,
      #transept.dims<[listed, 71, 64]>, #transept.dims<[rows, listed * 64]>] ins(%x, %w, %t, %f, %c) outs(%y)
      {vocabulary = 500 : i64, blockSize = 2048 : i64, listed}
      : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i32>, !kernel.buffer<i32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
}
)";

TEST_P(ListedHead, GivesTheBitsOfTheWholeProduct) {
  Kernels kernels(text, GetParam());
  for (int64_t rows : {1, 7, 128})
    for (bool hasBias : {true, false}) {
      Array<float> w = randomFloats(panels * K * 64, 1), bias = randomFloats(V, 2), x = randomFloats(rows * K, 3);
      Array<float> whole(rows * V), logits(rows * listed), columns(2 * (K + 1) * 64, 0.0f);
      Array<int32_t> tokens(listed, -1), fresh(2, 1);
      auto compute = [&] {
        if (hasBias) {
          kernels.run(0, {x.data(), w.data(), bias.data(), whole.data()}, {rows});
          kernels.run(2, {x.data(), w.data(), tokens.data(), fresh.data(), columns.data(), bias.data(), logits.data()},
                      {rows, 2}, 3);
        } else {
          kernels.run(1, {x.data(), w.data(), whole.data()}, {rows});
          kernels.run(3, {x.data(), w.data(), tokens.data(), fresh.data(), columns.data(), logits.data()}, {rows, 2},
                      3);
        }
      };
      auto expectListed = [&](int64_t from, int64_t to) {
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t i = from; i < to; ++i)
            ASSERT_EQ(std::memcmp(&logits[r * listed + i], &whole[r * V + tokens[i]], sizeof(float)), 0)
                << "row " << r << ", place " << i << ", bias " << hasBias;
      };
      for (int64_t i = 0; i < 90; ++i)
        tokens[i] = static_cast<int32_t>(i * 211 % V); // in no order
      compute();
      expectListed(0, 90);

      // What is not fresh is neither read again nor changed.
      fresh[0] = 0;
      const std::vector<int32_t> kept(tokens.begin(), tokens.begin() + 64);
      std::fill(tokens.begin(), tokens.begin() + 64, 0);
      for (int64_t i = 90; i < listed; ++i)
        tokens[i] = static_cast<int32_t>(i + 300);
      x[0] = 2;
      compute();
      std::copy(kept.begin(), kept.end(), tokens.begin());
      expectListed(0, listed);
    }
}

} // namespace
