// What a request gives to the encoder, and how the sources of a batch become its inputs.
#ifndef TRANSEPT_RUNTIME_SEARCH_SOURCE_H
#define TRANSEPT_RUNTIME_SEARCH_SOURCE_H

#include "runtime/Session.h"
#include "runtime/Span.h"
#include "runtime/Status.h"
#include "runtime/program.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace transept::search {

/// A tensor for one source: dims[0] is 1.
struct SourceTensor {
  std::string name;
  DType dtype = program::DTYPE_NONE;
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;
};

/// Either token ids or tensors under the names of the encoder's inputs.
struct Source {
  std::vector<int64_t> ids;
  std::vector<SourceTensor> tensors;
};

/// The encoder's inputs as the manifest describes them. Refers to the manifest.
class EncoderInputs {
public:
  static Result<EncoderInputs> create(const program::Manifest &manifest);

  /// Whether there is an encoder. Without one, what follows knows of no sources.
  bool any() const { return entry_; }
  /// Whether sources of different length may share a batch.
  bool pads() const { return !generation_->equal_lengths(); }
  bool takesIds() const;
  /// Source positions: of ids their number, of tensors the extent that the symbol `source` stands for, 0 where it is
  /// fixed.
  int64_t length(const Source &source) const;
  /// The same without positions that a mask among the tensors hides.
  int64_t tokens(const Source &source) const;
  /// Sources with equal keys have equal shapes.
  std::string shapeKey(const Source &source) const;
  /// Names, types and shapes fit the encoder; ids are not empty and not negative. `limit` as in
  /// Generation.source_limit.
  Status check(const Source &source) const;
  /// Extent of the batch where the graph fixes it, else 0; likewise of ids along the source.
  int64_t fixedBatch() const { return fixedBatch_; }
  int64_t fixedLength() const { return fixedLength_; }

  /// Lays out `sources` as a batch of `batch` slots of `length` positions (ids); unused slots repeat the first source.
  /// The views stay valid until the next call.
  Result<RunArguments> assemble(Span<const Source *const> sources, int64_t batch, int64_t length);

private:
  const program::Buffer *find(std::string_view name) const;
  void fillMask(std::vector<uint8_t> &bytes, Span<const Source *const> sources, int64_t batch, int64_t length) const;

  const program::Generation *generation_ = nullptr;
  const program::Entry *entry_ = nullptr;
  const program::Buffer *main_ = nullptr, *mask_ = nullptr, *lengths_ = nullptr;
  int64_t fixedBatch_ = 0, fixedLength_ = 0;

  struct Input {
    std::string name;
    DType dtype = program::DTYPE_NONE;
    std::vector<int64_t> dims;
    std::vector<uint8_t> bytes;
  };
  std::vector<Input> inputs_; // kept for their memory
};

} // namespace transept::search

#endif
