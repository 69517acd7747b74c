//===- StageCompose.cpp - encoder and prefix decoder as one function
//----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/StagePart.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// Renames the symbol that is axis `axis` of argument `index` to `name` (nothing to do where the axis is no symbol).
LogicalResult nameAxis(Part &part, std::optional<unsigned> index, unsigned axis, DimAttr replacement) {
  if (!index)
    return success();
  auto type = dyn_cast<RankedTensorType>(part.function.getArgument(*index).getType());
  if (!type || type.getRank() <= axis)
    return success();
  DimAttr dim = dimsOf(type)[axis];
  StringRef symbol = dim ? symbolName(dim) : StringRef();
  if (symbol.empty() || dim == replacement)
    return success();
  return substituteSymbol(part.function, symbol, replacement);
}

} // namespace

LogicalResult transept::nameAxes(Part &part, ArrayRef<StringRef> roles, ArrayRef<DimAttr> axes) {
  for (StringRef role : roles)
    for (auto [axis, dim] : llvm::enumerate(axes))
      if (dim && failed(nameAxis(part, part.argument(role), axis, dim)))
        return failure();
  return success();
}

Part transept::findPart(ModuleOp module, StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  auto exported = module->getAttrOfType<DictionaryAttr>("transept.export");
  auto roles = exported ? exported.getAs<DictionaryAttr>("roles") : DictionaryAttr();
  return {function, roles ? roles.getAs<DictionaryAttr>(name) : DictionaryAttr()};
}

bool transept::isStaged(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  StringRef name = function.getName();
  bool monolith = static_cast<bool>(findPart(module, "monolith"));
  if (name == "encoder" || name == "decoder" || name == "decoder_merged")
    return !monolith && (name != "decoder_merged" || !findPart(module, "decoder"));
  if (name == "decoder_with_past" || name == "cross_kv")
    return !hasPrefixDecoder(module);
  return true;
}

bool transept::hasPrefixDecoder(ModuleOp module) {
  return llvm::any_of(ArrayRef<StringRef>{"monolith", "decoder", "decoder_merged"},
                      [&](StringRef name) { return static_cast<bool>(findPart(module, name)); });
}

/// A decoder alone, as @score of its ids.
static FailureOr<WholeModel> composeDecoderOnly(ModuleOp module, Part part) {
  MLIRContext *context = module.getContext();
  std::optional<unsigned> ids = part.argument("target_ids"), logits = part.resultIndex({"logits", "log_probs"});
  if (!ids || !logits)
    return part.function.emitError() << "the export does not say which "
                                     << (!ids ? "input holds the target ids" : "output is the logits"),
           failure();
  if (failed(nameAxes(part, {"target_ids"}, {dimSymbol(context, "batch"), dimSymbol(context, "target")})))
    return failure();
  for (BlockArgument argument : part.function.getArguments())
    if (argument.getArgNumber() != *ids && !argument.use_empty())
      return part.function.emitError() << "input '" << part.argumentName(argument.getArgNumber())
                                       << "' of the decoder has no known meaning",
             failure();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  WholeModel whole;
  BlockArgument from = part.function.getArgument(*ids);
  auto type = builder.getFunctionType({from.getType()}, {part.function.getResultTypes()[*logits]});
  whole.function = builder.create<func::FuncOp>(part.function.getLoc(), scoreName, type);
  whole.function.setArgAttr(0, "transept.name", builder.getStringAttr("decoder_input_ids"));
  whole.function.setResultAttr(0, "transept.name", builder.getStringAttr("logits"));
  if (Attribute guards = part.function->getAttr(guardsAttrName))
    whole.function->setAttr(guardsAttrName, guards);
  builder.setInsertionPointToStart(whole.function.addEntryBlock());
  IRMapping mapping;
  mapping.map(from, whole.function.getArgument(0));
  for (Operation &op : part.function.getBody().front().without_terminator())
    builder.clone(op, mapping);
  builder.create<func::ReturnOp>(part.function.getLoc(), mapping.lookupOrDefault(part.end()->getOperand(*logits)));
  return whole;
}

FailureOr<WholeModel> transept::composeWholeModel(ModuleOp module) {
  if (Part part = findPart(module, "decoder_only"))
    return composeDecoderOnly(module, part);
  MLIRContext *context = module.getContext();
  DimAttr batch = dimSymbol(context, "batch"), source = dimSymbol(context, "source"),
          target = dimSymbol(context, "target");
  Part encoder = findPart(module, "encoder"), decoder;
  for (StringRef name : {"monolith", "decoder", "decoder_merged"})
    if (Part part = findPart(module, name); part && !decoder)
      decoder = part;
  if (!decoder)
    return module.emitError("the export has no decoder that takes a whole prefix"), failure();
  bool monolith = decoder.function.getName() == "monolith";
  if (!monolith && !encoder)
    return module.emitError("the export has a decoder but no encoder"), failure();

  Part &sourceSide = monolith ? decoder : encoder;
  StringRef inputRole = sourceSide.argument("source_ids") ? "source_ids" : "source_features";
  std::optional<unsigned> input = sourceSide.argument(inputRole), ids = decoder.argument("target_ids");
  std::optional<unsigned> logits = decoder.resultIndex({"logits", "log_probs"});
  if (!input || !ids || !logits)
    return module.emitError() << "the export does not say which "
                              << (!input ? "input is the source"
                                  : !ids ? "input holds the target ids"
                                         : "output is the logits"),
           failure();
  if (failed(nameAxes(sourceSide, {inputRole}, {batch, inputRole == "source_ids" ? source : DimAttr()})) ||
      failed(nameAxes(sourceSide, {"source_lengths"}, {batch})) ||
      failed(nameAxes(sourceSide, sourceMasks, {batch, source})) ||
      failed(nameAxes(decoder, {"target_ids", "target_padding", "target_mask"}, {batch, target})) ||
      failed(fillDecoderInputs(decoder, dimConstant(context, 0), target)))
    return failure();

  OpBuilder builder(context);
  builder.setInsertionPointToEnd(module.getBody());
  WholeModel whole;
  IRMapping mapping;
  SmallVector<Type> inputTypes;
  SmallVector<DictionaryAttr> argumentAttrs;
  SmallVector<std::pair<Part *, unsigned>> taken;
  auto take = [&](Part &part, unsigned index) {
    inputTypes.push_back(part.function.getArgument(index).getType());
    DictionaryAttr attrs = part.function.getArgAttrDict(index);
    argumentAttrs.push_back(attrs ? attrs : builder.getDictionaryAttr({}));
    taken.push_back({&part, index});
    return static_cast<unsigned>(taken.size() - 1);
  };
  std::optional<unsigned> maskIndex;
  StringRef maskRole;
  for (unsigned i = 0; i < sourceSide.function.getNumArguments(); ++i) {
    std::string role = sourceSide.argumentRole(i);
    if (i == *input) {
      whole.encoderInput = take(sourceSide, i);
    } else if (llvm::is_contained(sourceMasks, StringRef(role))) {
      maskIndex = i;
      maskRole = StringRef(role) == "source_mask" ? "source_mask" : "source_padding";
      whole.encoderMask = take(sourceSide, i);
    } else if (role == "source_lengths") {
      whole.encoderLengths = take(sourceSide, i);
    } else if (!monolith || (i != *ids && !sourceSide.function.getArgument(i).use_empty())) {
      return sourceSide.function.emitError()
                 << "input '" << sourceSide.function.getArgAttrOfType<StringAttr>(i, "transept.name").getValue()
                 << "' of the encoder has no known meaning",
             failure();
    }
  }
  FunctionType decoderType = decoder.function.getFunctionType();
  RankedTensorType statesType;
  std::optional<unsigned> statesArgument;
  if (!monolith) {
    std::optional<unsigned> states = encoder.resultIndex({"encoder_result"});
    statesArgument = decoder.argument("encoder_states");
    statesType = dyn_cast<RankedTensorType>(encoder.function.getFunctionType().getResult(states.value_or(0)));
    if (!statesType || !statesArgument)
      return decoder.function.emitError("the decoder's encoder states do not match the encoder's result"), failure();
    if (failed(nameAxes(decoder, {"encoder_states"},
                        {batch, dimsOf(statesType).size() > 1 ? dimsOf(statesType)[1] : DimAttr()})) ||
        failed(nameAxes(decoder, sourceMasks, {batch, source})))
      return failure();
    decoderType = decoder.function.getFunctionType();
  }
  unsigned idsPosition = take(decoder, *ids);
  whole.decoderIds = idsPosition;
  {
    auto name = builder.getNamedAttr("transept.name", builder.getStringAttr("decoder_input_ids"));
    argumentAttrs[idsPosition] = builder.getDictionaryAttr({name});
  }

  auto function = builder.create<func::FuncOp>(decoder.function.getLoc(), scoreName,
                                               builder.getFunctionType(inputTypes, {decoderType.getResult(*logits)}));
  whole.function = function;
  for (auto [index, attrs] : llvm::enumerate(argumentAttrs))
    function.setArgAttrs(index, attrs);
  function.setResultAttr(0, "transept.name", builder.getStringAttr("logits"));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  SmallVector<Guard> guards;
  auto addGuards = [&](Part &part) {
    if (auto attr = part.function->getAttrOfType<ArrayAttr>(guardsAttrName))
      llvm::append_range(guards, guardsFromAttr(attr));
  };
  for (auto [position, entry] : llvm::enumerate(taken))
    mapping.map(entry.first->function.getArgument(entry.second), body->getArgument(position));
  if (!monolith) {
    addGuards(encoder);
    for (Operation &op : encoder.function.getBody().front().without_terminator())
      builder.clone(op, mapping);
    std::optional<unsigned> states = encoder.resultIndex({"encoder_result"});
    Value result = encoder.function.getBody().front().getTerminator()->getOperand(states.value_or(0));
    mapping.map(decoder.function.getArgument(*statesArgument), mapping.lookupOrDefault(result));
  }
  addGuards(decoder);
  for (unsigned i = 0; i < decoder.function.getNumArguments(); ++i) {
    Value argument = decoder.function.getArgument(i);
    if (mapping.contains(argument))
      continue;
    std::string role = decoder.argumentRole(i);
    if (llvm::is_contained(sourceMasks, StringRef(role)) && maskIndex) {
      Value mask = body->getArgument(*whole.encoderMask);
      if (mask.getType() != argument.getType() || StringRef(role) != maskRole)
        return decoder.function.emitError("encoder and decoder take the source mask in different forms"), failure();
      mapping.map(argument, mask);
    } else if (!argument.use_empty()) {
      return decoder.function.emitError()
                 << "input '" << decoder.function.getArgAttrOfType<StringAttr>(i, "transept.name").getValue()
                 << "' of the decoder has no known meaning",
             failure();
    }
  }
  for (Operation &op : decoder.function.getBody().front().without_terminator())
    builder.clone(op, mapping);
  Value result = decoder.function.getBody().front().getTerminator()->getOperand(*logits);
  builder.create<func::ReturnOp>(decoder.function.getLoc(), mapping.lookupOrDefault(result));
  if (!guards.empty())
    function->setAttr(guardsAttrName, guardsToAttr(context, guards));
  return whole;
}
