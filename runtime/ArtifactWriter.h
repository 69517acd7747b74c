// Writes an artifact. Same sections, same bytes.
#ifndef TRANSEPT_RUNTIME_ARTIFACTWRITER_H
#define TRANSEPT_RUNTIME_ARTIFACTWRITER_H

#include "runtime/ArtifactFormat.h"
#include "runtime/Status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace transept {

/// Takes the next bytes of a section.
using ByteSink = std::function<Status(const void *data, uint64_t bytes)>;

/// A section to be written. `produce` passes exactly `bytes` bytes to the sink, in any number of pieces, so that large
/// weights need never be in memory as a whole.
struct ArtifactSection {
  std::string name;
  SectionKind kind = SectionKind::File;
  uint64_t bytes = 0;
  std::function<Status(const ByteSink &)> produce;

  static ArtifactSection fromBytes(std::string name, SectionKind kind, std::string content);
};

/// Writes `sections` in the given order: the serialised manifest first; at most one section of weights, whose chunk
/// hashes are added behind it. The file appears under `path` only when it is complete (AtomicFile).
Status writeArtifact(const std::string &path, const std::vector<ArtifactSection> &sections);

/// Takes bytes at an offset of the file; pieces do not overlap, and what is never given is zero.
using PutBytes = std::function<Status(uint64_t offset, const void *data, uint64_t bytes)>;

/// The same piece by piece; returns the length of the file. The header, without which it is no artifact, comes last.
Result<uint64_t> putArtifact(const std::vector<ArtifactSection> &sections, const PutBytes &put);

/// The same into memory, for tests; weights included.
Result<std::string> buildArtifact(const std::vector<ArtifactSection> &sections);

} // namespace transept

#endif
