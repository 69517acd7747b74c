#include "runtime/Artifact.h"

#include "runtime/VerifyManifest.h"
#include "transept/abi.h"

#include <google/protobuf/stubs/common.h>
#if GOOGLE_PROTOBUF_VERSION < 4022000
#include <google/protobuf/stubs/logging.h>
#endif

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>

namespace transept {

namespace {

Status refuse(std::string why) { return {Code::ArtifactRefused, std::move(why)}; }

bool allZero(const uint8_t *bytes, uint64_t count) {
  return std::all_of(bytes, bytes + count, [](uint8_t byte) { return byte == 0; });
}

/// Decodes one row of the table; false where a byte that must be zero is not, or the name has a forbidden character.
bool decodeSection(const uint8_t *row, SectionInfo &section) {
  const char *name = reinterpret_cast<const char *>(row);
  section.name.assign(name, strnlen(name, artifactNameBytes));
  section.kind = static_cast<SectionKind>(loadLittle<uint32_t>(row + 56));
  section.offset = loadLittle<uint64_t>(row + 64);
  section.bytes = loadLittle<uint64_t>(row + 72);
  std::copy_n(row + 96, section.hash.size(), section.hash.begin());
  return validSectionName(section.name) &&
         allZero(row + section.name.size(), artifactNameBytes - section.name.size()) && allZero(row + 60, 4) &&
         allZero(row + 80, 16);
}

bool knownKind(SectionKind kind) { return kind >= SectionKind::Manifest && kind <= SectionKind::File; }

} // namespace

/// One reading of one file: the steps in the order in which they may trust each other.
class ArtifactReader {
public:
  ArtifactReader(const ByteSource &source, const ArtifactOptions &options) : source_(source), options_(options) {}

  Result<Artifact> read() {
    TRANSEPT_TRY(readHeader());
    TRANSEPT_TRY(readTable());
    TRANSEPT_TRY(checkLayout());
    TRANSEPT_TRY(readContents());
    TRANSEPT_TRY(readWeights());
    TRANSEPT_TRY(parseManifest());
    return std::move(artifact_);
  }

private:
  Status readHeader();
  Status readTable();
  Status checkLayout();
  Status readContents();
  Status readWeights();
  Status readChunks(const SectionInfo &section, const uint8_t *hashes);
  Status parseManifest();

  const ByteSource &source_;
  const ArtifactOptions &options_;
  Artifact artifact_;
  uint8_t header_[artifactHeaderBytes] = {};
  uint32_t sectionCount_ = 0;
};

Status ArtifactReader::readHeader() {
  uint64_t size = source_.size();
  if (size < artifactHeaderBytes)
    return refuse("is not a Transept artifact: " + std::to_string(size) + " bytes are less than its header");
  TRANSEPT_TRY(source_.read(0, header_, sizeof header_));
  if (std::memcmp(header_, artifactMagic, sizeof artifactMagic) != 0)
    return refuse("is not a Transept artifact");
  uint64_t total = loadLittle<uint64_t>(header_ + 16);
  if (total != size)
    return refuse("is cut or extended: expected " + std::to_string(total) + " bytes, has " + std::to_string(size));
  sectionCount_ = loadLittle<uint32_t>(header_ + 24);
  if (sectionCount_ == 0 || sectionCount_ > artifactSectionLimit ||
      artifactHeaderBytes + sectionCount_ * artifactTableEntryBytes > size)
    return refuse("states " + std::to_string(sectionCount_) + " sections in " + std::to_string(size) + " bytes");
  artifact_.fileBytes_ = size;
  return {};
}

Status ArtifactReader::readTable() {
  std::vector<uint8_t> table(sectionCount_ * artifactTableEntryBytes);
  TRANSEPT_TRY(source_.read(artifactHeaderBytes, table.data(), table.size()));
  Sha256 hash = sha256(header_, artifactHashedHeaderBytes, table.data(), table.size());
  if (std::memcmp(hash.data(), header_ + artifactHashedHeaderBytes, hash.size()) != 0)
    return refuse("is damaged: header and section table do not match their hash");
  uint32_t version = loadLittle<uint32_t>(header_ + 8), abi = loadLittle<uint32_t>(header_ + 12);
  if (version != artifactFormatVersion)
    return refuse("has format version " + std::to_string(version) + ", this runtime reads " +
                  std::to_string(artifactFormatVersion) + "; compile the model again");
  if (abi != TRANSEPT_ABI_VERSION)
    return refuse("has kernels of ABI version " + std::to_string(abi) + ", this runtime calls " +
                  std::to_string(TRANSEPT_ABI_VERSION) + "; compile the model again");
  if (!allZero(header_ + 28, 4))
    return refuse("has an unknown header field");
  artifact_.sections_.resize(sectionCount_);
  for (uint32_t i = 0; i < sectionCount_; ++i)
    if (!decodeSection(table.data() + i * artifactTableEntryBytes, artifact_.sections_[i]))
      return refuse("has a malformed section table at row " + std::to_string(i));
  return {};
}

Status ArtifactReader::checkLayout() {
  const std::vector<SectionInfo> &sections = artifact_.sections_;
  uint64_t end = artifactHeaderBytes + sectionCount_ * artifactTableEntryBytes;
  for (size_t i = 0; i < sections.size(); ++i) {
    const SectionInfo &section = sections[i];
    if (!knownKind(section.kind))
      return refuse("section '" + section.name + "' is of unknown kind " +
                    std::to_string(static_cast<uint32_t>(section.kind)));
    uint64_t offset = alignUp(end, sectionAlignment(section.kind));
    if (section.offset != offset || offset > artifact_.fileBytes_ || section.bytes > artifact_.fileBytes_ - offset)
      return refuse("section '" + section.name + "' is not where it must be: offset " + std::to_string(section.offset) +
                    ", " + std::to_string(section.bytes) + " bytes, expected offset " + std::to_string(offset));
    std::vector<uint8_t> padding(offset - end); // below the largest alignment
    TRANSEPT_TRY(source_.read(end, padding.data(), padding.size()));
    if (!allZero(padding.data(), padding.size()))
      return refuse("is damaged: bytes before section '" + section.name + "' are not zero");
    for (size_t j = 0; j < i; ++j)
      if (sections[j].name == section.name)
        return refuse("has two sections '" + section.name + "'");
    if ((section.kind == SectionKind::Manifest) != (i == 0))
      return refuse("must hold one manifest, as its first section");
    const bool follows = i > 0 && sections[i - 1].kind == SectionKind::Weights;
    if ((section.kind == SectionKind::ChunkHashes) != follows ||
        (follows && (section.name != sections[i - 1].name + chunkHashesSuffix ||
                     section.bytes != chunkCount(sections[i - 1].bytes) * sizeof(Sha256))))
      return refuse("section '" + section.name + "' does not fit the weights before it");
    end = offset + section.bytes;
  }
  if (sections.back().kind == SectionKind::Weights)
    return refuse("has weights without hashes");
  if (end != artifact_.fileBytes_)
    return refuse("has " + std::to_string(artifact_.fileBytes_ - end) + " bytes after its last section");
  return {};
}

Status ArtifactReader::readContents() {
  for (const SectionInfo &section : artifact_.sections_) {
    std::vector<uint8_t> content(section.kind == SectionKind::Weights ? 0 : section.bytes);
    if (section.kind != SectionKind::Weights) {
      TRANSEPT_TRY(source_.read(section.offset, content.data(), content.size()));
      if (sha256(content.data(), content.size()) != section.hash)
        return refuse("is damaged: section '" + section.name + "' does not match its hash");
    }
    artifact_.contents_.push_back(std::move(content));
  }
  return {};
}

Status ArtifactReader::readWeights() {
  for (size_t i = 0; i < artifact_.sections_.size(); ++i) {
    const SectionInfo &section = artifact_.sections_[i];
    if (section.kind != SectionKind::Weights)
      continue;
    if (artifact_.weightBytes_ != 0 || artifact_.weights_.data())
      return refuse("has more than one section of weights");
    const std::vector<uint8_t> &hashes = artifact_.contents_[i + 1];
    if (section.hash != artifact_.sections_[i + 1].hash)
      return refuse("is damaged: hashes of '" + section.name + "' do not belong to it");
    artifact_.weightBytes_ = section.bytes;
    if (options_.weights == ArtifactOptions::Weights::Skip)
      continue;
    bool map = options_.weights == ArtifactOptions::Weights::Map;
    TRANSEPT_ASSIGN(artifact_.weights_,
                    map ? source_.map(section.offset, section.bytes) : Block::allocate(section.bytes));
    TRANSEPT_TRY(readChunks(section, hashes.data()));
  }
  return {};
}

Status ArtifactReader::readChunks(const SectionInfo &section, const uint8_t *hashes) {
  const uint64_t chunks = chunkCount(section.bytes);
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  Status first;
  auto work = [&] {
    for (uint64_t i = next++; i < chunks; i = next++) {
      uint64_t begin = i * weightChunkBytes, bytes = std::min(weightChunkBytes, section.bytes - begin);
      uint8_t *data = artifact_.weights_.data() + begin;
      Status status;
      if (options_.weights == ArtifactOptions::Weights::Read)
        status = source_.read(section.offset + begin, data, bytes);
      if (status.ok() && std::memcmp(sha256(data, bytes).data(), hashes + i * sizeof(Sha256), sizeof(Sha256)) != 0)
        status = refuse("is damaged: section '" + section.name + "' does not match its hash in bytes " +
                        std::to_string(begin) + " to " + std::to_string(begin + bytes - 1));
      if (status.ok())
        continue;
      std::lock_guard<std::mutex> lock(mutex);
      if (first.ok())
        first = status;
      next = chunks;
    }
  };
  std::vector<std::thread> helpers;
  try {
    for (uint64_t i = 1; i < std::min<uint64_t>(static_cast<uint64_t>(std::max(options_.threads, 1)), chunks); ++i)
      helpers.emplace_back(work);
  } catch (const std::system_error &) {
    // No more threads: those that exist do the work.
  }
  work();
  for (std::thread &helper : helpers)
    helper.join();
  return first;
}

Status ArtifactReader::parseManifest() {
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::LogSilencer quiet; // it would print where a string is not UTF-8
#endif
  const std::vector<uint8_t> &bytes = artifact_.contents_[0];
  artifact_.manifest_ = std::make_unique<program::Manifest>();
  if (bytes.size() > (uint64_t(1) << 30) ||
      !artifact_.manifest_->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return refuse("has a manifest that cannot be decoded");
  std::string again;
  if (!artifact_.manifest_->SerializeToString(&again) || again.size() != bytes.size() ||
      !std::equal(again.begin(), again.end(), bytes.begin(),
                  [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }))
    return refuse("has a manifest that is not in canonical form");
  artifact_.contents_[0].clear();
  return verifyManifest(*artifact_.manifest_, artifact_.sections_);
}

Result<Artifact> Artifact::read(const ByteSource &source, const ArtifactOptions &options) {
  return ArtifactReader(source, options).read();
}

Result<Artifact> Artifact::read(const std::string &path, const ArtifactOptions &options) {
  TRANSEPT_ASSIGN(std::unique_ptr<ByteSource> source, openFile(path));
  return read(*source, options);
}

Span<const uint8_t> Artifact::section(std::string_view name) const {
  for (size_t i = 0; i < sections_.size(); ++i)
    if (sections_[i].name == name)
      return contents_[i];
  return {};
}

} // namespace transept
