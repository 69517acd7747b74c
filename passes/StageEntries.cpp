//===- StageEntries.cpp - the entries of a generation program -----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/StepBuilder.h"

using namespace mlir;
using namespace mlir::transept;

static RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

func::FuncOp StepBuilder::startEntry(StringRef name, ArrayRef<Type> inputs) {
  builder.setInsertionPoint(model.function);
  auto entry = builder.create<func::FuncOp>(model.function.getLoc(), name, builder.getFunctionType(inputs, {}));
  builder.setInsertionPointToStart(entry.addEntryBlock());
  built.clear();
  weights.clear();
  appendedTo.clear();
  crossSites = 0;
  return entry;
}

SetVector<Operation *> StepBuilder::neededFor(ArrayRef<Value> wanted) {
  SetVector<Operation *> needed;
  SmallVector<Value> work(wanted);
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || classOf(op->getResult(0)) == Class::Static || !needed.insert(op))
      continue;
    auto attention = dyn_cast<AttentionOp>(op);
    for (Value operand : op->getOperands()) {
      // A mask of decoder keys is dropped under a stated assumption.
      if (attention && operand == attention.getKeyMask())
        continue;
      bool joined =
          attention && model.explicitCaches && operand != attention.getQuery() && classOf(operand) == Class::Decoder;
      if (Value part = joined ? newPart(operand) : operand) // without one, building says what is wrong
        work.push_back(part);
    }
  }
  return needed;
}

LogicalResult StepBuilder::buildOps(ArrayRef<Value> wanted) {
  SetVector<Operation *> needed = neededFor(wanted);
  for (Operation &op : model.function.getBody().front().without_terminator())
    if (needed.contains(&op) && failed(build(&op)))
      return failure();
  return success();
}

//===- The step
//-------------------------------------------------------------------------------------------------------===//

/// What an earlier step handed on, by the parent of each row; what a new hypothesis begins with, by its source.
LogicalResult StepBuilder::readRecurrent() {
  Block &body = model.function.getBody().front();
  Location loc = model.function.getLoc();
  Type i32 = builder.getI32Type(), i1 = builder.getI1Type();
  auto zero = [&](Type type) {
    HostTensor number = HostTensor::make(RankedTensorType::get({}, type));
    return builder.create<ConstantOp>(loc, number.getType(), number.toElements()).getResult();
  };
  for (auto [index, recurrent] : llvm::enumerate(model.recurrent)) {
    BlockArgument argument = body.getArgument(recurrent.argument);
    SmallVector<DimAttr> dims = dimsOf(rankedType(argument));
    auto *batch = llvm::find_if(dims, [](DimAttr dim) { return symbolName(dim) == "batch"; });
    if (batch == dims.end()) {
      result.reason = "a state that steps hand on has no batch axis";
      return failure();
    }
    int64_t at = batch - dims.begin();
    *batch = rows;
    RankedTensorType type = makeType(dims, rankedType(argument).getElementType());
    Value parents = state("step.parent", {rows}, i32), none = zero(i32);
    Value from = builder.create<MaxOp>(loc, parents.getType(), parents, none);
    std::string name = "recurrent." + std::to_string(index), taken = "recurrent_in." + std::to_string(index);
    Value previous = builder.create<GatherOp>(loc, type, state(name, dims, type.getElementType()), from, at);
    Value initial = zero(type.getElementType());
    if (recurrent.initial && !(initial = perRow(loc, body.getTerminator()->getOperand(*recurrent.initial)))) {
      result.reason = "a state that steps begin with has not one axis for the batch";
      return failure();
    }
    Value isNew = builder.create<LessOp>(loc, makeType({rows}, i1), parents, none);
    SmallVector<DimAttr> column(dims.size(), one);
    column[at] = rows;
    Value read = builder.create<WhereOp>(loc, type, reshape(loc, isNew, column), initial, previous);
    // Kept apart from what this step hands on: rows may trade places.
    builder.create<ExportOp>(loc, taken, read);
    built[argument] = state(taken, dims, type.getElementType());
  }
  return success();
}

LogicalResult StepBuilder::writeRecurrent() {
  Operation *end = model.function.getBody().front().getTerminator();
  for (auto [index, recurrent] : llvm::enumerate(model.recurrent)) {
    Value value = built.lookup(end->getOperand(recurrent.result));
    if (!value) {
      result.reason = "a state that steps hand on does not depend on the decoder";
      return failure();
    }
    builder.create<ExportOp>(value.getLoc(), "recurrent." + std::to_string(index), value);
  }
  return success();
}

LogicalResult StepBuilder::buildHead() {
  Value logits = built.lookup(model.function.getBody().front().getTerminator()->getOperand(0));
  auto type = logits ? rankedType(logits) : RankedTensorType();
  SmallVector<DimAttr> dims = type ? dimsOf(type) : SmallVector<DimAttr>();
  if (dims.size() == 2 && dims[0] == rows && model.explicitCaches) {
    dims = {rows, one, dims[1]};
    logits = reshape(logits.getLoc(), logits, dims);
  }
  if (dims.size() != 3 || dims[0] != rows || dims[1] != one) {
    result.reason = "logits are not [batch, target, vocabulary]";
    return failure();
  }
  builder.create<SearchHeadOp>(logits.getLoc(), logits);
  return success();
}

/// Ends the entry with the weights of cross-attention as its results, [rows, heads, 1, source] each.
void StepBuilder::returnWeights(func::FuncOp step) {
  builder.create<func::ReturnOp>(step.getLoc(), weights);
  SmallVector<Type> types;
  for (Value value : weights)
    types.push_back(value.getType());
  step.setFunctionType(builder.getFunctionType({}, types));
  for (unsigned i = 0; i < weights.size(); ++i)
    step.setResultAttr(i, "transept.name", builder.getStringAttr("cross_attention." + Twine(i)));
}

LogicalResult StepBuilder::buildStep(StringRef name, bool wanted) {
  func::FuncOp whole = model.function;
  Block &body = whole.getBody().front();
  Operation *end = body.getTerminator();
  width = one;
  withWeights = wanted;
  func::FuncOp step = startEntry(name, {});
  auto fail = [&] {
    step.erase();
    return failure();
  };
  auto idsType = rankedType(body.getArgument(model.decoderIds));
  Value token = state("step.token", {rows, one}, builder.getI64Type());
  position = state("step.position", {rows, one}, builder.getI64Type());
  if (!idsType.getElementType().isInteger(64))
    token = builder.create<CastOp>(whole.getLoc(), makeType({rows, one}, idsType.getElementType()), token,
                                   TypeAttr::get(idsType.getElementType()));
  if (idsType.getRank() == 1)
    token = reshape(whole.getLoc(), token, {rows});
  built[body.getArgument(model.decoderIds)] = token;
  SmallVector<Value> outputs{end->getOperand(0)};
  for (const WholeModel::Recurrent &recurrent : model.recurrent)
    outputs.push_back(end->getOperand(recurrent.result));
  if (withWeights)
    for (unsigned alignment : model.alignments)
      outputs.push_back(end->getOperand(alignment));
  if (failed(readRecurrent()) || failed(buildOps(outputs)) || failed(buildHead()) || failed(writeRecurrent()))
    return fail();
  if (withWeights)
    for (unsigned alignment : model.alignments) {
      Value value = built.lookup(end->getOperand(alignment));
      SmallVector<DimAttr> dims = value ? dimsOf(rankedType(value)) : SmallVector<DimAttr>();
      if (dims.empty() || dims[0] != rows || dimProduct(context, dims) != dimMul(rows, dims.back()))
        return fail();
      weights.push_back(reshape(value.getLoc(), value, {rows, one, one, dims.back()}));
    }
  returnWeights(step);
  return success();
}

//===- The prompt
//-----------------------------------------------------------------------------------------------------===//

void StepBuilder::buildPrefill() {
  func::FuncOp whole = model.function;
  BlockArgument ids = whole.getBody().front().getArgument(model.decoderIds);
  Location loc = whole.getLoc();
  width = dimSymbol(context, "prompt");
  withWeights = false;
  Type i64 = builder.getI64Type(), idType = rankedType(ids).getElementType();
  func::FuncOp prefill = startEntry(prefillName, {makeType({rows, width}, i64)});
  prefill.setArgAttr(0, "transept.name", builder.getStringAttr("decoder_input_ids"));
  Value tokens = prefill.getArgument(0);
  if (!idType.isInteger(64))
    tokens = builder.create<CastOp>(loc, makeType({rows, width}, idType), tokens, TypeAttr::get(idType));
  built[ids] = tokens;
  Value range = builder.create<RangeOp>(loc, makeType({width}, i64), Value(), Value(), Value(), dimConstant(context, 0),
                                        builder.getI64IntegerAttr(1));
  position = builder.create<AddOp>(loc, makeType({rows, width}, i64), state("step.position", {rows, one}, i64), range);
  // All layers but the last one; of that one, only what its cache takes.
  SmallVector<Value> wanted;
  for (auto &[site, layer] : layers) {
    wanted.push_back(cast<AttentionOp>(site).getKey());
    wanted.push_back(cast<AttentionOp>(site).getValue());
  }
  std::string reason = result.reason;
  LogicalResult made = buildOps(wanted);
  for (auto &[site, layer] : layers)
    if (succeeded(made) && !appendedTo.contains(site))
      made = appendToCache(cast<AttentionOp>(site));
  builder.create<func::ReturnOp>(loc);
  result.reason = reason;
  result.prefill = succeeded(made);
  if (failed(made))
    prefill.erase();
}

//===- The source
//-----------------------------------------------------------------------------------------------------===//

/// @encode: what the hoisted values need, each written to its state.
void StepBuilder::buildEncode() {
  if (!model.encoderInput)
    return;
  func::FuncOp whole = model.function;
  SetVector<Operation *> needed;
  SmallVector<Value> work;
  for (auto &[value, name] : hoisted)
    work.push_back(value);
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (op && needed.insert(op)) {
      work.append(op->operand_begin(), op->operand_end());
      op->walk([&](Operation *inner) { work.append(inner->operand_begin(), inner->operand_end()); });
    }
  }
  SmallVector<Type> types;
  SmallVector<unsigned> arguments;
  for (unsigned i = 0; i < whole.getNumArguments(); ++i)
    if (classOf(whole.getArgument(i)) == Class::Static) {
      arguments.push_back(i);
      types.push_back(whole.getArgument(i).getType());
    }
  OpBuilder at(context);
  at.setInsertionPoint(whole);
  auto encode = at.create<func::FuncOp>(whole.getLoc(), encodeName, at.getFunctionType(types, {}));
  if (auto attr = whole->getAttrOfType<ArrayAttr>(guardsAttrName)) {
    // What concerns the target is checked where a target is given.
    SmallVector<Guard> guards = guardsFromAttr(attr);
    llvm::erase_if(guards,
                   [&](const Guard &guard) { return dependsOn(guard.lhs, along) || dependsOn(guard.rhs, along); });
    encode->setAttr(guardsAttrName, guardsToAttr(context, guards));
  }
  Block *body = encode.addEntryBlock();
  IRMapping mapping;
  for (auto [position, index] : llvm::enumerate(arguments)) {
    mapping.map(whole.getArgument(index), body->getArgument(position));
    if (DictionaryAttr attrs = whole.getArgAttrDict(index))
      encode.setArgAttrs(position, attrs);
  }
  at.setInsertionPointToStart(body);
  for (Operation &op : whole.getBody().front())
    if (needed.contains(&op))
      at.clone(op, mapping);
  for (auto &[value, name] : hoisted)
    at.create<ExportOp>(value.getLoc(), name, mapping.lookup(value));
  at.create<func::ReturnOp>(whole.getLoc());
}

//===- Without caches
//-------------------------------------------------------------------------------------------------===//

/// The last position of [.., target, ..] along `axis`.
static Value lastPosition(OpBuilder &builder, Value value, unsigned axis) {
  MLIRContext *context = builder.getContext();
  auto type = rankedType(value);
  SmallVector<DimAttr> dims = dimsOf(type);
  SmallVector<Attribute> starts(dims.size(), dimConstant(context, 0));
  starts[axis] = dimSub(dims[axis], dimConstant(context, 1));
  dims[axis] = dimConstant(context, 1);
  return builder.create<SliceOp>(value.getLoc(), makeType(dims, type.getElementType()), value, Value(), Value(),
                                 Value(), Value(), builder.getArrayAttr(starts),
                                 builder.getDenseI64ArrayAttr(SmallVector<int64_t>(dims.size(), 1)));
}

/// The same attention with its weights, [batch, heads, queries, keys].
static AttentionOp withProbabilities(OpBuilder &builder, AttentionOp op) {
  SmallVector<DimAttr> query = dimsOf(rankedType(op.getQuery())), key = dimsOf(rankedType(op.getKey()));
  auto type = rankedType(op.getResult());
  Type scores = makeType({query[0], query[2], query[1], key[1]}, type.getElementType());
  auto made = builder.create<AttentionOp>(op.getLoc(), type, scores, op.getQuery(), op.getKey(), op.getValue(),
                                          op.getKeyMask(), op.getBias(), op.getMask(), op.getRelative(), op.getScale(),
                                          op.getCausal(), op.getCausalOffset().value_or(DimAttr()), op.getSoftcap(),
                                          op.getEmptyRow(), op.getRelativeOrigin().value_or(DimAttr()));
  op.getResult().replaceAllUsesWith(made.getResult());
  op.erase();
  return made;
}

/// The whole prefix again at every step: decoder ids are step.prefix [rows, target], logits are those of the last
/// position.
void StepBuilder::buildRecompute(StringRef name, bool wanted) {
  func::FuncOp whole = model.function;
  Block &body = whole.getBody().front();
  // Everything that sees the decoder ids or the target's length stays in the step; what it reads of the rest is kept.
  func::FuncOp step = startEntry(name, {});
  Type idType = rankedType(body.getArgument(model.decoderIds)).getElementType();
  DimAttr target = dimSymbol(context, "target");
  Value prefix = state("step.prefix", {rows, target}, builder.getI64Type());
  if (!idType.isInteger(64))
    prefix = builder.create<CastOp>(whole.getLoc(), makeType({rows, target}, idType), prefix, TypeAttr::get(idType));
  built[body.getArgument(model.decoderIds)] = prefix;
  IRMapping mapping;
  mapping.map(body.getArgument(model.decoderIds), prefix);
  for (Operation &op : body.without_terminator()) {
    if (classOf(op.getResult(0)) == Class::Static)
      continue;
    for (Value operand : op.getOperands())
      if (!mapping.contains(operand)) {
        FailureOr<Value> value = inStepValue(operand, &op);
        mapping.map(operand, succeeded(value) ? *value : Value());
      }
    Operation *copy = builder.clone(op, mapping);
    for (Value value : copy->getResults())
      if (auto type = rankedType(value)) {
        SmallVector<DimAttr> dims;
        for (DimAttr dim : dimsOf(type))
          dims.push_back(substitute(dim, "batch", rows));
        value.setType(makeType(dims, type.getElementType()));
      }
    auto attention = dyn_cast<AttentionOp>(op);
    if (!attention || classOf(attention.getKey()) != Class::Static || attention.getProbabilities())
      continue;
    ++crossSites;
    if (!wanted)
      continue;
    AttentionOp made = withProbabilities(builder, cast<AttentionOp>(copy));
    mapping.map(attention.getResult(), made.getResult());
    weights.push_back(lastPosition(builder, made.getProbabilities(), 2));
  }
  Value logits = mapping.lookup(body.getTerminator()->getOperand(0));
  builder.create<SearchHeadOp>(whole.getLoc(), lastPosition(builder, logits, 1));
  returnWeights(step);
}

//===- All of them
//----------------------------------------------------------------------------------------------------===//

FailureOr<Derivation> StepBuilder::run() {
  result.cached = succeeded(classify()) && succeeded(buildStep(stepName, /*withWeights=*/false));
  bool weighs = crossSites > 0 || !model.alignments.empty();
  if (result.cached) {
    result.layers = layers.size();
    if (weighs && succeeded(buildStep(alignmentsName, /*withWeights=*/true)))
      result.alignments = weights.size();
    if (!model.explicitCaches && !layers.empty())
      buildPrefill();
    // What steps hand on otherwise cannot be taken back.
    if (!layers.empty() && model.recurrent.empty()) {
      buildAdvance();
      buildAdvanceBeams();
    }
  } else if (model.explicitCaches) {
    return module.emitError() << "the decoder's caches cannot be kept by the runtime: " << result.reason
                              << "; export the decoder without past, too",
           failure();
  } else {
    hoisted.clear();
    nextHoisted = 0;
    buildRecompute(stepName, /*wanted=*/false);
    if (crossSites > 0) {
      buildRecompute(alignmentsName, /*wanted=*/true);
      result.alignments = weights.size();
    }
  }
  buildEncode();
  return result;
}

FailureOr<Derivation> transept::deriveStep(ModuleOp module, const WholeModel &model) {
  return StepBuilder(module, model).run();
}
