//===- StageAttention.cpp - attention of a step, over caches and over the source ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/StepBuilder.h"

using namespace mlir;
using namespace mlir::transept;

static RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

/// Through ops that move whole axes, to the value they move; `moves` receives them, the last one first.
static Value movedFrom(Value value, SmallVectorImpl<Operation *> &moves) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<TransposeOp, ReshapeOp>(op) || op->getNumOperands() != 1)
      break;
    moves.push_back(op);
    value = op->getOperand(0);
  }
  return value;
}

Value StepBuilder::newPart(Value joined) {
  SmallVector<Operation *> moves;
  auto concat = movedFrom(joined, moves).getDefiningOp<ConcatOp>();
  if (!concat || concat.getInputs().size() != 2)
    return {};
  auto past = dyn_cast<BlockArgument>(concat.getInputs()[0]);
  Operation *end = model.function.getBody().front().getTerminator();
  bool isCache = past && llvm::any_of(model.caches, [&](const WholeModel::Past &cache) {
                   return cache.argument == past.getArgNumber() && end->getOperand(cache.result) == concat.getResult();
                 });
  SmallVector<DimAttr> dims = isCache ? dimsOf(rankedType(past)) : SmallVector<DimAttr>();
  return isCache && symbolName(dims[concat.getAxis()]) == along ? concat.getInputs()[1] : Value();
}

FailureOr<Value> StepBuilder::appended(Value joined, AttentionOp op) {
  if (!model.explicitCaches)
    return inStepValue(joined, op);
  Value part = newPart(joined);
  if (!part) {
    (void)broken(op, "keys or values are not a cache with one new position behind, as the graph returns it");
    return failure();
  }
  FailureOr<Value> value = inStepValue(part, op);
  if (failed(value))
    return failure();
  SmallVector<Operation *> moves;
  (void)movedFrom(joined, moves);
  Value moved = *value;
  for (Operation *move : llvm::reverse(moves)) {
    SmallVector<DimAttr> dims;
    for (DimAttr dim : dimsOf(rankedType(move->getResult(0))))
      dims.push_back(inStep(substitute(dim, along, dimConstant(context, 0))));
    RankedTensorType type = makeType(dims, rankedType(moved).getElementType());
    if (auto transpose = dyn_cast<TransposeOp>(move))
      moved = builder.create<TransposeOp>(move->getLoc(), type, moved, transpose.getPermutation());
    else
      moved = reshape(move->getLoc(), moved, dims);
  }
  return moved;
}

LogicalResult StepBuilder::buildAttention(AttentionOp op) {
  bool keys = classOf(op.getKey()) == Class::Decoder, values = classOf(op.getValue()) == Class::Decoder;
  if (op.getBias() || op.getMask())
    return broken(op, "attention with a mask or bias tensor that is not described");
  if (op.getProbabilities() && !op.getProbabilities().use_empty())
    return broken(op, "attention weights are used by the graph");
  if (keys != values || classOf(op.getQuery()) != Class::Decoder)
    return broken(op, "attention mixes decoder and source operands");
  if (op.getSoftcap().convertToFloat() != 0)
    return broken(op, "attention with a soft cap");
  FailureOr<Value> query = inStepValue(op.getQuery(), op);
  if (failed(query))
    return failure();
  SmallVector<DimAttr> dims = dimsOf(rankedType(op.getQuery()));
  if (dims.size() != 4 || symbolName(dims[0]) != "batch" ||
      (model.explicitCaches ? dims[1] != one : symbolName(dims[1]) != along))
    return broken(op, "queries are not [batch, target, heads, size]");
  return keys ? buildSelfAttention(op, *query) : buildCrossAttention(op, *query);
}

LogicalResult StepBuilder::appendToCache(AttentionOp op) {
  auto [site, isNew] = layers.insert({op, static_cast<int64_t>(layers.size())});
  FailureOr<Value> key = appended(op.getKey(), op), value = failed(key) ? key : appended(op.getValue(), op);
  if (failed(key) || failed(value))
    return failure();
  builder.create<CacheAppendOp>(op.getLoc(), *key, *value, site->second);
  appendedTo.insert(op);
  return success();
}

LogicalResult StepBuilder::buildSelfAttention(AttentionOp op, Value query) {
  auto overKeys = [&](Value value) {
    SmallVector<DimAttr> dims = dimsOf(rankedType(value));
    DimAttr expected = model.explicitCaches ? dimAdd(dimSymbol(context, along), one) : dimSymbol(context, along);
    return dims.size() == 4 && symbolName(dims[0]) == "batch" && dims[1] == expected;
  };
  if (!overKeys(op.getKey()) || !overKeys(op.getValue()))
    return broken(op, "keys are not [batch, target, heads, size]");
  DimAttr offset = op.getCausalOffset().value_or(dimConstant(context, 0));
  if (model.explicitCaches) {
    // The new position is the last one: a causal mask hides nothing from it.
    std::optional<int64_t> ahead = constantValue(dimSub(offset, dimSymbol(context, along)));
    if (op.getCausal() && (!ahead || *ahead < 0))
      return broken(op, "attention of the new position does not see all positions before it");
  } else if (!op.getCausal() || constantValue(offset) != 0) {
    return broken(op, "attention over the target is not causal");
  }
  if (op.getKeyMask()) {
    if (classOf(op.getKeyMask()) == Class::Static)
      return broken(op, "a mask of the source hides target positions");
    std::string note = "tokens given to the decoder are never padding (the graph would hide them as keys)";
    if (!llvm::is_contained(result.notes, note))
      result.notes.push_back(note);
  }
  Value relative;
  IntegerAttr relativeOrigin;
  if (op.getRelative()) {
    DimAttr origin = *op.getRelativeOrigin();
    std::optional<int64_t> column =
        constantValue(model.explicitCaches ? dimSub(origin, dimSymbol(context, along)) : origin);
    if (!column)
      return broken(op, "distances are not counted from the position");
    FailureOr<Value> table = inStepValue(op.getRelative(), op);
    if (failed(table))
      return failure();
    relative = *table;
    relativeOrigin = builder.getI64IntegerAttr(*column);
  }
  if (failed(appendToCache(op)))
    return failure();
  auto type = stepType(rankedType(op.getResult()), false);
  built[op.getResult()] = builder.create<CacheAttentionOp>(
      op.getLoc(), type, query, relative, builder.getI64IntegerAttr(layers.lookup(op)), op.getScaleAttr(),
      builder.getI64IntegerAttr(rankedType(op.getKey()).getDimSize(2)),
      builder.getI64IntegerAttr(rankedType(op.getValue()).getDimSize(3)), relativeOrigin);
  return success();
}

LogicalResult StepBuilder::buildCrossAttention(AttentionOp op, Value query) {
  if (op.getCausal())
    return broken(op, "attention over the source is causal");
  if (op.getRelative())
    return broken(op, "attention over the source depends on distances");
  if (op.getKeyMask() && classOf(op.getKeyMask()) != Class::Static)
    return broken(op, "target ids hide source positions");
  auto perSource = [&](Value value) -> Value {
    auto from = rankedType(value);
    if (!from || symbolName(dimsOf(from)[0]) != "batch")
      return {};
    return state(hoist(value), dimsOf(from), from.getElementType());
  };
  Value key = perSource(op.getKey()), value = perSource(op.getValue()), mask;
  if (op.getKeyMask())
    mask = perSource(op.getKeyMask());
  if (!key || !value || (op.getKeyMask() && !mask))
    return broken(op, "source keys do not have the batch as first axis");
  auto type = stepType(rankedType(op.getResult()), false);
  Type scores;
  if (withWeights) {
    SmallVector<DimAttr> dims = dimsOf(type);
    scores = makeType({dims[0], dims[2], dims[1], dimsOf(rankedType(op.getKey()))[1]}, type.getElementType());
  }
  auto cross = builder.create<CrossAttentionOp>(op.getLoc(), type, scores, query, key, value, mask, op.getScale(),
                                                op.getEmptyRow());
  built[op.getResult()] = cross.getResult();
  ++crossSites;
  if (withWeights)
    weights.push_back(cross.getProbabilities());
  return success();
}
