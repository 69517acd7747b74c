//===- TokenizerPart.h - the tokenizer of an artifact -----------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_TOKENIZERPART_H
#define TRANSEPT_TOOLS_DRIVER_TOKENIZERPART_H

#include "ir/Diagnostic.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>

namespace mlir::transept {

/// What the manifest says of the tokenizer, and the files it needs.
struct TokenizerPart {
  std::string kind = "none";              ///< as the runtime knows it
  std::string config;                     ///< tokenizer_config.json with what older exports say elsewhere; JSON
  std::map<std::string, StringRef> files; ///< by name; contents belong to the module's context
};

/// From the attribute `transept.export` and the files attached to the module.
Outcome<TokenizerPart> tokenizerPartOf(ModuleOp module);

/// What the runtime will say of the tokenizer when a text comes; empty where it works.
std::string tokenizerProblem(const TokenizerPart &part);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_TOKENIZERPART_H
