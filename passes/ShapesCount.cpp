//===- ShapesCount.cpp - the shapes phase's post-condition ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Shapes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::transept;

bool transept::isShapeOperand(OpOperand &operand) {
  Value value = operand.get();
  return llvm::TypeSwitch<Operation *, bool>(operand.getOwner())
      .Case([&](ReshapeOp op) { return operand.getOperandNumber() == 1; })
      .Case([&](BroadcastOp op) { return operand.getOperandNumber() == 1; })
      .Case([&](TileOp op) { return operand.getOperandNumber() == 1; })
      .Case([&](SqueezeOp op) { return operand.getOperandNumber() == 1; })
      .Case([&](UnsqueezeOp op) { return operand.getOperandNumber() == 1; })
      .Case([&](ReduceOp op) { return operand.getOperandNumber() == 1; })
      .Case([&](CumSumOp op) { return operand.getOperandNumber() == 1; })
      .Case([&](TopKOp op) { return operand.getOperandNumber() == 1; })
      .Case([&](SliceOp op) { return operand.getOperandNumber() > 0; })
      .Case([&](PadOp op) { return value == op.getPadsValue() || value == op.getAxesValue(); })
      .Case([&](RangeOp op) { return true; })
      .Case([&](FillOp op) { return true; })
      .Default(false);
}

namespace {

class ShapeArithmetic {
public:
  /// Whether every use of the op's result, directly or through further such ops, is a shape operand.
  bool feedsShapesOnly(Operation *op) {
    auto [it, fresh] = shapesOnly.try_emplace(op, false);
    if (!fresh)
      return it->second;
    bool answer = op->getNumResults() == 1 && op->getNumRegions() == 0 && !op->use_empty() &&
                  llvm::all_of(op->getUses(), [&](OpOperand &use) {
                    return isShapeOperand(use) || (isInteger(use.getOwner()) && feedsShapesOnly(use.getOwner()));
                  });
    return shapesOnly[op] = answer;
  }

  /// Whether the value follows from sizes and constants.
  bool followsFromSizes(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (isa<ShapeOp, SizeOp, ConstantOp, WeightOp, DimValueOp>(op))
      return true;
    auto [it, fresh] = fromSizes.try_emplace(op, false);
    if (!fresh)
      return it->second;
    bool answer = isPure(op) && op->getNumRegions() == 0 &&
                  llvm::all_of(op->getOperands(), [&](Value operand) { return followsFromSizes(operand); });
    return fromSizes[op] = answer;
  }

private:
  static bool isInteger(Operation *op) {
    return isa<GraphOp>(op) && op->getNumResults() == 1 &&
           isa<IntegerType>(cast<TensorType>(op->getResult(0).getType()).getElementType());
  }

  llvm::DenseMap<Operation *, bool> shapesOnly, fromSizes;
};

} // namespace

unsigned transept::countShapeOps(ModuleOp module) {
  ShapeArithmetic arithmetic;
  unsigned count = 0;
  module.walk([&](GraphOp op) {
    if (isa<ShapeOp, SizeOp>(op.getOperation()))
      ++count;
    else if (!isa<ConstantOp, WeightOp>(op.getOperation()) && arithmetic.feedsShapesOnly(op) &&
             arithmetic.followsFromSizes(op->getResult(0)))
      ++count;
  });
  return count;
}
