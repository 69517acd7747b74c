//===- FormLive.cpp - rows of a step that are not in use
//-----------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step has room for `rows` hypotheses; the first `step.live` of them are computed. The others' results stay
// undefined, which is harmless as long as a row is computed from the same row of everything. Where that is not so, all
// rows of what is read are computed.

#include "passes/FormFusion.h"
#include "passes/PlanEntry.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

class LiveRows {
public:
  explicit LiveRows(kernel::EntryOp step) : step(step), rows(dimSymbol(step.getContext(), "rows")) {}
  void run();

private:
  DimAttr leadingDim(Operation *op);
  bool dependsOnRows(Value tensor) {
    return llvm::any_of(shapeOf(tensor).getDims(), [](DimAttr dim) { return dependsOn(dim, "rows"); });
  }
  bool readsSameRow(Operation *op, unsigned input);
  /// Every row of the tensor, and of what it is computed from, is defined.
  void computeAllRows(Value tensor);

  kernel::EntryOp step;
  DimAttr rows;
  DenseSet<Operation *> complete;
};

DimAttr LiveRows::leadingDim(Operation *op) {
  if (auto map = dyn_cast<kernel::MapOp>(op))
    return map.getDomain().empty() ? DimAttr() : cast<DimAttr>(map.getDomain()[0]);
  if (auto contract = dyn_cast<kernel::ContractOp>(op))
    return contract.getRowsAttr();
  if (auto rowsOp = dyn_cast<kernel::RowsOp>(op))
    return rowsOp.getRowsAttr();
  // Queries, keys or logits.
  ArrayRef<DimAttr> dims = cast<DimsAttr>(cast<kernel::KernelOp>(op).getShapes()[0]).getDims();
  return dims.empty() ? DimAttr() : dims.front();
}

bool LiveRows::readsSameRow(Operation *op, unsigned input) {
  if (isa<kernel::SerialOp>(op))
    return false;
  if (!isReadByLoads(op, input))
    return true;
  if (isa<kernel::MapOp>(op) && leadingDim(op) != rows)
    return false;
  Value tensor = cast<kernel::KernelOp>(op).getInputs()[input];
  ArrayRef<DimAttr> dims = shapeOf(tensor).getDims();
  if (dims.empty() || dims.front() != leadingDim(op))
    return false;
  // The first argument of every body is the row.
  return llvm::all_of(loadsOf(op, input), [&](kernel::LoadOp load) {
    auto index = dyn_cast<BlockArgument>(load.getIndices().front());
    return index && index.getOwner()->getParentOp() == op && index.getArgNumber() == 0;
  });
}

void LiveRows::computeAllRows(Value tensor) {
  Operation *producer = rootOf(tensor).getDefiningOp();
  if (!isa_and_nonnull<kernel::KernelOp>(producer) || !complete.insert(producer).second)
    return;
  for (Value input : cast<kernel::KernelOp>(producer).getInputs())
    computeAllRows(input);
}

void LiveRows::run() {
  Block &block = step.getBody().front();
  for (Operation &op : block)
    if (auto kernelOp = dyn_cast<kernel::KernelOp>(op))
      for (auto [i, input] : llvm::enumerate(kernelOp.getInputs()))
        if (dependsOnRows(input) && !readsSameRow(&op, i))
          computeAllRows(input);

  MLIRContext *context = step.getContext();
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  auto shape = DimsAttr::get(context, {dimConstant(context, 1)});
  Value live = builder.create<kernel::StateOp>(step.getLoc(), RankedTensorType::get({1}, builder.getI32Type()),
                                               "step.live", shape, "step");
  for (Operation &op : block)
    if (isa<kernel::KernelOp>(op) && leadingDim(&op) == rows && !complete.contains(&op))
      llvm::TypeSwitch<Operation *>(&op)
          .Case<kernel::MapOp, kernel::ContractOp, kernel::RowsOp, kernel::AttendOp, kernel::AttendCacheOp,
                kernel::AttendSourceOp, kernel::CacheAppendOp, kernel::SearchHeadOp>(
              [&](auto kernelOp) { kernelOp.getLiveRowsMutable().assign(live); });
}

} // namespace

void transept::limitToLiveRows(kernel::EntryOp step) { LiveRows(step).run(); }
