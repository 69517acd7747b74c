//===- InferSupport.h - what the inference functions of the ops share ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_INFERSUPPORT_H
#define TRANSEPT_IR_INFERSUPPORT_H

#include "ir/Transept.h"

namespace mlir::transept {

using Dims = SmallVector<DimAttr>;
using Content = SmallVector<DimAttr>;

/// Contents are tracked up to this many elements.
constexpr int64_t maxContentElements = 256;
/// Constants of up to this many elements are looked at.
constexpr int64_t maxConstantElements = 4096;

//===- Facts ----------------------------------------------------------------------------------------------------===//

Fact unrankedFact(Type elementType);
/// A negative constant can only come of an overflow: it becomes a size that is refused as too large.
Fact rankedFact(ArrayRef<DimAttr> dims, Type elementType);
/// The fact of a constant: type, content (integers) and the tensor itself, each where small enough.
Fact constantFact(HostTensor tensor);

Type elementTypeOf(const Fact &fact);
/// The fact of `value`, which must be an operand of `op`.
const Fact &factOf(Operation *op, ArrayRef<Fact> operands, Value value);
/// One expression per axis; nullopt where the rank is unknown. An axis nobody named gets a run-time symbol.
std::optional<Dims> dimsOf(InferContext &context, Operation *op, const Fact &fact);
/// The content as integers, if it is known and constant.
std::optional<SmallVector<int64_t>> constantInts(const Fact &fact);
/// The content, or that of a float constant that holds integers only.
std::optional<Content> integralContent(const Fact &fact);
/// The number of elements of a vector (or scalar) whose size is known.
std::optional<int64_t> staticLength(const Fact &fact);
/// Static sizes, where all are known and there are at most maxContentElements elements.
std::optional<SmallVector<int64_t>> smallShape(const Fact &fact);

//===- Names and messages
//-------------------------------------------------------------------------------------------===//

/// The ONNX node name the location carries, or an empty string.
std::string nodeName(Location location);
/// `Reshape node '/encoder/Reshape_3'`, for guards and errors.
std::string nodeLabel(Operation *op);
/// `[batch, source, 512]`.
std::string toString(ArrayRef<DimAttr> dims);

//===- Constraints
//--------------------------------------------------------------------------------------------------===//

/// `axis` in [0, rank), negative values counted from the end. Emits an error otherwise.
FailureOr<int64_t> normalizeAxis(Operation *op, int64_t axis, int64_t rank);
FailureOr<SmallVector<int64_t>> normalizeAxes(Operation *op, ArrayRef<int64_t> axes, int64_t rank);
/// The common value of two sizes that must agree: provably, by a guard, or (an error) not at all.
/// Constants are preferred to symbols, symbols to compound expressions, else `lhs`.
FailureOr<DimAttr> requireEqual(InferContext &context, Operation *op, DimAttr lhs, DimAttr rhs, StringRef what);
LogicalResult requireLessOrEqual(InferContext &context, Operation *op, DimAttr lhs, DimAttr rhs, StringRef what);
LogicalResult requireSameElementType(Operation *op, const Fact &lhs, const Fact &rhs);

/// NumPy broadcasting, right-aligned. Two different sizes of inputs, each of which may be 1, give a selected size; all
/// others that are dynamic meet another one, or a constant above 1, by a guard that they are equal.
FailureOr<Dims> broadcastDims(InferContext &context, Operation *op, ArrayRef<Dims> shapes);
/// Whether only a run says if `op` repeats an operand whose axis has `size` along an axis of `whole`: it is read at
/// min(index, size - 1).
bool mayRepeat(Operation *op, DimAttr size, DimAttr whole);
/// One-way broadcasting: a size of `from` is 1 or that of `to`. `what` says what the op does.
LogicalResult requireBroadcastTo(InferContext &context, Operation *op, ArrayRef<DimAttr> from, ArrayRef<DimAttr> to,
                                 StringRef what);
/// The same without guards: nullopt where it is not certain.
std::optional<Dims> provablyBroadcast(ArrayRef<Dims> shapes);

//===- Contents
//-----------------------------------------------------------------------------------------------------===//

/// For each element of a tensor of `resultShape`, the index of the element of `shape` that broadcasting puts there.
SmallVector<int64_t> broadcastIndices(ArrayRef<int64_t> shape, ArrayRef<int64_t> resultShape);
/// The coordinates of element `index` of a row-major tensor.
SmallVector<int64_t> coordinates(int64_t index, ArrayRef<int64_t> shape);
int64_t linearIndex(ArrayRef<int64_t> coordinates, ArrayRef<int64_t> shape);

/// Whether lhs < rhs (or lhs <= rhs, lhs == rhs) for all values of the symbols, for none, or (nullopt) it depends.
std::optional<bool> decideLess(DimAttr lhs, DimAttr rhs);
std::optional<bool> decideLessOrEqual(DimAttr lhs, DimAttr rhs);
std::optional<bool> decideEqual(DimAttr lhs, DimAttr rhs);

/// Whether the value depends on weights and constants only (looking through few ops).
bool isConstantData(Value value);

} // namespace mlir::transept

#endif // TRANSEPT_IR_INFERSUPPORT_H
