#include "runtime/AtomicFile.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

namespace transept {

namespace {

std::string directoryOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string nameOf(const std::string &path) { return path.substr(path.rfind('/') + 1); }

/// A fresh name beside `path`.
std::string temporaryName(const std::string &path) {
  std::random_device random;
  std::string suffix;
  for (int i = 0; i < 12; ++i)
    suffix += "abcdefghijklmnopqrstuvwxyz0123456789"[random() % 36];
  return directoryOf(path) + "/." + nameOf(path) + "." + suffix + ".tmp";
}

/// Removes temporaries of `path` that no living process holds a lock on.
void removeStale(const std::string &path) {
  std::string directory = directoryOf(path), prefix = "." + nameOf(path) + ".", suffix = ".tmp";
  DIR *listing = opendir(directory.c_str());
  if (!listing)
    return;
  while (dirent *item = readdir(listing)) {
    std::string name = item->d_name;
    if (name.size() != prefix.size() + 12 + suffix.size() || name.compare(0, prefix.size(), prefix) != 0 ||
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
      continue;
    std::string full = directory + "/" + name;
    int file = open(full.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
      continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
      unlink(full.c_str());
    close(file);
  }
  closedir(listing);
}

} // namespace

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, "")),
      file_(std::exchange(other.file_, -1)) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty())
    unlink(temporary_.c_str());
  if (file_ >= 0)
    close(file_);
}

Status AtomicFile::failure(const std::string &action) const {
  return {Code::FileError, "cannot " + action + " '" + printable(path_) + "': " + std::strerror(errno)};
}

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  AtomicFile file;
  file.path_ = path;
  if (path.empty() || nameOf(path).empty())
    return Status(Code::FileError, "'" + printable(path) + "' is not a file name");
  struct stat info{};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Status(Code::FileError, "cannot write '" + printable(path) + "': it exists and is not a regular file");
  removeStale(path);
  std::string directory = directoryOf(path);
  file.file_ = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (file.file_ < 0) {
    std::string temporary = temporaryName(path);
    file.file_ = open(temporary.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file.file_ < 0)
      return file.failure("write");
    file.temporary_ = temporary;
  }
  flock(file.file_, LOCK_EX | LOCK_NB); // tells removeStale of others that this one is in use
  return file;
}

Status AtomicFile::reserve(uint64_t bytes) {
  if (bytes == 0)
    return {};
  int error = posix_fallocate(file_, 0, static_cast<off_t>(bytes));
  if (error == 0 || error == EOPNOTSUPP || error == EINVAL || error == EINTR)
    return {};
  errno = error;
  return failure("write " + std::to_string(bytes) + " bytes to");
}

Status AtomicFile::write(uint64_t offset, const void *data, uint64_t bytes) {
  auto *from = static_cast<const uint8_t *>(data);
  while (bytes > 0) {
    size_t wanted = static_cast<size_t>(std::min<uint64_t>(bytes, uint64_t(1) << 30));
    ssize_t written = pwrite(file_, from, wanted, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return failure("write");
    from += written;
    offset += static_cast<uint64_t>(written);
    bytes -= static_cast<uint64_t>(written);
  }
  return {};
}

Status AtomicFile::commit() {
  if (fsync(file_) != 0)
    return failure("write");
  if (temporary_.empty()) {
    std::string temporary = temporaryName(path_), self = "/proc/self/fd/" + std::to_string(file_);
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return failure("name");
    temporary_ = temporary;
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    return failure("rename the finished file to");
  temporary_.clear();
  int closed = close(std::exchange(file_, -1));
  if (closed != 0)
    return failure("close");
  int directory = open(directoryOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory); // some file systems cannot; the content itself is already on disk
    close(directory);
  }
  return {};
}

} // namespace transept
