//===- Attachments.h - files that travel with a module ----------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_DRIVER_ATTACHMENTS_H
#define TRANSEPT_TOOLS_DRIVER_ATTACHMENTS_H

#include "frontend/Tokenizer.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>

namespace mlir::transept {

/// Puts the tokenizer's files into the context's weight store; the module attribute `transept.files` maps their names
/// to keys. A dump then carries them. The files must still have the contents that `tokenizer` says.
std::optional<Failure> attachTokenizer(ModuleOp module, const TokenizerFiles &tokenizer);

/// Contents by name; views into the store. A key without content is a failure.
Outcome<std::map<std::string, StringRef>> attachedFiles(ModuleOp module);

/// The attached bytes as a string view into the context's store; nullopt without such a key.
std::optional<StringRef> storedBytes(MLIRContext *context, StringRef key);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_DRIVER_ATTACHMENTS_H
