//===- FormOps.h - graph op to kernel, one function per op --------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_FORMOPS_H
#define TRANSEPT_PASSES_FORMOPS_H

#include "passes/FormContext.h"

namespace mlir::transept {

/// Forms any graph op but the terminator. Emits one error, naming op and node, if it cannot.
LogicalResult formOp(FormContext &f, Operation *op);

LogicalResult formElementwise(FormContext &f, Operation *op);
LogicalResult form(FormContext &f, ConstantOp op);
LogicalResult form(FormContext &f, WeightOp op);
LogicalResult form(FormContext &f, FillOp op);
LogicalResult form(FormContext &f, RangeOp op);
LogicalResult form(FormContext &f, DimValueOp op);

LogicalResult form(FormContext &f, LinearOp op);
LogicalResult form(FormContext &f, MatMulOp op);
LogicalResult form(FormContext &f, MatMulIntegerOp op);
LogicalResult form(FormContext &f, ConvOp op);
LogicalResult form(FormContext &f, DetOp op);

LogicalResult form(FormContext &f, ReduceOp op);
LogicalResult form(FormContext &f, ArgMaxOp op);
LogicalResult form(FormContext &f, CumSumOp op);
LogicalResult form(FormContext &f, TopKOp op);
LogicalResult form(FormContext &f, RecurrentOp op);
LogicalResult form(FormContext &f, SoftmaxOp op);
LogicalResult form(FormContext &f, LayerNormOp op);

LogicalResult form(FormContext &f, ReshapeOp op);
LogicalResult form(FormContext &f, TransposeOp op);
LogicalResult form(FormContext &f, BroadcastOp op);
LogicalResult form(FormContext &f, TileOp op);
LogicalResult form(FormContext &f, SliceOp op);
LogicalResult form(FormContext &f, ConcatOp op);
LogicalResult form(FormContext &f, PadOp op);
LogicalResult form(FormContext &f, TriluOp op);
LogicalResult form(FormContext &f, WindowsOp op);

LogicalResult form(FormContext &f, GatherOp op);
LogicalResult form(FormContext &f, GatherElementsOp op);
LogicalResult form(FormContext &f, GatherNDOp op);
LogicalResult form(FormContext &f, ScatterElementsOp op);
LogicalResult form(FormContext &f, ScatterNDOp op);

LogicalResult form(FormContext &f, ReadSizesOp op);
LogicalResult form(FormContext &f, IfOp op);
/// With control flow: only one branch is computed.
LogicalResult formBranches(FormContext &f, IfOp op);
LogicalResult form(FormContext &f, LoopOp op);

LogicalResult form(FormContext &f, AttentionOp op);
LogicalResult form(FormContext &f, StateOp op);
LogicalResult form(FormContext &f, ExportOp op);
LogicalResult form(FormContext &f, CacheAppendOp op);
LogicalResult form(FormContext &f, CacheAttentionOp op);
LogicalResult form(FormContext &f, CrossAttentionOp op);
LogicalResult form(FormContext &f, SearchHeadOp op);

/// The dims of a graph value.
SmallVector<DimAttr> graphDims(Value value);
Type graphElementType(Value value);
/// An axis that may count from the end.
inline int64_t axisFromFront(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }
/// The indices at which a tensor of `dims`, broadcast to `result` (aligned at the last axis), is read.
SmallVector<Value> broadcastIndices(Body &b, ValueRange indices, ArrayRef<DimAttr> dims, ArrayRef<DimAttr> result);
/// The index into an axis of size `dim` that an element of an index tensor means: negative ones count from the end,
/// others out of range are clamped and reported.
Value checkedIndex(Body &b, Operation *op, Value element, Type elementType, DimAttr dim);
/// The length of the index tuples held in the last axis of an index tensor, or a failure.
FailureOr<int64_t> tupleLength(Operation *op, Value indexTensor, size_t limit);
/// Axis i of the result is axis `permutation[i]` of the tensor.
Value formTranspose(FormContext &f, Location loc, Value tensor, ArrayRef<int64_t> permutation);
/// The number every element of a constant has, if it is one and they are all equal.
std::optional<double> splatValue(Value graphValue);
/// `op` still has an operand that the shapes phase resolves.
LogicalResult emitUnresolved(Operation *op);

/// The key and transposition of a weight matrix behind an operand, looking through one transpose.
struct WeightMatrix {
  std::string key;
  RankedTensorType type;   // as stored
  bool transposed = false; // stored [N, K]
  int64_t k() const { return type.getDimSize(transposed ? 1 : 0); }
  int64_t n() const { return type.getDimSize(transposed ? 0 : 1); }
  /// The same matrix in bf16 or 8-bit integers, where a product takes that: key, element type, key of the factors of
  /// its columns, and whether the other factor is rounded to integers, too.
  std::string narrowKey, scalesKey;
  Type narrowType;
  bool quantised = false;
  /// So many adjacent k of a column have a factor of their own, key [blocks, N]; 0: columns have one.
  int64_t block = 0;
};
/// Null where the operand is no constant f32 matrix.
std::optional<WeightMatrix> weightMatrix(Value graphValue);
/// The same for a weight [N, ...], as the transposed matrix whose K runs over all further axes.
std::optional<WeightMatrix> flattenedWeight(Value graphValue);
/// The operand of a product that is packed into panels if it is constant; null for other ops.
Value packedOperand(Operation *op);
/// The matrix that an op packs; null where it packs none.
std::optional<WeightMatrix> packedMatrix(Operation *op);
/// Adds what the attribute of passes/Quantise.h says. Fails, with an error, where it does not fit the matrix.
LogicalResult addNarrow(Operation *op, WeightMatrix &matrix);
/// input [..., K] times the matrix, plus bias [N] (a kernel tensor) or null. Result [..., N].
Value formContract(FormContext &f, Location loc, Value input, const WeightMatrix &matrix, Value bias);
/// sum over k of lhs[…, m, k] * rhs[…, k, n] (kernel tensors) as a map: the result of `op`. With `transposed`, rhs is
/// [n, k].
Value formProduct(FormContext &f, Operation *op, Value lhs, Value rhs, bool transposed);

/// A mask of keys under the shape [batch, keys], in a type that kernels take: non-zero = visible.
Value formKeyMask(FormContext &f, Location loc, Value mask, ArrayRef<DimAttr> shape);
/// A relative bias as attention kernels read it: with `relativeMargin` copies of its ends on both sides.
FailureOr<Value> formRelative(FormContext &f, Operation *op, Value table);
constexpr int64_t relativeMargin = kernel::lanes - 1;

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_FORMOPS_H
