//===- FormBody.h - scalar code of kernel bodies -----------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalars are signless or float; whether an integer is unsigned is known from the tensor's element type. Floats of 16
// bits and less are computed in f32: they are widened after a load and rounded before a store. Kernels know no element
// below a byte and no 8-bit float: those are i8, converted by what is written here. Every target gives three arith ops
// the meaning of the graph's: float to integer saturates (NaN gives 0), x / 0 = 0 and x mod 0 = x for integers.

#ifndef TRANSEPT_PASSES_FORMBODY_H
#define TRANSEPT_PASSES_FORMBODY_H

#include "ir/Kernel.h"
#include "ir/NarrowTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::transept {

/// The type in which an element is held by a body: signless, i1 for booleans.
Type scalarType(Type elementType);
/// The type in which arithmetic on such elements is done.
Type computeType(Type elementType);
inline bool isUnsigned(Type elementType) { return elementType.isUnsignedInteger() || elementType.isInteger(1); }

/// The shape a kernel-level tensor was given where it was made.
DimsAttr shapeOf(Value tensor);
/// The product of the dims.
DimAttr elementCount(MLIRContext *context, ArrayRef<DimAttr> dims);
/// The type of a kernel-level tensor: `?` for every dim that is no constant, no encoding.
RankedTensorType plainType(ArrayRef<DimAttr> dims, Type elementType);

/// Builds scalar code.
class Body : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value index(int64_t value) { return create<arith::ConstantIndexOp>(value); }
  Value size(DimAttr dim);
  /// An int or float constant of a scalar type; integers are truncated to its width.
  Value number(Type scalar, double value);
  Value integer(Type scalar, int64_t value);
  Value boolean(bool value) { return create<arith::ConstantIntOp>(value, 1); }

  /// The element in its scalar type, resp. widened to its compute type.
  Value load(Value source, ValueRange indices);
  Value loadWide(Value source, ValueRange indices);
  Value widen(Value scalar, Type elementType);
  /// Rounds a value of the compute type to what an element of `elementType` holds.
  Value narrow(Value scalar, Type elementType);
  /// The same for a narrow float, from f32 or f64: its code.
  Value encode(Value scalar, Type elementType, bool saturate = true, NarrowRounding rounding = NarrowRounding::Nearest);
  /// f32 of the code of a narrow float.
  Value decode(Value code, Type elementType);

  /// Writes a value of the compute type to an output of a kernel.serial.
  void store(Value value, Value target, ValueRange indices);

  Value add(Value lhs, Value rhs);
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value less(Value lhs, Value rhs, bool isUnsigned = false);
  Value lessOrEqual(Value lhs, Value rhs, bool isUnsigned = false);
  Value equal(Value lhs, Value rhs);
  /// NaN differs from everything.
  Value different(Value lhs, Value rhs);
  Value both(Value lhs, Value rhs) { return create<arith::AndIOp>(lhs, rhs); }
  Value select(Value condition, Value onTrue, Value onFalse) {
    return create<arith::SelectOp>(condition, onTrue, onFalse);
  }
  Value clampIndex(Value index, Value size);

  /// The integer element as an index value.
  Value toIndex(Value integer, Type elementType);
  /// An index value as an element of `elementType` in its compute type.
  Value fromIndex(Value index, Type elementType);
  /// An element of type `from`, in its compute type, as an element of type `to` in its compute type.
  Value convert(Value scalar, Type from, Type to);
  Value wrapNarrow(Value integer, Type to);

  using LoopStep = function_ref<SmallVector<Value>(Body &, Value i, ValueRange carried)>;
  /// Runs `step` for i in [0, size) with carried values and returns the last ones.
  SmallVector<Value> forEach(Value size, ArrayRef<Value> initial, LoopStep step);
  /// The same with one value.
  Value accumulate(Value size, Value initial, function_ref<Value(Body &, Value i, Value carried)> step);
  /// The same without values: for what `step` stores.
  void repeat(Value size, function_ref<void(Body &, Value i)> step);
  void when(Value condition, function_ref<void(Body &)> content);
  /// A conditional value.
  Value choose(Value condition, function_ref<Value(Body &)> onTrue, function_ref<Value(Body &)> onFalse);

  /// Row-major: indices of a point of `dims` from its running number, and back.
  SmallVector<Value> delinearize(Value linear, ArrayRef<DimAttr> dims);
  Value linearize(ValueRange indices, ArrayRef<DimAttr> dims);
};

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_FORMBODY_H
