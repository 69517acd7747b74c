#include "runtime/Memory.h"

#include "transept/abi.h"

#include <sys/mman.h>

#include <utility>

namespace transept {

namespace {
constexpr uint64_t pageBytes = 4096;
constexpr uint64_t hugePageBytes = uint64_t(2) << 20;
constexpr uint64_t addressLimit = uint64_t(1) << 46;

Status tooLarge(uint64_t bytes) {
  return {Code::OutOfMemory, "cannot allocate " + std::to_string(bytes) + " bytes of memory"};
}

/// Bytes to map for `bytes` of content: the slack that kernels may read lies behind it.
uint64_t mappedBytes(uint64_t bytes) { return (bytes + TRANSEPT_BUFFER_SLACK + pageBytes - 1) / pageBytes * pageBytes; }
} // namespace

Block::~Block() {
  if (data_)
    munmap(data_, mapped_);
}

Block::Block(Block &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

Block &Block::operator=(Block &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Result<Block> Block::allocate(uint64_t bytes) {
  if (bytes >= addressLimit)
    return tooLarge(bytes);
  uint64_t mapped = mappedBytes(bytes);
  void *data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return tooLarge(bytes);
  if (bytes >= hugePageBytes)
    madvise(data, mapped, MADV_HUGEPAGE); // a wish: without huge pages everything still works
  Block block;
  block.data_ = static_cast<uint8_t *>(data);
  block.size_ = bytes;
  block.mapped_ = mapped;
  return block;
}

Result<Block> Block::map(int file, uint64_t offset, uint64_t bytes) {
  // Anonymous pages first: the file's last page may end where the slack begins.
  Result<Block> block = allocate(bytes);
  if (!block.ok() || bytes == 0)
    return block;
  void *data = mmap(block->data_, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, static_cast<off_t>(offset));
  if (data == MAP_FAILED)
    return Status(Code::FileError, "cannot map the file's weights into memory");
  madvise(data, bytes, MADV_WILLNEED);
  return block;
}

} // namespace transept
