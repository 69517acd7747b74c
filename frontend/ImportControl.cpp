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

/// What a loop gives becomes the node's results.
LogicalResult loopResults(NodeImport &node, const FailureOr<SmallVector<Value>> &results) {
  if (failed(results))
    return failure();
  // C1: a condition, the carried values, then what is collected: as many as the node has results.
  if (results->size() != static_cast<size_t>(node.node.output_size()))
    return node.invalid("has " + Twine(node.node.output_size()) + " results, but a body with " +
                        Twine(results->size() + 1) + " outputs");
  for (auto [index, value] : llvm::enumerate(*results))
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
  auto body = [&](Block &block, SmallVectorImpl<Value> &yielded) {
    SmallVector<Value> arguments(block.getArguments());
    return node.importBody(*graph, block, arguments, yielded);
  };
  return loopResults(node, node.loop(node.input(0), node.input(1), *initial, body));
}

/// Numbers of an attribute, one per item; all zero where it is absent.
SmallVector<int64_t> numbersOf(NodeImport &node, StringRef attribute, size_t count) {
  SmallVector<int64_t> values = node.integers(attribute).value_or(SmallVector<int64_t>());
  values.resize(count, 0);
  return values;
}

/// What a Scan node goes over, and how.
struct ScanForm {
  const onnx::GraphProto *graph;
  size_t states; ///< inputs that are carried; those behind them are scanned
  SmallVector<int64_t> axes, backward;
};

/// A loop over the positions of `sources`, each along its axis.
FailureOr<SmallVector<Value>> scan(NodeImport &node, const ScanForm &form, ArrayRef<Value> initial,
                                   ArrayRef<Value> sources) {
  int64_t axis = form.axes.front();
  Value count = node.sizes(sources.front(), axis, axis == -1 ? std::nullopt : std::optional(axis + 1));
  count = node.reshape(count, ArrayRef<int64_t>());
  return node.loop(count, Value(), initial, [&](Block &block, SmallVectorImpl<Value> &yielded) {
    SmallVector<Value> arguments(block.getArguments().drop_front(2));
    Value number = block.getArgument(0);
    Value last = node.make<SubOp>(node.i64(), node.make<SubOp>(node.i64(), count, node.scalar(int64_t(1))), number);
    for (auto [i, source] : llvm::enumerate(sources))
      arguments.push_back(node.make<GatherOp>(node.elementOf(source), source, form.backward[i] ? last : number,
                                              static_cast<uint64_t>(form.axes[i])));
    yielded.push_back(block.getArgument(1));
    return node.importBody(*form.graph, block, arguments, yielded);
  });
}

/// Before opset 9, a scan of each entry of the batch that the inputs lead with.
FailureOr<SmallVector<Value>> scanBatch(NodeImport &node, const ScanForm &form, ArrayRef<Value> inputs) {
  Value batch = node.reshape(node.sizes(inputs.front(), 0, 1), ArrayRef<int64_t>());
  return node.loop(batch, Value(), {}, [&](Block &block, SmallVectorImpl<Value> &yielded) -> LogicalResult {
    SmallVector<Value> entries;
    for (Value input : inputs)
      entries.push_back(node.make<GatherOp>(node.elementOf(input), input, block.getArgument(0), uint64_t(0)));
    ArrayRef<Value> all = entries;
    FailureOr<SmallVector<Value>> results = scan(node, form, all.take_front(form.states), all.drop_front(form.states));
    if (failed(results))
      return failure();
    yielded.push_back(block.getArgument(1));
    llvm::append_range(yielded, *results);
    return success();
  });
}

/// A loop over the slices of its last inputs.
LogicalResult importScan(NodeImport &node) {
  const bool batched = node.version < 9; // has lengths before all other inputs
  if (batched && node.input(0))
    return node.unsupported("Scan with sequence_lens, which is gone from opset 9 on");
  ScanForm form;
  form.graph = node.graph("body");
  std::optional<SmallVector<Value>> inputs = inputsFrom(node, batched ? 1 : 0);
  int64_t scanned = node.integer("num_scan_inputs", 0);
  if (!form.graph || !inputs || scanned < 1 || scanned > static_cast<int64_t>(inputs->size()))
    return node.invalid("has no body, or scans " + Twine(scanned) + " of its inputs");
  form.states = inputs->size() - scanned;
  size_t collected = std::max<int64_t>(node.node.output_size() - static_cast<int64_t>(form.states), 0);
  form.axes = numbersOf(node, "scan_input_axes", scanned);
  form.backward = numbersOf(node, batched ? "directions" : "scan_input_directions", scanned);
  auto isZero = [](int64_t number) { return number == 0; };
  if (!llvm::all_of(numbersOf(node, "scan_output_axes", collected), isZero))
    return node.unsupported("Scan that collects along another axis than the first");
  if (!llvm::all_of(numbersOf(node, "scan_output_directions", collected), isZero))
    return node.unsupported("Scan that collects backwards");
  if (batched)
    return loopResults(node, scanBatch(node, form, *inputs));
  ArrayRef<Value> all = *inputs;
  return loopResults(node, scan(node, form, all.take_front(form.states), all.drop_front(form.states)));
}
} // namespace

void mlir::transept::addControlImports(ImportTable &table) {
  table.add("Constant", importConstant);
  table.add("If", importIf);
  table.add("Loop", importLoop);
  table.add("Scan", importScan);
}
