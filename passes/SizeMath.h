//===- SizeMath.h - integer arithmetic as graph ops ---------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_SIZEMATH_H
#define TRANSEPT_PASSES_SIZEMATH_H

#include "ir/InferSupport.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::transept {

/// Builds graph ops on i64 vectors before `op`; result types are inferred.
class SizeMath {
public:
  explicit SizeMath(Operation *op) : builder(op), loc(op->getLoc()) {}

  OpBuilder builder;
  Location loc;

  MLIRContext *context() const { return builder.getContext(); }

  /// A graph op with one result.
  template <typename OpTy, typename... Args> Value make(Args &&...args) {
    auto op = builder.create<OpTy>(loc, UnrankedTensorType::get(builder.getI64Type()), std::forward<Args>(args)...);
    inferType(op);
    return op->getResult(0);
  }

  /// A constant vector, or a scalar.
  Value vector(ArrayRef<int64_t> values);
  Value scalar(int64_t value);
  /// Size expressions as data.
  Value sizes(ArrayRef<DimAttr> dims);
  /// 0, 1, …, length - 1.
  Value iota(DimAttr length);
  /// Zeros of the given shape.
  Value zeros(ArrayRef<DimAttr> dims);
  Value reshape(Value input, ArrayRef<DimAttr> dims);
  Value reshape(Value input, ArrayRef<int64_t> dims);
  Value castTo(Value input, Type type);

  Value add(Value lhs, Value rhs) { return make<AddOp>(lhs, rhs); }
  Value sub(Value lhs, Value rhs) { return make<SubOp>(lhs, rhs); }
  Value mul(Value lhs, Value rhs) { return make<MulOp>(lhs, rhs); }
  /// Truncates; x / 0 = 0.
  Value div(Value lhs, Value rhs) { return make<DivOp>(lhs, rhs); }
  Value min(Value lhs, Value rhs) { return make<MinOp>(lhs, rhs); }
  Value max(Value lhs, Value rhs) { return make<MaxOp>(lhs, rhs); }
  Value less(Value lhs, Value rhs) { return make<LessOp>(lhs, rhs); }
  Value equal(Value lhs, Value rhs) { return make<EqualOp>(lhs, rhs); }
  Value where(Value condition, Value onTrue, Value onFalse) { return make<WhereOp>(condition, onTrue, onFalse); }
  Value clamp(Value value, Value low, Value high) { return min(max(value, low), high); }
  /// Elements of a vector at constant places.
  Value pick(Value vector, ArrayRef<int64_t> places);
  /// Over one axis, which disappears.
  Value reduce(ReduceKind kind, Value input, int64_t axis);
  /// Sums of the elements before each.
  Value sumBefore(Value vector);

private:
  void inferType(Operation *op);
};

/// The names of all symbols in types and attributes of a function.
llvm::StringSet<> symbolNamesOf(Operation *function);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_SIZEMATH_H
