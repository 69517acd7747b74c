//===- FormIf.cpp - conditionals whose results have one shape
//---------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both branches are computed and the condition selects, element by element. Indices out of range count in the branch
// that is taken only.

#include "ir/Guard.h"
#include "passes/FormFusion.h"
#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

Value loadCondition(Body &b, Value source, ArrayRef<DimAttr> dims) {
  return b.load(source, SmallVector<Value>(dims.size(), b.index(0)));
}

/// Checks in kernels made since `last` see index 0 where the branch is not taken.
void guardChecks(Operation *first, Value condition, bool taken) {
  for (Operation *op = first; op; op = op->getNextNode()) {
    SmallVector<kernel::BoundedOp> checks;
    op->walk([&](kernel::BoundedOp check) { checks.push_back(check); });
    if (checks.empty())
      continue;
    unsigned input = addInput(op, condition);
    for (kernel::BoundedOp check : checks) {
      Body b(check.getLoc(), OpBuilder(check));
      Value isTrue = loadCondition(b, bodyArguments(op, input).front(), shapeOf(condition).getDims());
      Value zero = b.index(0);
      Value index = check.getIndex();
      check.getIndexMutable().assign(taken ? b.select(isTrue, index, zero) : b.select(isTrue, zero, index));
    }
  }
}

LogicalResult formBranch(FormContext &f, IfOp op, Region &branch, Value condition, bool taken,
                         SmallVectorImpl<Value> &results) {
  Block &entry = f.entry.getBody().front();
  Operation *before = entry.empty() ? nullptr : &entry.back();
  for (Operation &inner : branch.front().without_terminator()) {
    if (isa<ExportOp, CacheAppendOp, SearchHeadOp>(inner))
      return emitUnsupported(op) << "changes states in a branch";
    if (failed(formOp(f, &inner)))
      return failure();
  }
  guardChecks(before ? before->getNextNode() : &entry.front(), condition, taken);
  for (Value yielded : branch.front().getTerminator()->getOperands())
    results.push_back(f.tensor(yielded));
  return success();
}

} // namespace

/// Whether both branches can be computed whatever the condition says.
static bool isSelectable(IfOp op) {
  for (Region *branch : {&op.getThenRegion(), &op.getElseRegion()}) {
    Operation *yield = branch->front().getTerminator();
    for (auto [result, yielded] : llvm::zip(op.getResults(), yield->getOperands()))
      if (graphDims(result) != graphDims(yielded))
        return false;
    auto relies = yield->getAttrOfType<ArrayAttr>(guardsAttrName);
    if ((relies && !relies.empty()) ||
        llvm::any_of(branch->front(), [](Operation &inner) { return isa<IfOp, LoopOp, ReadSizesOp>(inner); }))
      return false;
  }
  return true;
}

LogicalResult transept::form(FormContext &f, IfOp op) {
  if (!isSelectable(op))
    return formBranches(f, op);
  Value condition = f.tensor(op.getCondition());
  ArrayRef<DimAttr> conditionDims = shapeOf(condition).getDims();
  SmallVector<Value> onTrue, onFalse;
  if (failed(formBranch(f, op, op.getThenRegion(), condition, true, onTrue)) ||
      failed(formBranch(f, op, op.getElseRegion(), condition, false, onFalse)))
    return failure();
  for (auto [result, left, right] : llvm::zip(op.getResults(), onTrue, onFalse))
    f.define(result, f.map(op.getLoc(), graphDims(result), {condition, left, right}, graphElementType(result),
                           [&](Body &b, ValueRange at, ValueRange sources) {
                             Value isTrue = loadCondition(b, sources[0], conditionDims);
                             return b.choose(
                                 isTrue, [&](Body &inner) { return inner.loadWide(sources[1], at); },
                                 [&](Body &inner) { return inner.loadWide(sources[2], at); });
                           }));
  return success();
}
