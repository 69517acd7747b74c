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

LogicalResult importIf(NodeImport &node) {
  const onnx::GraphProto *thenGraph = node.graph("then_branch"), *elseGraph = node.graph("else_branch");
  if (!thenGraph || !elseGraph)
    return node.invalid("has no then_branch or no else_branch");
  OperationState state(node.loc, IfOp::getOperationName());
  state.addOperands(node.input(0));
  SmallVector<Type> thenTypes, elseTypes;
  LogicalResult thenResult = node.importBranch(*thenGraph, *state.addRegion(), thenTypes);
  // Both branches are read even if the first fails, so that all that is unsupported is reported.
  LogicalResult elseResult = node.importBranch(*elseGraph, *state.addRegion(), elseTypes);
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
} // namespace

void mlir::transept::addControlImports(ImportTable &table) {
  table.add("Constant", importConstant);
  table.add("If", importIf);
}
