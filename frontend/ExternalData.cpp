//===- ExternalData.cpp - weights in files beside the model ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/FileBytes.h"
#include "frontend/TensorData.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA1.h"
#include <climits>
#include <cstdlib>

using namespace mlir::transept;

namespace {
struct Location {
  std::string file;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  std::string checksum; ///< SHA-1 of the whole file in hexadecimal, or empty
};

class ExternalReader {
public:
  ExternalReader(const onnx::TensorProto &tensor, const OnnxFile &model, llvm::StringRef name)
      : tensor(tensor), model(model), title(printable(model.path) + ": tensor " + quoted(name)) {}

  Outcome<std::vector<char>> read(uint64_t needed) {
    Outcome<Location> location = parse();
    if (!location)
      return std::move(location.failure());
    if (location->length && *location->length != needed)
      return invalid("needs " + std::to_string(needed) + " bytes for its shape, but the model says " +
                     std::to_string(*location->length) + " in " + quoted(location->file));
    llvm::SmallString<256> path(model.directory);
    llvm::sys::path::append(path, location->file);
    Outcome<InputFile> file = InputFile::open(path.str().str());
    if (!file)
      return Failure{
          ExitFile, title + " is in " + file.failure().message + "; the data file must lie beside the model", {}};
    if (!contained(*file))
      return invalid("is in " + quoted(location->file) + ", a link to a file outside the model's folder");
    bool overflow = false;
    uint64_t end = llvm::SaturatingAdd(location->offset, needed, &overflow);
    if (overflow || end > file->size())
      return invalid("needs bytes " + std::to_string(location->offset) + " to " + std::to_string(end) + " of " +
                     quoted(location->file) + ", which has " + std::to_string(file->size()) +
                     "; copy the data file again");
    if (needed > (1u << 30) && file->storedBytes() < needed / 2)
      return Failure{ExitLimit,
                     title + " is in a sparse file of " + std::to_string(file->storedBytes()) +
                         " stored bytes, but needs " + std::to_string(needed),
                     {}};
    if (!location->checksum.empty()) {
      Outcome<std::string> sha1 = checksumOf(*file);
      if (!sha1)
        return std::move(sha1.failure());
      if (!llvm::StringRef(*sha1).equals_insensitive(location->checksum))
        return invalid("is in " + quoted(location->file) + ", whose checksum is " + *sha1 + " instead of " +
                       printable(location->checksum) + "; copy the data file again");
    }
    std::vector<char> bytes(needed);
    if (std::optional<Failure> failure = file->read(location->offset, bytes))
      return std::move(*failure);
    return bytes;
  }

private:
  Failure invalid(const std::string &what) const { return {ExitInvalidModel, title + " " + what, {}}; }

  Outcome<Location> parse() const {
    Location location;
    bool hasLocation = false, hasOffset = false;
    for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
      const std::string &key = entry.key(), &value = entry.value();
      uint64_t number;
      if (key == "location") {
        if (hasLocation)
          return invalid("names its external file twice");
        hasLocation = true;
        location.file = value;
      } else if (key == "checksum") {
        location.checksum = value;
      } else if (key == "offset" || key == "length") {
        if (llvm::StringRef(value).getAsInteger(10, number) || number > INT64_MAX)
          return invalid("has the invalid external " + key + " " + quoted(value));
        if (key == "offset" ? hasOffset : location.length.has_value())
          return invalid("says its external " + key + " twice");
        if (key == "length") {
          location.length = number;
        } else {
          hasOffset = true;
          location.offset = number;
        }
      }
    }
    if (!hasLocation || !plainRelativePath(location.file))
      return invalid("has the external location " + quoted(location.file) +
                     "; it must be a file name inside the model's folder");
    return location;
  }

  /// Relative, without "." and "..", empty parts, backslashes and drive letters.
  static bool plainRelativePath(llvm::StringRef path) {
    if (path.empty() || path.size() >= PATH_MAX || path.find_first_of(llvm::StringRef("\\:\0", 3)) != path.npos)
      return false;
    llvm::SmallVector<llvm::StringRef> parts;
    path.split(parts, '/');
    if (parts.front() == ".") // "./model.onnx_data" is written by some exporters
      parts.erase(parts.begin());
    return !parts.empty() &&
           llvm::none_of(parts, [](llvm::StringRef part) { return part.empty() || part == "." || part == ".."; });
  }

  static std::string realDirectory(llvm::StringRef path) {
    char resolved[PATH_MAX];
    return ::realpath(path.str().c_str(), resolved) ? std::string(resolved) : std::string();
  }
  static bool inside(llvm::StringRef path, llvm::StringRef directory) {
    return path.consume_front(directory) && (directory.ends_with("/") || path.starts_with("/"));
  }

  /// The file is inside the model's folder; or model and data are both links into one cache folder, as in the layout of
  /// the Hugging Face cache, where snapshots link to ../../blobs.
  bool contained(const InputFile &file) const {
    std::string real = file.realPath();
    if (real.empty())
      return false;
    if (inside(real, realDirectory(model.directory)))
      return true;
    std::string realModel = realDirectory(model.path);
    return !realModel.empty() && inside(real, llvm::sys::path::parent_path(realModel));
  }

  /// Hashes a file once per model.
  Outcome<std::string> checksumOf(InputFile &file) const {
    std::string &known = model.checksums[file.path()];
    if (!known.empty())
      return known;
    llvm::SHA1 hash;
    std::vector<char> part(std::min<uint64_t>(file.size(), 1u << 20));
    for (uint64_t offset = 0; offset < file.size(); offset += part.size()) {
      part.resize(std::min<uint64_t>(part.size(), file.size() - offset));
      if (std::optional<Failure> failure = file.read(offset, part))
        return std::move(*failure);
      hash.update(llvm::StringRef(part.data(), part.size()));
    }
    known = llvm::toHex(hash.final(), /*LowerCase=*/true);
    return known;
  }

  const onnx::TensorProto &tensor;
  const OnnxFile &model;
  std::string title;
};
} // namespace

Outcome<std::vector<char>> mlir::transept::readExternalData(const onnx::TensorProto &tensor, const OnnxFile &file,
                                                            uint64_t length, llvm::StringRef name) {
  return ExternalReader(tensor, file, name).read(length);
}
