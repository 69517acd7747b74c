//===- Evaluate.h - what the evaluations of graph ops share ------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Internal to ir/Evaluate*.cpp and ir/Interpreter.cpp. Evaluation is the oracle: fp32 (and 16-bit) elements are
// computed in double and rounded once, which for + - * / and sqrt equals the operation in the element type; sums are
// kept in double until the end; integers are exact and wrap. A failed evaluation emits one error at the op.

#ifndef TRANSEPT_IR_EVALUATE_H
#define TRANSEPT_IR_EVALUATE_H

#include "ir/Transept.h"

namespace mlir::transept::host {

using Sizes = SmallVector<int64_t, 6>;

/// Row-major strides in elements.
Sizes stridesOf(ArrayRef<int64_t> shape);
int64_t productOf(ArrayRef<int64_t> sizes);

/// The strides with which a tensor of shape `from` is read under shape `to` (NumPy rules: aligned at the last axis,
/// size 1 repeats). nullopt if it does not broadcast.
std::optional<Sizes> broadcastStrides(ArrayRef<int64_t> from, ArrayRef<int64_t> to);

/// Visits the positions of `shape` in row-major order: the running number, and per strides the offset of the position.
/// Stops where `visit` returns false, and then returns false.
bool forEachPosition(ArrayRef<int64_t> shape, ArrayRef<Sizes> strides,
                     llvm::function_ref<bool(int64_t, ArrayRef<int64_t>)> visit);

/// All elements, converted.
std::vector<double> toDoubles(const HostTensor &tensor);
std::vector<int64_t> toInts(const HostTensor &tensor);

inline bool isFloat(const HostTensor &tensor) { return isa<FloatType>(tensor.elementType()); }
inline bool isUnsigned(const HostTensor &tensor) { return tensor.elementType().isUnsignedInteger(); }

/// The operand of `op` declared at place `index` of its description; a null tensor where it is absent.
template <typename Op> HostTensor operandAt(Op op, ArrayRef<HostTensor> operands, unsigned index) {
  auto [start, length] = op.getODSOperandIndexAndLength(index);
  return length == 0 ? HostTensor() : operands[start];
}

/// Copies `count` elements of `width` bytes.
void copyElements(HostTensor &to, int64_t toIndex, const HostTensor &from, int64_t fromIndex, int64_t count = 1);

/// `axis` counted from the front; nullopt if it is not in [-rank, rank).
std::optional<int64_t> normalizeAxis(int64_t axis, int64_t rank);

/// Emits "… are A and B" at `op` unless the element types of all tensors are the same.
LogicalResult sameElementType(Operation *op, ArrayRef<HostTensor> tensors);

/// A shape as text: [2, 3].
std::string toText(ArrayRef<int64_t> shape);

/// Keys and values of one attention; layouts as in transept.attention. `visible(b, h, i, j)` and `bias` may be null.
struct AttentionProblem {
  int64_t batch, queries, keys, heads, keyHeads, size, valueSize;
  double scale, softcap;
  EmptyRow emptyRow;
  /// Elements at (b, i, h, d), resp. (b, j, k, d): the rows may lie anywhere.
  std::function<double(int64_t, int64_t, int64_t, int64_t)> query, key, value;
  std::function<bool(int64_t, int64_t, int64_t, int64_t)> visible;
  std::function<double(int64_t, int64_t, int64_t, int64_t)> bias;
};
/// Fills `result` [batch, queries, heads, valueSize] and, unless null, `probabilities` [batch, heads, queries, keys].
void attend(const AttentionProblem &problem, HostTensor &result, HostTensor *probabilities);

/// [heads or 1, columns] with at least one column.
bool isRelativeTable(const HostTensor &table, int64_t heads);
/// The element of a relative bias, taken into the columns there are.
double relativeBias(const HostTensor &table, int64_t head, int64_t column);

} // namespace mlir::transept::host

#endif // TRANSEPT_IR_EVALUATE_H
