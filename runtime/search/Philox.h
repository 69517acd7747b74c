// Counter-based random numbers: Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
#ifndef TRANSEPT_RUNTIME_SEARCH_PHILOX_H
#define TRANSEPT_RUNTIME_SEARCH_PHILOX_H

#include <array>
#include <cstdint>

namespace transept::search {

/// Four random words for a counter and a key.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t(0xD2511F53) * counter[0], second = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(second >> 32) ^ counter[1] ^ key[0], uint32_t(second),
               uint32_t(first >> 32) ^ counter[3] ^ key[1], uint32_t(first)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

/// Draw `draw` of stream `stream`: a number in [0, 1) with 53 bits.
constexpr double uniformNumber(uint64_t seed, uint64_t stream, uint64_t draw) {
  std::array<uint32_t, 4> words =
      philox({uint32_t(draw), uint32_t(draw >> 32), uint32_t(stream), uint32_t(stream >> 32)},
             {uint32_t(seed), uint32_t(seed >> 32)});
  uint64_t bits = uint64_t(words[0]) << 32 | words[1];
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

} // namespace transept::search

#endif
