//===- FormLive.cpp - rows of a step that are not in use
//-----------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormFusion.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::transept;

static DimAttr leadingDim(Operation *op) {
  if (auto map = dyn_cast<kernel::MapOp>(op))
    return map.getDomain().empty() ? DimAttr() : cast<DimAttr>(map.getDomain()[0]);
  if (auto contract = dyn_cast<kernel::ContractOp>(op))
    return contract.getRowsAttr();
  if (auto rows = dyn_cast<kernel::RowsOp>(op))
    return rows.getRowsAttr();
  // Queries, keys or logits.
  ArrayRef<DimAttr> dims = cast<DimsAttr>(cast<kernel::KernelOp>(op).getShapes()[0]).getDims();
  return dims.empty() ? DimAttr() : dims.front();
}

void transept::limitToLiveRows(kernel::EntryOp step) {
  MLIRContext *context = step.getContext();
  DimAttr rows = dimSymbol(context, "rows");
  Block &block = step.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  Type i32 = builder.getI32Type();
  auto shape = DimsAttr::get(context, {dimConstant(context, 1)});
  Value live =
      builder.create<kernel::StateOp>(step.getLoc(), RankedTensorType::get({1}, i32), "step.live", shape, "step");
  for (Operation &op : block)
    if (isa<kernel::KernelOp>(op) && leadingDim(&op) == rows)
      llvm::TypeSwitch<Operation *>(&op)
          .Case<kernel::MapOp, kernel::ContractOp, kernel::RowsOp, kernel::AttendOp, kernel::AttendCacheOp,
                kernel::AttendSourceOp, kernel::CacheAppendOp, kernel::SearchHeadOp>(
              [&](auto kernelOp) { kernelOp.getLiveRowsMutable().assign(live); });
}
