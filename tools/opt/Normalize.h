//===- Normalize.h - programs printed so that equal ones are equal text -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TOOLS_OPT_NORMALIZE_H
#define TRANSEPT_TOOLS_OPT_NORMALIZE_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::transept {

/// Prints the functions (or entries, or programs) of a module by name. Their ops come in an order that follows from
/// what they compute: effects by what they touch, everything else right before its first user. Locations, the model's
/// names and source nodes are left out, what then is equal is one; operands of commutative ops are ordered. Changes the
/// module.
void printNormalized(ModuleOp module, raw_ostream &out);

} // namespace mlir::transept

#endif // TRANSEPT_TOOLS_OPT_NORMALIZE_H
