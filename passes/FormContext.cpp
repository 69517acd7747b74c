//===- FormContext.cpp - what forming one entry needs
//---------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormContext.h"
#include "passes/NarrowCaches.h"

using namespace mlir;
using namespace mlir::transept;

static void collectNodes(Location location, SmallVectorImpl<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    if (!llvm::is_contained(names, name.getName().getValue()))
      names.push_back(name.getName().getValue());
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location inner : fused.getLocations())
      collectNodes(inner, names);
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    collectNodes(call.getCallee(), names);
  }
}

SmallVector<StringRef> transept::sourceNodesOf(Location location) {
  SmallVector<StringRef> names;
  collectNodes(location, names);
  return names;
}

std::string transept::sourceNodeOf(Operation *op) {
  SmallVector<StringRef> names = sourceNodesOf(op->getLoc());
  return (names.empty() ? op->getName().getStringRef() : names.front()).str();
}

InFlightDiagnostic transept::emitUnsupported(Operation *op) {
  MLIRContext *context = op->getContext();
  Location loc = FusedLoc::get({op->getLoc()}, StringAttr::get(context, "unsupported"), context);
  return emitError(loc) << "'" << op->getName().getStringRef() << "' of node '" << sourceNodeOf(op) << "' ";
}

StringRef transept::stateRole(StringRef name) {
  if (name.starts_with("cross."))
    return "cross-cache";
  if (name == "cache.self")
    return "self-cache";
  if (name.starts_with("recurrent"))
    return "recurrent-state";
  if (name.starts_with("search.") || name == "logits")
    return "search";
  return "step";
}

//===- The self cache
//-------------------------------------------------------------------------------------------------===//

FailureOr<CacheLayout> CacheLayout::of(ModuleOp module) {
  CacheLayout layout;
  Builder builder(module.getContext());
  layout.element = module->hasAttr(narrowCachesAttrName) ? Type(builder.getBF16Type()) : builder.getF32Type();
  WalkResult result = module.walk([&](CacheAppendOp op) {
    auto key = cast<RankedTensorType>(op.getKey().getType());
    auto value = cast<RankedTensorType>(op.getValue().getType());
    auto isCacheable = [](RankedTensorType type) {
      return type.getRank() == 4 && !type.isDynamicDim(2) && !type.isDynamicDim(3);
    };
    if (!isCacheable(key) || !isCacheable(value)) {
      emitUnsupported(op) << "caches heads of a size that is not known at compile time";
      return WalkResult::interrupt();
    }
    Layer layer;
    layer.heads = key.getDimSize(2);
    layer.keySize = key.getDimSize(3);
    layer.valueSize = value.getDimSize(3);
    Layer &known = layout.layers.try_emplace(op.getLayer(), layer).first->second;
    if (known.heads != layer.heads || known.keySize != layer.keySize || known.valueSize != layer.valueSize) {
      emitUnsupported(op) << "caches layer " << op.getLayer() << " with two shapes";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (auto &[number, layer] : layout.layers) {
    layer.keyOffset = layout.blockElements;
    layer.valueOffset = layer.keyOffset + layer.heads * kernel::cacheBlockPositions * layer.keySize;
    layout.blockElements = layer.valueOffset + layer.heads * kernel::cacheBlockPositions * layer.valueSize;
  }
  return layout;
}

//===- The entry
//--------------------------------------------------------------------------------------------------------===//

FormContext::FormContext(kernel::EntryOp entry, const CacheLayout &cache)
    : entry(entry), cache(cache), builder(OpBuilder::atBlockEnd(&entry.getBody().front())) {}

ArrayAttr FormContext::dimArray(ArrayRef<DimAttr> list) const {
  return ArrayAttr::get(context(), SmallVector<Attribute>(list.begin(), list.end()));
}

ArrayAttr FormContext::shapes(ArrayRef<Value> inputs, ArrayRef<DimsAttr> outputs) const {
  SmallVector<Attribute> list;
  for (Value input : inputs)
    list.push_back(shapeOf(input));
  list.append(outputs.begin(), outputs.end());
  return ArrayAttr::get(context(), list);
}

Value FormContext::map(Location loc, ArrayRef<DimAttr> domain, ArrayRef<Value> inputs, Type elementType, MapBody body) {
  // Each tensor is passed once, however often it is read.
  llvm::SetVector<Value> distinct(inputs.begin(), inputs.end());
  SmallVector<Value> passed = distinct.takeVector();
  auto op = builder.create<kernel::MapOp>(loc, TypeRange{plainType(domain, elementType)}, passed, ValueRange{}, Value(),
                                          shapes(passed, dims(domain)), dimArray(domain));
  Block *block = builder.createBlock(&op.getBody());
  for (size_t i = 0; i < domain.size(); ++i)
    block->addArgument(builder.getIndexType(), loc);
  SmallVector<Value> sources;
  for (Value input : passed)
    block->addArgument(input.getType(), loc);
  for (Value input : inputs)
    sources.push_back(block->getArgument(domain.size() + llvm::find(passed, input) - passed.begin()));
  Body b(loc, builder);
  Value result = body(b, block->getArguments().take_front(domain.size()), sources);
  b.create<kernel::YieldOp>(b.narrow(result, elementType));
  builder.setInsertionPointAfter(op);
  return op.getResult(0);
}

Value FormContext::rows(Location loc, DimAttr rowCount, DimAttr length, ArrayRef<Value> inputs, Type elementType,
                        bool mapped, RowsBody body) {
  SmallVector<DimAttr> result = {rowCount};
  if (mapped)
    result.push_back(length);
  auto op = builder.create<kernel::RowsOp>(loc, TypeRange{plainType(result, elementType)}, inputs, ValueRange{},
                                           Value(), shapes(inputs, dims(result)), rowCount, length);
  Block *block = builder.createBlock(&op.getBody());
  block->addArgument(builder.getIndexType(), loc);
  for (Value input : inputs)
    block->addArgument(input.getType(), loc);
  Body b(loc, builder);
  body(b, block->getArgument(0), block->getArguments().drop_front());
  if (mapped)
    b.create<kernel::YieldOp>();
  builder.setInsertionPointAfter(op);
  return op.getResult(0);
}

SmallVector<Value> FormContext::serial(Location loc, DimAttr items, ArrayRef<Value> inputs, ArrayRef<Output> outputs,
                                       SerialBody body) {
  SmallVector<Type> types;
  SmallVector<DimsAttr> outputShapes;
  for (const Output &output : outputs) {
    types.push_back(plainType(output.dims, output.elementType));
    outputShapes.push_back(dims(output.dims));
  }
  auto op =
      builder.create<kernel::SerialOp>(loc, types, inputs, ValueRange{}, Value(), shapes(inputs, outputShapes), items);
  Block *block = builder.createBlock(&op.getBody());
  block->addArgument(builder.getIndexType(), loc);
  for (Type type : types)
    block->addArgument(type, loc);
  for (Value input : inputs)
    block->addArgument(input.getType(), loc);
  Body b(loc, builder);
  ValueRange tensors = block->getArguments().drop_front();
  body(b, block->getArgument(0), tensors.take_front(types.size()), tensors.drop_front(types.size()));
  b.create<kernel::YieldOp>();
  builder.setInsertionPointAfter(op);
  return SmallVector<Value>(op.getResults());
}

Value transept::rowReduce(Body &b, StringRef kind, Type type, RowStep step) {
  auto op = b.create<kernel::RowReduceOp>(type, kind);
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&op.getBody());
  Value position = block->addArgument(b.getIndexType(), b.getLoc());
  b.create<kernel::YieldOp>(step(b, position));
  return op.getResult();
}

void transept::rowMap(Body &b, int64_t output, RowStep step) {
  auto op = b.create<kernel::RowMapOp>(output);
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&op.getBody());
  Value position = block->addArgument(b.getIndexType(), b.getLoc());
  b.create<kernel::YieldOp>(step(b, position));
}

Value FormContext::view(Location loc, Value source, ArrayRef<DimAttr> target) {
  if (shapeOf(source) == dims(target))
    return source;
  // A view of a view is one view of what is behind it.
  if (auto inner = source.getDefiningOp<kernel::ViewOp>())
    return view(loc, inner.getSource(), target);
  Type elementType = kernel::elementTypeOf(source.getType());
  return builder.create<kernel::ViewOp>(loc, plainType(target, elementType), source, dimArray(target));
}

Value FormContext::viewAsRows(Location loc, Value source) {
  ArrayRef<DimAttr> shape = shapeOf(source).getDims();
  return view(loc, source, {elementCount(context(), shape.drop_back()), shape.back()});
}

Value FormContext::cast(Location loc, Value source, Type elementType) {
  Type from = kernel::elementTypeOf(source.getType());
  if (from == elementType)
    return source;
  return map(loc, SmallVector<DimAttr>(shapeOf(source).getDims()), source, elementType,
             [&](Body &b, ValueRange indices, ValueRange sources) {
               return b.convert(b.loadWide(sources[0], indices), from, elementType);
             });
}

//===- Constants and states
//---------------------------------------------------------------------------------------------===//

Value FormContext::atTop(Attribute key, function_ref<Value(OpBuilder &)> make) {
  Value &known = top[key];
  if (!known) {
    Block &block = entry.getBody().front();
    OpBuilder here = OpBuilder::atBlockBegin(&block);
    if (top.size() > 1)
      here.setInsertionPointAfterValue((top.end() - 2)->second);
    known = make(here);
  }
  return known;
}

Value FormContext::weight(StringRef key, RankedTensorType type) {
  return atTop(builder.getStringAttr(key), [&](OpBuilder &b) {
    auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
    return b.create<kernel::ConstantOp>(entry.getLoc(), plain, b.getStrArrayAttr({key}), b.getDenseBoolArrayAttr(false),
                                        b.getStringAttr("rows"));
  });
}

Value FormContext::panels(ArrayRef<std::string> keys, ArrayRef<bool> transposed, RankedTensorType type) {
  SmallVector<StringRef> names(keys.begin(), keys.end());
  Attribute parts = builder.getStrArrayAttr(names), flags = builder.getDenseBoolArrayAttr(transposed);
  return atTop(builder.getArrayAttr({parts, flags}), [&](OpBuilder &b) {
    return b.create<kernel::ConstantOp>(entry.getLoc(), type, mlir::cast<ArrayAttr>(parts),
                                        mlir::cast<DenseBoolArrayAttr>(flags), b.getStringAttr("panels"));
  });
}

Value FormContext::state(StringRef name, ArrayRef<DimAttr> shape, Type elementType) {
  return builder.create<kernel::StateOp>(entry.getLoc(), plainType(shape, elementType), name, dims(shape),
                                         stateRole(name));
}

void FormContext::exportTo(Location loc, StringRef name, Value value) {
  builder.create<kernel::ExportOp>(loc, value, name, shapeOf(value), stateRole(name));
}
