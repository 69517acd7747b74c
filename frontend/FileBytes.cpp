//===- FileBytes.cpp - reading files that may be anything ------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/FileBytes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir::transept;

namespace {
int64_t modificationTime(const struct stat &status) {
  return static_cast<int64_t>(status.st_mtim.tv_sec) * 1000000000 + status.st_mtim.tv_nsec;
}

Failure fileFailure(const std::string &path, llvm::StringRef what) {
  return {ExitFile, printable(path, PATH_MAX) + ": " + what.str(), {}};
}
} // namespace

Outcome<InputFile> InputFile::open(const std::string &path) {
  if (path.find('\0') != std::string::npos)
    return fileFailure(path, "the name contains a zero byte");
  InputFile file;
  file.name = path;
  do // O_NONBLOCK: a FIFO without a writer must not hang.
    file.descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (file.descriptor < 0 && errno == EINTR);
  if (file.descriptor < 0)
    return fileFailure(path, std::strerror(errno));
  struct stat status;
  if (::fstat(file.descriptor, &status) != 0)
    return fileFailure(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode))
    return fileFailure(path, "is a directory, not a file");
  if (!S_ISREG(status.st_mode))
    return fileFailure(path, "is not a regular file");
  file.length = static_cast<uint64_t>(status.st_size);
  file.stored = static_cast<uint64_t>(status.st_blocks) * 512;
  file.modified = modificationTime(status);
  return file;
}

InputFile::InputFile(InputFile &&other) noexcept { *this = std::move(other); }

InputFile &InputFile::operator=(InputFile &&other) noexcept {
  name = std::move(other.name);
  std::swap(descriptor, other.descriptor);
  length = other.length;
  stored = other.stored;
  modified = other.modified;
  return *this;
}

InputFile::~InputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

bool InputFile::unchanged() const {
  struct stat status;
  return ::fstat(descriptor, &status) == 0 && static_cast<uint64_t>(status.st_size) == length &&
         modificationTime(status) == modified;
}

std::optional<Failure> InputFile::read(uint64_t offset, llvm::MutableArrayRef<char> to) {
  while (!to.empty()) {
    ssize_t count = ::pread(descriptor, to.data(), std::min<size_t>(to.size(), 1 << 30), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fileFailure(name, std::strerror(errno));
    if (count == 0)
      return fileFailure(name, "became shorter while it was read");
    offset += static_cast<uint64_t>(count);
    to = to.drop_front(static_cast<size_t>(count));
  }
  if (!unchanged())
    return fileFailure(name, "changed while it was read");
  return std::nullopt;
}

std::string InputFile::realPath() const {
  char resolved[PATH_MAX];
  return ::realpath(name.c_str(), resolved) ? std::string(resolved) : std::string();
}

Outcome<std::string> mlir::transept::readWholeFile(const std::string &path, uint64_t limit) {
  Outcome<InputFile> file = InputFile::open(path);
  if (!file)
    return std::move(file.failure());
  if (file->size() > limit)
    return Failure{ExitLimit,
                   printable(path) + ": has " + std::to_string(file->size()) + " bytes, more than the limit of " +
                       std::to_string(limit),
                   {}};
  std::string bytes(file->size(), '\0');
  if (std::optional<Failure> failure = file->read(0, {bytes.data(), bytes.size()}))
    return std::move(*failure);
  return bytes;
}

std::string mlir::transept::sha256(llvm::StringRef bytes) {
  llvm::SHA256 hash;
  hash.update(bytes);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}
