//===- StageDerive.cpp - one position computed from caches
//-------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values fall into three classes. *Static* ones do not see the decoder: those that depend on the source are computed by
// @encode and kept per source slot. *Positional* ones depend on target positions but not on the batch: they get a row
// axis in front, since every row has its own position. *Decoder* values keep their shape with target = 1 and batch =
// rows.
//
// The proof: every op on decoder values is pointwise along the axes that hold target and batch (its own statement,
// axisBehaviour), or is attention that is causal with offset 0 over decoder keys, or attention over static keys.

#include "passes/ElementExpr.h"
#include "passes/Shapes.h"
#include "passes/Stage.h"
#include <set>

using namespace mlir;
using namespace mlir::transept;

namespace {

RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

std::string nodeName(Operation *op) {
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    return ("'" + name.getName().str() + "'");
  return ("a " + op->getName().stripDialect() + " op").str();
}

class StepBuilder {
public:
  StepBuilder(ModuleOp module, const WholeModel &model)
      : module(module), model(model), context(module.getContext()), exprs(context), rows(dimSymbol(context, "rows")),
        one(dimConstant(context, 1)), builder(context) {}

  FailureOr<Derivation> run();

private:
  enum class Class { Static, Positional, Decoder };

  Class classOf(Value value) {
    auto it = classes.find(value);
    return it == classes.end() ? Class::Static : it->second;
  }
  LogicalResult classify();
  /// Whether the op is the graph's own shift of its targets: ids at i - 1, a constant at 0.
  bool matchShift(Operation *op);
  bool hasSymbol(Value value, StringRef symbol) {
    auto type = rankedType(value);
    return type && llvm::any_of(dimsOf(type), [&](DimAttr dim) { return dim && dependsOn(dim, symbol); });
  }
  bool dependsOnTarget(Value value) { return hasSymbol(value, "target"); }
  bool dependsOnBatch(Value value) { return hasSymbol(value, "batch"); }

  LogicalResult broken(Operation *op, const Twine &why) {
    result.reason = (nodeName(op) + ": " + why).str();
    return failure();
  }

  DimAttr inStep(DimAttr dim) { return substitute(substitute(dim, "target", one), "batch", rows); }
  RankedTensorType stepType(RankedTensorType type, bool positional) {
    SmallVector<DimAttr> dims;
    if (positional)
      dims.push_back(rows);
    for (DimAttr dim : dimsOf(type))
      dims.push_back(inStep(dim));
    return makeType(dims, type.getElementType());
  }
  Value reshape(Location loc, Value value, ArrayRef<DimAttr> dims) {
    RankedTensorType type = makeType(dims, rankedType(value).getElementType());
    return type == value.getType() ? value : builder.create<ReshapeOp>(loc, type, value, Value(), false).getResult();
  }
  Value state(StringRef name, ArrayRef<DimAttr> dims, Type elementType) {
    return builder.create<StateOp>(module.getLoc(), makeType(dims, elementType), name);
  }

  /// The value in @step: itself cloned for constants, a state for what @encode keeps, else what was built for it.
  FailureOr<Value> inStepValue(Value value, Operation *user);
  FailureOr<Value> aligned(Value value, Operation *user, RankedTensorType resultType);
  std::string hoist(Value value);

  LogicalResult build(Operation *op);
  LogicalResult buildPositions(Operation *op);
  LogicalResult buildDecoder(Operation *op);
  LogicalResult buildPositional(Operation *op);
  LogicalResult buildAttention(AttentionOp op);
  LogicalResult provePointwise(Operation *op);
  FailureOr<Value> positionsOf(Value value);

  void buildEncode();
  void buildRecompute();

  ModuleOp module;
  WholeModel model;
  MLIRContext *context;
  ElementExprs exprs;
  DimAttr rows, one;
  OpBuilder builder;
  Derivation result;
  llvm::DenseMap<Value, Class> classes;
  llvm::DenseMap<Value, Value> built;
  llvm::MapVector<Value, std::string> hoisted;
  Value token, position;
  unsigned nextHoisted = 0;
};

} // namespace

bool StepBuilder::matchShift(Operation *op) {
  auto type = rankedType(op->getResult(0));
  if (!isa<SliceOp>(op) || !type || type.getRank() != 2 || !type.getElementType().isInteger(64))
    return false;
  auto pad = cast<SliceOp>(op).getInput().getDefiningOp<PadOp>();
  Value ids = model.function.getArgument(model.decoderIds);
  if (!pad || pad.getInput() != ids || pad.getMode() != PadMode::Constant || !pad.getLow() ||
      !cast<SliceOp>(op).getStarts() || !cast<SliceOp>(op).getSteps())
    return false;
  auto low = *pad.getLow();
  auto starts = *cast<SliceOp>(op).getStarts();
  for (unsigned axis = 0; axis < 2; ++axis)
    if (constantValue(cast<DimAttr>(low[axis])) != axis || constantValue(cast<DimAttr>(starts[axis])) != 0 ||
        (*cast<SliceOp>(op).getSteps())[axis] != 1)
      return false;
  int64_t fill = 0;
  if (Value value = pad.getFill()) {
    auto constant = value.getDefiningOp<ConstantOp>();
    if (!constant)
      return false;
    fill = HostTensor::fromElements(constant.getValue()).getInt(0);
  }
  result.startToken = fill;
  return type == ids.getType();
}

LogicalResult StepBuilder::classify() {
  Block &body = model.function.getBody().front();
  Value ids = body.getArgument(model.decoderIds);
  classes[ids] = Class::Decoder;
  bool plain = false;
  Value shifted;
  for (Operation &op : body.without_terminator()) {
    if (op.getNumRegions() && llvm::any_of(op.getOperands(), [&](Value v) { return classOf(v) != Class::Static; }))
      return broken(&op, "control flow over decoder values");
    bool decoder = false, positional = false;
    for (Value operand : op.getOperands()) {
      decoder |= classOf(operand) == Class::Decoder;
      positional |= classOf(operand) == Class::Positional;
    }
    for (Value value : op.getResults())
      positional |= dependsOnTarget(value);
    if (auto dims = dyn_cast<DimValueOp>(op))
      positional |= llvm::any_of(dims.getDims(), [](Attribute d) { return dependsOn(cast<DimAttr>(d), "target"); });
    if (!decoder && !positional)
      continue;
    // What has both a batch and a target axis is shaped like a decoder value, wherever it comes from.
    for (Value value : op.getResults())
      classes[value] = decoder || dependsOnBatch(value) ? Class::Decoder : Class::Positional;
    if (decoder && matchShift(&op))
      shifted = op.getResult(0);
    else if (llvm::is_contained(op.getOperands(), ids) && !isa<PadOp>(op))
      plain = true;
  }
  if (shifted && plain) {
    result.reason = "decoder ids are used both shifted and unshifted";
    return failure();
  }
  if (!shifted) {
    result.startToken.reset();
    return success();
  }
  // Whoever feeds the decoder begins with the start token, as for every other model: the graph's own shift goes, in
  // @score as well.
  shifted.replaceAllUsesWith(ids);
  return success();
}

std::string StepBuilder::hoist(Value value) {
  auto [it, inserted] = hoisted.insert({value, ""});
  if (inserted)
    it->second = "cross." + std::to_string(nextHoisted++);
  return it->second;
}

FailureOr<Value> StepBuilder::inStepValue(Value value, Operation *user) {
  if (Value known = built.lookup(value))
    return known;
  if (classOf(value) != Class::Static) {
    (void)broken(user, "uses a value that has no form for one position");
    return failure();
  }
  // Static: constants are cloned with what makes them, the rest comes from @encode.
  SetVector<Operation *> slice;
  SmallVector<Value> work{value};
  bool fromSource = false;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op) {
      fromSource = true;
      break;
    }
    if (slice.insert(op))
      work.append(op->operand_begin(), op->operand_end());
    fromSource |= llvm::any_of(op->getResults(), [](Value v) {
      auto type = rankedType(v);
      return type && !type.hasStaticShape();
    });
  }
  if (!fromSource) {
    SmallVector<Operation *> ordered(slice.begin(), slice.end());
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *op : ordered) {
      if (built.count(op->getResult(0)))
        continue;
      IRMapping mapping;
      for (Value operand : op->getOperands())
        mapping.map(operand, built.lookup(operand));
      Operation *copy = builder.clone(*op, mapping);
      for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
        built[from] = to;
    }
    return built.lookup(value);
  }
  // One row of the slot of each hypothesis: only where the batch is the first axis.
  auto type = rankedType(value);
  SmallVector<DimAttr> dims = type ? dimsOf(type) : SmallVector<DimAttr>();
  if (dims.empty() || symbolName(dims[0]) != "batch" ||
      llvm::any_of(ArrayRef(dims).drop_front(), [](DimAttr dim) { return dependsOn(dim, "batch"); })) {
    (void)broken(user, "uses a value of the source whose first axis is not the batch");
    return failure();
  }
  Value whole = state(hoist(value), dims, type.getElementType());
  Value source = state("step.source", {rows}, builder.getI32Type());
  dims[0] = rows;
  Value picked = builder.create<GatherOp>(user->getLoc(), makeType(dims, type.getElementType()), whole, source, 0);
  built[value] = picked;
  return picked;
}

/// A positional operand [rows, …dims] as the operand of a result whose batch axis is known: rows move to that axis,
/// over axes of size 1.
FailureOr<Value> StepBuilder::aligned(Value value, Operation *user, RankedTensorType resultType) {
  FailureOr<Value> operand = inStepValue(value, user);
  if (failed(operand) || classOf(value) != Class::Positional)
    return operand;
  SmallVector<DimAttr> resultDims = dimsOf(resultType), own = dimsOf(rankedType(value));
  size_t batchAxis = 0;
  while (batchAxis < resultDims.size() && !dependsOn(resultDims[batchAxis], "batch"))
    ++batchAxis;
  size_t offset = resultDims.size() - own.size();
  SmallVector<DimAttr> dims(resultDims.size(), one);
  for (auto [axis, dim] : llvm::enumerate(own))
    dims[offset + axis] = inStep(dim);
  for (size_t axis = 0; axis <= batchAxis && axis < dims.size(); ++axis)
    if (dims[axis] != one) {
      (void)broken(user, "combines positions and batch in an order that has no form for one position");
      return failure();
    }
  if (batchAxis == resultDims.size()) {
    (void)broken(user, "has no batch axis");
    return failure();
  }
  dims[batchAxis] = rows;
  return reshape(user->getLoc(), *operand, dims);
}

LogicalResult StepBuilder::provePointwise(Operation *op) {
  auto graphOp = dyn_cast<GraphOp>(op);
  if (!graphOp || op->getNumResults() != 1)
    return broken(op, "is not understood along the target axis");
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = rankedType(operand.get());
    if (classOf(operand.get()) == Class::Static || !type)
      continue;
    for (auto [axis, dim] : llvm::enumerate(dimsOf(type))) {
      bool target = dependsOn(dim, "target"), batch = dependsOn(dim, "batch");
      if (!target && !batch)
        continue;
      int64_t resultAxis = -1;
      AxisBehaviour behaviour = graphOp.axisBehaviour(operand.getOperandNumber(), axis, resultAxis);
      if (behaviour != AxisBehaviour::Pointwise || resultAxis < 0)
        return broken(op, target ? "mixes target positions" : "mixes the sentences of a batch");
    }
  }
  return success();
}

/// Integer tensors whose elements are positions (plus a constant): read from step.position.
FailureOr<Value> StepBuilder::positionsOf(Value value) {
  auto type = rankedType(value);
  if (!type || !(type.getElementType().isInteger(64) || type.getElementType().isInteger(32)))
    return failure();
  SmallVector<DimAttr> dims = dimsOf(type), symbols;
  SmallVector<const Elem *> indices;
  for (auto [axis, dim] : llvm::enumerate(dims)) {
    symbols.push_back(exprs.indexSymbol("p", dim));
    indices.push_back(constantValue(dim) == 1 ? exprs.number(0) : exprs.index(symbols.back()));
  }
  const Elem *elem = exprs.at(value, indices);
  if (elem->kind != Elem::Kind::Index)
    return failure();
  for (auto [axis, dim] : llvm::enumerate(dims)) {
    if (symbolName(dim) != "target" || !dependsOn(elem->index, symbolName(symbols[axis])))
      continue;
    std::optional<int64_t> offset = constantValue(dimSub(elem->index, symbols[axis]));
    if (!offset)
      return failure();
    Location loc = value.getLoc();
    Value current = position;
    if (!type.getElementType().isInteger(64))
      current = builder.create<CastOp>(loc, makeType({rows, one}, type.getElementType()), current,
                                       TypeAttr::get(type.getElementType()));
    if (*offset) {
      HostTensor number = HostTensor::make(RankedTensorType::get({}, type.getElementType()));
      number.setInt(0, *offset);
      Value constant = builder.create<ConstantOp>(loc, number.getType(), number.toElements());
      current = builder.create<AddOp>(loc, current.getType(), current, constant);
    }
    // A value over batch and target has one position per row; one over target alone gets the row axis in front.
    SmallVector<DimAttr> stepDims;
    if (!dependsOnBatch(value))
      stepDims.push_back(rows);
    for (DimAttr d : dims)
      stepDims.push_back(inStep(d));
    return reshape(loc, current, stepDims);
  }
  return failure();
}

LogicalResult StepBuilder::buildPositional(Operation *op) {
  Location loc = op->getLoc();
  auto type = rankedType(op->getResult(0));
  if (!type)
    return broken(op, "has no known rank");
  auto inputs = [&]() -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> values;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> value = inStepValue(operand, op);
      if (failed(value))
        return failure();
      values.push_back(*value);
    }
    return values;
  };
  // A leading part of a table, as long as the target: the row of the position.
  if (auto slice = dyn_cast<SliceOp>(op); slice && classOf(slice.getInput()) == Class::Static && slice.getStarts()) {
    SmallVector<DimAttr> dims = dimsOf(type), from = dimsOf(rankedType(slice.getInput()));
    for (auto [axis, start] : llvm::enumerate(*slice.getStarts())) {
      if (symbolName(dims[axis]) != "target")
        continue;
      std::optional<int64_t> offset = constantValue(cast<DimAttr>(start));
      if (!offset || (*slice.getSteps())[axis] != 1)
        break;
      FailureOr<Value> table = inStepValue(slice.getInput(), op);
      if (failed(table))
        return failure();
      SmallVector<DimAttr> others = dims;
      others[axis] = from[axis];
      if (llvm::any_of(llvm::enumerate(*slice.getStarts()), [&, axis = axis](auto it) {
            return it.index() != axis &&
                   (constantValue(cast<DimAttr>(it.value())) != 0 || dims[it.index()] != from[it.index()]);
          }))
        break;
      // gather along `axis` puts [rows, 1] there; axes before it are 1, so the row axis can move to the front.
      for (size_t before = 0; before < axis; ++before)
        if (dims[before] != one)
          return broken(op, "cuts a table behind other axes");
      Value index = position;
      if (*offset) {
        HostTensor number = HostTensor::make(RankedTensorType::get({}, builder.getI64Type()));
        number.setInt(0, *offset);
        Value constant = builder.create<ConstantOp>(loc, number.getType(), number.toElements());
        index = builder.create<AddOp>(loc, index.getType(), index, constant);
      }
      SmallVector<DimAttr> gathered(from.begin(), from.begin() + axis);
      gathered.append({rows, one});
      gathered.append(from.begin() + axis + 1, from.end());
      Value row = builder.create<GatherOp>(loc, makeType(gathered, type.getElementType()), *table, index, axis);
      built[op->getResult(0)] = reshape(loc, row, dimsOf(stepType(type, true)));
      return success();
    }
    return broken(op, "cuts a table at positions");
  }
  FailureOr<SmallVector<Value>> values = inputs();
  if (failed(values))
    return failure();
  if (isa<ReshapeOp>(op)) {
    built[op->getResult(0)] = reshape(loc, (*values)[0], dimsOf(stepType(type, true)));
    return success();
  }
  if (auto gather = dyn_cast<GatherOp>(op);
      gather && classOf(gather.getData()) == Class::Static && gather.getAxis() == 0) {
    built[op->getResult(0)] = builder.create<GatherOp>(loc, stepType(type, true), (*values)[0], (*values)[1], 0);
    return success();
  }
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    if (llvm::any_of(op->getOperands(), [&](Value v) { return classOf(v) != Class::Positional; }) ||
        dependsOn(dimsOf(type)[concat.getAxis()], "target"))
      return broken(op, "joins values along the target axis");
    built[op->getResult(0)] = builder.create<ConcatOp>(loc, stepType(type, true), *values, concat.getAxis() + 1);
    return success();
  }
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    SmallVector<int64_t> permutation{0};
    for (int64_t axis : transpose.getPermutation())
      permutation.push_back(axis + 1);
    built[op->getResult(0)] = builder.create<TransposeOp>(loc, stepType(type, true), (*values)[0], permutation);
    return success();
  }
  if (op->hasTrait<Elementwise>() || isa<BroadcastOp>(op)) {
    if (failed(provePointwise(op)))
      return failure();
    // Operands of smaller rank get axes of size 1 behind the row axis.
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      if (classOf(operand) != Class::Positional)
        continue;
      SmallVector<DimAttr> own = dimsOf(rankedType(operand)), dims{rows};
      dims.append(type.getRank() - own.size(), one);
      for (DimAttr dim : own)
        dims.push_back(inStep(dim));
      (*values)[index] = reshape(loc, (*values)[index], dims);
    }
    Operation *copy = builder.clone(*op);
    copy->setOperands(*values);
    copy->getResult(0).setType(stepType(type, true));
    built[op->getResult(0)] = copy->getResult(0);
    return success();
  }
  return broken(op, "computes with positions in a way that has no form for one position");
}

LogicalResult StepBuilder::buildAttention(AttentionOp op) {
  Location loc = op.getLoc();
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
  auto type = stepType(rankedType(op.getResult()), false);
  auto overBatchAndTarget = [](Value value) {
    SmallVector<DimAttr> dims = dimsOf(rankedType(value));
    return dims.size() == 4 && symbolName(dims[0]) == "batch" && symbolName(dims[1]) == "target";
  };
  if (!overBatchAndTarget(op.getQuery()))
    return broken(op, "queries are not [batch, target, heads, size]");
  if (keys) {
    if (!overBatchAndTarget(op.getKey()) || !overBatchAndTarget(op.getValue()))
      return broken(op, "keys are not [batch, target, heads, size]");
    if (!op.getCausal() || constantValue(op.getCausalOffset().value_or(one)) != 0)
      return broken(op, "attention over the target is not causal");
    if (op.getKeyMask()) {
      if (classOf(op.getKeyMask()) != Class::Decoder)
        return broken(op, "a mask of the source hides target positions");
      result.notes.push_back("tokens given to the decoder are never padding (the graph would hide them as keys)");
    }
    FailureOr<Value> key = inStepValue(op.getKey(), op), value = inStepValue(op.getValue(), op);
    if (failed(key) || failed(value))
      return failure();
    int64_t layer = result.layers++;
    builder.create<CacheAppendOp>(loc, *key, *value, layer);
    built[op.getResult()] =
        builder.create<CacheAttentionOp>(loc, type, *query, static_cast<uint64_t>(layer), op.getScale(),
                                         static_cast<uint64_t>(rankedType(op.getKey()).getDimSize(2)),
                                         static_cast<uint64_t>(rankedType(op.getValue()).getDimSize(3)));
    return success();
  }
  if (op.getCausal())
    return broken(op, "attention over the source is causal");
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
  built[op.getResult()] =
      builder.create<CrossAttentionOp>(loc, type, *query, key, value, mask, op.getScale(), op.getEmptyRow());
  return success();
}

LogicalResult StepBuilder::buildDecoder(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return buildAttention(attention);
  auto type = op->getNumResults() == 1 ? rankedType(op->getResult(0)) : RankedTensorType();
  if (!type)
    return broken(op, "has no known rank");
  if (failed(provePointwise(op)))
    return failure();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    bool aligns = op->hasTrait<Elementwise>() || isa<BroadcastOp>(op);
    FailureOr<Value> value = aligns ? aligned(operand, op, type) : inStepValue(operand, op);
    if (failed(value))
      return failure();
    if (classOf(operand) == Class::Positional && !aligns)
      return broken(op, "combines positions and batch");
    operands.push_back(*value);
  }
  RankedTensorType newType = stepType(type, false);
  if (isa<ReshapeOp>(op)) {
    built[op->getResult(0)] = reshape(op->getLoc(), operands[0], dimsOf(newType));
    return success();
  }
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  copy->getResult(0).setType(newType);
  built[op->getResult(0)] = copy->getResult(0);
  return success();
}

LogicalResult StepBuilder::build(Operation *op) {
  for (Value value : op->getResults())
    if (FailureOr<Value> positions = positionsOf(value); succeeded(positions)) {
      built[value] = *positions;
      return success();
    }
  return classOf(op->getResult(0)) == Class::Positional ? buildPositional(op) : buildDecoder(op);
}

/// @encode: what the hoisted values need, each written to its state.
void StepBuilder::buildEncode() {
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
    if (i != model.decoderIds) {
      arguments.push_back(i);
      types.push_back(whole.getArgument(i).getType());
    }
  OpBuilder at(context);
  at.setInsertionPoint(whole);
  auto encode = at.create<func::FuncOp>(whole.getLoc(), "encode", at.getFunctionType(types, {}));
  if (auto attr = whole->getAttrOfType<ArrayAttr>(guardsAttrName)) {
    // What concerns the target is checked where a target is given.
    SmallVector<Guard> guards = guardsFromAttr(attr);
    llvm::erase_if(guards,
                   [](const Guard &guard) { return dependsOn(guard.lhs, "target") || dependsOn(guard.rhs, "target"); });
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

/// The whole prefix again at every step: decoder ids are step.prefix [rows, target], logits are those of the last
/// position.
void StepBuilder::buildRecompute() {
  func::FuncOp whole = model.function;
  hoisted.clear();
  nextHoisted = 0;
  Block &body = whole.getBody().front();
  // Everything that sees the decoder ids or the target's length stays in the step; what it reads of the rest is kept.
  SetVector<Operation *> inside;
  for (Operation &op : body.without_terminator())
    if (classOf(op.getResult(0)) != Class::Static)
      inside.insert(&op);
  builder.setInsertionPoint(whole);
  auto step = builder.create<func::FuncOp>(whole.getLoc(), "step", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(step.addEntryBlock());
  built.clear();
  Type idType = rankedType(body.getArgument(model.decoderIds)).getElementType();
  DimAttr target = dimSymbol(context, "target");
  Value prefix = state("step.prefix", {rows, target}, builder.getI64Type());
  if (!idType.isInteger(64))
    prefix = builder.create<CastOp>(whole.getLoc(), makeType({rows, target}, idType), prefix, TypeAttr::get(idType));
  built[body.getArgument(model.decoderIds)] = prefix;
  IRMapping mapping;
  mapping.map(body.getArgument(model.decoderIds), prefix);
  for (Operation *op : inside) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand)) {
        FailureOr<Value> value = inStepValue(operand, op);
        mapping.map(operand, succeeded(value) ? *value : Value());
      }
    Operation *copy = builder.clone(*op, mapping);
    for (Value value : copy->getResults())
      if (auto type = rankedType(value)) {
        SmallVector<DimAttr> dims;
        for (DimAttr dim : dimsOf(type))
          dims.push_back(substitute(dim, "batch", rows));
        value.setType(makeType(dims, type.getElementType()));
      }
  }
  Value logits = mapping.lookup(body.getTerminator()->getOperand(0));
  auto type = rankedType(logits);
  SmallVector<DimAttr> dims = dimsOf(type);
  dims[1] = one;
  SmallVector<Attribute> starts{dimConstant(context, 0), dimSub(target, one), dimConstant(context, 0)};
  Value last =
      builder.create<SliceOp>(whole.getLoc(), makeType(dims, type.getElementType()), logits, Value(), Value(), Value(),
                              Value(), builder.getArrayAttr(starts), builder.getDenseI64ArrayAttr({1, 1, 1}));
  builder.create<SearchHeadOp>(whole.getLoc(), last);
  builder.create<func::ReturnOp>(whole.getLoc());
}

FailureOr<Derivation> StepBuilder::run() {
  func::FuncOp whole = model.function;
  Block &body = whole.getBody().front();
  LogicalResult proved = classify();
  func::FuncOp step;
  if (succeeded(proved)) {
    builder.setInsertionPoint(whole);
    step = builder.create<func::FuncOp>(whole.getLoc(), "step", builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(step.addEntryBlock());
    Type idType = rankedType(body.getArgument(model.decoderIds)).getElementType();
    token = state("step.token", {rows, one}, builder.getI64Type());
    position = state("step.position", {rows, one}, builder.getI64Type());
    if (!idType.isInteger(64))
      token = builder.create<CastOp>(whole.getLoc(), makeType({rows, one}, idType), token, TypeAttr::get(idType));
    built[body.getArgument(model.decoderIds)] = token;
    // Only what the logits need.
    SetVector<Operation *> needed;
    SmallVector<Value> work{body.getTerminator()->getOperand(0)};
    while (!work.empty()) {
      Operation *op = work.pop_back_val().getDefiningOp();
      if (!op || classOf(op->getResult(0)) == Class::Static || !needed.insert(op))
        continue;
      // A mask of decoder keys is dropped under a stated assumption.
      for (Value operand : op->getOperands())
        if (auto attention = dyn_cast<AttentionOp>(op); !attention || operand != attention.getKeyMask())
          work.push_back(operand);
    }
    for (Operation &op : body.without_terminator()) {
      if (!needed.contains(&op))
        continue;
      proved = build(&op);
      if (failed(proved))
        break;
    }
  }
  if (succeeded(proved)) {
    Value logits = built.lookup(body.getTerminator()->getOperand(0));
    auto type = logits ? rankedType(logits) : RankedTensorType();
    if (!type || type.getRank() != 3 || dimsOf(type)[0] != rows || dimsOf(type)[1] != one) {
      result.reason = "logits are not [batch, target, vocabulary]";
      proved = failure();
    } else {
      builder.create<SearchHeadOp>(logits.getLoc(), logits);
      builder.create<func::ReturnOp>(whole.getLoc());
      result.cached = true;
    }
  }
  if (failed(proved)) {
    if (step)
      step.erase();
    result.layers = 0;
    buildRecompute();
  }
  buildEncode();
  return result;
}

FailureOr<Derivation> transept::deriveStep(ModuleOp module, const WholeModel &model) {
  return StepBuilder(module, model).run();
}

int64_t transept::positionLimit(func::FuncOp function, StringRef symbol) {
  MLIRContext *context = function.getContext();
  ElementExprs exprs(context);
  int64_t limit = 0;
  auto restrict = [&](int64_t bound) { limit = limit == 0 ? bound : std::min(limit, bound); };
  function.walk([&](Operation *op) {
    // Look-ups in tables: index = position + offset.
    if (auto gather = dyn_cast<GatherOp>(op)) {
      auto data = rankedType(gather.getData()), index = rankedType(gather.getIndices());
      if (!data || !index || !data.hasStaticShape())
        return;
      SmallVector<const Elem *> indices;
      SmallVector<DimAttr> symbols;
      for (DimAttr dim : dimsOf(index)) {
        symbols.push_back(exprs.indexSymbol("l", dim));
        indices.push_back(constantValue(dim) == 1 ? exprs.number(0) : exprs.index(symbols.back()));
      }
      const Elem *elem = exprs.at(gather.getIndices(), indices);
      for (auto [axis, dim] : llvm::enumerate(dimsOf(index)))
        if (symbolName(dim) == symbol && elem->kind == Elem::Kind::Index)
          if (std::optional<int64_t> offset = constantValue(dimSub(elem->index, symbols[axis])))
            restrict(data.getDimSize(gather.getAxis()) - *offset);
    }
    if (auto slice = dyn_cast<SliceOp>(op)) {
      auto from = rankedType(slice.getInput()), to = rankedType(slice.getResult());
      if (!from || !to || !from.hasStaticShape() || !slice.getStarts())
        return;
      for (auto [axis, dim] : llvm::enumerate(dimsOf(to)))
        if (symbolName(dim) == symbol)
          if (std::optional<int64_t> offset = constantValue(cast<DimAttr>((*slice.getStarts())[axis])))
            restrict(from.getDimSize(axis) - *offset);
    }
  });
  return limit;
}
