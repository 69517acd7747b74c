//===- ShapesBranches.cpp - branches whose results differ in rank ---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Shapes.h"

using namespace mlir;
using namespace mlir::transept;

/// Whether all that is done with the value repeats it along at least so many axes anyway.
static bool isRepeated(Value value, int64_t rank) {
  return !value.use_empty() && llvm::all_of(value.getUses(), [&](OpOperand &use) {
    return use.getOwner()->hasTrait<Elementwise>() && llvm::any_of(use.getOwner()->getOperands(), [&](Value other) {
             auto type = dyn_cast<RankedTensorType>(other.getType());
             return type && type.getRank() >= rank;
           });
  });
}

bool transept::alignBranchRanks(func::FuncOp function) {
  bool changed = false;
  function.walk([&](IfOp op) {
    Operation *ends[] = {op.getThenRegion().front().getTerminator(), op.getElseRegion().front().getTerminator()};
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      auto first = dyn_cast<RankedTensorType>(ends[0]->getOperand(i).getType()),
           second = dyn_cast<RankedTensorType>(ends[1]->getOperand(i).getType());
      if (!first || !second || first.getRank() == second.getRank())
        continue;
      int64_t rank = std::max(first.getRank(), second.getRank());
      if (!isRepeated(op.getResult(i), rank))
        continue;
      Operation *lower = ends[first.getRank() < rank ? 0 : 1];
      Value value = lower->getOperand(i);
      Dims dims = dimsOf(cast<RankedTensorType>(value.getType()));
      dims.insert(dims.begin(), rank - dims.size(), dimConstant(op.getContext(), 1));
      OpBuilder builder(lower);
      lower->setOperand(i, builder.create<ReshapeOp>(op.getLoc(), makeType(dims, getElementTypeOrSelf(value.getType())),
                                                     value, Value(), false));
      changed = true;
    }
  });
  return changed;
}
