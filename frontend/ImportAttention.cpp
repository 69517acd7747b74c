//===- ImportAttention.cpp - the attention operator of opset 23 and later --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX has the heads before the positions ([B, H, T, D], or [B, T, H * D] with the number of heads as an attribute);
// the IR has them after ([B, T, H, D]).

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
    if (failed(readAttributes()) || failed(placeInputs()) || failed(readScale()) || failed(readCausal()) ||
        failed(readMask()))
      return failure();
    OpBuilder &builder = node.builder;
    Type result = UnrankedTensorType::get(element);
    auto op = builder.create<AttentionOp>(
        node.loc, result, node.wants(3) ? result : Type(), query, key, value, keyMask, bias, mask,
        builder.getF32FloatAttr(scale), causal ? builder.getUnitAttr() : UnitAttr(), causalOffset,
        builder.getF32FloatAttr(softcap), EmptyRowAttr::get(builder.getContext(), EmptyRow::Zero));
    if (node.wants(3))
      (void)node.result(3, op.getProbabilities());
    return node.result(flat ? node.reshape(op.getResult(), {0, 0, -1}) : node.transpose(op.getResult(), {0, 2, 1, 3}));
  }

private:
  LogicalResult readAttributes() {
    heads = node.integer("q_num_heads", 0);
    keyHeads = node.integer("kv_num_heads", 0);
    flat = heads != 0 || keyHeads != 0;
    if (flat && (heads < 1 || keyHeads < 1 || heads % keyHeads != 0))
      return node.invalid("has " + Twine(heads) + " query heads and " + Twine(keyHeads) + " key heads");
    softcap = node.real("softcap", 0.0f);
    if (!std::isfinite(softcap) || softcap < 0)
      return node.invalid("has a softcap that is negative or not finite");
    int64_t precision = node.integer("softmax_precision", onnx::TensorProto::FLOAT);
    if (precision != onnx::TensorProto::FLOAT)
      return node.unsupported("softmax_precision " + dataTypeName(static_cast<int32_t>(precision)) + " of Attention");
    constexpr int64_t afterSoftmax = 3;
    int64_t mode = node.integer("qk_matmul_output_mode", 0);
    if (node.wants(3) && mode != afterSoftmax)
      return node.unsupported("qk_matmul_output_mode " + Twine(mode) +
                              " of Attention (only 3, the probabilities, is supported)");
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

  /// Query i sees keys up to i + offset, the offset being the number of cached positions.
  LogicalResult readCausal() {
    causal = node.integer("is_causal", 0) != 0;
    if (!causal)
      return success();
    if (node.input(6))
      return node.unsupported("Attention with is_causal and nonpad_kv_seqlen");
    causalOffset = dimConstant(node.builder.getContext(), 0);
    if (past) {
      std::optional<DimAttr> cached = dimOf(past, 2);
      if (!cached)
        return node.unsupported("Attention with is_causal and a past_key of unknown shape");
      causalOffset = *cached;
    }
    return success();
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
      Value total = node.reshape(node.sizes(key, 1, 2), ArrayRef<int64_t>{});
      Value positions = node.make<RangeOp>(node.i64(), node.scalar(int64_t(0)), total, node.scalar(int64_t(1)),
                                           DimAttr(), IntegerAttr());
      Value column = node.make<UnsqueezeOp>(node.i64(), lengths, Value(), node.builder.getDenseI64ArrayAttr({-1}));
      keyMask = node.make<LessOp>(node.i1(), positions, column);
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

  NodeImport &node;
  Type element;
  bool flat = false, causal = false;
  int64_t heads = 0, keyHeads = 0;
  float scale = 1.0f, softcap = 0.0f;
  Value query, key, value, past, keyMask, bias, mask;
  DimAttr causalOffset;
};

LogicalResult importAttention(NodeImport &node) { return AttentionImport(node).run(); }
} // namespace

void mlir::transept::addAttentionImports(ImportTable &table) { table.add("Attention", importAttention); }
