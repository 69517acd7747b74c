#include "runtime/ArtifactWriter.h"

#include "runtime/AtomicFile.h"
#include "transept/abi.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

namespace transept {

namespace {

/// SHA-256 of a stream; where `chunked`, of each chunk, in order.
class StreamHash {
public:
  explicit StreamHash(bool chunked) : chunked_(chunked), context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { begin(); }

  void add(const void *data, uint64_t bytes) {
    auto *from = static_cast<const uint8_t *>(data);
    while (bytes > 0) {
      uint64_t piece = chunked_ ? std::min(bytes, weightChunkBytes - filled_) : bytes;
      valid_ &= EVP_DigestUpdate(context_.get(), from, piece) == 1;
      from += piece;
      bytes -= piece;
      filled_ += piece;
      if (chunked_ && filled_ == weightChunkBytes)
        end();
    }
  }

  /// The hashes, one after another; empty where the digest failed.
  std::string finish() {
    if (!chunked_ || filled_ > 0)
      end();
    return valid_ ? hashes_ : "";
  }

private:
  void begin() {
    valid_ &= context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
    filled_ = 0;
  }
  void end() {
    Sha256 hash{};
    valid_ &= EVP_DigestFinal_ex(context_.get(), hash.data(), nullptr) == 1;
    hashes_.append(reinterpret_cast<const char *>(hash.data()), hash.size());
    begin();
  }

  bool chunked_;
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  bool valid_ = true;
  uint64_t filled_ = 0;
  std::string hashes_;
};

Status internal(const std::string &why) { return {Code::Internal, "cannot write the artifact: " + why}; }

/// The table with offsets, chunk-hash rows added; hashes still empty.
Result<std::vector<SectionInfo>> layOut(const std::vector<ArtifactSection> &sections) {
  std::vector<SectionInfo> table;
  for (const ArtifactSection &section : sections) {
    if (!validSectionName(section.name) || section.name.size() + sizeof ".hashes" > artifactNameBytes)
      return internal("section name '" + printable(section.name) + "'");
    table.push_back({section.name, section.kind, 0, section.bytes, {}});
    if (section.kind == SectionKind::Weights)
      table.push_back({section.name + chunkHashesSuffix,
                       SectionKind::ChunkHashes,
                       0,
                       chunkCount(section.bytes) * sizeof(Sha256),
                       {}});
  }
  uint64_t end = artifactHeaderBytes + table.size() * artifactTableEntryBytes;
  for (SectionInfo &row : table) {
    row.offset = alignUp(end, sectionAlignment(row.kind));
    end = row.offset + row.bytes;
  }
  if (table.empty() || table[0].kind != SectionKind::Manifest || table.size() > artifactSectionLimit)
    return internal("the manifest must be the first of at most " + std::to_string(artifactSectionLimit) + " sections");
  return table;
}

/// Streams one section to its place and returns its hash or chunk hashes.
Result<std::string> putSection(const ArtifactSection &section, const SectionInfo &row, const PutBytes &put) {
  StreamHash hash(section.kind == SectionKind::Weights);
  uint64_t position = 0;
  TRANSEPT_TRY(section.produce([&](const void *data, uint64_t bytes) -> Status {
    if (bytes > row.bytes - position)
      return internal("section '" + row.name + "' is larger than announced");
    TRANSEPT_TRY(put(row.offset + position, data, bytes));
    hash.add(data, bytes);
    position += bytes;
    return {};
  }));
  if (position != row.bytes)
    return internal("section '" + row.name + "' is smaller than announced");
  std::string hashes = hash.finish();
  if (hashes.empty() && row.bytes > 0)
    return internal("SHA-256 is not available");
  return hashes;
}

void setHash(SectionInfo &row, const std::string &bytes) {
  std::copy_n(bytes.begin(), row.hash.size(), row.hash.begin());
}

/// Header and table.
std::string encodeFront(const std::vector<SectionInfo> &table) {
  std::vector<uint8_t> front(artifactHeaderBytes + table.size() * artifactTableEntryBytes);
  std::copy_n(artifactMagic, sizeof artifactMagic, front.begin());
  storeLittle<uint32_t>(&front[8], artifactFormatVersion);
  storeLittle<uint32_t>(&front[12], TRANSEPT_ABI_VERSION);
  storeLittle<uint64_t>(&front[16], table.back().offset + table.back().bytes);
  storeLittle<uint32_t>(&front[24], static_cast<uint32_t>(table.size()));
  for (size_t i = 0; i < table.size(); ++i) {
    uint8_t *row = &front[artifactHeaderBytes + i * artifactTableEntryBytes];
    std::copy(table[i].name.begin(), table[i].name.end(), row);
    storeLittle<uint32_t>(row + 56, static_cast<uint32_t>(table[i].kind));
    storeLittle<uint64_t>(row + 64, table[i].offset);
    storeLittle<uint64_t>(row + 72, table[i].bytes);
    std::copy(table[i].hash.begin(), table[i].hash.end(), row + 96);
  }
  Sha256 hash = sha256(front.data(), artifactHashedHeaderBytes, front.data() + artifactHeaderBytes,
                       front.size() - artifactHeaderBytes);
  std::copy(hash.begin(), hash.end(), front.begin() + artifactHashedHeaderBytes);
  return std::string(front.begin(), front.end());
}

Status putAll(const std::vector<ArtifactSection> &sections, std::vector<SectionInfo> table, const PutBytes &put) {
  size_t row = 0;
  for (const ArtifactSection &section : sections) {
    SectionInfo &info = table[row++];
    TRANSEPT_ASSIGN(std::string hashes, putSection(section, info, put));
    if (section.kind != SectionKind::Weights) {
      setHash(info, hashes);
      continue;
    }
    info.hash = table[row].hash = sha256(hashes.data(), hashes.size());
    TRANSEPT_TRY(put(table[row++].offset, hashes.data(), hashes.size()));
  }
  std::string front = encodeFront(table);
  return put(0, front.data(), front.size());
}

} // namespace

ArtifactSection ArtifactSection::fromBytes(std::string name, SectionKind kind, std::string content) {
  uint64_t bytes = content.size();
  return {std::move(name), kind, bytes,
          [content = std::move(content)](const ByteSink &sink) { return sink(content.data(), content.size()); }};
}

Status writeArtifact(const std::string &path, const std::vector<ArtifactSection> &sections) {
  TRANSEPT_ASSIGN(std::vector<SectionInfo> table, layOut(sections));
  TRANSEPT_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRANSEPT_TRY(file.reserve(table.back().offset + table.back().bytes));
  TRANSEPT_TRY(putAll(sections, std::move(table), [&](uint64_t offset, const void *data, uint64_t bytes) {
    return file.write(offset, data, bytes);
  }));
  return file.commit();
}

Result<uint64_t> putArtifact(const std::vector<ArtifactSection> &sections, const PutBytes &put) {
  TRANSEPT_ASSIGN(std::vector<SectionInfo> table, layOut(sections));
  const uint64_t length = table.back().offset + table.back().bytes;
  TRANSEPT_TRY(putAll(sections, std::move(table), put));
  return length;
}

Result<std::string> buildArtifact(const std::vector<ArtifactSection> &sections) {
  TRANSEPT_ASSIGN(std::vector<SectionInfo> table, layOut(sections));
  std::string out(table.back().offset + table.back().bytes, '\0');
  TRANSEPT_TRY(putAll(sections, std::move(table), [&](uint64_t offset, const void *data, uint64_t bytes) -> Status {
    std::copy_n(static_cast<const char *>(data), bytes, out.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }));
  return out;
}

} // namespace transept
