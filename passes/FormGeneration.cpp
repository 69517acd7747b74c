//===- FormGeneration.cpp - states, caches and the search head
//-------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names, element types and shapes of the states are the contract with the host: see runtime/search/SessionStepper.cpp.

#include "ir/ListedTokens.h"
#include "ir/WeightStore.h"
#include "passes/FormOps.h"
#include "passes/Screen.h"
#include "passes/Shortlist.h"

using namespace mlir;
using namespace mlir::transept;

/// Where the self caches live, and what says where a row's positions are.
static SmallVector<Value> poolInputs(FormContext &f) {
  Type i32 = f.builder.getI32Type(), i64 = f.builder.getI64Type();
  return {f.state("cache.self", {f.symbol("blocks"), f.constant(f.cache.blockElements)}, f.cache.element),
          f.state("step.block", {f.symbol("rows"), f.symbol("capacity")}, i32),
          f.state("step.position", {f.symbol("rows")}, i64)};
}

LogicalResult transept::form(FormContext &f, StateOp op) {
  SmallVector<DimAttr> dims = graphDims(op), stored(dims);
  // The host keeps one token and one position per row.
  if (op.getName() == "step.token" || op.getName() == "step.position") {
    if (dims.empty() || llvm::any_of(ArrayRef(dims).drop_front(), [](DimAttr dim) { return constantValue(dim) != 1; }))
      return op.emitOpError() << "reads '" << op.getName() << "' with the shape " << op.getType();
    stored.resize(1);
  }
  f.define(op, f.view(op.getLoc(), f.state(op.getName(), stored, graphElementType(op)), dims));
  return success();
}

LogicalResult transept::form(FormContext &f, ExportOp op) {
  f.exportTo(op.getLoc(), op.getName(), f.tensor(op.getValue()));
  return success();
}

LogicalResult transept::form(FormContext &f, ReadSizesOp op) {
  f.builder.create<kernel::ReadSizesOp>(op.getLoc(), f.tensor(op.getValues()), op.getSymbols());
  return success();
}

LogicalResult transept::form(FormContext &f, CacheAppendOp op) {
  const CacheLayout::Layer &layer = f.cache.layers.at(op.getLayer());
  DimAttr rows = f.symbol("rows");
  auto stored = [&](Value tensor) { return f.cast(op.getLoc(), f.tensor(tensor), f.cache.element); };
  if (graphDims(op.getKey()).front() != rows)
    return op.emitOpError() << "appends " << op.getKey().getType() << ", which holds no positions of the rows";
  SmallVector<Value> inputs = {stored(op.getKey()), stored(op.getValue())};
  llvm::append_range(inputs, poolInputs(f));
  f.builder.create<kernel::CacheAppendOp>(op.getLoc(), TypeRange{}, inputs, ValueRange{}, Value(), f.shapes(inputs, {}),
                                          layer.heads, layer.keySize, layer.valueSize, layer.keyOffset,
                                          layer.valueOffset);
  return success();
}

LogicalResult transept::form(FormContext &f, CacheAttentionOp op) {
  auto found = f.cache.layers.find(op.getLayer());
  if (found == f.cache.layers.end())
    return op.emitOpError() << "reads the cache of layer " << op.getLayer() << ", to which nothing is appended";
  const CacheLayout::Layer &layer = found->second;
  SmallVector<DimAttr> dims = graphDims(op.getQuery());
  std::optional<int64_t> heads = dims.size() == 4 ? constantValue(dims[2]) : std::nullopt;
  if (!heads || *heads % layer.heads || constantValue(dims[3]) != layer.keySize)
    return op.emitOpError() << "has queries " << op.getQuery().getType() << " for a cache of " << layer.heads
                            << " heads of " << layer.keySize;
  Type f32 = f.builder.getF32Type();
  SmallVector<Value> inputs = {f.cast(op.getLoc(), f.tensor(op.getQuery()), f32)};
  llvm::append_range(inputs, poolInputs(f));
  dims.back() = f.constant(layer.valueSize);
  Builder &b = f.builder;
  IntegerAttr relativeOrigin;
  if (op.getRelative()) {
    FailureOr<Value> table = formRelative(f, op, op.getRelative());
    if (failed(table))
      return failure();
    inputs.push_back(*table);
    relativeOrigin = b.getI64IntegerAttr(static_cast<int64_t>(op.getRelativeOrigin().value_or(0)) - relativeMargin);
  }
  auto attend = f.builder.create<kernel::AttendCacheOp>(
      op.getLoc(), TypeRange{plainType(dims, f32)}, inputs, ValueRange{}, Value(), f.shapes(inputs, f.dims(dims)),
      op.getScaleAttr(), b.getI64IntegerAttr(*heads), b.getI64IntegerAttr(layer.heads),
      b.getI64IntegerAttr(layer.keySize), b.getI64IntegerAttr(layer.valueSize), b.getI64IntegerAttr(layer.keyOffset),
      b.getI64IntegerAttr(layer.valueOffset), relativeOrigin);
  f.define(op, f.cast(op.getLoc(), attend.getResult(0), graphElementType(op)));
  return success();
}

LogicalResult transept::form(FormContext &f, CrossAttentionOp op) {
  Location loc = op.getLoc();
  Type f32 = f.builder.getF32Type();
  SmallVector<DimAttr> dims = graphDims(op.getQuery()), key = graphDims(op.getKey()), value = graphDims(op.getValue());
  if (dims.size() != 4 || key.size() != 4 || value.size() != 4)
    return op.emitOpError() << "has operands of other rank than 4";
  SmallVector<Value> inputs;
  inputs.push_back(f.cast(loc, f.tensor(op.getQuery()), f32));
  for (Value operand : {op.getKey(), op.getValue()})
    inputs.push_back(
        f.cast(loc, f.tensor(operand), graphElementType(operand) == f.cache.element ? f.cache.element : f32));
  inputs.push_back(f.state("step.source", {f.symbol("rows")}, f.builder.getI32Type()));
  if (op.getKeyMask())
    inputs.push_back(formKeyMask(f, loc, f.tensor(op.getKeyMask()), {key[0], key[1]}));
  dims.back() = value.back();
  SmallVector<DimsAttr> outputs = {f.dims(dims)};
  if (op.getProbabilities())
    outputs.push_back(f.dims({dims[0], dims[2], dims[1], key[1]}));
  SmallVector<Type> types;
  for (DimsAttr output : outputs)
    types.push_back(plainType(output.getDims(), f32));
  auto attend = f.builder.create<kernel::AttendSourceOp>(
      loc, types, inputs, ValueRange{}, Value(), f.shapes(inputs, outputs), op.getScaleAttr(),
      f.builder.getI64IntegerAttr(static_cast<int64_t>(op.getEmptyRow())),
      op.getKeyMask() ? f.builder.getUnitAttr() : UnitAttr());
  f.define(op.getResult(), f.cast(loc, attend.getResult(0), graphElementType(op.getResult())));
  if (op.getProbabilities())
    f.define(op.getProbabilities(), f.cast(loc, attend.getResult(1), graphElementType(op.getProbabilities())));
  return success();
}

/// Approximate logits, and what bounds them: see passes/Screen.h.
static LogicalResult addScreen(FormContext &f, SearchHeadOp op, DictionaryAttr screen, SmallVector<Value> &inputs) {
  auto linear = op.getLogits().getDefiningOp<LinearOp>();
  std::optional<WeightMatrix> matrix = linear ? packedMatrix(linear) : std::nullopt;
  WeightStore &store = WeightStore::of(f.context());
  auto key = [&](StringRef name) {
    auto attribute = screen.getAs<StringAttr>(name);
    return attribute ? attribute.str() : std::string();
  };
  Type f32 = f.builder.getF32Type();
  auto column = matrix ? RankedTensorType::get({matrix->n()}, f32) : RankedTensorType();
  auto isColumn = [&](StringRef name) { return store.lookup(key(name)).type == column; };
  RankedTensorType weight = store.lookup(key("weight")).type;
  if (!matrix || !isColumn("scales") || !isColumn("errors") || !isColumn("norms") || !weight ||
      weight.getShape() != matrix->type.getShape() || !weight.getElementType().isUnsignedInteger(8))
    return op.emitOpError() << "has an attribute '" << screenAttrName << "' that does not fit";
  WeightMatrix narrow = *matrix;
  narrow.narrowKey = key("weight");
  narrow.scalesKey = key("scales");
  narrow.narrowType = weight.getElementType();
  narrow.quantised = true;
  Value x = f.viewAsRows(op.getLoc(), f.tensor(linear.getInput()));
  inputs[0] = formContract(f, op.getLoc(), x, narrow, Value());
  int64_t panels = llvm::divideCeil(matrix->n(), kernel::panelColumns);
  llvm::append_range(
      inputs,
      ArrayRef<Value>{x, f.panels({matrix->key}, {matrix->transposed}, kernel::panelType(f32, panels, matrix->k())),
                      f.weight(key("errors"), column), f.weight(key("norms"), column)});
  if (linear.getBias())
    inputs.push_back(f.tensor(linear.getBias()));
  return success();
}

/// Logits of the tokens that the host lists; their columns of the matrix, and bias behind them, are kept from step to
/// step.
static LogicalResult formListed(FormContext &f, SearchHeadOp op) {
  auto linear = op.getLogits().getDefiningOp<LinearOp>();
  std::optional<WeightMatrix> matrix = linear ? packedMatrix(linear) : std::nullopt;
  if (!matrix)
    return op.emitOpError() << "has an attribute '" << listedAttrName << "' that does not fit";
  Type f32 = f.builder.getF32Type(), i32 = f.builder.getI32Type();
  DimAttr listed = f.symbol("listed"), columns = f.constant(kernel::panelColumns), count = dimMul(listed, columns);
  Value x = f.viewAsRows(op.getLoc(), f.tensor(linear.getInput()));
  const int64_t panels = llvm::divideCeil(matrix->n(), kernel::panelColumns);
  SmallVector<Value> inputs = {
      x, f.panels({matrix->key}, {matrix->transposed}, kernel::panelType(f32, panels, matrix->k())),
      f.state("step.listed", {count}, i32), f.state("step.fresh", {listed}, i32),
      f.state("search.columns", {listed, f.constant(matrix->k() + 1), columns}, f32)};
  if (linear.getBias())
    inputs.push_back(f.tensor(linear.getBias()));
  SmallVector<DimAttr> dims = {f.symbol("rows"), count};
  auto head = f.builder.create<kernel::SearchHeadOp>(op.getLoc(), TypeRange{plainType(dims, f32)}, inputs, ValueRange{},
                                                     Value(), f.shapes(inputs, f.dims(dims)), matrix->n(),
                                                     kernel::vocabularyBlock);
  head->setAttr(kernel::listedAttrName, f.builder.getUnitAttr());
  f.exportTo(op.getLoc(), "search.listed", head.getResult(0));
  return success();
}

LogicalResult transept::form(FormContext &f, SearchHeadOp op) {
  if (op->hasAttr(listedAttrName))
    return formListed(f, op);
  Location loc = op.getLoc();
  SmallVector<DimAttr> dims = graphDims(op.getLogits());
  std::optional<int64_t> vocabulary = dims.empty() ? std::nullopt : constantValue(dims.back());
  DimAttr rows = f.symbol("rows"), topk = f.symbol("topk"), specials = f.symbol("specials");
  if (!vocabulary || *vocabulary < 1 || elementCount(f.context(), ArrayRef(dims).drop_back()) != rows)
    return op.emitOpError() << "searches logits of the shape " << op.getLogits().getType();
  Type f32 = f.builder.getF32Type(), i32 = f.builder.getI32Type();
  SmallVector<Value> inputs = {Value(), f.state("step.special", {rows, specials}, i32)};
  if (auto screen = op->getAttrOfType<DictionaryAttr>(screenAttrName)) {
    if (failed(addScreen(f, op, screen, inputs)))
      return failure();
  } else {
    inputs[0] = f.view(loc, f.cast(loc, f.tensor(op.getLogits()), f32), {rows, dims.back()});
    f.exportTo(loc, "logits", inputs[0]);
    inputs.push_back(f.state("step.best", {f.constant(1)}, i32));
  }
  DimAttr blocks = f.constant(llvm::divideCeil(*vocabulary, kernel::vocabularyBlock));
  struct Output {
    StringRef state;
    SmallVector<DimAttr> dims;
    Type type;
  };
  Output outputs[] = {{"search.max", {rows, blocks}, f32},
                      {"search.sum", {rows, blocks}, f32},
                      {"search.value", {rows, blocks, topk}, f32},
                      {"search.token", {rows, blocks, topk}, i32},
                      {"search.special", {rows, specials}, f32}};
  SmallVector<Type> types;
  SmallVector<DimsAttr> shapes;
  for (const Output &output : outputs) {
    types.push_back(plainType(output.dims, output.type));
    shapes.push_back(f.dims(output.dims));
  }
  auto head = f.builder.create<kernel::SearchHeadOp>(loc, types, inputs, ValueRange{}, Value(),
                                                     f.shapes(inputs, shapes), *vocabulary, kernel::vocabularyBlock);
  for (auto [output, result] : llvm::zip(outputs, head.getResults()))
    f.exportTo(loc, output.state, result);
  return success();
}
