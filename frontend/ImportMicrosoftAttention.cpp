//===- ImportMicrosoftAttention.cpp - attention operators of com.microsoft
//-------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// As ONNX Runtime defines and computes them. Queries, keys and values become [B, positions, heads, size].

#include "frontend/MicrosoftAttention.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
//===- Attention: projects its input
//----------------------------------------------------------------------------------------===//

LogicalResult importAttention(NodeImport &node) {
  AttentionParts p(node);
  std::optional<int64_t> heads = headsOf(node);
  bool unidirectional = node.integer("unidirectional", 0) != 0;
  node.ignore("mask_filter_value"); // low enough to exclude
  if (!heads || failed(refuse(node, {"do_rotary", "past_present_share_buffer"})))
    return failure();
  node.ignore("rotary_embedding_dim");
  MicrosoftAttention attention;
  attention.scale = node.real("scale", 0.0f);
  Value projected = node.make<MatMulOp>(p.element, node.input(0), node.input(1));
  if (Value bias = node.input(2))
    projected = p.add(projected, bias);
  // Thirds, unless the sizes are given.
  std::optional<SmallVector<int64_t>> sizes = node.integers("qkv_hidden_sizes");
  if (!sizes || sizes->empty()) {
    std::optional<SmallVector<DimAttr>> dims = node.dims(node.input(1));
    std::optional<int64_t> all = dims && dims->size() == 2 && (*dims)[1] ? constantValue((*dims)[1]) : std::nullopt;
    if (!all || *all % 3 != 0)
      return node.unsupported("Attention whose projections have no known sizes");
    sizes = SmallVector<int64_t>(3, *all / 3);
  }
  if (sizes->size() != 3 || llvm::any_of(*sizes, [&](int64_t size) { return size < 1 || size % *heads != 0; }))
    return node.invalid("has qkv_hidden_sizes that are no multiples of its heads");
  int64_t q = (*sizes)[0], k = q + (*sizes)[1], v = k + (*sizes)[2];
  attention.query = p.split(p.range(projected, 0, q, 2), *heads);
  attention.key = p.split(p.range(projected, q, k, 2), *heads);
  attention.value = p.split(p.range(projected, k, v, 2), *heads);
  Value past = node.input(4), pastKey, pastValue;
  if (past) {
    pastKey = node.make<GatherOp>(p.element, past, node.scalar(int64_t(0)), uint64_t(0));
    pastValue = node.make<GatherOp>(p.element, past, node.scalar(int64_t(1)), uint64_t(0));
  }
  attention.key = p.joinPast(pastKey, attention.key);
  attention.value = p.joinPast(pastValue, attention.value);
  if (node.wants(1)) {
    auto part = [&](Value of) {
      return node.make<UnsqueezeOp>(p.element, p.swapped(of), Value(), node.builder.getDenseI64ArrayAttr({0}));
    };
    Value parts[] = {part(attention.key), part(attention.value)};
    (void)node.result(1, node.make<ConcatOp>(p.element, ValueRange(parts), uint64_t(0)));
  }
  if (failed(readMask(p, node.input(3), attention)) || (unidirectional && failed(makeCausal(node, pastKey, attention))))
    return failure();
  attention.bias = node.input(5);
  Value result = attention.build(node);
  return result ? node.result(result) : failure();
}

//===- MultiHeadAttention, DecoderMaskedMultiHeadAttention
//------------------------------------------------------------------===//

class MultiHead {
public:
  explicit MultiHead(NodeImport &node) : node(node), p(node) {}

  LogicalResult run() {
    // The decoder's form: query, key, value, mask, bias of scores, past key, past value, …, bias at 10.
    bool decoder = node.op() == "DecoderMaskedMultiHeadAttention";
    std::optional<int64_t> heads = headsOf(node);
    node.ignore("mask_filter_value");
    bool shares = node.integer("past_present_share_buffer", 0) != 0;
    if (!heads || failed(refuse(node, {"output_qk"})))
      return failure();
    if (shares && !decoder)
      return node.unsupported("attribute 'past_present_share_buffer' of " + node.op());
    if (!decoder && node.input(9))
      return node.unsupported(node.op() + " with beams that share a cache");
    if (node.wants(3))
      return node.unsupported(node.op() + " whose scores are a result");
    attention.scale = node.real("scale", 0.0f);
    Value mask = node.input(decoder ? 3 : 4), pastKey = node.input(decoder ? 5 : 6),
          pastValue = node.input(decoder ? 6 : 7);
    if (failed(placeInputs(*heads)) || failed(addBias(node.input(decoder ? 10 : 3), *heads)))
      return failure();
    attention.bias = node.input(decoder ? 4 : 5);
    if (shares && pastKey && pastValue) {
      if (failed(writeBuffer(pastKey, pastValue, mask)))
        return failure();
    } else {
      attention.key = p.joinPast(pastKey, attention.key);
      attention.value = p.joinPast(pastValue, attention.value);
      for (auto [output, value] : {std::pair(1, attention.key), std::pair(2, attention.value)})
        if (node.wants(output))
          (void)node.result(output, p.swapped(value));
      if (failed(readMask(p, mask, attention)))
        return failure();
    }
    if (node.integer("unidirectional", 0) != 0 && failed(makeCausal(node, pastKey, attention)))
      return failure();
    Value result = attention.build(node);
    return result ? node.result(result) : failure();
  }

private:
  /// One new position goes into buffers [B, heads, room, size] at past_sequence_length; with beams, position p of row r
  /// is read from row cache_indirection[r, p] of its batch item.
  LogicalResult writeBuffer(Value pastKey, Value pastValue, Value mask) {
    if (!node.input(7))
      return node.invalid("has no past_sequence_length");
    Value now = node.reshape(node.castTo(node.input(7), p.i64), ArrayRef<int64_t>{});
    Value room = p.scalarSize(pastKey, 2), places = p.countTo(room);
    Value isNew = node.reshape(node.make<EqualOp>(node.i1(), places, now), {-1, 1, 1});
    auto write = [&](Value past, Value &positions, int output) {
      positions = node.make<WhereOp>(p.element, isNew, positions, p.swapped(past)); // [B, room, heads, size]
      if (node.wants(output))
        (void)node.result(output, p.swapped(positions));
    };
    write(pastKey, attention.key, 1);
    write(pastValue, attention.value, 2);
    if (Value rows = node.input(9)) { // [batch, beams, room]
      Value beams = p.scalarSize(rows, 1), items = p.countTo(p.scalarSize(rows, 0));
      Value first = node.reshape(p.mul(items, beams), {-1, 1, 1});
      Value all = p.add(node.castTo(rows, p.i64), first), sizes[] = {node.constant({-1}), node.sizes(rows, 2, 3)};
      all = node.reshape(all, p.joined(sizes)); // [B, room]
      // The new position is everybody's own.
      Value own = node.reshape(p.countTo(p.scalarSize(attention.key, 0)), {-1, 1});
      all = node.make<WhereOp>(p.i64, p.less(places, now), all, own);
      Value at = p.add(node.make<MulOp>(p.i64, all, node.scalar(int64_t(0))), places);
      auto column = [&](Value of) {
        return node.make<UnsqueezeOp>(p.i64, of, Value(), node.builder.getDenseI64ArrayAttr({2}));
      };
      Value tuples = node.make<ConcatOp>(p.i64, ValueRange{column(all), column(at)}, uint64_t(2));
      for (Value *of : {&attention.key, &attention.value})
        *of = node.make<GatherNDOp>(p.element, *of, tuples, uint64_t(0));
    }
    // Masks and biases end with the new position.
    auto fill = [&](Value of) {
      Type type = node.elementOf(of);
      Value missing = p.sub(node.reshape(room, {1}), node.sizes(of, -1));
      Value amounts[] = {node.constant({0}), missing};
      return node.make<PadOp>(type, of, p.joined(amounts), Value(), node.constant({-1}), PadMode::Constant,
                              ArrayAttr());
    };
    Value isUsed = node.reshape(node.make<LessOrEqualOp>(node.i1(), places, now), {1, -1});
    attention.keyMask = node.make<BroadcastOp>(node.i1(), isUsed, node.sizes(attention.key, 0, 2));
    if (mask)
      attention.keyMask = p.both(attention.keyMask, node.castTo(fill(mask), node.i1()));
    if (attention.bias)
      attention.bias = fill(attention.bias);
    return success();
  }

  /// Query alone holds all three as [B, T, heads, 3, size]; a key without value both as [B, T, heads, 2, size]; keys
  /// and values of four axes have their heads first.
  LogicalResult placeInputs(int64_t heads) {
    Value query = node.input(0), key = node.input(1), value = node.input(2);
    auto part = [&](Value packed, int64_t index) {
      return node.make<GatherOp>(p.element, packed, node.scalar(index), uint64_t(3));
    };
    if (!key) {
      attention.query = part(query, 0);
      attention.key = part(query, 1);
      attention.value = part(query, 2);
      return success();
    }
    attention.query = p.split(query, heads);
    if (!value) {
      attention.key = part(key, 0);
      attention.value = part(key, 1);
      return success();
    }
    std::optional<int64_t> rank = node.rank(key);
    if (!rank)
      return node.unsupported(node.op() + " with a key of unknown rank");
    hasHeads = *rank == 4;
    attention.key = hasHeads ? p.swapped(key) : p.split(key, heads);
    attention.value = hasHeads ? p.swapped(value) : p.split(value, heads);
    return success();
  }

  /// One vector for query, key and value. Keys that come with their heads apart have theirs.
  LogicalResult addBias(Value bias, int64_t heads) {
    if (!bias)
      return success();
    int64_t start = 0;
    for (Value *target : {&attention.query, &attention.key, &attention.value}) {
      std::optional<int64_t> size = knownSize(node, *target, 3);
      if (!size)
        return node.unsupported(node.op() + " with a bias and heads whose size is no constant");
      if (target == &attention.query || !hasHeads) {
        Value part = p.range(bias, start, start + heads * *size, 0);
        *target = p.add(*target, node.reshape(part, {heads, -1}));
      }
      start += heads * *size;
    }
    return success();
  }

  NodeImport &node;
  AttentionParts p;
  MicrosoftAttention attention;
  bool hasHeads = false;
};
LogicalResult importMultiHead(NodeImport &node) { return MultiHead(node).run(); }
} // namespace

void mlir::transept::addMicrosoftAttentionImports(ImportTable &table) {
  table.add(microsoftDomain, "Attention", importAttention);
  table.add(microsoftDomain, "MultiHeadAttention", importMultiHead);
  table.add(microsoftDomain, "DecoderMaskedMultiHeadAttention", importMultiHead);
}
