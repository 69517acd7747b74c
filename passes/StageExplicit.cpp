//===- StageExplicit.cpp - decoders that take and return their caches ---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "passes/StagePart.h"

using namespace mlir;
using namespace mlir::transept;

static RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

//===- Inputs that follow from the number of positions
//--------------------------------------------------------------===//

/// A number everywhere.
static Value fill(OpBuilder &builder, Location loc, RankedTensorType type, int64_t number) {
  HostTensor element = HostTensor::make(RankedTensorType::get({1}, type.getElementType()));
  element.setInt(0, number);
  return builder.create<FillOp>(loc, type, Value(), element.toElements());
}

/// `first`, `first` + 1, … along the last axis of the type.
static Value positionsAs(OpBuilder &builder, Location loc, RankedTensorType type, DimAttr first) {
  if (type.getRank() == 0)
    return builder.create<DimValueOp>(loc, type, builder.getArrayAttr({first}));
  DimAttr last = dimsOf(type).back();
  Value range = builder.create<RangeOp>(loc, makeType({last}, type.getElementType()), Value(), Value(), Value(), first,
                                        builder.getI64IntegerAttr(1));
  return range.getType() == type ? range : builder.create<BroadcastOp>(loc, type, range, Value()).getResult();
}

static bool followsFromPositions(StringRef role) {
  return llvm::is_contained({"target_mask", "target_padding", "target_positions", "past_length"}, role);
}

LogicalResult transept::fillDecoderInputs(Part &part, DimAttr past, DimAttr positions) {
  func::FuncOp function = part.function;
  auto axisBecomes = [&](BlockArgument argument, DimAttr size) -> LogicalResult {
    auto type = rankedType(argument);
    if (!type || type.getRank() == 0)
      return success();
    StringRef symbol = symbolName(dimsOf(type).back());
    return symbol.empty() || dimsOf(type).back() == size ? success() : substituteSymbol(function, symbol, size);
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    BlockArgument argument = function.getArgument(i);
    std::string role = part.argumentRole(i);
    bool mask = role == "target_mask" || role == "target_padding";
    bool counts = !mask;
    if (!followsFromPositions(role) || argument.use_empty() || !rankedType(argument))
      continue;
    if (failed(axisBecomes(argument, mask ? dimAdd(past, positions) : positions)))
      return failure();
    OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
    auto type = rankedType(argument);
    if (counts && !isa<IntegerType>(type.getElementType()))
      return function.emitError() << "input '" << part.argumentName(i) << "' holds positions that are no integers";
    argument.replaceAllUsesWith(mask ? fill(builder, function.getLoc(), type, role == "target_mask")
                                     : positionsAs(builder, function.getLoc(), type, past));
  }
  return success();
}

//===- Caches
//--------------------------------------------------------------------------------------------------------===//

namespace {

/// The self caches a decoder takes, as indices of arguments and results.
FailureOr<SmallVector<WholeModel::Past>> findCaches(Part &part) {
  SmallVector<WholeModel::Past> caches;
  for (unsigned i = 0; i < part.function.getNumArguments(); ++i) {
    std::string role = part.argumentRole(i);
    StringRef cache = role;
    if (!cache.consume_front("past.self."))
      continue;
    std::string present = ("present.self." + cache).str();
    std::optional<unsigned> result = part.resultIndex({present});
    if (!result)
      return part.function.emitError() << "takes the cache '" << part.argumentName(i)
                                       << "' but returns none that goes with it",
             failure();
    caches.push_back({i, *result});
  }
  return caches;
}

/// Names the length of all caches `past`.
LogicalResult namePast(Part &part, ArrayRef<WholeModel::Past> caches) {
  MLIRContext *context = part.function.getContext();
  DimAttr past = dimSymbol(context, "past");
  for (const WholeModel::Past &cache : caches) {
    auto type = rankedType(part.function.getArgument(cache.argument));
    SmallVector<DimAttr> dims = type ? dimsOf(type) : SmallVector<DimAttr>();
    if (dims.empty() || (symbolName(dims[0]) != "batch" && symbolName(dims[0]).empty()))
      return part.function.emitError() << "cache '" << part.argumentName(cache.argument)
                                       << "' does not have the batch as its first axis";
    if (symbolName(dims[0]) != "batch" &&
        failed(substituteSymbol(part.function, symbolName(dims[0]), dimSymbol(context, "batch"))))
      return failure();
    SmallVector<StringRef> lengths;
    for (DimAttr dim : ArrayRef(dims).drop_front())
      if (!constantValue(dim))
        lengths.push_back(symbolName(dim));
    if (lengths.size() != 1 || lengths[0].empty())
      return part.function.emitError() << "cache '" << part.argumentName(cache.argument) << "' has "
                                       << (lengths.empty() ? "a fixed length" : "no length of its own") << ", "
                                       << Value(part.function.getArgument(cache.argument)).getType();
    if (lengths[0] != "past" && failed(substituteSymbol(part.function, lengths[0], past)))
      return failure();
  }
  return success();
}

/// How many positions the caches of a decoder hold: 0 where it takes none, null where that is no expression.
DimAttr cachedPositions(Part &part) {
  for (unsigned i = 0; i < part.function.getNumArguments(); ++i) {
    auto type = rankedType(part.function.getArgument(i));
    if (!StringRef(part.argumentRole(i)).starts_with("past.self.") || !type)
      continue;
    DimAttr found;
    for (DimAttr dim : ArrayRef(dimsOf(type)).drop_front())
      if (dim && !constantValue(dim))
        found = found ? DimAttr() : dim;
    return found;
  }
  return dimConstant(part.function.getContext(), 0);
}

/// Before fusion: masks that hide nothing, and positions that are known, are no obstacles then.
class BindInputsPass : public PassWrapper<BindInputsPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BindInputsPass)
  StringRef getArgument() const override { return "transept-bind-inputs"; }
  StringRef getDescription() const override {
    return "Computes inputs of decoders that follow from the number of positions: positions, lengths, masks of targets";
  }

  void runOnOperation() override {
    bool changed = false;
    for (StringRef name : {"decoder", "decoder_with_past", "decoder_only", "monolith"}) {
      Part part = findPart(getOperation(), name);
      std::optional<unsigned> ids = part ? part.argument("target_ids") : std::nullopt;
      auto type = ids ? rankedType(part.function.getArgument(*ids)) : RankedTensorType();
      DimAttr past = type ? cachedPositions(part) : DimAttr();
      if (!past || !llvm::any_of(part.function.getArguments(), [&](BlockArgument argument) {
            return followsFromPositions(part.argumentRole(argument.getArgNumber())) && !argument.use_empty();
          }))
        continue;
      DimAttr positions = type.getRank() == 2 ? dimsOf(type)[1] : dimConstant(&getContext(), 1);
      if (failed(fillDecoderInputs(part, past, positions)))
        return signalPassFailure();
      changed = true;
    }
    OpPassManager shapes(ModuleOp::getOperationName());
    shapes.addPass(createShapesPass());
    if (changed && failed(runPipeline(shapes, getOperation())))
      return signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> transept::createBindInputsPass() { return std::make_unique<BindInputsPass>(); }

FailureOr<bool> transept::makePrefixDecoder(ModuleOp module) {
  MLIRContext *context = module.getContext();
  Part part = findPart(module, "decoder_only");
  std::optional<unsigned> ids = part ? part.argument("target_ids") : std::nullopt;
  auto type = ids ? rankedType(part.function.getArgument(*ids)) : RankedTensorType();
  if (!type || type.getRank() != 2 || symbolName(dimsOf(type)[1]).empty())
    return false;
  DimAttr target = dimSymbol(context, "target"), past = dimSymbol(context, "past"), none = dimConstant(context, 0);
  FailureOr<SmallVector<WholeModel::Past>> caches = findCaches(part);
  if (failed(caches) || failed(nameAxes(part, {"target_ids"}, {dimSymbol(context, "batch"), target})) ||
      failed(namePast(part, *caches)) || failed(fillDecoderInputs(part, past, target)))
    return failure();
  OpBuilder builder = OpBuilder::atBlockBegin(&part.function.getBody().front());
  for (const WholeModel::Past &cache : *caches) {
    BlockArgument argument = part.function.getArgument(cache.argument);
    argument.replaceAllUsesWith(fill(builder, part.function.getLoc(), rankedType(argument), 0));
  }
  if (failed(substituteSymbol(part.function, "past", none)))
    return failure();
  return true;
}

//===- The whole model
//------------------------------------------------------------------------------------------------===//

namespace {

/// Joins encoder, cross-attention keys and a decoder of one position.
class ExplicitModel {
public:
  ExplicitModel(ModuleOp module)
      : module(module), context(module.getContext()), encoder(findPart(module, "encoder")),
        crossKeys(findPart(module, "cross_kv")), decoder(findPart(module, "decoder_with_past")),
        batch(dimSymbol(context, "batch")), source(dimSymbol(context, "source")), builder(context) {
    if (!decoder)
      decoder = findPart(module, "decoder_only");
  }

  FailureOr<WholeModel> compose();

private:
  LogicalResult nameSymbols();
  LogicalResult addInputs();
  LogicalResult bindDecoder();
  /// The value an input of a part takes from what was computed before; null if there is none.
  Value computed(Part &part, unsigned index);
  /// A new input of the whole model, like argument `index` of the part.
  Value addInput(Part &part, unsigned index);
  /// Maps the argument to the value, whose sizes become those of the argument.
  LogicalResult bind(Part &part, unsigned index, Value value);
  void inlinePart(Part &part);

  ModuleOp module;
  MLIRContext *context;
  Part encoder, crossKeys, decoder;
  DimAttr batch, source;
  OpBuilder builder;
  WholeModel whole;
  IRMapping mapping;
  SmallVector<Guard> guards;
  llvm::StringMap<Value> byRole, byName; ///< results of the source's side
  SmallVector<Value> initial;            ///< of whole.recurrent
};

LogicalResult ExplicitModel::nameSymbols() {
  DimAttr one = dimConstant(context, 1);
  if (encoder && (failed(nameAxes(encoder, {"source_ids"}, {batch, source})) ||
                  failed(nameAxes(encoder, {"source_features", "source_lengths"}, {batch})) ||
                  failed(nameAxes(encoder, {"target_ids"}, {batch, one})) ||
                  failed(nameAxes(encoder, sourceMasks, {batch, source}))))
    return failure();
  std::optional<unsigned> ids = decoder.argument("target_ids");
  if (!ids)
    return decoder.function.emitError("the export does not say which input holds the target ids");
  FailureOr<SmallVector<WholeModel::Past>> caches = findCaches(decoder);
  if (failed(caches) || failed(nameAxes(decoder, {"target_ids"}, {batch, one})) || failed(namePast(decoder, *caches)))
    return failure();
  whole.decoderIds = *ids;
  whole.caches = *caches;
  return fillDecoderInputs(decoder, dimSymbol(context, "past"), one);
}

Value ExplicitModel::addInput(Part &part, unsigned index) {
  BlockArgument from = part.function.getArgument(index);
  unsigned position = whole.function.getNumArguments();
  whole.function.insertArgument(position, from.getType(), part.function.getArgAttrDict(index), from.getLoc());
  Value argument = whole.function.getArgument(position);
  mapping.map(from, argument);
  return argument;
}

LogicalResult ExplicitModel::addInputs() {
  for (unsigned i = 0; encoder && i < encoder.function.getNumArguments(); ++i) {
    std::string role = encoder.argumentRole(i);
    unsigned position = whole.function.getNumArguments();
    if (role == "target_ids" && encoder.function.getArgument(i).use_empty())
      continue;
    if (role == "source_ids" || role == "source_features")
      whole.encoderInput = position;
    else if (llvm::is_contained(sourceMasks, StringRef(role)))
      whole.encoderMask = position;
    else if (role == "source_lengths")
      whole.encoderLengths = position;
    else
      return encoder.function.emitError()
             << "input '" << encoder.argumentName(i) << "' of the encoder has no known meaning";
    byRole[role] = addInput(encoder, i);
  }
  return success();
}

void ExplicitModel::inlinePart(Part &part) {
  if (auto attr = part.function->getAttrOfType<ArrayAttr>(guardsAttrName))
    llvm::append_range(guards, guardsFromAttr(attr));
  for (Operation &op : part.function.getBody().front().without_terminator())
    builder.clone(op, mapping);
  for (unsigned i = 0; i < part.function.getNumResults(); ++i) {
    Value value = mapping.lookupOrDefault(part.end()->getOperand(i));
    if (std::string role = part.resultRole(i); !role.empty())
      byRole[role] = value;
    byName[part.resultName(i)] = value;
  }
}

Value ExplicitModel::computed(Part &part, unsigned index) {
  std::string role = part.argumentRole(index);
  StringRef cache = role;
  if (cache.consume_front("past.cross."))
    return byRole.lookup(("present.cross." + cache).str());
  if (role == "encoder_result" || StringRef(role).starts_with("recurrent."))
    return byName.lookup(part.argumentName(index));
  return byRole.lookup(role);
}

LogicalResult ExplicitModel::bind(Part &part, unsigned index, Value value) {
  auto from = rankedType(part.function.getArgument(index)), to = rankedType(value);
  auto differ = [&] {
    return part.function.emitError() << "input '" << part.argumentName(index) << "' is " << Type(from)
                                     << ", but what it is bound to is " << Type(to);
  };
  if (!from || !to || from.getRank() != to.getRank() || from.getElementType() != to.getElementType())
    return differ();
  for (int64_t axis = 0; axis < to.getRank(); ++axis) {
    from = rankedType(part.function.getArgument(index));
    DimAttr mine = dimsOf(from)[axis], given = dimsOf(to)[axis];
    if (mine == given)
      continue;
    if (symbolName(mine).empty() || symbolName(mine) == "past")
      return differ();
    if (failed(substituteSymbol(part.function, symbolName(mine), given)))
      return failure();
  }
  mapping.map(part.function.getArgument(index), value);
  return success();
}

LogicalResult ExplicitModel::bindDecoder() {
  for (unsigned i = 0; i < decoder.function.getNumArguments(); ++i) {
    std::string role = decoder.argumentRole(i);
    bool cache = llvm::any_of(whole.caches, [&](const WholeModel::Past &past) { return past.argument == i; });
    if (i == whole.decoderIds || cache || decoder.function.getArgument(i).use_empty())
      continue;
    Value value = computed(decoder, i);
    if (StringRef(role).starts_with("recurrent.")) {
      // Its batch axis is found by what the encoder makes under the same name, or by its symbol.
      if (value && failed(bind(decoder, i, value)))
        return failure();
      whole.recurrent.push_back({i, 0, std::nullopt});
      initial.push_back(value);
      continue;
    }
    if (value) {
      if (failed(bind(decoder, i, value)))
        return failure();
      continue;
    }
    if (llvm::is_contained(sourceMasks, StringRef(role)) && encoder) {
      if (failed(nameAxes(decoder, {StringRef(role)}, {batch, source})))
        return failure();
      whole.encoderMask = whole.function.getNumArguments();
      byRole[role] = addInput(decoder, i);
      continue;
    }
    return decoder.function.emitError() << "input '" << decoder.argumentName(i)
                                        << "' of the decoder is made by no file of the export"
                                        << (StringRef(role).starts_with("past.cross.")
                                                ? "; export the decoder without past too, which makes these keys"
                                                : "");
  }
  return success();
}

FailureOr<WholeModel> ExplicitModel::compose() {
  if (!decoder)
    return module.emitError("the export has no decoder"), failure();
  std::optional<unsigned> logits = decoder.resultIndex({"logits", "log_probs"});
  if (!logits)
    return decoder.function.emitError("the export does not say which output is the logits"), failure();
  if (failed(nameSymbols()))
    return failure();
  builder.setInsertionPointToEnd(module.getBody());
  whole.explicitCaches = true;
  whole.function = builder.create<func::FuncOp>(decoder.function.getLoc(), "explicit", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(whole.function.addEntryBlock());
  if (failed(addInputs()))
    return failure();
  if (encoder)
    inlinePart(encoder);
  if (crossKeys) {
    for (unsigned i = 0; i < crossKeys.function.getNumArguments(); ++i) {
      Value value = computed(crossKeys, i);
      if (!value)
        return crossKeys.function.emitError()
                   << "input '" << crossKeys.argumentName(i) << "' is made by no file of the export",
               failure();
      if (failed(bind(crossKeys, i, value)))
        return failure();
    }
    inlinePart(crossKeys);
  }
  if (failed(bindDecoder()))
    return failure();
  // What the decoder takes from outside comes last; indices are those of the whole model from here on.
  auto take = [&](unsigned &index) {
    unsigned position = whole.function.getNumArguments();
    addInput(decoder, index);
    index = position;
  };
  take(whole.decoderIds);
  SmallVector<Value> results{decoder.end()->getOperand(*logits)};
  for (WholeModel::Past &cache : whole.caches) {
    results.push_back(decoder.end()->getOperand(cache.result));
    cache.result = results.size() - 1;
    take(cache.argument);
  }
  for (auto [recurrent, begin] : llvm::zip(whole.recurrent, initial)) {
    std::string role = decoder.argumentRole(recurrent.argument);
    StringRef number = role;
    (void)number.consume_front("recurrent.");
    std::string out = ("recurrent_out." + number).str();
    std::optional<unsigned> result = decoder.resultIndex({out});
    if (!result)
      return decoder.function.emitError()
                 << "input '" << decoder.argumentName(recurrent.argument) << "' has no output that goes with it",
             failure();
    results.push_back(decoder.end()->getOperand(*result));
    recurrent.result = results.size() - 1;
    if (begin) {
      recurrent.initial = results.size();
      results.push_back(begin);
    }
    take(recurrent.argument);
  }
  for (unsigned i = 0; i < decoder.function.getNumResults(); ++i)
    if (decoder.resultRole(i) == "alignment") {
      whole.alignments.push_back(results.size());
      results.push_back(decoder.end()->getOperand(i));
    }
  if (auto attr = decoder.function->getAttrOfType<ArrayAttr>(guardsAttrName))
    llvm::append_range(guards, guardsFromAttr(attr));
  for (Operation &op : decoder.function.getBody().front().without_terminator())
    builder.clone(op, mapping);
  SmallVector<Type> types;
  for (Value &value : results) {
    value = mapping.lookupOrDefault(value);
    types.push_back(value.getType());
  }
  builder.create<func::ReturnOp>(decoder.function.getLoc(), results);
  whole.function.setFunctionType(builder.getFunctionType(whole.function.getArgumentTypes(), types));
  if (!guards.empty())
    whole.function->setAttr(guardsAttrName, guardsToAttr(context, guards));
  return whole;
}

} // namespace

FailureOr<WholeModel> transept::composeExplicitModel(ModuleOp module) { return ExplicitModel(module).compose(); }
