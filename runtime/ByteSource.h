// Where the bytes of an artifact come from: a file, or memory in tests.
#ifndef TRANSEPT_RUNTIME_BYTESOURCE_H
#define TRANSEPT_RUNTIME_BYTESOURCE_H

#include "runtime/Memory.h"
#include "runtime/Span.h"
#include "runtime/Status.h"

#include <cstdint>
#include <memory>
#include <string>

namespace transept {

/// Random access to a fixed number of bytes. Reading is safe from several threads.
class ByteSource {
public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  /// Fills `out`; the range must lie within size().
  virtual Status read(uint64_t offset, void *out, uint64_t bytes) const = 0;
  /// The range without a copy, where the source can.
  virtual Result<Block> map(uint64_t offset, uint64_t bytes) const = 0;
};

/// Opens a regular file; pipes, devices and directories are refused at once.
Result<std::unique_ptr<ByteSource>> openFile(const std::string &path);

/// Bytes the caller keeps alive.
std::unique_ptr<ByteSource> bytesInMemory(Span<const uint8_t> bytes);

} // namespace transept

#endif
