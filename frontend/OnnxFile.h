//===- OnnxFile.h - an ONNX model, opened, parsed and checked ---------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_ONNXFILE_H
#define TRANSEPT_FRONTEND_ONNXFILE_H

#include "ir/Diagnostic.h"
#include "onnx/onnx_pb.h"
#include <cstdint>
#include <map>
#include <memory>

namespace mlir::transept {

/// Bounds on what a model file may ask for; exceeding one is exit code 5.
struct OnnxLimits {
  uint64_t fileBytes = (uint64_t(1) << 31) - 1; ///< protobuf cannot hold more
  uint64_t nodes = 1000000;                     ///< in all graphs and functions, also after functions are expanded
  unsigned nesting = 100;                       ///< messages, and graphs and functions inside each other
  uint64_t weightBytes = uint64_t(1) << 37;     ///< of one tensor
  unsigned rank = 64;
};

/// Versions of the standard operators and of the file format that are understood.
constexpr int64_t minOpset = 7, maxOpset = 26, minIrVersion = 3, maxIrVersion = 14;

class InputFile;

struct OnnxFile {
  std::string path;      ///< as given
  std::string name;      ///< the last part of the path, for messages
  std::string directory; ///< where external data is looked up
  std::string sha256;    ///< of the file itself, without external data
  /// Without the contents of large tensors: their `raw_data` refers to the file (WireFormat.h), decodeTensor reads it.
  std::unique_ptr<onnx::ModelProto> model;
  std::shared_ptr<InputFile> contents;   ///< the open file
  std::map<std::string, int64_t> opsets; ///< by domain; the standard domain is ""
  OnnxLimits limits;
  /// SHA-1 of external files whose tensors state a checksum, by path.
  mutable std::map<std::string, std::string> checksums;
};

/// Reads and parses, and checks everything that the importer relies on: versions, counts, nesting, the rules of the
/// ONNX checker. Operators that the importer does not have are not looked for here.
Outcome<OnnxFile> openOnnx(const std::string &path, const OnnxLimits &limits = {});

/// The rules of the ONNX checker. Separate from opening, because unknown operators are reported before it.
std::optional<Failure> checkModel(OnnxFile &file);

/// What the format of these bytes seems to be, for messages; empty if nothing is recognised.
llvm::StringRef guessFormat(llvm::StringRef bytes);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_ONNXFILE_H
