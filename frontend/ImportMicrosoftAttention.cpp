//===- ImportMicrosoftAttention.cpp - attention operators of com.microsoft ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As ONNX Runtime defines and computes them. Queries, keys and values become [B, positions, heads, size].

#include "frontend/NodeImport.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {
/// Builders that these operators share.
class Parts {
public:
  explicit Parts(NodeImport &node) : node(node), element(node.elementOf(node.input(0))), i64(node.i64()) {}

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
struct Attention {
  Value query, key, value, keyMask, bias, mask;
  bool causal = false;
  DimAttr causalOffset;
  float scale = 0, softcap = 0; // scale 0: 1 / sqrt(size)

  /// [B, T, heads * size]; a failure is reported.
  Value build(NodeImport &node) {
    if (scale == 0) {
      std::optional<SmallVector<DimAttr>> dims = node.dims(query);
      std::optional<int64_t> size = dims && (*dims)[3] ? constantValue((*dims)[3]) : std::nullopt;
      if (!size || *size < 1) {
        (void)node.unsupported(node.op() + " of heads whose size is no constant");
        return {};
      }
      scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(*size)));
    }
    OpBuilder &builder = node.builder;
    if (causal && !causalOffset)
      causalOffset = dimConstant(builder.getContext(), 0);
    auto op = builder.create<AttentionOp>(
        node.loc, Type(UnrankedTensorType::get(node.elementOf(query))), Type(), query, key, value, keyMask, bias, mask,
        builder.getF32FloatAttr(scale), causal ? builder.getUnitAttr() : UnitAttr(), causalOffset,
        builder.getF32FloatAttr(softcap), EmptyRowAttr::get(builder.getContext(), EmptyRow::Uniform));
    return node.reshape(op.getResult(), {0, 0, -1});
  }
};

/// A mask of keys: [B, T] of 0 and 1, [B] of lengths, or [B, T', T] per query.
LogicalResult readMask(Parts &p, Value given, Attention &attention) {
  NodeImport &node = p.node;
  if (!given)
    return success();
  std::optional<SmallVector<DimAttr>> dims = node.dims(given);
  if (!dims)
    return node.unsupported(node.op() + " with a mask of unknown rank");
  if (dims->size() == 2) {
    attention.keyMask = given;
  } else if (dims->size() == 1) {
    // Other vectors hold ends and starts, or cumulated lengths.
    std::optional<SmallVector<DimAttr>> batch = node.dims(attention.query);
    if (!batch || (*batch)[0] != dims->front())
      return node.unsupported(node.op() + " with a mask that is a vector of another size than the batch");
    Value column = node.reshape(node.castTo(given, p.i64), {-1, 1});
    attention.keyMask = p.less(p.countTo(p.scalarSize(attention.key, 1)), column);
  } else if (dims->size() == 3) {
    Value seen = node.castTo(given, node.i1());
    attention.mask = node.make<UnsqueezeOp>(node.i1(), seen, Value(), node.builder.getDenseI64ArrayAttr({1}));
  } else {
    return node.unsupported(node.op() + " with a mask of " + Twine(dims->size()) + " axes");
  }
  return success();
}

std::optional<int64_t> headsOf(NodeImport &node, StringRef name = "num_heads") {
  int64_t heads = node.integer(name, 0);
  if (heads > 0)
    return heads;
  (void)node.invalid("has " + name + " " + Twine(heads));
  return std::nullopt;
}

/// Refuses attributes that are set and change the result.
LogicalResult refuse(NodeImport &node, ArrayRef<StringRef> names) {
  for (StringRef name : names)
    if (node.integer(name, 0) != 0)
      return node.unsupported("attribute " + quoted(name) + " of " + node.op());
  return success();
}

/// The number of cached positions, where queries see the keys up to themselves.
LogicalResult makeCausal(NodeImport &node, Value past, Attention &attention) {
  attention.causal = true;
  if (!past)
    return success();
  std::optional<SmallVector<DimAttr>> dims = node.dims(past);
  if (!dims || dims->size() < 2 || !(*dims)[dims->size() - 2])
    return node.unsupported(node.op() + " of causal kind with a past of unknown shape");
  attention.causalOffset = (*dims)[dims->size() - 2];
  return success();
}

//===- Attention: projects its input
//----------------------------------------------------------------------------------------===//

LogicalResult importAttention(NodeImport &node) {
  Parts p(node);
  std::optional<int64_t> heads = headsOf(node);
  bool unidirectional = node.integer("unidirectional", 0) != 0;
  node.ignore("mask_filter_value"); // low enough to exclude
  if (!heads || failed(refuse(node, {"do_rotary", "past_present_share_buffer"})))
    return failure();
  node.ignore("rotary_embedding_dim");
  Attention attention;
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
      Value at = node.make<AddOp>(p.i64, node.make<MulOp>(p.i64, all, node.scalar(int64_t(0))), places);
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
      std::optional<SmallVector<DimAttr>> dims = node.dims(*target);
      std::optional<int64_t> size = dims && (*dims)[3] ? constantValue((*dims)[3]) : std::nullopt;
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
  Parts p;
  Attention attention;
  bool hasHeads = false;
};
LogicalResult importMultiHead(NodeImport &node) { return MultiHead(node).run(); }

//===- Rotary embeddings
//----------------------------------------------------------------------------------------------------===//

/// Rotates the first sizes of heads [B, T, H, D] by tables [B or 1, T, 1, size / 2].
Value rotate(Parts &p, Value heads, Value cosine, Value sine, int64_t size, int64_t whole, bool interleaved) {
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
Value rowsAt(Parts &p, Value table, Value positions) {
  Value rows = p.node.make<GatherOp>(p.element, table, positions, uint64_t(0));
  return p.node.make<UnsqueezeOp>(p.element, rows, Value(), p.node.builder.getDenseI64ArrayAttr({2}));
}

std::optional<int64_t> knownSize(NodeImport &node, Value of, size_t axis) {
  std::optional<SmallVector<DimAttr>> dims = of ? node.dims(of) : std::nullopt;
  return dims && axis < dims->size() && (*dims)[axis] ? constantValue((*dims)[axis]) : std::nullopt;
}

/// [B, T, H * D], or with four axes [B, H, T, D]. Positions are one offset, or [B, T].
LogicalResult importRotary(NodeImport &node) {
  Parts p(node);
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
    if (node.wants(output))
      (void)node.result(output, p.swapped(result));
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
  Parts p;
  Attention attention;
  Value used, cached; // i64 [B, 1]; `cached` may be [1, 1]
  int64_t window = -1;
};
LogicalResult importGroupQuery(NodeImport &node) { return GroupQuery(node).run(); }

//===- Around attention
//-----------------------------------------------------------------------------------------------------===//

/// T5's buckets of distances: [1, heads, queries, keys] of a table [buckets, heads].
LogicalResult importRelativePositionBias(NodeImport &node) {
  Parts p(node);
  Value table = node.input(0);
  int64_t furthest = node.integer("max_distance", 0);
  bool bidirectional = node.integer("is_bidirectional", 0) != 0;
  std::optional<int64_t> buckets = knownSize(node, table, 0);
  if (!buckets)
    return node.unsupported("RelativePositionBias of a table of unknown size");
  int64_t half = bidirectional ? *buckets / 2 : *buckets, exact = half / 2;
  if (exact < 1 || furthest <= exact)
    return node.invalid("has max_distance " + Twine(furthest) + " for " + Twine(*buckets) + " buckets");
  auto length = [&](size_t index) { return node.reshape(node.castTo(node.input(index), p.i64), ArrayRef<int64_t>{}); };
  auto number = [&](int64_t value) { return node.scalar(value); };
  Value distance = p.sub(node.reshape(p.countTo(length(1)), {-1, 1}), p.countTo(length(2))); // query - key
  Value isAhead = p.less(distance, number(0)), base;
  if (bidirectional) {
    base = node.make<WhereOp>(p.i64, isAhead, number(half), number(0));
    distance = node.make<AbsOp>(p.i64, distance);
  } else {
    base = number(0);
    distance = node.make<MaxOp>(p.i64, distance, number(0));
  }
  Type f32 = node.builder.getF32Type();
  auto real = [&](double value) { return node.scalar(f32, value); };
  Value isExact = p.less(distance, number(exact));
  Value safe = node.castTo(node.make<MaxOp>(p.i64, distance, number(exact)), f32);
  Value ratio = node.make<LogOp>(f32, node.make<DivOp>(f32, safe, real(static_cast<double>(exact))));
  ratio = node.make<DivOp>(f32, ratio, real(std::log(static_cast<double>(furthest) / static_cast<double>(exact))));
  Value steps = node.castTo(p.mul(ratio, real(static_cast<double>(half - exact))), p.i64);
  Value coarse = node.make<MinOp>(p.i64, p.add(steps, number(exact)), number(half - 1));
  Value bucket = p.add(base, node.make<WhereOp>(p.i64, isExact, distance, coarse));
  Value picked = node.make<GatherOp>(p.element, table, bucket, uint64_t(0)); // [queries, keys, heads]
  picked = node.transpose(picked, {2, 0, 1});
  return node.result(node.make<UnsqueezeOp>(p.element, picked, Value(), node.builder.getDenseI64ArrayAttr({0})));
}

/// The norm of the sum of word, position and segment embeddings.
LogicalResult importEmbedLayerNorm(NodeImport &node) {
  Value ids = node.input(0), segments = node.input(1), words = node.input(2), places = node.input(3),
        kinds = node.input(4), mask = node.input(7), positions = node.input(8);
  Type element = node.elementOf(words);
  float epsilon = node.real("epsilon", 1e-12f);
  node.ignore("mask_index_type");
  if (!(std::isfinite(epsilon) && epsilon >= 0))
    return node.invalid("has an epsilon that is negative or not finite");
  if (!positions) {
    Value count = node.reshape(node.sizes(ids, 1, 2), ArrayRef<int64_t>{});
    positions = node.make<RangeOp>(node.i64(), node.scalar(int64_t(0)), count, node.scalar(int64_t(1)), DimAttr(),
                                   IntegerAttr());
  }
  auto rows = [&](Value table, Value at) { return node.make<GatherOp>(element, table, at, uint64_t(0)); };
  Value sum = node.make<AddOp>(element, rows(words, ids), rows(places, positions));
  if (segments && kinds)
    sum = node.make<AddOp>(element, sum, rows(kinds, segments));
  if (node.wants(1)) {
    Type i32 = node.builder.getI32Type();
    Value used = mask ? node.castTo(mask, i32) : node.castTo(node.make<SubOp>(node.elementOf(ids), ids, ids), i32);
    (void)node.result(1, node.reduce(used, ReduceKind::Sum, {1}, /*keepdims=*/false));
  }
  (void)node.result(2, sum);
  return node.result(node.make<LayerNormOp>(element, sum, node.input(5), node.input(6),
                                            node.builder.getI64IntegerAttr(-1), node.builder.getF32FloatAttr(epsilon),
                                            UnitAttr()));
}
} // namespace

void mlir::transept::addMicrosoftAttentionImports(ImportTable &table) {
  table.add(microsoftDomain, "Attention", importAttention);
  table.add(microsoftDomain, "MultiHeadAttention", importMultiHead);
  table.add(microsoftDomain, "DecoderMaskedMultiHeadAttention", importMultiHead);
  table.add(microsoftDomain, "GroupQueryAttention", importGroupQuery);
  table.add(microsoftDomain, "RotaryEmbedding", importRotary);
  table.add(microsoftDomain, "RelativePositionBias", importRelativePositionBias);
  table.add(microsoftDomain, "EmbedLayerNormalization", importEmbedLayerNorm);
}
