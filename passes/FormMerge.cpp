//===- FormMerge.cpp - contractions of the same rows as one
//-----------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormFusion.h"
#include "passes/PlanEntry.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// Whether the value is there before `position`, or can be made there: views and constants move.
bool canBeBefore(Value value, Operation *position) {
  Operation *op = value.getDefiningOp();
  if (!op || op->isBeforeInBlock(position))
    return true;
  if (auto view = dyn_cast<kernel::ViewOp>(op))
    return canBeBefore(view.getSource(), position);
  return isa<kernel::ConstantOp>(op);
}

void makeBefore(Value value, Operation *position) {
  Operation *op = value.getDefiningOp();
  if (!op || op->isBeforeInBlock(position))
    return;
  for (Value operand : op->getOperands())
    makeBefore(operand, position);
  op->moveBefore(position);
}

kernel::ConstantOp matrixOf(kernel::ContractOp contract) {
  return contract.getInputs()[1].getDefiningOp<kernel::ConstantOp>();
}

/// Whether both multiply in the same way: merged, they are one kernel with one packed matrix.
bool haveSameProducts(kernel::ContractOp lhs, kernel::ContractOp rhs) {
  kernel::ConstantOp left = matrixOf(lhs), right = matrixOf(rhs);
  return left && right && lhs.getQuantised() == rhs.getQuantised() && lhs.getBlock() == rhs.getBlock() &&
         kernel::elementTypeOf(left.getType()) == kernel::elementTypeOf(right.getType());
}

/// A state takes the result of the contraction's first part.
bool isExported(kernel::ContractOp contract) {
  SmallVector<Value> pending = {contract->getResult(0)};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (isa<kernel::ExportOp>(user))
        return true;
      if (isa<kernel::ViewOp>(user))
        pending.push_back(user->getResult(0));
    }
  }
  return false;
}

/// Later contractions that can be computed with `leader`: of the same rows, with nothing else contracted in between.
/// What goes to a state may be computed early without occupying memory for it.
SmallVector<kernel::ContractOp> companionsOf(kernel::ContractOp leader) {
  SmallVector<kernel::ContractOp> companions;
  Value x = leader.getInputs()[0];
  bool isNear = true;
  for (Operation *op = leader->getNextNode(); op; op = op->getNextNode()) {
    // Variables may have other contents there.
    if (isa<kernel::LabelOp>(op))
      break;
    auto other = dyn_cast<kernel::ContractOp>(op);
    if (!other)
      continue;
    bool sameRows = rootOf(other.getInputs()[0]) == rootOf(x) && shapeOf(other.getInputs()[0]) == shapeOf(x);
    bool movable =
        llvm::all_of(other.getInputs().drop_front(2), [&](Value input) { return canBeBefore(input, leader); });
    if (sameRows && movable && haveSameProducts(leader, other) && (isNear || isExported(other)))
      companions.push_back(other);
    else
      isNear = false;
  }
  return companions;
}

/// Moves a member's epilogue into a region of the merged contraction, whose inputs from the third on are `extra`.
void moveEpilogue(Region &from, Region &to, ValueRange own, ArrayRef<Value> extra) {
  to.takeBody(from);
  Block &body = to.front();
  unsigned first = body.getNumArguments() - own.size();
  SmallVector<BlockArgument> arguments;
  for (Value input : extra)
    arguments.push_back(body.addArgument(input.getType(), input.getLoc()));
  for (auto [i, input] : llvm::enumerate(own))
    body.getArgument(first + i).replaceAllUsesWith(arguments[llvm::find(extra, input) - extra.begin()]);
  body.eraseArguments(first, own.size());
}

/// The panels of one input of all members, in their order, as one constant before the leader.
Value joinedPanels(ArrayRef<kernel::ContractOp> members, unsigned input) {
  SmallVector<Attribute> keys;
  SmallVector<bool> transposed;
  int64_t panels = 0;
  for (kernel::ContractOp member : members) {
    auto matrix = member.getInputs()[input].getDefiningOp<kernel::ConstantOp>();
    llvm::append_range(keys, matrix.getKeys());
    llvm::append_range(transposed, matrix.getTransposed());
    panels += cast<RankedTensorType>(matrix.getType()).getDimSize(0);
  }
  kernel::ContractOp leader = members.front();
  auto type = cast<RankedTensorType>(leader.getInputs()[input].getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = panels;
  OpBuilder builder(leader);
  return builder.create<kernel::ConstantOp>(leader.getLoc(), RankedTensorType::get(shape, type.getElementType()),
                                            builder.getArrayAttr(keys), builder.getDenseBoolArrayAttr(transposed),
                                            builder.getStringAttr("panels"));
}

void merge(ArrayRef<kernel::ContractOp> members) {
  kernel::ContractOp leader = members.front();
  OpBuilder builder(leader);
  SmallVector<Attribute> outputShapes;
  SmallVector<int64_t> parts;
  SmallVector<Type> types;
  SmallVector<Location> locations;
  llvm::SetVector<Value> extra;
  // Scales along k are another packed matrix.
  const bool block = leader.getBlock() != 0;
  Value scales = block ? joinedPanels(members, 2) : Value();
  if (block)
    extra.insert(scales);
  for (kernel::ContractOp member : members) {
    llvm::append_range(parts, member.getParts());
    llvm::append_range(types, member->getResultTypes());
    llvm::append_range(outputShapes, member.getShapes().getValue().drop_front(member.getInputs().size()));
    locations.push_back(member.getLoc());
    for (Value input : member.getInputs().drop_front(block ? 3 : 2)) {
      makeBefore(input, leader);
      extra.insert(input);
    }
  }
  SmallVector<Value> inputs = {leader.getInputs()[0], joinedPanels(members, 1)};
  llvm::append_range(inputs, extra);
  SmallVector<Attribute> shapes;
  for (Value input : inputs)
    shapes.push_back(shapeOf(input));
  llvm::append_range(shapes, outputShapes);
  auto merged = builder.create<kernel::ContractOp>(
      FusedLoc::get(builder.getContext(), locations), types, inputs, ValueRange{}, Value(),
      builder.getArrayAttr(shapes), leader.getRowsAttr(), leader.getKAttr(), builder.getDenseI64ArrayAttr(parts),
      leader.getQuantisedAttr(), leader.getBlockAttr(), parts.size());
  unsigned part = 0;
  for (kernel::ContractOp member : members) {
    SmallVector<Value> own(member.getInputs().drop_front(2));
    if (block)
      own.front() = scales;
    for (auto [epilogue, result] : llvm::zip(member.getEpilogues(), member->getResults())) {
      moveEpilogue(epilogue, merged.getEpilogues()[part], own, extra.getArrayRef());
      result.replaceAllUsesWith(merged->getResult(part++));
    }
  }
  for (kernel::ContractOp member : members)
    member.erase();
}

} // namespace

void transept::mergeContracts(kernel::EntryOp entry) {
  SmallVector<kernel::ContractOp> contracts(entry.getBody().front().getOps<kernel::ContractOp>());
  DenseSet<Operation *> merged;
  for (kernel::ContractOp leader : contracts) {
    if (merged.contains(leader) || !matrixOf(leader))
      continue;
    SmallVector<kernel::ContractOp> members = {leader};
    llvm::append_range(members, companionsOf(leader));
    if (members.size() == 1)
      continue;
    merged.insert(members.begin(), members.end());
    merge(members);
  }
}
