//===- ImportTable.cpp - which handler imports which operator --------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Import.h"
#include "frontend/NodeImport.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
std::string keyOf(StringRef domain, StringRef op) { return (domain + "::" + op).str(); }

template <typename Op>
constexpr bool isCompare =
    llvm::is_one_of<Op, EqualOp, LessOp, LessOrEqualOp, GreaterOp, GreaterOrEqualOp, IsNaNOp>::value;

/// Ops without attributes whose operands are the node's inputs.
template <typename Op> LogicalResult importPlain(NodeImport &node) {
  SmallVector<Value> operands;
  for (size_t index = 0; index < node.inputCount(); ++index) {
    if (!node.input(index))
      return node.invalid("leaves out input " + Twine(index));
    operands.push_back(node.input(index));
  }
  constexpr unsigned arity = Op::template hasTrait<OpTrait::OneOperand>()           ? 1
                             : Op::template hasTrait<OpTrait::NOperands<2>::Impl>() ? 2
                                                                                    : 3;
  if (operands.size() != arity)
    return node.invalid("has " + Twine(operands.size()) + " inputs instead of " + Twine(arity));
  // Where chooses between its second and third operand; all others compute in the type of the first.
  Value typed = std::is_same_v<Op, WhereOp> ? operands[1] : operands[0];
  Type element = isCompare<Op> ? node.i1() : node.elementOf(typed);
  OperationState state(node.loc, Op::getOperationName(), operands, {Type(UnrankedTensorType::get(element))});
  return node.result(node.builder.create(state)->getResult(0));
}

/// The table is derived from the op classes: each element-wise op names its ONNX operator.
template <typename Op> void addPlain(ImportTable &table) {
  if constexpr (Op::template hasTrait<Elementwise>() || std::is_same_v<Op, MatMulOp>)
    if constexpr (!Op::onnxName.empty())
      table.add(Op::onnxName, importPlain<Op>);
}
template <typename... Ops> void addAllPlain(ImportTable &table) { (addPlain<Ops>(table), ...); }
} // namespace

void mlir::transept::addElementwiseImports(ImportTable &table) {
  addAllPlain<
#define GET_OP_LIST
#include "ir/TranseptOps.cpp.inc"
      >(table);
}

const ImportTable &ImportTable::get() {
  static const ImportTable table = [] {
    ImportTable built;
    addElementwiseImports(built);
    // Those with attributes or several forms come after the derived ones and replace them.
    addMathImports(built);
    addProductImports(built);
    addEinsumImports(built);
    addConvImports(built);
    addRecurrentImports(built);
    addWindowImports(built);
    addSamplingImports(built);
    addResizeImports(built);
    addSignalImports(built);
    addReductionImports(built);
    addNormImports(built);
    addShapeImports(built);
    addIndexImports(built);
    addQuantizationImports(built);
    addAttentionImports(built);
    addMicrosoftAttentionImports(built);
    addGroupQueryImports(built);
    addEmbeddingImports(built);
    addControlImports(built);
    addUniqueImports(built);
    addDetectionImports(built);
    addTreeImports(built);
    addNgramImports(built);
    return built;
  }();
  return table;
}

void ImportTable::add(StringRef domain, StringRef op, ImportHandler handler) { handlers[keyOf(domain, op)] = handler; }

ImportHandler ImportTable::find(StringRef domain, StringRef op) const { return handlers.lookup(keyOf(domain, op)); }

std::vector<std::string> ImportTable::keys() const {
  std::vector<std::string> keys;
  for (const auto &entry : handlers)
    keys.push_back(entry.getKey().str());
  llvm::sort(keys);
  return keys;
}

std::vector<std::string> mlir::transept::importedOperators() {
  std::vector<std::string> titles = ImportTable::get().keys();
  for (std::string &title : titles)
    if (StringRef(title).starts_with("::"))
      title.erase(0, 2);
  llvm::sort(titles);
  return titles;
}
