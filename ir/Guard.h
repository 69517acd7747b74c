//===- Guard.h - relations that only a run can confirm, as attributes ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_GUARD_H
#define TRANSEPT_IR_GUARD_H

#include "ir/GraphOp.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace mlir::transept {

/// `lhs relation rhs` must hold; `message` names the node and what it needed.
struct Guard {
  DimAttr lhs;
  GuardRelation relation;
  DimAttr rhs;
  std::string message;
};

/// The list of guards that a function, or the yield of a branch, relies on.
constexpr StringLiteral guardsAttrName = "transept.guards";

/// A dictionary {lhs, relation ("eq", "le", "ge", "ne"), rhs, message}, whatever else it holds; nullopt for anything
/// else.
std::optional<Guard> parseGuard(Attribute attr);

/// Of a checked list: what is no guard is left out. A null list is an empty one.
SmallVector<Guard> guardsFromAttr(ArrayAttr attr);
ArrayAttr guardsToAttr(MLIRContext *context, ArrayRef<Guard> guards);

} // namespace mlir::transept

#endif // TRANSEPT_IR_GUARD_H
