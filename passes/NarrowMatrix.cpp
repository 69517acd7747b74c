//===- NarrowMatrix.cpp - matrices in bf16 and in 8-bit integers ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/NarrowMatrix.h"
#include <cmath>
#include <cstdint>
#include <cstring>

using namespace mlir;
using namespace mlir::transept;

std::vector<char> transept::roundToBf16(ArrayRef<float> elements) {
  std::vector<char> rounded(elements.size() * sizeof(uint16_t));
  for (size_t i = 0; i < elements.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &elements[i], sizeof(bits));
    uint16_t high = std::isnan(elements[i]) ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    std::memcpy(rounded.data() + i * sizeof(high), &high, sizeof(high));
  }
  return rounded;
}

Int8Matrix transept::quantiseColumns(ArrayRef<float> elements, int64_t k, int64_t n, bool transposed) {
  constexpr float steps = 127;
  Int8Matrix result;
  result.elements.resize(elements.size());
  result.scales.assign(n, 0);
  auto columnOf = [&](int64_t i) { return transposed ? i / k : i % n; };
  for (int64_t i = 0, end = elements.size(); i < end; ++i) {
    float &largest = result.scales[columnOf(i)];
    largest = std::max(largest, std::fabs(elements[i]));
  }
  for (float &scale : result.scales)
    scale /= steps;
  for (int64_t i = 0, end = elements.size(); i < end; ++i) {
    float scale = result.scales[columnOf(i)];
    // A column of denormal numbers may have a scale of 0.
    float value = scale > 0 ? std::nearbyint(elements[i] / scale) : 0;
    result.elements[i] = static_cast<char>(static_cast<int>(std::min(steps, std::max(-steps, value))) + 128);
  }
  return result;
}
