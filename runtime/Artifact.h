// Reads and checks an artifact. After a successful read nothing in the manifest can index out of range.
#ifndef TRANSEPT_RUNTIME_ARTIFACT_H
#define TRANSEPT_RUNTIME_ARTIFACT_H

#include "runtime/ArtifactFormat.h"
#include "runtime/ByteSource.h"
#include "runtime/Memory.h"
#include "runtime/Span.h"
#include "runtime/Status.h"
#include "runtime/program.pb.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

struct ArtifactOptions {
  enum class Weights {
    Read, // into owned memory, hashed meanwhile
    Map,  // the file's pages, hashed once; the file must not be changed in place while the artifact lives
    Skip, // neither read nor hashed: for looking at a file
  };
  Weights weights = Weights::Read;
  int threads = 1; // that read and hash weights
};

class Artifact {
public:
  /// Code::FileError where the file cannot be read, Code::ArtifactRefused where any byte is not what it must be.
  /// Messages do not name the path.
  static Result<Artifact> read(const std::string &path, const ArtifactOptions &options = {});
  static Result<Artifact> read(const ByteSource &source, const ArtifactOptions &options = {});

  const program::Manifest &manifest() const { return *manifest_; }

  /// All sections, in file order.
  const std::vector<SectionInfo> &sections() const { return sections_; }

  /// Content of a section that is not weights; empty where there is none of that name.
  Span<const uint8_t> section(std::string_view name) const;

  /// Packed weights; 4096-byte aligned, TRANSEPT_BUFFER_SLACK readable bytes behind. Empty if skipped or absent.
  const Block &weights() const { return weights_; }
  Block takeWeights() { return std::move(weights_); }
  uint64_t weightBytes() const { return weightBytes_; }

  uint64_t fileBytes() const { return fileBytes_; }

private:
  friend class ArtifactReader;
  std::unique_ptr<program::Manifest> manifest_;
  std::vector<SectionInfo> sections_;
  std::vector<std::vector<uint8_t>> contents_; // per section; empty for weights
  Block weights_;
  uint64_t weightBytes_ = 0;
  uint64_t fileBytes_ = 0;
};

} // namespace transept

#endif
