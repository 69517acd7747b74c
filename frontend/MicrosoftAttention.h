//===- MicrosoftAttention.h - what the attention operators of com.microsoft share ------------------------*- C++
//-*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_MICROSOFTATTENTION_H
#define TRANSEPT_FRONTEND_MICROSOFTATTENTION_H

#include "frontend/NodeImport.h"

namespace mlir::transept {

/// Builders that these operators share.
class AttentionParts {
public:
  explicit AttentionParts(NodeImport &node) : node(node), element(node.elementOf(node.input(0))), i64(node.i64()) {}

  Value joined(ArrayRef<Value> parts) { return node.make<ConcatOp>(i64, ValueRange(parts), uint64_t(0)); }
  Value scalarSize(Value of, int64_t axis) { return node.reshape(node.sizes(of, axis, axis + 1), ArrayRef<int64_t>{}); }
  /// 0, 1, … below an i64 scalar.
  Value countTo(Value limit) {
    return node.make<RangeOp>(i64, node.scalar(int64_t(0)), limit, node.scalar(int64_t(1)), DimAttr(), IntegerAttr());
  }
  Value add(Value a, Value b) { return node.make<AddOp>(node.elementOf(a), a, b); }
  Value sub(Value a, Value b) { return node.make<SubOp>(node.elementOf(a), a, b); }
  Value mul(Value a, Value b) { return node.make<MulOp>(node.elementOf(a), a, b); }
  Value less(Value a, Value b) { return node.make<LessOp>(node.i1(), a, b); }
  Value both(Value a, Value b) { return !a ? b : node.make<AndOp>(node.i1(), a, b); }
  /// [B, T, heads * size] with its heads apart.
  Value split(Value flat, int64_t heads) { return node.reshape(flat, {0, 0, heads, -1}); }
  Value swapped(Value of) { return node.transpose(of, {0, 2, 1, 3}); }
  /// Elements [first, last) along an axis, all i64 vectors of one element.
  Value range(Value of, int64_t first, int64_t last, int64_t axis) {
    return node.slice(of, node.constant({first}), node.constant({last}), axis);
  }
  /// Past positions [B, heads, P, size] before the new ones; the result as [B, T, heads, size].
  Value joinPast(Value past, Value now) {
    return past ? node.make<ConcatOp>(element, ValueRange{swapped(past), now}, uint64_t(1)) : now;
  }

  NodeImport &node;
  const Type element, i64;
};

/// One attention, as far as it is known.
struct MicrosoftAttention {
  Value query, key, value, keyMask, bias, mask;
  bool causal = false;
  DimAttr causalOffset;
  float scale = 0, softcap = 0; // scale 0: 1 / sqrt(size)

  /// [B, T, heads * size]; a failure is reported.
  Value build(NodeImport &node);
};

/// A mask of keys: [B, T] of 0 and 1, [B] of lengths, or [B, T', T] per query. A failure is reported.
LogicalResult readMask(AttentionParts &p, Value given, MicrosoftAttention &attention);
/// Queries see the keys up to themselves, behind the cached ones. A failure is reported.
LogicalResult makeCausal(NodeImport &node, Value past, MicrosoftAttention &attention);
/// A positive number of heads; nullopt after a reported failure.
std::optional<int64_t> headsOf(NodeImport &node, StringRef name = "num_heads");
/// Refuses attributes that are set and change the result.
LogicalResult refuse(NodeImport &node, ArrayRef<StringRef> names);
/// The size of an axis where it is a constant.
std::optional<int64_t> knownSize(NodeImport &node, Value of, size_t axis);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_MICROSOFTATTENTION_H
