// Large, aligned, zeroed memory.
#ifndef TRANSEPT_RUNTIME_MEMORY_H
#define TRANSEPT_RUNTIME_MEMORY_H

#include "runtime/Status.h"

#include <cstddef>
#include <cstdint>

namespace transept {

/// An owned range of page-aligned memory with at least TRANSEPT_BUFFER_SLACK readable bytes after it.
class Block {
public:
  Block() = default;
  ~Block();
  Block(Block &&other) noexcept;
  Block &operator=(Block &&other) noexcept;

  /// Zeroed memory. Blocks of 2 MiB and more ask for huge pages.
  static Result<Block> allocate(uint64_t bytes);

  /// The file's pages, read-only; `offset` must be a multiple of 4096. The file must not be truncated meanwhile.
  static Result<Block> map(int file, uint64_t offset, uint64_t bytes);

  uint8_t *data() const { return data_; }
  uint64_t size() const { return size_; }

private:
  uint8_t *data_ = nullptr;
  uint64_t size_ = 0;
  uint64_t mapped_ = 0;
};

} // namespace transept

#endif
