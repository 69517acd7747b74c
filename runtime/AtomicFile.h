// Writes a file so that its name shows either the old content or the whole new one, whatever happens.
#ifndef TRANSEPT_RUNTIME_ATOMICFILE_H
#define TRANSEPT_RUNTIME_ATOMICFILE_H

#include "runtime/Status.h"

#include <cstdint>
#include <string>

namespace transept {

/// A file under construction in the directory of `path`. Where the file system allows it has no name until it is
/// complete, so that a killed process leaves nothing; else its name is ".<name>.<random>.tmp", the destructor removes
/// it, and the next AtomicFile for the same path removes what a killed process left.
class AtomicFile {
public:
  /// Fails where `path` cannot be written later: no such directory, read-only, or something that is not a file.
  static Result<AtomicFile> create(const std::string &path);
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  /// Makes sure that the disk has room for `bytes`.
  Status reserve(uint64_t bytes);

  Status write(uint64_t offset, const void *data, uint64_t bytes);

  /// Flushes to disk and gives the file its name, replacing an older one.
  Status commit();

private:
  AtomicFile() = default;
  Status failure(const std::string &action) const;

  std::string path_;
  std::string temporary_; // empty while the file has no name
  int file_ = -1;
};

} // namespace transept

#endif
