//===- FileBytes.h - reading files that may be anything ---------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_FILEBYTES_H
#define TRANSEPT_FRONTEND_FILEBYTES_H

#include "ir/Diagnostic.h"
#include <cstdint>

namespace mlir::transept {

/// An open regular file. Opening a FIFO, a device or a directory fails at once instead of waiting.
class InputFile {
public:
  static Outcome<InputFile> open(const std::string &path);
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&other) noexcept;
  ~InputFile();

  const std::string &path() const { return name; }
  uint64_t size() const { return length; }
  /// Bytes that the file system really stores (a sparse file has fewer than size()).
  uint64_t storedBytes() const { return stored; }
  /// Fills `to` from `offset`. Fails where the file ends early or changed since it was opened.
  std::optional<Failure> read(uint64_t offset, llvm::MutableArrayRef<char> to);
  /// The directory and file that links lead to; empty where the system does not say.
  std::string realPath() const;

private:
  InputFile() = default;
  bool unchanged() const;

  std::string name;
  int descriptor = -1;
  uint64_t length = 0, stored = 0;
  int64_t modified = 0; // nanoseconds
};

/// The whole file, if it has at most `limit` bytes (else exit code 5).
Outcome<std::string> readWholeFile(const std::string &path, uint64_t limit);

/// Lower-case hexadecimal SHA-256.
std::string sha256(llvm::StringRef bytes);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_FILEBYTES_H
