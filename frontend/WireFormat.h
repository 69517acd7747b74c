//===- WireFormat.h - the outline of a model file, before it is parsed ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_WIREFORMAT_H
#define TRANSEPT_FRONTEND_WIREFORMAT_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace mlir::transept {

/// What the outer fields of a ModelProto say. Nothing is copied, and nothing is trusted.
struct WireSummary {
  std::string error;  ///< why the bytes are no ModelProto, with the byte offset; empty if they may be one
  uint64_t nodes = 0; ///< of all graphs and functions
  unsigned depth = 0; ///< of graphs inside nodes, in messages
};

WireSummary summarizeModel(llvm::StringRef bytes);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_WIREFORMAT_H
