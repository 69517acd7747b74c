//===- FormPanels.cpp - weights that are read and multiplied with are stored once
//-------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/WeightStore.h"
#include "passes/FormFusion.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// The matrices that contractions of the module hold in panels, and whether they are stored [N, K].
llvm::StringMap<bool> packedMatrices(ModuleOp module) {
  llvm::StringMap<bool> packed;
  module.walk([&](kernel::ConstantOp constant) {
    if (constant.getLayout() == "panels")
      for (auto [key, transposed] : llvm::zip(constant.getKeys(), constant.getTransposed()))
        packed.try_emplace(cast<StringAttr>(key).getValue(), transposed);
  });
  return packed;
}

/// Element (k, n) is at [n / 64, k, n % 64].
void readElementFromPanels(kernel::LoadOp load, Value panels, bool transposed) {
  Body b(load.getLoc(), OpBuilder(load));
  Value k = load.getIndices()[transposed], n = load.getIndices()[!transposed];
  Value columns = b.index(kernel::panelColumns);
  Value panel = b.create<arith::DivUIOp>(n, columns), column = b.create<arith::RemUIOp>(n, columns);
  load.replaceAllUsesWith(b.load(panels, {panel, k, column}));
  load.erase();
}

} // namespace

void transept::readFromPanels(ModuleOp module) {
  llvm::StringMap<bool> packed = packedMatrices(module);
  SmallVector<kernel::ConstantOp> constants;
  module.walk([&](kernel::ConstantOp constant) {
    auto type = cast<RankedTensorType>(constant.getType());
    if (constant.getLayout() == "rows" && type.getRank() == 2 && type.getElementType().isF32() &&
        packed.contains(cast<StringAttr>(constant.getKeys()[0]).getValue()))
      constants.push_back(constant);
  });
  for (kernel::ConstantOp constant : constants) {
    bool transposed = packed.lookup(cast<StringAttr>(constant.getKeys()[0]).getValue());
    auto type = cast<RankedTensorType>(constant.getType());
    int64_t n = type.getDimSize(!transposed), k = type.getDimSize(transposed);
    OpBuilder builder(constant);
    Value panels;
    for (OpOperand &use : llvm::make_early_inc_range(constant->getUses())) {
      Operation *user = use.getOwner();
      unsigned input = use.getOperandNumber();
      if (!isa<kernel::MapOp, kernel::RowsOp>(user))
        continue;
      if (!panels)
        panels = builder.create<kernel::ConstantOp>(
            constant.getLoc(),
            RankedTensorType::get(
                {static_cast<int64_t>(llvm::divideCeil(n, kernel::panelColumns)), k, kernel::panelColumns},
                type.getElementType()),
            constant.getKeysAttr(), builder.getDenseBoolArrayAttr(transposed), builder.getStringAttr("panels"));
      unsigned panelInput = addInput(user, panels);
      for (kernel::LoadOp load : loadsOf(user, input))
        readElementFromPanels(load, bodyArguments(user, panelInput).front(), transposed);
      removeInput(user, input);
    }
    if (constant->use_empty())
      constant.erase();
  }
}
