//===- ImportGroupQuery.cpp - rotary embeddings and GroupQueryAttention of com.microsoft
//-----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/MicrosoftAttention.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
//===- Rotary embeddings
//----------------------------------------------------------------------------------------------------===//

/// Rotates the first sizes of heads [B, T, H, D] by tables [B or 1, T, 1, size / 2].
Value rotate(AttentionParts &p, Value heads, Value cosine, Value sine, int64_t size, int64_t whole, bool interleaved) {
  NodeImport &node = p.node;
  Value turned = size == whole ? heads : p.range(heads, 0, size, 3), first, second;
  if (interleaved) {
    Value pairs = node.reshape(turned, {0, 0, 0, size / 2, 2});
    first = node.make<GatherOp>(p.element, pairs, node.scalar(int64_t(0)), uint64_t(4));
    second = node.make<GatherOp>(p.element, pairs, node.scalar(int64_t(1)), uint64_t(4));
  } else {
    first = p.range(turned, 0, size / 2, 3);
    second = p.range(turned, size / 2, size, 3);
  }
  Value real = p.sub(p.mul(first, cosine), p.mul(second, sine));
  Value imaginary = p.add(p.mul(first, sine), p.mul(second, cosine));
  if (interleaved) {
    auto column = [&](Value of) {
      return node.make<UnsqueezeOp>(p.element, of, Value(), node.builder.getDenseI64ArrayAttr({4}));
    };
    Value parts[] = {column(real), column(imaginary)};
    turned = node.reshape(node.make<ConcatOp>(p.element, ValueRange(parts), uint64_t(4)), {0, 0, 0, size});
  } else {
    turned = node.make<ConcatOp>(p.element, ValueRange{real, imaginary}, uint64_t(3));
  }
  if (size == whole)
    return turned;
  return node.make<ConcatOp>(p.element, ValueRange{turned, p.range(heads, size, whole, 3)}, uint64_t(3));
}

/// Rows of a table [positions, size / 2] at `positions` [B or 1, T], as [B or 1, T, 1, size / 2].
Value rowsAt(AttentionParts &p, Value table, Value positions) {
  Value rows = p.node.make<GatherOp>(p.element, table, positions, uint64_t(0));
  return p.node.make<UnsqueezeOp>(p.element, rows, Value(), p.node.builder.getDenseI64ArrayAttr({2}));
}

/// [B, T, H * D], or with four axes [B, H, T, D]. Positions are one offset, or [B, T].
LogicalResult importRotary(NodeImport &node) {
  AttentionParts p(node);
  Value input = node.input(0), positions = node.castTo(node.input(1), p.i64), cosine = node.input(2),
        sine = node.input(3);
  std::optional<int64_t> rank = node.rank(input), positionRank = node.rank(node.input(1)),
                         half = knownSize(node, cosine, 1);
  int64_t heads = node.integer("num_heads", 0), part = node.integer("rotary_embedding_dim", 0);
  bool interleaved = node.integer("interleaved", 0) != 0;
  if (node.real("scale", 1.0f) != 1.0f || node.integer("is_packed_batching", 0) != 0)
    return node.unsupported("RotaryEmbedding with a scale or packed batches");
  if (!rank || !positionRank || !half)
    return node.unsupported("RotaryEmbedding of inputs of unknown rank or size");
  if (*rank != 3 && *rank != 4)
    return node.invalid("has an input of " + Twine(*rank) + " axes");
  int64_t size = *half * 2;
  if (part != 0 && part != size)
    return node.invalid("has rotary_embedding_dim " + Twine(part) + " and tables of " + Twine(*half) + " columns");
  Value apart;
  if (*rank == 4)
    apart = p.swapped(input);
  else if (heads > 0)
    apart = p.split(input, heads);
  else
    apart = node.reshape(input, {0, 0, -1, size});
  std::optional<int64_t> whole = knownSize(node, apart, 3);
  if (!whole || *whole < size)
    return node.unsupported("RotaryEmbedding of heads whose size is no constant, or smaller than its tables");
  if (*positionRank < 2) {
    Value steps = node.reshape(p.countTo(p.scalarSize(apart, 1)), {1, -1});
    positions = p.add(steps, node.reshape(positions, {1, 1}));
  }
  Value turned = rotate(p, apart, rowsAt(p, cosine, positions), rowsAt(p, sine, positions), size, *whole, interleaved);
  return node.result(*rank == 4 ? p.swapped(turned) : node.reshape(turned, {0, 0, -1}));
}

//===- GroupQueryAttention
//--------------------------------------------------------------------------------------------------===//

/// Queries that share heads of keys, with a cache whose rows may hold different numbers of positions: row b has
/// seqlens_k[b] + 1 of them with the new ones, which are the last.
class GroupQuery {
public:
  explicit GroupQuery(NodeImport &node) : node(node), p(node) {}

  LogicalResult run() {
    std::optional<int64_t> heads = headsOf(node), keyHeads = headsOf(node, "kv_num_heads");
    if (!heads || !keyHeads || failed(refuse(node, {"smooth_softmax", "qk_output", "k_quant_type", "v_quant_type"})))
      return failure();
    if (*heads % *keyHeads != 0)
      return node.invalid("has " + Twine(*heads) + " query heads and " + Twine(*keyHeads) + " key heads");
    if (node.input(11) || node.wants(3))
      return node.unsupported("GroupQueryAttention with a head sink or scores as a result");
    attention.scale = node.real("scale", 0.0f);
    attention.softcap = node.real("softcap", 0.0f);
    window = node.integer("local_window_size", -1);
    if (failed(placeInputs(*heads, *keyHeads)))
      return failure();
    Value lengths = node.input(5), total = node.input(6);
    if (!lengths || !total)
      return node.invalid("has no seqlens_k or total_sequence_length");
    Value queries = p.scalarSize(attention.query, 1), one = node.scalar(int64_t(1));
    total = node.reshape(node.castTo(total, p.i64), ArrayRef<int64_t>{});
    used = p.add(node.reshape(node.castTo(lengths, p.i64), {-1, 1}), one); // [B, 1]
    // A first call has no cached positions, however short a row is.
    Value isFirst = node.make<EqualOp>(node.i1(), queries, total);
    cached = node.make<WhereOp>(p.i64, isFirst, node.scalar(int64_t(0)), p.sub(used, queries));
    if (failed(turn()))
      return failure();
    Value pastKey = node.input(3), pastValue = node.input(4);
    Value room = total;
    if (pastKey)
      room = node.make<MaxOp>(p.i64, p.scalarSize(pastKey, 2), total);
    attention.key = append(pastKey, attention.key, room, 1);
    attention.value = append(pastValue, attention.value, room, 2);
    hide(room);
    attention.bias = node.input(10);
    Value result = attention.build(node);
    return result ? node.result(result) : failure();
  }

private:
  LogicalResult placeInputs(int64_t heads, int64_t keyHeads) {
    Value query = node.input(0), key = node.input(1), value = node.input(2);
    if (key) {
      attention.query = p.split(query, heads);
      attention.key = p.split(key, keyHeads);
      attention.value = p.split(value, keyHeads);
      return success();
    }
    Value all = p.split(query, heads + 2 * keyHeads);
    attention.query = p.range(all, 0, heads, 2);
    attention.key = p.range(all, heads, heads + keyHeads, 2);
    attention.value = p.range(all, heads + keyHeads, heads + 2 * keyHeads, 2);
    return success();
  }

  LogicalResult turn() {
    bool interleaved = node.integer("rotary_interleaved", 0) != 0;
    if (node.integer("do_rotary", 0) == 0)
      return success();
    Value cosine = node.input(7), sine = node.input(8);
    std::optional<int64_t> half = knownSize(node, cosine, 1), whole = knownSize(node, attention.query, 3);
    if (!half || !whole || *whole < 2 * *half)
      return node.unsupported("GroupQueryAttention with rotary tables or heads whose size is no constant");
    Value positions = node.input(9) ? node.castTo(node.input(9), p.i64)
                                    : p.add(cached, node.reshape(p.countTo(p.scalarSize(attention.query, 1)), {1, -1}));
    Value cos = rowsAt(p, cosine, positions), sin = rowsAt(p, sine, positions);
    for (Value *heads : {&attention.query, &attention.key})
      *heads = rotate(p, *heads, cos, sin, 2 * *half, *whole, interleaved);
    return success();
  }

  /// The cache with the new positions behind those in use, [B, room, heads, size]; also a result with the heads first.
  Value append(Value past, Value now, Value room, int output) {
    Value result = now;
    if (past) {
      Value rows[] = {node.sizes(now, 0, 1), node.reshape(room, {1}), node.sizes(now, 2, 4)};
      Value shape = p.joined(rows);
      Value place = node.reshape(p.countTo(room), {1, -1}), zero = node.scalar(int64_t(0));
      auto pick = [&](Value of, Value index) {
        Value last = p.sub(p.scalarSize(of, 1), node.scalar(int64_t(1)));
        index = node.make<MinOp>(p.i64, node.make<MaxOp>(p.i64, index, zero), last);
        index = node.make<UnsqueezeOp>(p.i64, index, Value(), node.builder.getDenseI64ArrayAttr({2, 3}));
        return node.make<GatherElementsOp>(p.element, of, node.make<BroadcastOp>(p.i64, index, shape), uint64_t(1));
      };
      // One more position keeps an empty cache readable.
      Value old = node.make<PadOp>(p.element, p.swapped(past), node.constant({0, 1}), Value(), node.constant({1}),
                                   PadMode::Constant, ArrayAttr());
      Value isOld =
          node.make<UnsqueezeOp>(node.i1(), p.less(place, cached), Value(), node.builder.getDenseI64ArrayAttr({2, 3}));
      Value all = node.make<AddOp>(p.i64, place, node.make<MulOp>(p.i64, cached, zero)); // [B, room]
      result = node.make<WhereOp>(p.element, isOld, pick(old, all), pick(now, p.sub(place, cached)));
    }
    if (node.wants(output)) { // zeros behind the new positions
      Value end = p.add(cached, p.scalarSize(now, 1));
      Value isUsed = p.less(node.reshape(p.countTo(room), {1, -1}), end);
      isUsed = node.make<UnsqueezeOp>(node.i1(), isUsed, Value(), node.builder.getDenseI64ArrayAttr({2, 3}));
      Value present = node.make<WhereOp>(p.element, isUsed, result, node.scalar(p.element, 0));
      (void)node.result(output, p.swapped(present));
    }
    return result;
  }

  /// Query i, at position cached + i, sees the keys up to itself, and of these with a window the last ones.
  void hide(Value room) {
    Value keys = p.countTo(room), steps = node.reshape(p.countTo(p.scalarSize(attention.query, 1)), {-1, 1});
    Value at = p.add(node.reshape(cached, {-1, 1, 1, 1}), steps); // [B, 1, T, 1]
    attention.mask = node.make<LessOrEqualOp>(node.i1(), keys, at);
    if (window > 0)
      attention.mask = p.both(attention.mask, p.less(p.sub(at, node.scalar(window)), keys));
    attention.keyMask = p.less(keys, used);
  }

  NodeImport &node;
  AttentionParts p;
  MicrosoftAttention attention;
  Value used, cached; // i64 [B, 1]; `cached` may be [1, 1]
  int64_t window = -1;
};
LogicalResult importGroupQuery(NodeImport &node) { return GroupQuery(node).run(); }
} // namespace

void mlir::transept::addGroupQueryImports(ImportTable &table) {
  table.add(microsoftDomain, "RotaryEmbedding", importRotary);
  table.add(microsoftDomain, "GroupQueryAttention", importGroupQuery);
}
