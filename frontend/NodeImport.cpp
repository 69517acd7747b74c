//===- NodeImport.cpp - one ONNX node on its way into the IR ---------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"
#include "frontend/GraphImporter.h"

using namespace mlir;
using namespace mlir::transept;

NodeImport::NodeImport(GraphImporter &importer, const onnx::NodeProto &node, ImportScope &scope, Location loc,
                       int64_t version, SmallVector<Value> inputs)
    : node(node), scope(scope), loc(loc), version(version), builder(importer.builder), importer(importer),
      inputs(std::move(inputs)) {
  while (!this->inputs.empty() && !this->inputs.back())
    this->inputs.pop_back();
}

LogicalResult NodeImport::result(int output, Value value) {
  if (wants(output))
    scope.values[node.output(output)] = value;
  return success();
}

const onnx::AttributeProto *NodeImport::find(StringRef name) {
  understood.insert(name.str());
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.name() != name)
      continue;
    if (attribute.ref_attr_name().empty())
      return &attribute;
    if (!scope.attributes)
      return nullptr;
    auto bound = scope.attributes->find(attribute.ref_attr_name());
    return bound == scope.attributes->end() ? nullptr : bound->second;
  }
  return nullptr;
}

std::optional<std::string> NodeImport::unusedAttribute() const {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (!understood.count(attribute.name()))
      return attribute.name();
  return std::nullopt;
}

int64_t NodeImport::integer(StringRef name, int64_t fallback) {
  const onnx::AttributeProto *attribute = find(name);
  return attribute && attribute->type() == onnx::AttributeProto::INT ? attribute->i() : fallback;
}
float NodeImport::real(StringRef name, float fallback) {
  const onnx::AttributeProto *attribute = find(name);
  return attribute && attribute->type() == onnx::AttributeProto::FLOAT ? attribute->f() : fallback;
}
std::string NodeImport::text(StringRef name, StringRef fallback) {
  const onnx::AttributeProto *attribute = find(name);
  return attribute && attribute->type() == onnx::AttributeProto::STRING ? attribute->s() : fallback.str();
}
std::optional<SmallVector<int64_t>> NodeImport::integers(StringRef name) {
  const onnx::AttributeProto *attribute = find(name);
  if (!attribute || attribute->type() != onnx::AttributeProto::INTS)
    return std::nullopt;
  return SmallVector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}
std::optional<SmallVector<float>> NodeImport::reals(StringRef name) {
  const onnx::AttributeProto *attribute = find(name);
  if (!attribute || attribute->type() != onnx::AttributeProto::FLOATS)
    return std::nullopt;
  return SmallVector<float>(attribute->floats().begin(), attribute->floats().end());
}
const onnx::TensorProto *NodeImport::tensor(StringRef name) {
  const onnx::AttributeProto *attribute = find(name);
  return attribute && attribute->has_t() ? &attribute->t() : nullptr;
}
const onnx::GraphProto *NodeImport::graph(StringRef name) {
  const onnx::AttributeProto *attribute = find(name);
  return attribute && attribute->has_g() ? &attribute->g() : nullptr;
}

LogicalResult NodeImport::unsupported(const Twine &what) {
  importer.reportUnsupported(node, scope, what);
  return failure();
}
LogicalResult NodeImport::invalid(const Twine &what) {
  importer.reportInvalid(node, scope, what);
  return failure();
}

Outcome<TensorData> NodeImport::decode(const onnx::TensorProto &tensor) {
  Outcome<TensorData> data = decodeTensor(tensor, importer.file, builder.getContext(), nodeTitle(node));
  if (!data)
    importer.reportFailure(data.failure());
  return data;
}
Value NodeImport::materialize(const onnx::TensorProto &tensor, StringRef name) {
  return importer.materialize(tensor, name, loc);
}
Value NodeImport::materializeHost(const HostTensor &tensor) {
  if (tensor.numElements() <= 1)
    return builder.create<ConstantOp>(loc, tensor.getType(), tensor.toElements());
  std::string key = WeightStore::of(builder.getContext()).add(tensor.getType(), tensor.bytes());
  return builder.create<WeightOp>(loc, tensor.getType(), builder.getStringAttr(key), StringAttr());
}
LogicalResult NodeImport::importBody(const onnx::GraphProto &graph, Block &block, ArrayRef<Value> bound,
                                     SmallVectorImpl<Value> &outputs) {
  return importer.importBody(*this, graph, block, bound, outputs);
}

Value NodeImport::constant(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, i64());
  return builder.create<ConstantOp>(loc, type, DenseElementsAttr::get(type, values));
}

Value NodeImport::scalar(int64_t value) {
  auto type = RankedTensorType::get({}, i64());
  return builder.create<ConstantOp>(loc, type, DenseElementsAttr::get(type, value));
}

Value NodeImport::scalar(Type element, double value) {
  auto type = RankedTensorType::get({}, element);
  HostTensor tensor = HostTensor::make(type);
  tensor.setDouble(0, value);
  return builder.create<ConstantOp>(loc, type, tensor.toElements());
}

Value NodeImport::reshape(Value input, Value shape) {
  return make<ReshapeOp>(elementOf(input), input, shape, /*allowZero=*/false);
}
Value NodeImport::reshape(Value input, ArrayRef<int64_t> shape, bool allowZero) {
  return make<ReshapeOp>(elementOf(input), input, constant(shape), allowZero);
}
Value NodeImport::transpose(Value input, ArrayRef<int64_t> permutation) {
  return make<TransposeOp>(elementOf(input), input, permutation);
}
Value NodeImport::castTo(Value input, Type element) {
  return elementOf(input) == element ? input : make<CastOp>(element, input, element);
}
Value NodeImport::reduce(Value input, ReduceKind kind, ArrayRef<int64_t> axes, bool keepdims) {
  return make<ReduceOp>(elementOf(input), input, /*axesValue=*/Value(), kind, builder.getDenseI64ArrayAttr(axes),
                        keepdims, /*noopWithEmptyAxes=*/false);
}

Value NodeImport::sizes(Value input, std::optional<int64_t> start, std::optional<int64_t> end) {
  return make<ShapeOp>(i64(), input, start ? builder.getI64IntegerAttr(*start) : IntegerAttr(),
                       end ? builder.getI64IntegerAttr(*end) : IntegerAttr());
}

Value NodeImport::slice(Value input, Value starts, Value ends, int64_t axis) {
  return make<SliceOp>(elementOf(input), input, starts, ends, constant({axis}), /*stepsValue=*/Value(),
                       /*starts=*/ArrayAttr(), /*steps=*/DenseI64ArrayAttr());
}

Value NodeImport::countTo(Value limit) {
  return make<RangeOp>(i64(), scalar(int64_t(0)), limit, scalar(int64_t(1)), DimAttr(), IntegerAttr());
}

FailureOr<SmallVector<Value>> NodeImport::loop(Value count, Value condition, ArrayRef<Value> initial, LoopBody body) {
  OperationState state(loc, LoopOp::getOperationName());
  Block &block = state.addRegion()->emplaceBlock();
  block.addArguments({RankedTensorType::get({}, i64()), RankedTensorType::get({}, i1())}, {loc, loc});
  for (Value value : initial)
    block.addArgument(UnrankedTensorType::get(elementOf(value)), loc);
  SmallVector<Value> yielded;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&block);
    if (failed(body(block, yielded)))
      return failure();
    builder.setInsertionPointToEnd(&block);
    builder.create<YieldOp>(loc, yielded);
  }
  if (yielded.size() <= initial.size())
    return invalid("carries " + Twine(initial.size()) + " values, but has a body with " + Twine(yielded.size()) +
                   " outputs");
  for (Value value : {count, condition})
    if (value)
      state.operands.push_back(value);
  state.addOperands(initial);
  state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr({count ? 1 : 0, condition ? 1 : 0,
                                                                          static_cast<int32_t>(initial.size())}));
  for (Value value : ArrayRef(yielded).drop_front())
    state.addTypes(UnrankedTensorType::get(elementOf(value)));
  return SmallVector<Value>(builder.create(state)->getResults());
}

std::optional<SmallVector<int64_t>> NodeImport::constantIntegers(Value value) const {
  auto constant = value ? value.getDefiningOp<ConstantOp>() : ConstantOp();
  auto elements = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  if (!elements)
    return std::nullopt;
  SmallVector<int64_t> values;
  for (const APInt &element : elements.getValues<APInt>())
    values.push_back(element.getBitWidth() == 1 ? element.getZExtValue() : element.getSExtValue());
  return values;
}

std::optional<SmallVector<double>> NodeImport::constantReals(Value value) const {
  HostTensor tensor;
  if (auto constant = value ? value.getDefiningOp<ConstantOp>() : ConstantOp()) {
    tensor = HostTensor::fromElements(constant.getValue());
  } else if (auto weight = value ? value.getDefiningOp<WeightOp>() : WeightOp()) {
    WeightStore::Weight content = WeightStore::of(builder.getContext()).lookup(weight.getKey());
    tensor = HostTensor::fromBytes(content.type, content.bytes);
  }
  if (!tensor)
    return std::nullopt;
  SmallVector<double> values;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    values.push_back(tensor.getDouble(i));
  return values;
}

std::optional<int64_t> NodeImport::rank(Value value) {
  RankedTensorType type = importer.shapes.factOf(value).ranked();
  return type ? std::optional<int64_t>(type.getRank()) : std::nullopt;
}

std::optional<SmallVector<DimAttr>> NodeImport::dims(Value value) {
  RankedTensorType type = importer.shapes.factOf(value).ranked();
  return type ? std::optional<SmallVector<DimAttr>>(dimsOf(type)) : std::nullopt;
}
