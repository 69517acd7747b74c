// Bytes of an artifact file (.tsp). Everything is little-endian.
//
//   header   64 bytes: magic[8], format u32, abi u32, total bytes u64, section count u32, 0 u32, hash[32]
//   table    128 bytes per section: name[56], kind u32, 0 u32, offset u64, bytes u64, 0[16], hash[32]
//   sections in table order, each at the next multiple of its kind's alignment; bytes between are zero
//
// The header's hash is SHA-256 over its first 32 bytes and the table. A section's hash is SHA-256 of its bytes; for
// weights, of the hashes of their chunks of `weightChunkBytes`, which are the content of the section that follows them
// and is named "<name>.hashes". A file has exactly one form: no other order, gap or trailing byte is accepted.
#ifndef TRANSEPT_RUNTIME_ARTIFACTFORMAT_H
#define TRANSEPT_RUNTIME_ARTIFACTFORMAT_H

#include "runtime/Hash.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace transept {

// Like PNG's: a byte outside ASCII, line ends and an end-of-file mark show a transfer that altered them.
constexpr char artifactMagic[8] = {'\x89', 'T', 'S', 'P', '\r', '\n', '\x1a', '\n'};
constexpr uint32_t artifactFormatVersion = 1;
constexpr uint64_t artifactHeaderBytes = 64;
constexpr uint64_t artifactHashedHeaderBytes = 32;
constexpr uint64_t artifactTableEntryBytes = 128;
constexpr uint64_t artifactNameBytes = 56; // with the terminating zero
constexpr uint32_t artifactSectionLimit = 1024;
constexpr uint64_t weightChunkBytes = uint64_t(1) << 20;

enum class SectionKind : uint32_t { Manifest = 1, Code = 2, Spirv = 3, Weights = 4, ChunkHashes = 5, File = 6 };

constexpr const char *chunkHashesSuffix = ".hashes";

struct SectionInfo {
  std::string name; // of letters, digits and ._/- only
  SectionKind kind = SectionKind::File;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  Sha256 hash{};
};

inline uint64_t sectionAlignment(SectionKind kind) {
  return kind == SectionKind::Weights || kind == SectionKind::Code ? 4096 : 64;
}

inline uint64_t alignUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

inline uint64_t chunkCount(uint64_t weightBytes) {
  return weightBytes / weightChunkBytes + (weightBytes % weightChunkBytes != 0);
}

inline bool validSectionName(const std::string &name) {
  auto valid = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '/' || c == '-';
  };
  for (char c : name)
    if (!valid(c))
      return false;
  return !name.empty() && name.size() < artifactNameBytes;
}

template <typename T> T loadLittle(const uint8_t *bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(bytes[i]) << (8 * i);
  return value;
}

template <typename T> void storeLittle(uint8_t *bytes, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    bytes[i] = static_cast<uint8_t>(value >> (8 * i));
}

} // namespace transept

#endif
