//===- GraphOp.h - facts about values, and how ops answer for themselves ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_GRAPHOP_H
#define TRANSEPT_IR_GRAPHOP_H

#include "ir/DimExpr.h"
#include "ir/HostTensor.h"
#include "mlir/IR/Operation.h"
#include <functional>
#include <optional>

namespace mlir::transept {

/// What is known of a value at compile time.
struct Fact {
  /// Ranked with a dims encoding wherever the rank is known, else unranked.
  TensorType type;
  /// The elements as size expressions in row-major order, for integer (and i1) tensors of at most 256 elements.
  std::optional<SmallVector<DimAttr>> content;
  /// The whole tensor where it is a compile-time constant small enough to be looked at (any element type).
  HostTensor constant;

  RankedTensorType ranked() const { return dyn_cast_or_null<RankedTensorType>(type); }
};

/// Relations a graph relies on and that only a run can confirm.
enum class GuardRelation { Equal, LessOrEqual, GreaterOrEqual, NotEqual };

/// Receives what inference needs beyond its result.
class InferContext {
public:
  virtual ~InferContext() = default;
  MLIRContext *context = nullptr;
  /// Records that `lhs relation rhs` must hold when a call is set up; `message` names the node and what it needed.
  virtual void guard(Operation *op, DimAttr lhs, GuardRelation relation, DimAttr rhs, StringRef message) = 0;
  /// A new symbol for a size that only the data says (NonZero, loops).
  virtual DimAttr runtimeSymbol(Operation *op, StringRef hint) = 0;
};

/// How an op treats one axis of an operand.
enum class AxisBehaviour {
  Pointwise,     ///< result at position i depends on the operand at position i only
  CausalScan,    ///< result at i depends on operand positions <= i through a finite state
  Positions,     ///< result depends on the positions themselves (i, j), not on the operand's elements
  FiniteHistory, ///< result at i depends on a bounded window before i
  Mixing,        ///< anything else
};

} // namespace mlir::transept

#endif // TRANSEPT_IR_GRAPHOP_H
