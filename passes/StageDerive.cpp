//===- StageDerive.cpp - which class values are of, and one position of each op -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/StepBuilder.h"

using namespace mlir;
using namespace mlir::transept;

static RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

static std::string quotedNode(Operation *op) {
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    return ("'" + name.getName().str() + "'");
  return ("a " + op->getName().stripDialect() + " op").str();
}

LogicalResult StepBuilder::broken(Operation *op, const Twine &why) {
  result.reason = (quotedNode(op) + ": " + why).str();
  return failure();
}

RankedTensorType StepBuilder::stepType(RankedTensorType type, bool positional) {
  SmallVector<DimAttr> dims;
  if (positional)
    dims.push_back(rows);
  for (DimAttr dim : dimsOf(type))
    dims.push_back(inStep(dim));
  return makeType(dims, type.getElementType());
}

Value StepBuilder::reshape(Location loc, Value value, ArrayRef<DimAttr> dims) {
  RankedTensorType type = makeType(dims, rankedType(value).getElementType());
  return type == value.getType() ? value : builder.create<ReshapeOp>(loc, type, value, Value(), false).getResult();
}

Value StepBuilder::addNumber(Location loc, Value value, int64_t offset) {
  if (offset == 0)
    return value;
  HostTensor number = HostTensor::make(RankedTensorType::get({}, rankedType(value).getElementType()));
  number.setInt(0, offset);
  Value constant = builder.create<ConstantOp>(loc, number.getType(), number.toElements());
  return builder.create<AddOp>(loc, value.getType(), value, constant);
}

//===- Classes
//--------------------------------------------------------------------------------------------------------===//

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
  for (const WholeModel::Past &cache : model.caches)
    classes[body.getArgument(cache.argument)] = Class::Decoder;
  for (const WholeModel::Recurrent &recurrent : model.recurrent)
    classes[body.getArgument(recurrent.argument)] = Class::Decoder;
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
      positional |= dependsOnPositions(value);
    if (auto dims = dyn_cast<DimValueOp>(op))
      positional |= llvm::any_of(dims.getDims(), [&](Attribute d) { return dependsOn(cast<DimAttr>(d), along); });
    if (!decoder && !positional)
      continue;
    // What has both a batch and a position axis is shaped like a decoder value, wherever it comes from.
    for (Value value : op.getResults())
      classes[value] = decoder || dependsOnBatch(value) ? Class::Decoder : Class::Positional;
    if (decoder && matchShift(&op))
      shifted = op.getResult(0);
    else if (llvm::is_contained(op.getOperands(), ids) && !isa<PadOp>(op))
      plain = true;
  }
  exprs.countAll(ids);
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
  Value picked = perRow(user->getLoc(), value);
  if (!picked) {
    (void)broken(user, "uses a value of the source that has not one axis for the batch");
    return failure();
  }
  built[value] = picked;
  return picked;
}

Value StepBuilder::perRow(Location loc, Value value) {
  auto type = rankedType(value);
  SmallVector<DimAttr> dims = type ? dimsOf(type) : SmallVector<DimAttr>();
  auto *batch = llvm::find_if(dims, [](DimAttr dim) { return symbolName(dim) == "batch"; });
  if (batch == dims.end() || llvm::count_if(dims, [](DimAttr dim) { return dependsOn(dim, "batch"); }) != 1)
    return {};
  Value whole = state(hoist(value), dims, type.getElementType());
  Value source = state("step.source", {rows}, builder.getI32Type());
  *batch = rows;
  return builder.create<GatherOp>(loc, makeType(dims, type.getElementType()), whole, source, batch - dims.begin());
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
  if (!graphOp || op->getNumResults() == 0)
    return broken(op, "is not understood along the target axis");
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = rankedType(operand.get());
    if (classOf(operand.get()) == Class::Static || !type)
      continue;
    for (auto [axis, dim] : llvm::enumerate(dimsOf(type))) {
      bool target = dependsOn(dim, along), batch = dependsOn(dim, "batch");
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

/// By how much the elements of a tensor are larger than their position; nullopt where they are no positions.
std::optional<int64_t> StepBuilder::positionOffset(const Elem *elem, ArrayRef<DimAttr> dims,
                                                   ArrayRef<DimAttr> symbols) {
  if (elem->kind != Elem::Kind::Index || (model.explicitCaches && !dependsOn(elem->index, along)))
    return std::nullopt;
  if (model.explicitCaches)
    return constantValue(dimSub(elem->index, dimSymbol(context, along)));
  for (auto [dim, symbol] : llvm::zip(dims, symbols))
    if (symbolName(dim) == along && dependsOn(elem->index, symbolName(symbol)))
      return constantValue(dimSub(elem->index, symbol));
  return std::nullopt;
}

/// Integer tensors whose elements are positions (plus a constant): read from step.position.
FailureOr<Value> StepBuilder::positionsOf(Value value) {
  auto type = rankedType(value);
  bool integer = type && (type.getElementType().isInteger(64) || type.getElementType().isInteger(32));
  // Of real numbers, only those that were a position a moment ago.
  if (!integer &&
      !(type && isa<FloatType>(type.getElementType()) && isa_and_nonnull<DimValueOp>(value.getDefiningOp())))
    return failure();
  SmallVector<DimAttr> dims = dimsOf(type), symbols;
  SmallVector<const Elem *> indices;
  for (auto [axis, dim] : llvm::enumerate(dims)) {
    symbols.push_back(exprs.indexSymbol("p", dim));
    indices.push_back(constantValue(dim) == 1 ? exprs.number(0) : exprs.index(symbols.back()));
  }
  std::optional<int64_t> offset = positionOffset(exprs.at(value, indices), dims, symbols);
  if (!offset)
    return failure();
  Location loc = value.getLoc();
  Value current = addNumber(loc, position, *offset);
  if (!type.getElementType().isInteger(64))
    current = builder.create<CastOp>(loc, makeType(dimsOf(rankedType(position)), type.getElementType()), current,
                                     TypeAttr::get(type.getElementType()));
  // A value over batch and target has one position per row; one over target alone gets the row axis in front.
  SmallVector<DimAttr> stepDims;
  if (!dependsOnBatch(value))
    stepDims.push_back(rows);
  for (DimAttr d : dims)
    stepDims.push_back(inStep(d));
  if (dimProduct(context, stepDims) != dimProduct(context, dimsOf(rankedType(position))))
    return failure();
  return reshape(loc, current, stepDims);
}

/// A part of a table that begins at the position, as long as there are positions: the rows of the positions. False
/// where the slice is none of those.
FailureOr<bool> StepBuilder::buildTableSlice(SliceOp slice) {
  Operation *op = slice;
  Location loc = op->getLoc();
  auto type = rankedType(slice.getResult());
  SmallVector<DimAttr> dims = dimsOf(type), from = dimsOf(rankedType(slice.getInput()));
  for (auto [at, attr] : llvm::enumerate(*slice.getStarts())) {
    auto start = cast<DimAttr>(attr);
    if (model.explicitCaches ? !dependsOn(start, along) || dims[at] != one : symbolName(dims[at]) != along)
      continue;
    std::optional<int64_t> offset =
        constantValue(model.explicitCaches ? dimSub(start, dimSymbol(context, along)) : start);
    if (!offset || (*slice.getSteps())[at] != 1)
      return false;
    FailureOr<Value> table = inStepValue(slice.getInput(), op);
    if (failed(table))
      return failure();
    if (llvm::any_of(llvm::enumerate(*slice.getStarts()), [&, at = at](auto it) {
          return it.index() != at &&
                 (constantValue(cast<DimAttr>(it.value())) != 0 || dims[it.index()] != from[it.index()]);
        }))
      return false;
    // gather along the axis puts [rows, positions] there; axes before it are 1, so the row axis can move to the front.
    for (size_t before = 0; before < at; ++before)
      if (dims[before] != one) {
        (void)broken(op, "cuts a table behind other axes");
        return failure();
      }
    SmallVector<DimAttr> gathered(from.begin(), from.begin() + at);
    gathered.append({rows, width});
    gathered.append(from.begin() + at + 1, from.end());
    Value row = builder.create<GatherOp>(loc, makeType(gathered, type.getElementType()), *table,
                                         addNumber(loc, position, *offset), at);
    built[op->getResult(0)] = reshape(loc, row, dimsOf(stepType(type, true)));
    return true;
  }
  return false;
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
  if (auto slice = dyn_cast<SliceOp>(op); slice && classOf(slice.getInput()) == Class::Static && slice.getStarts()) {
    FailureOr<bool> cut = buildTableSlice(slice);
    if (failed(cut))
      return failure();
    return *cut ? success() : broken(op, "cuts a table at positions");
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
        dependsOn(dimsOf(type)[concat.getAxis()], along))
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

LogicalResult StepBuilder::buildDecoder(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return buildAttention(attention);
  if (!llvm::all_of(op->getResults(), [](Value value) { return rankedType(value); }))
    return broken(op, "has no known rank");
  auto type = rankedType(op->getResult(0));
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
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults())) {
    to.setType(stepType(rankedType(from), false));
    built[from] = to;
  }
  return success();
}

void StepBuilder::noteCounted() {
  std::optional<double> padding = std::exchange(exprs.padding, std::nullopt);
  if (!padding)
    return;
  std::string note = "tokens given to the decoder are never " + std::to_string(static_cast<int64_t>(*padding)) +
                     " (the graph would not count them as positions)";
  if (!llvm::is_contained(result.notes, note))
    result.notes.push_back(note);
}

LogicalResult StepBuilder::build(Operation *op) {
  for (Value value : op->getResults())
    if (FailureOr<Value> positions = positionsOf(value); succeeded(positions)) {
      built[value] = *positions;
      noteCounted();
      return success();
    }
  for (Value value : op->getResults())
    if (auto type = rankedType(value); model.explicitCaches && type && dependsOnPositions(value))
      return broken(op, "has as many elements as there are positions before");
  return classOf(op->getResult(0)) == Class::Positional ? buildPositional(op) : buildDecoder(op);
}
