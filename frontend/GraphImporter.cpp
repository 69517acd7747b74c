//===- GraphImporter.cpp - ONNX graphs become functions --------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/GraphImporter.h"
#include "frontend/NodeImport.h"
#include "ir/NarrowTypes.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
/// Names of sizes longer than this are no labels but attacks.
constexpr size_t maxLabel = 1024;
/// Integers up to this count are written out: they are shapes, axes and indices, which inference looks at.
constexpr int64_t maxWrittenIntegers = 256;
/// Default values of inputs up to this count are written out.
constexpr int64_t maxWrittenDefault = 4096;
} // namespace

std::string mlir::transept::nodeTitle(const onnx::NodeProto &node) {
  if (!node.name().empty())
    return node.name();
  for (const std::string &output : node.output())
    if (!output.empty())
      return node.op_type() + " of " + output;
  return node.op_type();
}

GraphImporter::GraphImporter(MLIRContext *context, const OnnxFile &file, const ImportOptions &options)
    : file(file), context(context), builder(context), shapes(context), options(options) {
  for (const onnx::FunctionProto &function : file.model->functions())
    functions[function.domain() + '\0' + function.name() + '\0' + function.overload()] = &function;
}

Location GraphImporter::locationOf(const onnx::NodeProto &node, const ImportScope &scope) const {
  return NameLoc::get(StringAttr::get(context, file.name + ":" + scope.prefix + nodeTitle(node)));
}

void GraphImporter::reportUnsupported(const onnx::NodeProto &node, const ImportScope &scope, const Twine &what) {
  addFeature(unsupported, what.str(), scope.prefix + nodeTitle(node));
}

void GraphImporter::reportInvalid(const onnx::NodeProto &node, const ImportScope &scope, const Twine &what) {
  if (!failure)
    failure = Failure{ExitInvalidModel,
                      printable(file.path) + ": node " + quoted(scope.prefix + nodeTitle(node)) + " (" +
                          printable(operatorTitle(node)) + ") " + what.str(),
                      {}};
}

GraphImporter::Name GraphImporter::lookup(StringRef name, ImportScope &scope) {
  for (ImportScope *at = &scope; at; at = at->outer) {
    if (auto known = at->values.find(name); known != at->values.end())
      return {Name::Known, known->second};
    if (at->absent.count(name.str()))
      return {Name::Absent, {}};
    auto initializer = at->initializers.find(name);
    if (initializer == at->initializers.end())
      continue;
    OpBuilder::InsertionGuard guard(builder);
    if (at->lastInitializer)
      builder.setInsertionPointAfter(at->lastInitializer);
    else
      builder.setInsertionPointToStart(at->block);
    Value value =
        materialize(*initializer->second, name, NameLoc::get(StringAttr::get(context, file.name + ":" + name.str())));
    if (value)
      at->lastInitializer = value.getDefiningOp();
    at->values[name] = value;
    return {Name::Known, value};
  }
  return {};
}

Value GraphImporter::materialize(const onnx::TensorProto &tensor, StringRef name, Location loc) {
  Outcome<TensorData> data = decodeTensor(tensor, file, context, name);
  if (!data) {
    if (!failure)
      failure = std::move(data.failure());
    return {};
  }
  bool integer = isa<IntegerType>(data->type.getElementType());
  int64_t count = data->type.getNumElements();
  if (!isNarrow(data->type.getElementType()) && (count <= 1 || (integer && count <= maxWrittenIntegers)))
    return builder.create<ConstantOp>(loc, data->type, HostTensor::fromBytes(data->type, data->bytes).toElements());
  std::string key = WeightStore::of(context).add(data->type, std::move(data->bytes));
  return builder.create<WeightOp>(loc, data->type, builder.getStringAttr(key), builder.getStringAttr(name));
}

//===- Inputs and outputs of a graph -------------------------------------------------------------------------===//

Outcome<RankedTensorType> GraphImporter::inputType(const onnx::ValueInfoProto &input) {
  auto fail = [&](ExitCode code, const Twine &what) {
    return Failure{code, printable(file.path) + ": graph input " + quoted(input.name()) + " " + what.str(), {}};
  };
  if (!input.type().has_tensor_type())
    return fail(ExitUnsupported, "is not a tensor; sequences, maps and optional values are not supported");
  const onnx::TypeProto::Tensor &tensor = input.type().tensor_type();
  Type element = elementTypeOf(context, tensor.elem_type());
  if (!element)
    return fail(ExitUnsupported, "holds " + dataTypeName(tensor.elem_type()) + " elements, which are not supported");
  if (!tensor.has_shape())
    return fail(ExitUnsupported, "has no shape; declare at least its number of axes");
  if (static_cast<unsigned>(tensor.shape().dim_size()) > file.limits.rank)
    return fail(ExitLimit,
                "has " + Twine(tensor.shape().dim_size()) + " axes, more than the limit of " + Twine(file.limits.rank));
  SmallVector<DimAttr> dims;
  uint64_t staticElements = 1;
  for (auto [axis, dim] : llvm::enumerate(tensor.shape().dim())) {
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0)
        return fail(ExitInvalidModel, "declares the size " + Twine(dim.dim_value()) + " for axis " + Twine(axis));
      staticElements = llvm::SaturatingMultiply(staticElements, static_cast<uint64_t>(dim.dim_value()));
      dims.push_back(dimConstant(context, dim.dim_value()));
      continue;
    }
    std::string label = dim.dim_param();
    if (label.size() > maxLabel)
      return fail(ExitLimit, "names the size of axis " + Twine(axis) + " with " + Twine(label.size()) +
                                 " characters, more than the limit of " + Twine(maxLabel));
    // Sizes without a name are unrelated to all others.
    if (label.empty()) {
      label = input.name() + "_dim" + std::to_string(axis);
      while (labels.count(label))
        label += '_';
      labels.insert(label);
    }
    dims.push_back(dimSymbol(context, label));
  }
  if (staticElements > file.limits.weightBytes)
    return fail(ExitLimit, "declares more than " + Twine(file.limits.weightBytes) + " elements");
  return makeType(dims, element);
}

Attribute GraphImporter::defaultValue(const onnx::TensorProto &tensor, RankedTensorType type) {
  Outcome<TensorData> data = decodeTensor(tensor, file, context, tensor.name());
  if (!data) {
    failure = std::move(data.failure());
    return {};
  }
  // C1: the default can be fed: its type and static sizes are those of the input.
  bool matches = data->type.getElementType() == type.getElementType() && data->type.getRank() == type.getRank();
  for (int64_t axis = 0; matches && axis < type.getRank(); ++axis)
    matches = type.isDynamicDim(axis) || type.getDimSize(axis) == data->type.getDimSize(axis);
  if (!matches) {
    failure = Failure{ExitInvalidModel,
                      printable(file.path) + ": graph input " + quoted(tensor.name()) +
                          " and the initializer of that name differ in type or shape",
                      {}};
    return {};
  }
  if (data->type.getNumElements() <= maxWrittenDefault && !isNarrow(type.getElementType()))
    return HostTensor::fromBytes(data->type, data->bytes).toElements();
  return builder.getStringAttr(WeightStore::of(context).add(data->type, std::move(data->bytes)));
}

std::optional<Failure> GraphImporter::declareInputs(const onnx::GraphProto &graph, func::FuncOp function,
                                                    ImportScope &scope) {
  for (const onnx::TensorProto &initializer : graph.initializer())
    scope.initializers[initializer.name()] = &initializer;
  for (const onnx::ValueInfoProto &input : graph.input())
    for (const onnx::TensorShapeProto::Dimension &dim : input.type().tensor_type().shape().dim())
      labels.insert(dim.dim_param());
  // Before IR version 4 every initializer had to be listed as an input; those are no defaults.
  bool overridable = options.overridableInitializers && file.model->ir_version() >= 4;
  for (const onnx::ValueInfoProto &input : graph.input()) {
    auto initializer = scope.initializers.find(input.name());
    if (initializer != scope.initializers.end() && !overridable)
      continue;
    Outcome<RankedTensorType> type = inputType(input);
    if (!type)
      return std::move(type.failure());
    SmallVector<NamedAttribute> attributes = {
        builder.getNamedAttr("transept.name", builder.getStringAttr(input.name()))};
    if (initializer != scope.initializers.end()) {
      Attribute value = defaultValue(*initializer->second, *type);
      if (!value)
        return failure;
      attributes.push_back(builder.getNamedAttr("transept.default", value));
    }
    unsigned index = function.getNumArguments();
    function.insertArgument(index, *type, builder.getDictionaryAttr(attributes),
                            NameLoc::get(builder.getStringAttr(file.name + ":" + input.name())));
    scope.values[input.name()] = function.getArgument(index);
  }
  return std::nullopt;
}

std::optional<Failure> GraphImporter::returnOutputs(const onnx::GraphProto &graph, func::FuncOp function,
                                                    ImportScope &scope) {
  SmallVector<Value> values;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    Name name = lookup(output.name(), scope);
    if (failure)
      return failure;
    if (name.state != Name::Known)
      return Failure{ExitInvalidModel,
                     printable(file.path) + ": graph output " + quoted(output.name()) + " is made by no node",
                     {}};
    if (!name.value)
      continue; // reported with the node that makes it
    Type element = cast<TensorType>(name.value.getType()).getElementType();
    int32_t declared = output.type().tensor_type().elem_type();
    if (declared != onnx::TensorProto::UNDEFINED && elementTypeOf(context, declared) != element)
      return Failure{ExitInvalidModel,
                     printable(file.path) + ": graph output " + quoted(output.name()) + " is declared as " +
                         dataTypeName(declared) + " but is " + dataTypeName(dataTypeOf(element)),
                     {}};
    values.push_back(name.value);
  }
  if (!unsupported.empty())
    return unsupportedFailure(file, unsupported);
  builder.create<func::ReturnOp>(function.getLoc(), values);
  function.setType(builder.getFunctionType(function.getArgumentTypes(), ValueRange(values).getTypes()));
  for (auto [index, output] : llvm::enumerate(graph.output()))
    function.setResultAttr(index, "transept.name", builder.getStringAttr(output.name()));
  return std::nullopt;
}

std::optional<Failure> GraphImporter::importGraph(ModuleOp module, StringRef name) {
  const onnx::GraphProto &graph = file.model->graph();
  builder.setInsertionPointToEnd(module.getBody());
  auto function = builder.create<func::FuncOp>(NameLoc::get(builder.getStringAttr(file.name)), name,
                                               builder.getFunctionType({}, {}));
  ImportScope scope;
  scope.block = function.addEntryBlock();
  scope.opsets = &file.opsets;
  std::optional<Failure> result = declareInputs(graph, function, scope);
  if (!result) {
    builder.setInsertionPointToEnd(scope.block);
    if (failed(importNodes(graph.node(), scope)))
      result = failure;
    else
      result = returnOutputs(graph, function, scope);
  }
  if (result)
    function.erase();
  return result;
}

//===- Nodes -------------------------------------------------------------------------------------------------===//

LogicalResult GraphImporter::importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                                         ImportScope &scope) {
  for (const onnx::NodeProto &node : nodes)
    if (failed(importNode(node, scope)))
      return mlir::failure();
  return success();
}

LogicalResult GraphImporter::importNode(const onnx::NodeProto &node, ImportScope &scope) {
  if (++importedNodes > file.limits.nodes) {
    failure = Failure{ExitLimit,
                      printable(file.path) + ": has more than " + std::to_string(file.limits.nodes) +
                          " nodes after its functions are expanded",
                      {}};
    return mlir::failure();
  }
  SmallVector<Value> inputs;
  bool poisoned = false;
  for (const std::string &input : node.input()) {
    Name name;
    if (!input.empty()) {
      name = lookup(input, scope);
      if (failure)
        return mlir::failure();
      if (name.state == Name::Unknown) {
        reportInvalid(node, scope, "reads " + quoted(input) + ", which nothing before it defines");
        return mlir::failure();
      }
      poisoned |= name.state == Name::Known && !name.value;
    }
    inputs.push_back(name.value);
  }
  auto opset = scope.opsets->find(node.domain());
  int64_t version = opset == scope.opsets->end() ? 1 : opset->second;
  NodeImport view(*this, node, scope, locationOf(node, scope), version, std::move(inputs));
  bool imported = !poisoned && succeeded(dispatch(view));
  if (failure)
    return mlir::failure();
  if (imported)
    if (std::optional<std::string> attribute = view.unusedAttribute())
      reportUnsupported(node, scope, "attribute " + quoted(*attribute) + " of " + printable(operatorTitle(node)));
  for (auto [index, output] : llvm::enumerate(node.output())) {
    if (output.empty() || (imported && scope.values.contains(output)))
      continue;
    if (imported)
      reportUnsupported(node, scope, "output " + Twine(index) + " of " + printable(operatorTitle(node)));
    scope.values[output] = Value();
  }
  return success();
}

/// The checker of ONNX knows the inputs of its own operators. Those of com.microsoft that none may leave out, as bits.
static LogicalResult requireInputs(NodeImport &node) {
  static constexpr std::pair<llvm::StringLiteral, unsigned> required[] = {
      {"Attention", 0b11},
      {"BiasGelu", 0b11},
      {"DecoderMaskedMultiHeadAttention", 0b1},
      {"DynamicQuantizeMatMul", 0b111},
      {"EmbedLayerNormalization", 0b1101101},
      {"FastGelu", 0b1},
      {"FusedMatMul", 0b11},
      {"Gelu", 0b1},
      {"GroupQueryAttention", 0b1100001},
      {"MatMulIntegerToFloat", 0b1111},
      {"MatMulNBits", 0b111},
      {"MultiHeadAttention", 0b1},
      {"QuickGelu", 0b1},
      {"RelativePositionBias", 0b111},
      {"RotaryEmbedding", 0b1111},
      {"SimplifiedLayerNormalization", 0b11},
      {"SkipLayerNormalization", 0b111},
      {"SkipSimplifiedLayerNormalization", 0b111},
  };
  if (node.node.domain() != microsoftDomain)
    return success();
  for (auto [op, inputs] : required)
    for (size_t index = 0; op == node.op() && inputs >> index; ++index)
      if ((inputs >> index & 1) && !node.input(index))
        return node.invalid("leaves out input " + Twine(index));
  return success();
}

LogicalResult GraphImporter::dispatch(NodeImport &view) {
  const onnx::NodeProto &node = view.node;
  auto local = functions.find(node.domain() + '\0' + node.op_type() + '\0' + node.overload());
  if (local != functions.end())
    return expand(view, *local->second);
  if (ImportHandler handler = ImportTable::get().find(node.domain(), node.op_type()))
    return succeeded(requireInputs(view)) ? handler(view) : mlir::failure();
  if (std::unique_ptr<onnx::FunctionProto> body = standardBody(view))
    return expand(view, *body);
  return view.unsupported("operator " + printable(operatorTitle(node)) + ", version " + Twine(view.version));
}

LogicalResult GraphImporter::importBody(NodeImport &node, const onnx::GraphProto &graph, Block &block,
                                        ArrayRef<Value> inputs, SmallVectorImpl<Value> &outputs) {
  ImportScope scope;
  scope.outer = &node.scope;
  scope.block = &block;
  scope.opsets = node.scope.opsets;
  scope.attributes = node.scope.attributes;
  scope.prefix = node.scope.prefix;
  scope.depth = node.scope.depth + 1;
  if (scope.depth > file.limits.nesting) {
    failure = Failure{ExitLimit,
                      printable(file.path) + ": graphs and functions are nested more than " +
                          std::to_string(file.limits.nesting) + " deep",
                      {}};
    return mlir::failure();
  }
  if (graph.input_size() != static_cast<int>(inputs.size()))
    return node.invalid("has a nested graph with " + Twine(graph.input_size()) + " inputs instead of " +
                        Twine(inputs.size()));
  for (auto [input, value] : llvm::zip(graph.input(), inputs))
    scope.values[input.name()] = value;
  for (const onnx::TensorProto &initializer : graph.initializer())
    scope.initializers[initializer.name()] = &initializer;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(scope.block);
  if (failed(importNodes(graph.node(), scope)))
    return mlir::failure();
  for (const onnx::ValueInfoProto &output : graph.output()) {
    Name name = lookup(output.name(), scope);
    if (failure)
      return mlir::failure();
    if (name.state != Name::Known)
      return node.invalid("has a nested graph whose output " + quoted(output.name()) + " is made by no node");
    if (!name.value)
      return mlir::failure();
    outputs.push_back(name.value);
  }
  return success();
}
