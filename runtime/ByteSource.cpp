#include "runtime/ByteSource.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace transept {

namespace {

class FileSource final : public ByteSource {
public:
  FileSource(int file, uint64_t size) : file_(file), size_(size) {}
  ~FileSource() override { close(file_); }

  uint64_t size() const override { return size_; }

  Status read(uint64_t offset, void *out, uint64_t bytes) const override {
    auto *to = static_cast<uint8_t *>(out);
    while (bytes > 0) {
      size_t wanted = static_cast<size_t>(std::min<uint64_t>(bytes, uint64_t(1) << 30));
      ssize_t got = pread(file_, to, wanted, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        return {Code::FileError, std::string("cannot read: ") + std::strerror(errno)};
      if (got == 0)
        return {Code::FileError, "the file became shorter while it was read"};
      to += got;
      offset += static_cast<uint64_t>(got);
      bytes -= static_cast<uint64_t>(got);
    }
    return {};
  }

  Result<Block> map(uint64_t offset, uint64_t bytes) const override { return Block::map(file_, offset, bytes); }

private:
  int file_;
  uint64_t size_;
};

class MemorySource final : public ByteSource {
public:
  explicit MemorySource(Span<const uint8_t> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Status read(uint64_t offset, void *out, uint64_t bytes) const override {
    if (bytes > 0)
      std::memcpy(out, bytes_.data() + offset, bytes);
    return {};
  }
  Result<Block> map(uint64_t, uint64_t) const override {
    return Status(Code::Unsupported, "bytes in memory cannot be mapped");
  }

private:
  Span<const uint8_t> bytes_;
};

} // namespace

Result<std::unique_ptr<ByteSource>> openFile(const std::string &path) {
  auto fail = [](const std::string &why) { return Status(Code::FileError, why); };
  // O_NONBLOCK: a pipe without a writer must not hang.
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return fail(std::string("cannot open: ") + std::strerror(errno));
  struct stat info{};
  bool known = fstat(file, &info) == 0;
  auto source = std::make_unique<FileSource>(file, static_cast<uint64_t>(info.st_size)); // closes it in any case
  if (!known)
    return fail(std::string("cannot open: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail(S_ISDIR(info.st_mode) ? "is a directory, not a file" : "is not a regular file");
  return std::unique_ptr<ByteSource>(std::move(source));
}

std::unique_ptr<ByteSource> bytesInMemory(Span<const uint8_t> bytes) { return std::make_unique<MemorySource>(bytes); }

} // namespace transept
