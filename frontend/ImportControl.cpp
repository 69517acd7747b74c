//===- ImportControl.cpp - constants and branches --------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
template <typename T> Value numbers(NodeImport &node, ArrayRef<T> values, Type element, bool isScalar) {
  SmallVector<int64_t> shape;
  if (!isScalar)
    shape.push_back(static_cast<int64_t>(values.size()));
  auto type = RankedTensorType::get(shape, element);
  return node.builder.create<ConstantOp>(node.loc, type, DenseElementsAttr::get(type, values));
}

LogicalResult importConstant(NodeImport &node) {
  if (const onnx::TensorProto *tensor = node.tensor("value")) {
    StringRef name = node.wants(0) ? StringRef(node.node.output(0)) : StringRef(node.node.name());
    Value value = node.materialize(*tensor, name);
    return value ? node.result(value) : failure();
  }
  Type f32 = node.builder.getF32Type();
  if (node.has("value_float"))
    return node.result(numbers<float>(node, {node.real("value_float", 0)}, f32, true));
  if (node.has("value_int"))
    return node.result(numbers<int64_t>(node, {node.integer("value_int", 0)}, node.i64(), true));
  if (std::optional<SmallVector<float>> values = node.reals("value_floats"))
    return node.result(numbers<float>(node, *values, f32, false));
  if (std::optional<SmallVector<int64_t>> values = node.integers("value_ints"))
    return node.result(numbers<int64_t>(node, *values, node.i64(), false));
  return node.unsupported("Constant without a dense numeric value");
}

/// Ends a block that belongs to no op yet.
void yield(NodeImport &node, Block &block, ValueRange values) {
  OpBuilder::InsertionGuard guard(node.builder);
  node.builder.setInsertionPointToEnd(&block);
  node.builder.create<YieldOp>(node.loc, values);
}

/// Imports a nested graph without inputs into a region.
LogicalResult importBranch(NodeImport &node, const onnx::GraphProto &graph, Region &region,
                           SmallVectorImpl<Type> &types) {
  Block &block = region.emplaceBlock();
  SmallVector<Value> outputs;
  if (failed(node.importBody(graph, block, {}, outputs)))
    return failure();
  for (Value output : outputs)
    types.push_back(output.getType());
  yield(node, block, outputs);
  return success();
}

LogicalResult importIf(NodeImport &node) {
  const onnx::GraphProto *thenGraph = node.graph("then_branch"), *elseGraph = node.graph("else_branch");
  if (!thenGraph || !elseGraph)
    return node.invalid("has no then_branch or no else_branch");
  OperationState state(node.loc, IfOp::getOperationName());
  state.addOperands(node.input(0));
  SmallVector<Type> thenTypes, elseTypes;
  LogicalResult thenResult = importBranch(node, *thenGraph, *state.addRegion(), thenTypes);
  // Both branches are read even if the first fails, so that all that is unsupported is reported.
  LogicalResult elseResult = importBranch(node, *elseGraph, *state.addRegion(), elseTypes);
  if (failed(thenResult) || failed(elseResult))
    return failure();
  // C1: both branches give as many results as the node has, of the same element types.
  if (thenTypes.size() != elseTypes.size() || thenTypes.size() != static_cast<size_t>(node.node.output_size()))
    return node.invalid("has " + Twine(node.node.output_size()) + " results, but branches with " +
                        Twine(thenTypes.size()) + " and " + Twine(elseTypes.size()));
  for (auto [index, thenType, elseType] : llvm::enumerate(thenTypes, elseTypes)) {
    Type element = cast<TensorType>(thenType).getElementType();
    if (element != cast<TensorType>(elseType).getElementType())
      return node.invalid("has branches whose results " + Twine(index) + " differ in element type");
    state.addTypes(UnrankedTensorType::get(element));
  }
  Operation *op = node.builder.create(state);
  for (auto [index, value] : llvm::enumerate(op->getResults()))
    (void)node.result(static_cast<int>(index), value);
  return success();
}
/// An op that repeats `body` with the given carried values; `body` fills the block and returns what it yields.
LogicalResult makeLoop(NodeImport &node, Value count, Value condition, ArrayRef<Value> initial,
                       function_ref<LogicalResult(Block &, SmallVectorImpl<Value> &)> body) {
  OperationState state(node.loc, LoopOp::getOperationName());
  Block &block = state.addRegion()->emplaceBlock();
  block.addArguments({RankedTensorType::get({}, node.i64()), RankedTensorType::get({}, node.i1())},
                     {node.loc, node.loc});
  for (Value value : initial)
    block.addArgument(UnrankedTensorType::get(node.elementOf(value)), node.loc);
  SmallVector<Value> yielded;
  if (failed(body(block, yielded)))
    return failure();
  // C1: a condition, the carried values, then what is collected: as many as the node has results.
  if (yielded.size() != static_cast<size_t>(node.node.output_size()) + 1 || yielded.size() <= initial.size())
    return node.invalid("has " + Twine(node.node.output_size()) + " results, but a body with " + Twine(yielded.size()) +
                        " outputs");
  yield(node, block, yielded);
  SmallVector<Value> operands;
  for (Value value : {count, condition})
    if (value)
      operands.push_back(value);
  llvm::append_range(operands, initial);
  state.addOperands(operands);
  state.addAttribute("operandSegmentSizes", node.builder.getDenseI32ArrayAttr({count ? 1 : 0, condition ? 1 : 0,
                                                                               static_cast<int32_t>(initial.size())}));
  for (Value value : ArrayRef(yielded).drop_front())
    state.addTypes(UnrankedTensorType::get(node.elementOf(value)));
  Operation *op = node.builder.create(state);
  for (auto [index, value] : llvm::enumerate(op->getResults()))
    (void)node.result(static_cast<int>(index), value);
  return success();
}

/// The inputs from `first` on; null where one is left out.
std::optional<SmallVector<Value>> inputsFrom(NodeImport &node, size_t first) {
  SmallVector<Value> values;
  for (size_t index = first; index < node.inputCount(); ++index) {
    if (!node.input(index))
      return std::nullopt;
    values.push_back(node.input(index));
  }
  return values;
}

LogicalResult importLoop(NodeImport &node) {
  const onnx::GraphProto *graph = node.graph("body");
  std::optional<SmallVector<Value>> initial = inputsFrom(node, 2);
  if (!graph || !initial)
    return node.invalid("has no body, or leaves out the first content of what it carries");
  return makeLoop(node, node.input(0), node.input(1), *initial, [&](Block &block, SmallVectorImpl<Value> &yielded) {
    SmallVector<Value> arguments(block.getArguments());
    return node.importBody(*graph, block, arguments, yielded);
  });
}

/// Numbers of an attribute, one per item; all zero where it is absent.
SmallVector<int64_t> numbersOf(NodeImport &node, StringRef attribute, size_t count) {
  SmallVector<int64_t> values = node.integers(attribute).value_or(SmallVector<int64_t>());
  values.resize(count, 0);
  return values;
}

/// A loop over the slices of its last inputs.
LogicalResult importScan(NodeImport &node) {
  if (node.version < 9)
    return node.unsupported("Scan over batches, which has another meaning from opset 9 on");
  const onnx::GraphProto *graph = node.graph("body");
  std::optional<SmallVector<Value>> inputs = inputsFrom(node, 0);
  int64_t scanned = node.integer("num_scan_inputs", 0);
  if (!graph || !inputs || scanned < 1 || scanned > static_cast<int64_t>(inputs->size()))
    return node.invalid("has no body, or scans " + Twine(scanned) + " of its inputs");
  size_t states = inputs->size() - scanned;
  size_t collected = std::max<int64_t>(node.node.output_size() - static_cast<int64_t>(states), 0);
  SmallVector<int64_t> axes = numbersOf(node, "scan_input_axes", scanned),
                       backward = numbersOf(node, "scan_input_directions", scanned),
                       resultAxes = numbersOf(node, "scan_output_axes", collected),
                       resultBackward = numbersOf(node, "scan_output_directions", collected);
  if (llvm::any_of(resultAxes, [](int64_t axis) { return axis != 0; }))
    return node.unsupported("Scan that collects along another axis than the first");
  ArrayRef<Value> sources = ArrayRef(*inputs).drop_front(states);
  int64_t axis = axes.front();
  Value count = node.sizes(sources.front(), axis, axis == -1 ? std::nullopt : std::optional(axis + 1));
  count = node.reshape(count, ArrayRef<int64_t>());
  LogicalResult made = makeLoop(
      node, count, Value(), ArrayRef(*inputs).take_front(states), [&](Block &block, SmallVectorImpl<Value> &yielded) {
        SmallVector<Value> arguments(block.getArguments().drop_front(2));
        {
          OpBuilder::InsertionGuard guard(node.builder);
          node.builder.setInsertionPointToEnd(&block);
          Value number = block.getArgument(0);
          Value last =
              node.make<SubOp>(node.i64(), node.make<SubOp>(node.i64(), count, node.scalar(int64_t(1))), number);
          for (auto [i, source] : llvm::enumerate(sources))
            arguments.push_back(node.make<GatherOp>(node.elementOf(source), source, backward[i] ? last : number,
                                                    static_cast<uint64_t>(axes[i])));
        }
        yielded.push_back(block.getArgument(1));
        return node.importBody(*graph, block, arguments, yielded);
      });
  if (failed(made))
    return failure();
  for (size_t i = 0; i < collected; ++i)
    if (resultBackward[i])
      return node.unsupported("Scan that collects backwards");
  return success();
}
} // namespace

void mlir::transept::addControlImports(ImportTable &table) {
  table.add("Constant", importConstant);
  table.add("If", importIf);
  table.add("Loop", importLoop);
  table.add("Scan", importScan);
}
