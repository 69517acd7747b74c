// Matrices in bf16 and in 8-bit integers.
#include "passes/NarrowMatrix.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace mlir;
using namespace mlir::transept;

namespace {

int byteAt(const Int8Matrix &matrix, size_t i) { return static_cast<uint8_t>(matrix.elements[i]) - 128; }

TEST(NarrowMatrix, EveryColumnHasItsScale) {
  // [2, 3]: columns (1, -2), (0, 0), (254, 1).
  Int8Matrix matrix = quantiseColumns({1, 0, 254, -2, 0, 1}, 2, 3, /*transposed=*/false);
  EXPECT_EQ(matrix.scales, (std::vector<float>{2.0f / 127, 0, 2}));
  // 63.5 and 0.5 are halves: to even.
  const int expected[] = {64, 0, 127, -127, 0, 0};
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(byteAt(matrix, i), expected[i]) << i;
}

TEST(NarrowMatrix, ColumnsOfATransposedMatrixAreItsRows) {
  Int8Matrix matrix = quantiseColumns({1, -2, 0, 0, 254, 1}, 2, 3, /*transposed=*/true);
  EXPECT_EQ(matrix.scales, (std::vector<float>{2.0f / 127, 0, 2}));
  const int expected[] = {64, -127, 0, 0, 127, 0};
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(byteAt(matrix, i), expected[i]) << i;
}

TEST(NarrowMatrix, TheLargestAndTheSmallestFloats) {
  constexpr float largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::denorm_min();
  Int8Matrix matrix = quantiseColumns({largest, smallest, -largest, -smallest}, 2, 2, /*transposed=*/false);
  EXPECT_EQ(byteAt(matrix, 0), 127);
  EXPECT_EQ(byteAt(matrix, 2), -127);
  EXPECT_EQ(matrix.scales[1], 0);
  EXPECT_EQ(byteAt(matrix, 1), 0);
}

TEST(NarrowMatrix, Bf16RoundsToNearestEven) {
  auto rounded = [](uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    std::vector<char> bytes = roundToBf16(value);
    uint16_t result;
    std::memcpy(&result, bytes.data(), sizeof(result));
    return result;
  };
  EXPECT_EQ(rounded(0x3f808000), 0x3f80); // half, to the even one below
  EXPECT_EQ(rounded(0x3f818000), 0x3f82); // half, to the even one above
  EXPECT_EQ(rounded(0x3f808001), 0x3f81);
  EXPECT_EQ(rounded(0xbf80ffff), 0xbf81);
  EXPECT_EQ(rounded(0x7f7fffff), 0x7f80); // overflows to infinity
  EXPECT_EQ(rounded(0x7f800000), 0x7f80);
  EXPECT_EQ(rounded(0x7f800001), 0x7fc0); // NaN stays one
  EXPECT_EQ(rounded(0x00008001), 0x0001); // denormal numbers stay
}

} // namespace
