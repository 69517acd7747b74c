//===- FormInline.cpp - maps evaluated where they are used
//------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/FormFusion.h"
#include "passes/PlanEntry.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// What one evaluation of a body costs. Index arithmetic is free.
struct BodyCost {
  unsigned loads = 0, ops = 0;
  bool expensive = false; // a loop, or an op of tens of cycles
  bool checks = false;    // reports indices out of range
  bool isFree() const { return loads == 0 && isCheap(); }
  bool isMovement() const { return loads <= 1 && ops == 0 && !expensive && !checks; }
  bool isCheap() const { return loads <= 4 && ops <= 8 && !expensive; }
};

BodyCost costOf(kernel::MapOp map) {
  BodyCost cost;
  map.getBody().walk([&](Operation *op) {
    if (isa<kernel::LoadOp>(op)) {
      ++cost.loads;
    } else if (isa<kernel::BoundedOp>(op)) {
      cost.checks = true;
    } else if (isa<scf::ForOp>(op)) {
      cost.expensive = true;
    } else if (isa<math::MathDialect>(op->getDialect())) {
      if (isa<math::AbsFOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp>(op))
        ++cost.ops;
      else if (isa<math::SqrtOp>(op))
        cost.ops += 4;
      else
        cost.expensive = true;
    } else if (isa<arith::ArithDialect>(op->getDialect()) && !isa<arith::ConstantOp>(op)) {
      Type type = op->getResult(0).getType();
      bool divides = isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::RemFOp>(op);
      if (type.isIndex() || isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
        return;
      if (isa<arith::DivFOp>(op))
        cost.ops += 4;
      else if (divides)
        cost.expensive = true;
      else
        ++cost.ops;
    }
  });
  return cost;
}

/// One input of a kernel that reads a map's result, directly or through views.
struct Use {
  Operation *consumer;
  unsigned input;
};

/// Adds the uses of `tensor`. False if it also ends elsewhere: in a state, an output, or a kernel that wants memory.
bool collectUses(Value tensor, SmallVectorImpl<Use> &uses) {
  bool onlyLoads = true;
  for (OpOperand &use : tensor.getUses()) {
    Operation *user = use.getOwner();
    if (isa<kernel::ViewOp>(user))
      onlyLoads &= collectUses(user->getResult(0), uses);
    else if (isa<kernel::KernelOp>(user) && isReadByLoads(user, use.getOperandNumber()))
      uses.push_back({user, use.getOperandNumber()});
    else
      onlyLoads = false;
  }
  return onlyLoads;
}

DimAttr pointCount(kernel::MapOp map) {
  DimAttr count = dimConstant(map.getContext(), 1);
  for (Attribute dim : map.getDomain())
    count = dimMul(count, cast<DimAttr>(dim));
  return count;
}

bool isInside(Operation *op, Operation *outer, function_ref<bool(Operation *)> matches) {
  for (Operation *parent = op->getParentOp(); parent != outer; parent = parent->getParentOp())
    if (matches(parent))
      return true;
  return false;
}

/// How often all points of the map run the load; null where it is in a loop that is not over a size.
DimAttr readCount(kernel::LoadOp load, kernel::MapOp map) {
  DimAttr count = pointCount(map);
  for (Operation *parent = load->getParentOp(); parent != map; parent = parent->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop)
      continue;
    auto size = loop.getUpperBound().getDefiningOp<kernel::SizeOp>();
    std::optional<int64_t> constant = getConstantIntValue(loop.getUpperBound());
    if (!isConstantIntValue(loop.getLowerBound(), 0) || !isConstantIntValue(loop.getStep(), 1) || (!size && !constant))
      return {};
    count = dimMul(count, size ? size.getDimAttr() : dimConstant(map.getContext(), *constant));
  }
  return count;
}

class Inliner {
public:
  Inliner(kernel::EntryOp entry, InlineScope scope) : entry(entry), scope(scope) {}
  bool run();

private:
  bool shouldInline(kernel::MapOp producer, const BodyCost &cost, const Use &use, bool isOnly);
  bool readsOnce(kernel::MapOp producer, const Use &use);
  bool staysContiguous(kernel::MapOp producer, const Use &use);
  void inlineInto(kernel::MapOp producer, const Use &use);

  kernel::EntryOp entry;
  InlineScope scope;
};

/// Every element of the producer is read at most once.
bool Inliner::readsOnce(kernel::MapOp producer, const Use &use) {
  auto consumer = dyn_cast<kernel::MapOp>(use.consumer);
  SmallVector<kernel::LoadOp> loads = loadsOf(use.consumer, use.input);
  return consumer && loads.size() == 1 && readCount(loads.front(), consumer) == pointCount(producer);
}

/// Rows are walked sixteen positions at a time: what is inlined must read its own inputs along the row, or not at all
/// depend on the position.
bool Inliner::staysContiguous(kernel::MapOp producer, const Use &use) {
  auto rows = cast<kernel::RowsOp>(use.consumer);
  size_t rank = producer.getDomain().size();
  if (rank == 0 || producer.getDomain()[rank - 1] != rows.getLengthAttr())
    return false;
  Value innermost = producer.getBody().getArgument(rank - 1);
  bool contiguous = true;
  for (OpOperand &operand : innermost.getUses()) {
    auto load = dyn_cast<kernel::LoadOp>(operand.getOwner());
    contiguous &= load && operand.getOperandNumber() == load->getNumOperands() - 1;
  }
  return contiguous;
}

bool Inliner::shouldInline(kernel::MapOp producer, const BodyCost &cost, const Use &use, bool isOnly) {
  DimsAttr from = shapeOf(cast<kernel::KernelOp>(use.consumer).getInputs()[use.input]);
  SmallVector<DimAttr> to;
  for (Attribute dim : producer.getDomain())
    to.push_back(cast<DimAttr>(dim));
  if (!canReindex(from.getDims(), to))
    return false;
  if (cost.isFree())
    return true;
  if (scope == InlineScope::Free || isa<kernel::ContractOp>(use.consumer))
    return false;
  if (isa<kernel::RowsOp>(use.consumer))
    return scope == InlineScope::All && cost.isCheap() && !cost.checks && cost.ops <= 4 &&
           staysContiguous(producer, use);
  if (scope == InlineScope::Single && !isOnly)
    return false;
  if (readsOnce(producer, use))
    return isOnly || (cost.isCheap() && !cost.checks);
  if (cost.isMovement())
    return true;
  if (!cost.isCheap() || cost.checks)
    return false;
  bool inLoop = llvm::any_of(loadsOf(use.consumer, use.input), [&](kernel::LoadOp load) {
    return isInside(load, use.consumer, [](Operation *op) { return isa<scf::ForOp>(op); });
  });
  return !inLoop || cost.ops <= 2;
}

void Inliner::inlineInto(kernel::MapOp producer, const Use &use) {
  Value read = cast<kernel::KernelOp>(use.consumer).getInputs()[use.input];
  ArrayRef<DimAttr> from = shapeOf(read).getDims();
  SmallVector<DimAttr> to;
  for (Attribute dim : producer.getDomain())
    to.push_back(cast<DimAttr>(dim));
  SmallVector<unsigned> inputs;
  for (Value input : producer.getInputs())
    inputs.push_back(addInput(use.consumer, input));
  Block &body = producer.getBody().front();
  for (kernel::LoadOp load : loadsOf(use.consumer, use.input)) {
    Region *region = load->getParentRegion();
    while (region->getParentOp() != use.consumer)
      region = region->getParentOp()->getParentRegion();
    Body b(load.getLoc(), OpBuilder(load));
    IRMapping mapping;
    for (auto [argument, index] : llvm::zip(body.getArguments(), reindex(b, load.getIndices(), from, to)))
      mapping.map(argument, index);
    for (auto [i, input] : llvm::enumerate(inputs))
      mapping.map(body.getArgument(to.size() + i), bodyArguments(use.consumer, input)[region->getRegionNumber()]);
    for (Operation &op : body.without_terminator())
      b.clone(op, mapping);
    load.getResult().replaceAllUsesWith(mapping.lookupOrDefault(body.getTerminator()->getOperand(0)));
    load.erase();
  }
  removeInput(use.consumer, use.input);
  use.consumer->setLoc(FusedLoc::get(entry.getContext(), {producer.getLoc(), use.consumer->getLoc()}));
}

bool Inliner::run() {
  bool changed = false;
  for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
    auto producer = dyn_cast<kernel::MapOp>(op);
    if (!producer)
      continue;
    SmallVector<Use> uses;
    bool onlyLoads = collectUses(producer.getResult(0), uses);
    // A consumer that is rewritten loses an input: of several uses by one consumer, higher inputs first.
    llvm::sort(uses, [](const Use &a, const Use &b) {
      return a.consumer == b.consumer ? a.input > b.input : a.consumer->isBeforeInBlock(b.consumer);
    });
    BodyCost cost = costOf(producer);
    bool isOnly = uses.size() == 1 && onlyLoads;
    if (cost.isFree()) {
      // What stays in memory for others costs nothing more.
      for (const Use &use : uses)
        if (shouldInline(producer, cost, use, isOnly)) {
          inlineInto(producer, use);
          changed = true;
        }
    } else if (onlyLoads &&
               llvm::all_of(uses, [&](const Use &use) { return shouldInline(producer, cost, use, isOnly); })) {
      for (const Use &use : uses)
        inlineInto(producer, use);
      changed |= !uses.empty();
    }
  }
  return changed;
}

} // namespace

bool transept::inlineMaps(kernel::EntryOp entry, InlineScope scope) { return Inliner(entry, scope).run(); }
