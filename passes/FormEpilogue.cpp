//===- FormEpilogue.cpp - element-wise work on a contraction's result
//------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "passes/FormFusion.h"
#include "passes/NarrowCaches.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// A contraction with one part, and the map that is its only user.
class EpilogueFusion {
public:
  explicit EpilogueFusion(kernel::ContractOp contract) : contract(contract) {}
  /// Whether the map can be computed in the contraction's registers.
  bool match();
  void apply();

private:
  /// How an operand of the map is read: at the map's own indices, at the column alone, or it is one number.
  enum class Reading { Element, Column, Scalar };
  std::optional<Reading> readingOf(kernel::LoadOp load);
  bool isIdentity(kernel::LoadOp load);
  /// Shaders store whole words. Caches in bf16 are for processors alone, which store anything.
  bool canStore(Type element) {
    return element.isF32() ||
           (element.isBF16() && contract->getParentOfType<ModuleOp>()->hasAttr(narrowCachesAttrName));
  }

  kernel::ContractOp contract;
  kernel::MapOp map;
  unsigned input = 0; // of the map, that is the contraction's result
  SmallVector<DimAttr> domain;
  size_t rowAxes = 0; // the leading axes of the domain that are the contraction's rows
  SmallVector<std::optional<Reading>> readings;
};

/// The only user of the value, looking through views; null if there are more or none.
OpOperand *onlyUse(Value value) {
  while (value.hasOneUse()) {
    OpOperand &use = *value.getUses().begin();
    if (!isa<kernel::ViewOp>(use.getOwner()))
      return &use;
    value = use.getOwner()->getResult(0);
  }
  return nullptr;
}

bool isZero(Value index) { return matchPattern(index, m_Zero()); }

bool EpilogueFusion::isIdentity(kernel::LoadOp load) {
  return llvm::equal(load.getIndices(), map.getBody().getArguments().take_front(domain.size()));
}

std::optional<EpilogueFusion::Reading> EpilogueFusion::readingOf(kernel::LoadOp load) {
  Value tensor = map.getInputs()[cast<BlockArgument>(load.getSource()).getArgNumber() - domain.size()];
  ArrayRef<DimAttr> dims = shapeOf(tensor).getDims();
  if (dims == ArrayRef(domain) && isIdentity(load))
    return Reading::Element;
  if (llvm::all_of(load.getIndices(), isZero) &&
      llvm::all_of(dims, [](DimAttr dim) { return constantValue(dim) == 1; }))
    return Reading::Scalar;
  // [1, …, columns]: zeros, then the map's own column indices.
  size_t columnAxes = domain.size() - rowAxes;
  if (dims.size() < columnAxes || dims.take_back(columnAxes) != ArrayRef(domain).drop_front(rowAxes))
    return std::nullopt;
  ValueRange indices = load.getIndices();
  auto leading = dims.drop_back(columnAxes);
  bool isColumn = llvm::all_of(leading, [](DimAttr dim) { return constantValue(dim) == 1; }) &&
                  llvm::all_of(indices.drop_back(columnAxes), isZero) &&
                  llvm::equal(indices.take_back(columnAxes), map.getBody().getArguments().slice(rowAxes, columnAxes));
  return isColumn ? std::optional(Reading::Column) : std::nullopt;
}

bool EpilogueFusion::match() {
  if (contract.getParts().size() != 1)
    return false;
  OpOperand *use = onlyUse(contract->getResult(0));
  map = use ? dyn_cast<kernel::MapOp>(use->getOwner()) : kernel::MapOp();
  if (!map || !canStore(kernel::elementTypeOf(map->getResult(0).getType())))
    return false;
  input = use->getOperandNumber();
  for (Attribute dim : map.getDomain())
    domain.push_back(cast<DimAttr>(dim));

  // The domain is [rows…, columns…], in the order of the contraction's result.
  MLIRContext *context = contract.getContext();
  if (shapeOf(map.getInputs()[input]).getDims() != ArrayRef(domain))
    return false;
  DimAttr columns = dimConstant(context, contract.getParts().front());
  rowAxes = domain.size();
  while (rowAxes > 0 && elementCount(context, ArrayRef(domain).drop_front(rowAxes)) != columns)
    --rowAxes;
  if (elementCount(context, ArrayRef(domain).take_front(rowAxes)) != contract.getRowsAttr() ||
      elementCount(context, ArrayRef(domain).drop_front(rowAxes)) != columns)
    return false;

  // Nothing but straight code on the elements.
  for (Operation &op : map.getBody().front())
    if (op.getNumRegions() || isa<kernel::BoundedOp>(op))
      return false;
  for (BlockArgument index : map.getBody().getArguments().take_front(domain.size()))
    if (!llvm::all_of(index.getUsers(), [](Operation *user) { return isa<kernel::LoadOp>(user); }))
      return false;
  for (unsigned i = 0; i < map.getInputs().size(); ++i) {
    std::optional<Reading> common;
    for (kernel::LoadOp load : loadsOf(map, i)) {
      std::optional<Reading> reading = readingOf(load);
      if (!reading || (common && *common != *reading) || (i == input && *reading != Reading::Element))
        return false;
      common = reading;
    }
    readings.push_back(common);
  }
  return true;
}

void EpilogueFusion::apply() {
  MLIRContext *context = contract.getContext();
  // All operands of the map are there where the map is, and nobody else needs the product earlier.
  contract->moveBefore(map);
  OpBuilder builder(contract);
  auto viewOf = [&](Value tensor, ArrayRef<DimAttr> dims) -> Value {
    if (shapeOf(tensor).getDims() == dims)
      return tensor;
    SmallVector<Attribute> list(dims.begin(), dims.end());
    return builder.create<kernel::ViewOp>(tensor.getLoc(), plainType(dims, kernel::elementTypeOf(tensor.getType())),
                                          tensor, ArrayAttr::get(context, list));
  };
  DimAttr columns = dimConstant(context, contract.getParts().front());
  Block &epilogue = contract.getEpilogues().front().front();
  Operation *yield = epilogue.getTerminator();
  Value value = yield->getOperand(0);
  yield->erase();

  Value row = epilogue.getArgument(0), column = epilogue.getArgument(1);
  IRMapping mapping;
  SmallVector<Value> passed(map.getInputs().size());
  for (auto [i, tensor] : llvm::enumerate(map.getInputs())) {
    if (!readings[i] || i == input)
      continue;
    SmallVector<DimAttr> dims;
    if (*readings[i] == Reading::Element)
      dims = {contract.getRowsAttr(), columns};
    else if (*readings[i] == Reading::Column)
      dims = {columns};
    passed[i] = bodyArguments(contract, addInput(contract, viewOf(tensor, dims))).front();
  }
  builder.setInsertionPointToEnd(&epilogue);
  for (Operation &op : map.getBody().front()) {
    auto load = dyn_cast<kernel::LoadOp>(op);
    if (!load) {
      builder.clone(op, mapping);
      continue;
    }
    unsigned from = cast<BlockArgument>(load.getSource()).getArgNumber() - domain.size();
    if (from == input) {
      mapping.map(load.getResult(), value);
      continue;
    }
    SmallVector<Value> at;
    if (*readings[from] == Reading::Element)
      at = {row, column};
    else if (*readings[from] == Reading::Column)
      at = {column};
    Value element = builder.create<kernel::LoadOp>(load.getLoc(), load.getType(), passed[from], at);
    mapping.map(load.getResult(), element);
  }
  contract->setLoc(FusedLoc::get(context, {contract.getLoc(), map.getLoc()}));

  builder.setInsertionPointAfter(contract);
  Value read = map.getInputs()[input];
  contract->getResult(0).setType(
      plainType({contract.getRowsAttr(), columns}, kernel::elementTypeOf(map->getResult(0).getType())));
  map->getResult(0).replaceAllUsesWith(viewOf(contract->getResult(0), domain));
  map.erase();
  // The views between the contraction and the map.
  while (auto view = read.getDefiningOp<kernel::ViewOp>()) {
    read = view.getSource();
    if (view.use_empty())
      view.erase();
  }
}

} // namespace

bool transept::fuseEpilogues(kernel::EntryOp entry) {
  bool changed = false;
  SmallVector<kernel::ContractOp> contracts(entry.getBody().front().getOps<kernel::ContractOp>());
  for (kernel::ContractOp contract : contracts)
    while (true) {
      EpilogueFusion fusion(contract);
      if (!fusion.match())
        break;
      fusion.apply();
      changed = true;
    }
  return changed;
}
