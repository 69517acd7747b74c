//===- WireFormat.h - the outline of a model file, before it is parsed ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_WIREFORMAT_H
#define TRANSEPT_FRONTEND_WIREFORMAT_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace mlir::transept {

/// What the outer fields of a ModelProto say. Nothing is copied, and nothing is trusted.
struct WireSummary {
  std::string error;  ///< why the bytes are no ModelProto, with the byte offset; empty if they may be one
  uint64_t nodes = 0; ///< of all graphs and functions
  unsigned depth = 0; ///< of graphs inside nodes, in messages
};

WireSummary summarizeModel(llvm::StringRef bytes);

/// Where the content of a tensor lies in the model's file.
struct ContentRange {
  uint64_t offset, bytes;
};

/// A tensor whose content is larger than this many bytes is large.
constexpr uint64_t largeContent = 1 << 16;

/// The model without the `raw_data` of large tensors: in its place there is a reference to where it lies in `bytes`.
/// `digest` is the SHA-256 of `bytes`; no file can hold its own, so a reference cannot be forged. Messages that are
/// nested deeper than `nesting` or malformed are copied as they are.
std::string withoutLargeContents(llvm::StringRef bytes, llvm::StringRef digest, unsigned nesting);

/// What a reference of a file with this digest refers to; nullopt where `rawData` is a content.
std::optional<ContentRange> referredRange(llvm::StringRef rawData, llvm::StringRef digest);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_WIREFORMAT_H
