//===- FormInputs.cpp - inputs of kernels and what their bodies do with them
//---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormFusion.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::transept;

/// Arguments of a body before those of the inputs, and the first input that has one.
static std::pair<unsigned, unsigned> argumentLayout(Operation *op) {
  if (auto map = dyn_cast<kernel::MapOp>(op))
    return {map.getDomain().size(), 0};
  if (isa<kernel::RowsOp>(op))
    return {1, 0};
  if (isa<kernel::SerialOp>(op))
    return {1 + op->getNumResults(), 0};
  return {3, 2}; // contract: row, column, value; x and matrix have none
}

bool transept::isReadByLoads(Operation *op, unsigned input) {
  if (isa<kernel::MapOp, kernel::RowsOp>(op))
    return true;
  return isa<kernel::ContractOp>(op) && input >= 2;
}

SmallVector<BlockArgument> transept::bodyArguments(Operation *op, unsigned input) {
  SmallVector<BlockArgument> arguments;
  auto [leading, first] = argumentLayout(op);
  if (input >= first)
    for (Region &region : op->getRegions())
      arguments.push_back(region.getArgument(leading + input - first));
  return arguments;
}

SmallVector<kernel::LoadOp> transept::loadsOf(Operation *op, unsigned input) {
  SmallVector<kernel::LoadOp> loads;
  // In the order of the code, not of the use lists.
  SmallVector<BlockArgument> arguments = bodyArguments(op, input);
  op->walk([&](kernel::LoadOp load) {
    if (llvm::is_contained(arguments, load.getSource()))
      loads.push_back(load);
  });
  return loads;
}

static MutableOperandRange inputsMutable(Operation *op) {
  return llvm::TypeSwitch<Operation *, MutableOperandRange>(op)
      .Case<kernel::MapOp, kernel::RowsOp, kernel::ContractOp, kernel::SerialOp>(
          [](auto typed) { return typed.getInputsMutable(); });
}

/// Shapes of the current inputs, then those of the outputs as they were.
static void updateShapes(Operation *op, size_t inputsBefore) {
  auto kernelOp = cast<kernel::KernelOp>(op);
  SmallVector<Attribute> shapes;
  for (Value input : kernelOp.getInputs())
    shapes.push_back(shapeOf(input));
  llvm::append_range(shapes, kernelOp.getShapes().getValue().drop_front(inputsBefore));
  op->setAttr("shapes", ArrayAttr::get(op->getContext(), shapes));
}

unsigned transept::addInput(Operation *op, Value tensor) {
  auto kernelOp = cast<kernel::KernelOp>(op);
  size_t count = kernelOp.getInputs().size();
  for (auto [i, input] : llvm::enumerate(kernelOp.getInputs()))
    if (input == tensor && isReadByLoads(op, i))
      return i;
  inputsMutable(op).append(tensor);
  for (Region &region : op->getRegions())
    region.addArgument(tensor.getType(), tensor.getLoc());
  updateShapes(op, count);
  return count;
}

void transept::removeInput(Operation *op, unsigned input) {
  size_t count = cast<kernel::KernelOp>(op).getInputs().size();
  for (BlockArgument argument : bodyArguments(op, input))
    argument.getOwner()->eraseArgument(argument.getArgNumber());
  inputsMutable(op).erase(input);
  updateShapes(op, count);
}

//===- Views
//------------------------------------------------------------------------------------------------------------===//

namespace {
/// Axes [from, fromEnd) of one shape hold the same elements as axes [to, toEnd) of another.
struct AxisGroup {
  size_t from, fromEnd, to, toEnd;
};
} // namespace

static std::optional<SmallVector<AxisGroup>> groupAxes(ArrayRef<DimAttr> from, ArrayRef<DimAttr> to) {
  auto isOne = [](DimAttr dim) { return constantValue(dim) == 1; };
  SmallVector<AxisGroup> groups;
  size_t i = 0, j = 0;
  while (true) {
    while (i < from.size() && isOne(from[i]))
      ++i;
    while (j < to.size() && isOne(to[j]))
      ++j;
    if (i == from.size() || j == to.size())
      break;
    AxisGroup group{i, i + 1, j, j + 1};
    DimAttr left = from[i], right = to[j];
    while (left != right) {
      // The smaller side takes the next axis.
      if (group.fromEnd < from.size() && dimExactDiv(right, left))
        left = dimMul(left, from[group.fromEnd++]);
      else if (group.toEnd < to.size() && dimExactDiv(left, right))
        right = dimMul(right, to[group.toEnd++]);
      else
        return std::nullopt;
    }
    bool joins = group.fromEnd - group.from > 1, splits = group.toEnd - group.to > 1;
    if (joins && splits)
      return std::nullopt;
    groups.push_back(group);
    i = group.fromEnd;
    j = group.toEnd;
  }
  return i == from.size() && j == to.size() ? std::optional(groups) : std::nullopt;
}

bool transept::canReindex(ArrayRef<DimAttr> from, ArrayRef<DimAttr> to) { return groupAxes(from, to).has_value(); }

SmallVector<Value> transept::reindex(Body &b, ValueRange indices, ArrayRef<DimAttr> from, ArrayRef<DimAttr> to) {
  SmallVector<Value> result(to.size());
  std::optional<SmallVector<AxisGroup>> groups = groupAxes(from, to);
  for (const AxisGroup &group : *groups) {
    size_t fromCount = group.fromEnd - group.from, toCount = group.toEnd - group.to;
    Value linear = b.linearize(indices.slice(group.from, fromCount), from.slice(group.from, fromCount));
    for (auto [i, index] : llvm::enumerate(b.delinearize(linear, to.slice(group.to, toCount))))
      result[group.to + i] = index;
  }
  for (Value &index : result)
    if (!index)
      index = b.index(0);
  return result;
}
