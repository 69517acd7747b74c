//===- InferGeneration.cpp - attention, control flow, session state --------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/InferSupport.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::transept;

/// The dims of a value that must have `rank` axes; nullopt after an error or (`unknown`) where the rank is unknown.
static std::optional<Dims> dimsOfRank(InferContext &context, Operation *op, const Fact &fact, size_t rank,
                                      StringRef what, bool &unknown) {
  std::optional<Dims> dims = dimsOf(context, op, fact);
  if (!dims) {
    unknown = true;
    return std::nullopt;
  }
  if (dims->size() == rank)
    return dims;
  op->emitOpError() << "needs a " << what << " with " << rank << " axes, not " << toString(*dims);
  return std::nullopt;
}

/// A tensor that broadcasts to `target` without enlarging it.
static LogicalResult requireBroadcast(InferContext &context, Operation *op, const Fact &fact, ArrayRef<DimAttr> target,
                                      StringRef what) {
  std::optional<Dims> dims = dimsOf(context, op, fact);
  if (!dims)
    return success();
  auto refuse = [&] {
    return op->emitOpError() << "takes a " << what << " of " << toString(*dims) << " for " << toString(target);
  };
  if (dims->size() > target.size())
    return refuse();
  std::string sentence = ("takes a " + what).str();
  for (auto [dim, size] : llvm::zip(*dims, target.drop_front(target.size() - dims->size()))) {
    if (dim == size || constantValue(dim) == 1)
      continue;
    if (decideEqual(dim, size) == false)
      return refuse();
    // Kernels of attention repeat what is 1 for sure; all else is of the size that it has a position for each of.
    if (failed(requireEqual(context, op, dim, size, sentence)))
      return failure();
  }
  return success();
}

/// [heads or 1, distances] with one distance at least.
static LogicalResult requireRelative(InferContext &context, Operation *op, ArrayRef<Fact> operands, Value relative,
                                     bool hasOrigin, DimAttr heads) {
  if (static_cast<bool>(relative) != hasOrigin)
    return op->emitOpError() << "needs both, a relative bias and its origin, or none";
  std::optional<Dims> dims = relative ? dimsOf(context, op, factOf(op, operands, relative)) : std::nullopt;
  if (!dims)
    return success();
  if (dims->size() != 2 || ((*dims)[0] != heads && constantValue((*dims)[0]) != 1) || constantValue((*dims)[1]) == 0)
    return op->emitOpError() << "has a relative bias of " << toString(*dims) << " for " << toString(heads) << " heads";
  return success();
}

LogicalResult AttentionOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Type element = elementTypeOf(operands[0]);
  auto giveUp = [&] {
    for (unsigned i = 0; i < getNumResults(); ++i)
      results.push_back(unrankedFact(element));
    return success();
  };
  // C1: query, key and value have four axes and one element type.
  bool unknown = false;
  std::optional<Dims> query = dimsOfRank(context, *this, operands[0], 4, "query", unknown),
                      key = dimsOfRank(context, *this, operands[1], 4, "key", unknown),
                      value = dimsOfRank(context, *this, operands[2], 4, "value", unknown);
  if (!query || !key || !value)
    return unknown ? giveUp() : failure();
  if (failed(requireSameElementType(*this, operands[0], operands[1])) ||
      failed(requireSameElementType(*this, operands[0], operands[2])))
    return failure();
  // C2: batch, key positions, key heads and head size agree.
  FailureOr<DimAttr> batch = requireEqual(context, *this, (*query)[0], (*key)[0], "batches query and key");
  if (failed(batch) || failed(requireEqual(context, *this, (*key)[0], (*value)[0], "batches key and value")) ||
      failed(requireEqual(context, *this, (*key)[1], (*value)[1], "pairs keys with values")) ||
      failed(requireEqual(context, *this, (*key)[2], (*value)[2], "pairs heads of keys with values")) ||
      failed(requireEqual(context, *this, (*query)[3], (*key)[3], "multiplies queries by keys")))
    return failure();
  // C3: the number of query heads is a multiple of that of the key heads.
  DimAttr heads = (*query)[2], keyHeads = (*key)[2];
  std::optional<int64_t> known = constantValue(heads), knownKeys = constantValue(keyHeads);
  if ((knownKeys && *knownKeys < 1) || (known && knownKeys && *known % *knownKeys))
    return emitOpError() << "shares " << toString(keyHeads) << " key heads among " << toString(heads) << " query heads";
  if (heads != keyHeads && !(known && knownKeys) &&
      failed(requireEqual(context, *this, dimMod(heads, keyHeads), dimConstant(getContext(), 0), "shares key heads")))
    return failure();
  Dims scores{*batch, (*query)[2], (*query)[1], (*key)[1]};
  // C4: the key mask has one entry per key.
  if (getKeyMask()) {
    std::optional<Dims> mask =
        dimsOfRank(context, *this, factOf(*this, operands, getKeyMask()), 2, "key mask", unknown);
    if (!mask && !unknown)
      return failure();
    if (mask && (failed(requireEqual(context, *this, *batch, (*mask)[0], "masks keys, batch")) ||
                 failed(requireEqual(context, *this, (*key)[1], (*mask)[1], "masks keys"))))
      return failure();
  }
  // C5: bias and mask broadcast to the scores; the mask is boolean.
  if (getBias() && failed(requireBroadcast(context, *this, factOf(*this, operands, getBias()), scores, "bias")))
    return failure();
  if (getMask()) {
    const Fact &mask = factOf(*this, operands, getMask());
    if (!elementTypeOf(mask).isInteger(1))
      return emitOpError() << "needs a boolean mask, not " << elementTypeOf(mask);
    if (failed(requireBroadcast(context, *this, mask, scores, "mask")))
      return failure();
  }
  // C6: a relative bias has a row per head, or one, and an origin.
  if (failed(requireRelative(context, *this, operands, getRelative(), getRelativeOrigin().has_value(), heads)))
    return failure();
  results.push_back(rankedFact({*batch, (*query)[1], (*query)[2], (*value)[3]}, element));
  if (getProbabilities())
    results.push_back(rankedFact(scores, element));
  return success();
}

//===- Control flow
//-------------------------------------------------------------------------------------------------===//

LogicalResult IfOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  // C1: the condition is one boolean.
  RankedTensorType condition = operands[0].ranked();
  if (!elementTypeOf(operands[0]).isInteger(1) ||
      (condition && condition.hasStaticShape() && condition.getNumElements() != 1))
    return emitOpError() << "needs one boolean, not " << operands[0].type;
  // C2: both graphs yield as many values as there are results.
  auto yields = [](Region &region) { return region.front().getTerminator()->getOperands(); };
  OperandRange thens = yields(getThenRegion()), elses = yields(getElseRegion());
  if (thens.size() != getNumResults() || elses.size() != getNumResults())
    return emitOpError() << "has " << getNumResults() << " results but yields " << thens.size() << " and "
                         << elses.size();
  for (auto [i, a, b] : llvm::enumerate(thens, elses)) {
    Fact first, second;
    first.type = cast<TensorType>(a.getType());
    second.type = cast<TensorType>(b.getType());
    // C3: both graphs agree on element types.
    if (elementTypeOf(first) != elementTypeOf(second))
      return emitOpError() << "yields " << elementTypeOf(first) << " or " << elementTypeOf(second) << " as result "
                           << i;
    std::optional<Dims> dims = dimsOf(context, *this, first), other = dimsOf(context, *this, second);
    if (!dims || !other || dims->size() != other->size()) {
      results.push_back(unrankedFact(elementTypeOf(first)));
      continue;
    }
    for (auto [size, otherSize] : llvm::zip(*dims, *other))
      if (size != otherSize)
        size = context.runtimeSymbol(*this, "either");
    results.push_back(rankedFact(*dims, elementTypeOf(first)));
  }
  return success();
}

/// Whether a value is true, as a constant.
static bool isConstantTrue(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant && HostTensor::fromElements(constant.getValue()) &&
         HostTensor::fromElements(constant.getValue()).getInt(0) != 0;
}

/// Whether only the count ends the loop.
static bool goesOn(LoopOp op) {
  Block &body = op.getBody().front();
  Value again = body.getTerminator()->getOperand(0);
  return (!op.getCondition() || isConstantTrue(op.getCondition())) &&
         (again == body.getArgument(1) || isConstantTrue(again));
}

/// Symbols that get their values inside of a loop.
static llvm::StringSet<> symbolsInside(LoopOp loop) {
  llvm::StringSet<> symbols;
  loop->walk([&](Operation *op) {
    for (StringRef name : {"transept.symbols", "symbols"})
      if (auto list = op->getAttrOfType<ArrayAttr>(name); list && (name != "symbols" || isa<ReadSizesOp>(op)))
        for (Attribute symbol : list)
          symbols.insert(cast<StringAttr>(symbol).getValue());
  });
  return symbols;
}

/// The shape of what a loop collects: as many as there are repetitions, of elements that have one shape. Sizes that
/// only the body knows get names of their own.
static Dims collectedDims(InferContext &context, LoopOp loop, DimAttr count, ArrayRef<DimAttr> element,
                          const llvm::StringSet<> &inside) {
  Dims dims = {count};
  for (DimAttr dim : element) {
    SmallVector<StringRef> used;
    collectSymbols(dim, used);
    bool isInner = llvm::any_of(used, [&](StringRef symbol) { return inside.contains(symbol); });
    dims.push_back(isInner ? context.runtimeSymbol(loop, "collected") : dim);
  }
  return dims;
}

LogicalResult LoopOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Block &body = getBody().front();
  OperandRange yielded = body.getTerminator()->getOperands();
  const size_t carried = getInitial().size();
  // C1: the body takes number, condition and carried values, and yields a condition, carried values and elements.
  if (body.getNumArguments() != carried + 2 || yielded.size() != getNumResults() + 1 || getNumResults() < carried)
    return emitOpError() << "has a body with " << body.getNumArguments() << " arguments that yields " << yielded.size()
                         << " values, for " << carried << " carried values and " << getNumResults() << " results";
  // C2: count and conditions are one number each.
  auto isOne = [](TensorType type) {
    auto ranked = dyn_cast<RankedTensorType>(type);
    return !ranked || !ranked.hasStaticShape() || ranked.getNumElements() == 1;
  };
  for (Value value : {Value(getCount()), Value(getCondition()), yielded.front()})
    if (value && !isOne(cast<TensorType>(value.getType())))
      return emitOpError() << "counts with " << value.getType() << ", not with one number";
  DimAttr count;
  auto constantOf = [&](Value value) -> std::optional<SmallVector<int64_t>> {
    return value ? constantInts(factOf(*this, operands, value)) : std::nullopt;
  };
  // In the order in which the shapes phase names them: repetitions, sizes of what is carried, those of what is
  // collected.
  const llvm::StringSet<> inside = symbolsInside(*this);
  count = context.runtimeSymbol(*this, "iterations");
  for (Value initial : getInitial())
    if (auto type = dyn_cast<RankedTensorType>(initial.getType()))
      for (int64_t axis = 0; axis < type.getRank(); ++axis)
        (void)context.runtimeSymbol(*this, "carried");
  if (std::optional<SmallVector<int64_t>> limit = constantOf(getCount()); limit && goesOn(*this))
    count = dimConstant(getContext(), std::max<int64_t>(limit->front(), 0));
  for (auto [i, value] : llvm::enumerate(yielded.drop_front())) {
    Type element = cast<TensorType>(value.getType()).getElementType();
    auto ranked = dyn_cast<RankedTensorType>(value.getType());
    if (i < carried) {
      // C3: what is carried keeps its element type and rank.
      auto argument = cast<TensorType>(body.getArgument(i + 2).getType());
      if (argument.getElementType() != element)
        return emitOpError() << "carries " << argument.getElementType() << " and yields " << element;
      Fact result;
      result.type = argument;
      results.push_back(std::move(result));
    } else if (!ranked) {
      results.push_back(unrankedFact(element));
    } else {
      results.push_back(rankedFact(collectedDims(context, *this, count, dimsOf(ranked), inside), element));
    }
  }
  return success();
}

//===- Session state
//------------------------------------------------------------------------------------------------===//

LogicalResult StateOp::infer(InferContext &, ArrayRef<Fact>, SmallVectorImpl<Fact> &results) {
  // C1: a state has a declared shape.
  if (!isa<RankedTensorType>(getResult().getType()))
    return emitOpError() << "of unknown rank";
  Fact fact;
  fact.type = cast<TensorType>(getResult().getType());
  results.push_back(std::move(fact));
  return success();
}

LogicalResult ExportOp::infer(InferContext &, ArrayRef<Fact>, SmallVectorImpl<Fact> &) { return success(); }

LogicalResult CacheAppendOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &) {
  // C1: key and value are [rows, positions, heads, size].
  bool unknown = false;
  std::optional<Dims> key = dimsOfRank(context, *this, operands[0], 4, "key", unknown),
                      value = dimsOfRank(context, *this, operands[1], 4, "value", unknown);
  if (!key || !value)
    return success(unknown);
  // C2: rows, positions and heads agree.
  return success(succeeded(requireEqual(context, *this, (*key)[0], (*value)[0], "appends rows")) &&
                 succeeded(requireEqual(context, *this, (*key)[1], (*value)[1], "appends positions")) &&
                 succeeded(requireEqual(context, *this, (*key)[2], (*value)[2], "appends heads")));
}

LogicalResult CacheAttentionOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  // C1: the query is [rows, positions, heads, size].
  bool unknown = false;
  std::optional<Dims> query = dimsOfRank(context, *this, operands[0], 4, "query", unknown);
  if (!query) {
    results.push_back(unrankedFact(elementTypeOf(operands[0])));
    return success(unknown);
  }
  // C2: a relative bias has a row per head, or one, and an origin.
  if (failed(requireRelative(context, *this, operands, getRelative(), getRelativeOrigin().has_value(), (*query)[2])))
    return failure();
  query->back() = dimConstant(getContext(), getValueSize());
  results.push_back(rankedFact(*query, elementTypeOf(operands[0])));
  return success();
}

LogicalResult CrossAttentionOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  // C1: query, key and value have four axes.
  bool unknown = false;
  std::optional<Dims> query = dimsOfRank(context, *this, operands[0], 4, "query", unknown),
                      key = dimsOfRank(context, *this, operands[1], 4, "key", unknown),
                      value = dimsOfRank(context, *this, operands[2], 4, "value", unknown);
  if (!query || !key || !value) {
    results.append(getNumResults(), unrankedFact(elementTypeOf(operands[0])));
    return success(unknown);
  }
  // C2: key positions and head sizes agree.
  if (failed(requireEqual(context, *this, (*key)[1], (*value)[1], "pairs keys with values")) ||
      failed(requireEqual(context, *this, (*query)[3], (*key)[3], "multiplies queries by keys")))
    return failure();
  Dims scores{(*query)[0], (*query)[2], (*query)[1], (*key)[1]};
  query->back() = value->back();
  results.push_back(rankedFact(*query, elementTypeOf(operands[0])));
  if (getProbabilities())
    results.push_back(rankedFact(scores, elementTypeOf(operands[0])));
  return success();
}

LogicalResult SearchHeadOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &) {
  // C1: logits are [rows, 1, vocabulary].
  bool unknown = false;
  std::optional<Dims> logits = dimsOfRank(context, *this, operands[0], 3, "tensor of logits", unknown);
  return success(logits || unknown);
}
