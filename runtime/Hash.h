// SHA-256.
#ifndef TRANSEPT_RUNTIME_HASH_H
#define TRANSEPT_RUNTIME_HASH_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace transept {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(const void *data, size_t bytes);

/// Over two ranges as if they followed each other.
Sha256 sha256(const void *first, size_t firstBytes, const void *second, size_t secondBytes);

std::string hexadecimal(const Sha256 &hash);

} // namespace transept

#endif
