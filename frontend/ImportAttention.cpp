//===- ImportAttention.cpp - the attention operator of opset 23 and later --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX has the heads before the positions ([B, H, T, D], or [B, T, H * D] with the number of heads as an attribute);
// the IR has them after ([B, T, H, D]). Scores that are asked for as a result, and a softmax in another type than
// 32-bit floats, make it two products and a softmax.

#include "frontend/NodeImport.h"
#include "frontend/TensorData.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {
class AttentionImport {
public:
  explicit AttentionImport(NodeImport &node) : node(node), element(node.elementOf(node.input(0))) {}

  LogicalResult run() {
    if (failed(readAttributes()) || failed(placeInputs()) || failed(readScale()) || failed(readMask()) ||
        failed(readCausal()))
      return failure();
    Value result = isFused() ? fuse() : compose();
    return node.result(flat ? node.reshape(result, {0, 0, -1}) : node.transpose(result, {0, 2, 1, 3}));
  }

private:
  LogicalResult readAttributes() {
    heads = node.integer("q_num_heads", 0);
    keyHeads = node.integer("kv_num_heads", 0);
    std::optional<int64_t> rank = node.input(0) ? node.rank(node.input(0)) : std::nullopt;
    flat = rank ? *rank == 3 : heads != 0 || keyHeads != 0;
    if (flat && (heads < 1 || keyHeads < 1 || heads % keyHeads != 0))
      return node.invalid("has " + Twine(heads) + " query heads and " + Twine(keyHeads) + " key heads");
    softcap = node.real("softcap", 0.0f);
    if (!std::isfinite(softcap) || softcap < 0)
      return node.invalid("has a softcap that is negative or not finite");
    auto type = static_cast<int32_t>(node.integer("softmax_precision", onnx::TensorProto::FLOAT));
    precision = elementTypeOf(node.builder.getContext(), type);
    if (!isa_and_nonnull<FloatType>(precision))
      return node.invalid("has softmax_precision " + dataTypeName(type));
    mode = static_cast<Mode>(node.integer("qk_matmul_output_mode", 0));
    if (mode < Raw || mode > Probabilities)
      return node.invalid("has qk_matmul_output_mode " + Twine(static_cast<int64_t>(mode)));
    return success();
  }

  /// Query, key and value as [B, T, H, D]; the cache is joined where ONNX says, before the keys, as [B, H, T, D].
  LogicalResult placeInputs() {
    if (!node.input(0) || !node.input(1) || !node.input(2))
      return node.invalid("has no query, key or value");
    query = splitHeads(node.input(0), heads);
    key = splitHeads(node.input(1), keyHeads);
    value = splitHeads(node.input(2), keyHeads);
    Value pastKey = node.input(4), pastValue = node.input(5);
    if (!pastKey != !pastValue)
      return node.invalid("has only one of past_key and past_value");
    if (pastKey && node.input(6))
      return node.invalid("has past_key and nonpad_kv_seqlen; they exclude each other");
    past = pastKey;
    join(pastKey, key, /*output=*/1);
    join(pastValue, value, /*output=*/2);
    return success();
  }

  Value splitHeads(Value input, int64_t count) {
    return flat ? node.reshape(input, {0, 0, count, -1}) : node.transpose(input, {0, 2, 1, 3});
  }

  /// Puts the cached positions before the new ones, and gives `output` its value.
  void join(Value cached, Value &positions, int output) {
    if (!cached && !node.wants(output))
      return;
    Value present = node.transpose(positions, {0, 2, 1, 3});
    if (cached)
      present = node.make<ConcatOp>(node.elementOf(present), ValueRange{cached, present}, uint64_t(2));
    (void)node.result(output, present);
    positions = node.transpose(present, {0, 2, 1, 3});
  }

  /// 1 / sqrt(D) unless it is given.
  LogicalResult readScale() {
    if (node.has("scale")) {
      scale = node.real("scale", 1.0f);
      return std::isfinite(scale) ? success() : node.invalid("has a scale that is not finite");
    }
    if (std::optional<int64_t> size = sizeOf(query, 3)) {
      scale = *size > 0 ? static_cast<float>(1.0 / std::sqrt(static_cast<double>(*size))) : 1.0f;
      return success();
    }
    // The head size is only known to a run: scale the query there.
    Type f32 = node.builder.getF32Type();
    Value size = node.castTo(node.sizes(query, 3, 4), f32);
    Value factor = node.make<ReciprocalOp>(f32, node.make<SqrtOp>(f32, size));
    query = node.make<MulOp>(element, query, node.castTo(factor, element));
    scale = 1.0f;
    return success();
  }

  std::optional<DimAttr> dimOf(Value of, size_t axis) {
    std::optional<SmallVector<DimAttr>> dims = of ? node.dims(of) : std::nullopt;
    return dims && axis < dims->size() && (*dims)[axis] ? std::optional((*dims)[axis]) : std::nullopt;
  }
  std::optional<int64_t> sizeOf(Value of, size_t axis) {
    std::optional<DimAttr> dim = dimOf(of, axis);
    return dim ? constantValue(*dim) : std::nullopt;
  }

  /// Query i sees keys up to i + offset, the offset being the number of keys before the queries: those in the cache, or
  /// in a fixed buffer, those in use but for the queries' own.
  LogicalResult readCausal() {
    causal = node.integer("is_causal", 0) != 0;
    if (!causal)
      return success();
    if (Value lengths = node.input(6)) {
      causal = false;
      Value offset = node.make<SubOp>(node.i64(), lengths, node.sizes(query, 1, 2));
      Value last =
          node.make<AddOp>(node.i64(), node.reshape(offset, {-1, 1, 1, 1}), node.reshape(countTo(query), {-1, 1}));
      Value seen = node.make<LessOrEqualOp>(node.i1(), countTo(key), last); // [B, 1, T, S]
      mask = mask ? node.make<AndOp>(node.i1(), mask, seen) : seen;
      return success();
    }
    causalOffset = dimConstant(node.builder.getContext(), 0);
    if (past) {
      std::optional<DimAttr> cached = dimOf(past, 2);
      if (!cached)
        return node.unsupported("Attention with is_causal and a past_key of unknown shape");
      causalOffset = *cached;
    }
    return success();
  }

  /// 0, 1, … for the positions of a tensor [B, positions, …].
  Value countTo(Value of) {
    Value total = node.reshape(node.sizes(of, 1, 2), ArrayRef<int64_t>{});
    return node.make<RangeOp>(node.i64(), node.scalar(int64_t(0)), total, node.scalar(int64_t(1)), DimAttr(),
                              IntegerAttr());
  }

  LogicalResult readMask() {
    if (Value given = node.input(3)) {
      bool boolean = node.elementOf(given).isInteger(1);
      if (!boolean && !isa<FloatType>(node.elementOf(given)))
        return node.invalid("has a mask that is neither boolean nor floating point");
      Value padded = node.version >= 24 ? padMask(given, boolean) : given;
      (boolean ? mask : bias) = padded;
    }
    if (Value lengths = node.input(6)) { // keys of a fixed buffer that are in use, per batch item
      Value column = node.make<UnsqueezeOp>(node.i64(), lengths, Value(), node.builder.getDenseI64ArrayAttr({-1}));
      keyMask = node.make<LessOp>(node.i1(), countTo(key), column);
    }
    return success();
  }

  /// From opset 24 on the last axis of a mask may be shorter than the keys: the rest is hidden.
  Value padMask(Value given, bool boolean) {
    std::optional<SmallVector<DimAttr>> dims = node.dims(given);
    std::optional<DimAttr> keys = dimOf(key, 1);
    if (dims && !dims->empty() && dims->back() && (constantValue(dims->back()) == 1 || keys == dims->back()))
      return given;
    Type type = node.elementOf(given);
    Value missing = node.make<SubOp>(node.i64(), node.sizes(key, 1, 2), node.sizes(given, -1));
    Value pads = node.make<ConcatOp>(node.i64(), ValueRange{node.constant({0}), missing}, uint64_t(0));
    Value fill = node.scalar(type, boolean ? 0.0 : -HUGE_VAL);
    return node.make<PadOp>(type, given, pads, fill, node.constant({-1}), PadMode::Constant, ArrayAttr());
  }

  bool isFused() const { return (!node.wants(3) || mode == Probabilities) && precision.isF32(); }

  Value fuse() {
    OpBuilder &builder = node.builder;
    Type result = UnrankedTensorType::get(element);
    auto op = builder.create<AttentionOp>(
        node.loc, result, node.wants(3) ? result : Type(), query, key, value, keyMask, bias, mask, Value(),
        builder.getF32FloatAttr(scale), causal ? builder.getUnitAttr() : UnitAttr(), causalOffset,
        builder.getF32FloatAttr(softcap), EmptyRowAttr::get(builder.getContext(), EmptyRow::Zero), DimAttr());
    if (node.wants(3))
      (void)node.result(3, op.getProbabilities());
    return op.getResult();
  }

  /// [B, positions, heads, size] as [B, heads of keys, queries' heads per key head, positions, size].
  Value perHead(Value of, Value groups) {
    Value sizes[] = {node.sizes(of, 0, 2), groups, node.constant({-1}), node.sizes(of, 3, 4)};
    Value split = node.reshape(of, node.make<ConcatOp>(node.i64(), ValueRange(sizes), uint64_t(0)));
    return node.transpose(split, {0, 2, 3, 1, 4});
  }
  /// [B, key heads, heads per key head, T, n] as [B, heads, T, n].
  Value joinHeads(Value of) {
    Value sizes[] = {node.sizes(of, 0, 1), node.constant({-1}), node.sizes(of, 3, 5)};
    return node.reshape(of, node.make<ConcatOp>(node.i64(), ValueRange(sizes), uint64_t(0)));
  }

  /// What hides keys, as one tensor to add: the bias, and -infinity where a mask says so. Null where nothing does.
  Value hiding() {
    Value hidden = bias, none = node.scalar(element, 0), never = node.scalar(element, -HUGE_VAL);
    auto also = [&](Value seen) {
      Value more = node.make<WhereOp>(element, seen, none, never);
      hidden = hidden ? node.make<AddOp>(element, hidden, more) : more;
    };
    if (mask)
      also(mask);
    if (causal) {
      Value offset = past ? node.sizes(past, 2, 3) : node.constant({0});
      Value last = node.make<AddOp>(node.i64(), node.reshape(countTo(query), {-1, 1}), offset);
      also(node.make<LessOrEqualOp>(node.i1(), countTo(key), last));
    }
    if (keyMask)
      also(node.make<UnsqueezeOp>(node.i1(), keyMask, Value(), node.builder.getDenseI64ArrayAttr({1, 2})));
    return hidden;
  }

  Value compose() {
    Value groups = node.sizes(key, 2, 3);
    Value scaled = node.make<MulOp>(element, query, node.scalar(element, scale));
    Value keys = node.transpose(perHead(key, groups), {0, 1, 2, 4, 3});
    Value scores = joinHeads(node.make<MatMulOp>(element, perHead(scaled, groups), keys)), shown = scores;
    if (softcap > 0) {
      Value cap = node.scalar(element, softcap);
      scores = node.make<TanhOp>(element, node.make<DivOp>(element, scores, cap));
      scores = node.make<MulOp>(element, scores, cap);
    }
    if (mode == Capped)
      shown = scores;
    Value hidden = hiding();
    if (hidden)
      scores = node.make<AddOp>(element, scores, hidden);
    if (mode == Masked)
      shown = scores;
    Value weights = node.castTo(scores, precision);
    weights = node.make<SoftmaxOp>(precision, weights, static_cast<uint64_t>(-1), /*logarithm=*/false);
    weights = node.castTo(weights, element);
    if (hidden) { // a query that sees nothing gives nothing
      Value most = node.reduce(hidden, ReduceKind::Max, {-1}, /*keepdims=*/true);
      Value empty = node.make<EqualOp>(node.i1(), most, node.scalar(element, -HUGE_VAL));
      weights = node.make<WhereOp>(element, empty, node.scalar(element, 0), weights);
    }
    if (mode == Probabilities)
      shown = weights;
    (void)node.result(3, shown);
    // Back to the heads of keys: [B, key heads, heads per key head, T, S].
    Value sizes[] = {node.sizes(weights, 0, 1), groups, node.constant({-1}), node.sizes(weights, 2, 4)};
    weights = node.reshape(weights, node.make<ConcatOp>(node.i64(), ValueRange(sizes), uint64_t(0)));
    Value result = joinHeads(node.make<MatMulOp>(element, weights, perHead(value, groups)));
    return node.transpose(result, {0, 2, 1, 3});
  }

  /// What result 3 holds.
  enum Mode : int64_t { Raw, Capped, Masked, Probabilities };

  NodeImport &node;
  Type element, precision;
  Mode mode = Raw;
  bool flat = false, causal = false;
  int64_t heads = 0, keyHeads = 0;
  float scale = 1.0f, softcap = 0.0f;
  Value query, key, value, past, keyMask, bias, mask;
  DimAttr causalOffset;
};

LogicalResult importAttention(NodeImport &node) { return AttentionImport(node).run(); }

/// A cache with new positions written at an index per batch item; in mode circular, behind the end comes the start.
LogicalResult importTensorScatter(NodeImport &node) {
  Value cache = node.input(0), update = node.input(1), start = node.input(2);
  std::string mode = node.text("mode", "linear");
  int64_t axis = node.integer("axis", -2);
  std::optional<int64_t> rank = node.rank(cache);
  if (mode != "linear" && mode != "circular")
    return node.invalid("has the unknown mode " + quoted(mode));
  if (!rank)
    return node.unsupported("TensorScatter of a cache of unknown rank");
  axis += axis < 0 ? *rank : 0;
  if (axis < 1 || axis >= *rank)
    return node.invalid("writes along axis " + Twine(axis) + " of " + Twine(*rank));
  Type element = node.elementOf(cache), i64 = node.i64();
  auto along = [&](Value vector, int64_t place) {
    SmallVector<int64_t> shape(static_cast<size_t>(*rank), 1);
    shape[place] = -1;
    return node.reshape(vector, shape);
  };
  auto size = [&](Value of) { return node.reshape(node.sizes(of, axis, axis + 1), ArrayRef<int64_t>{}); };
  Value zero = node.scalar(int64_t(0)), one = node.scalar(int64_t(1)), count = size(update), total = size(cache);
  // The position of the update that each position of the cache gets.
  Value from = along(node.make<RangeOp>(i64, zero, total, one, DimAttr(), IntegerAttr()), axis);
  if (start)
    from = node.make<SubOp>(i64, from, along(start, 0));
  if (mode == "circular")
    from = node.make<ModOp>(i64, from, total, int64_t(0));
  Value isOld = node.make<OrOp>(node.i1(), node.make<LessOp>(node.i1(), from, zero),
                                node.make<LessOrEqualOp>(node.i1(), count, from));
  Value index = node.make<MinOp>(i64, node.make<MaxOp>(i64, from, zero), node.make<SubOp>(i64, count, one));
  index = node.make<BroadcastOp>(i64, index, node.sizes(cache));
  Value updated = node.make<GatherElementsOp>(element, update, index, static_cast<uint64_t>(axis));
  return node.result(node.make<WhereOp>(element, isOld, cache, updated));
}
} // namespace

void mlir::transept::addAttentionImports(ImportTable &table) {
  table.add("Attention", importAttention);
  table.add("TensorScatter", importTensorScatter);
}
