//===- PlanCopies.cpp - copies where a result cannot be computed in place
//---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormBody.h"
#include "passes/PlanEntry.h"

using namespace mlir;
using namespace mlir::transept;

Value transept::rootOf(Value tensor) {
  while (auto view = tensor.getDefiningOp<kernel::ViewOp>())
    tensor = view.getSource();
  return tensor;
}

/// A copy of the tensor under `shape`, made by a kernel over its flat elements.
static Value copyOf(OpBuilder &builder, Location loc, Value tensor, DimsAttr shape) {
  MLIRContext *context = builder.getContext();
  DimAttr count = elementCount(context, shape.getDims());
  auto flatShape = DimsAttr::get(context, {count});
  auto flatType = plainType({count}, kernel::elementTypeOf(tensor.getType()));
  auto asArray = [&](ArrayRef<DimAttr> dims) {
    return ArrayAttr::get(context, SmallVector<Attribute>(dims.begin(), dims.end()));
  };
  Value flat = builder.create<kernel::ViewOp>(loc, flatType, tensor, asArray({count}));
  auto map = builder.create<kernel::MapOp>(loc, TypeRange{flatType}, flat, ValueRange{}, Value(),
                                           ArrayAttr::get(context, {flatShape, flatShape}), asArray({count}));
  {
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.createBlock(&map.getBody());
    block->addArguments({builder.getIndexType(), flatType}, {loc, loc});
    Body b(loc, builder);
    b.create<kernel::YieldOp>(b.load(block->getArgument(1), block->getArgument(0)));
  }
  auto type = plainType(shape.getDims(), kernel::elementTypeOf(tensor.getType()));
  return builder.create<kernel::ViewOp>(loc, type, map.getResult(0), asArray(shape.getDims()));
}

static Value copyOf(OpBuilder &builder, Location loc, Value tensor) {
  return copyOf(builder, loc, tensor, shapeOf(tensor));
}

namespace {

/// The last op that reads a tensor directly or through views; null if none does.
Operation *lastUser(Value tensor) {
  Operation *last = nullptr;
  for (Operation *user : tensor.getUsers()) {
    Operation *candidate = isa<kernel::ViewOp>(user) ? lastUser(user->getResult(0)) : user;
    if (candidate && (!last || last->isBeforeInBlock(candidate)))
      last = candidate;
  }
  return last;
}

/// Whether a symbol of the shape gets its value only after the op.
bool isShapedLater(Operation *op, DimsAttr shape) {
  SmallVector<StringRef> used;
  for (DimAttr dim : shape.getDims())
    collectSymbols(dim, used);
  auto sets = [&](ArrayAttr names) {
    return names && llvm::any_of(names.getAsRange<StringAttr>(),
                                 [&](StringAttr name) { return llvm::is_contained(used, name.getValue()); });
  };
  for (Operation *later = op->getNextNode(); later && !used.empty(); later = later->getNextNode()) {
    auto read = dyn_cast<kernel::ReadSizesOp>(later);
    auto label = dyn_cast<kernel::LabelOp>(later);
    if ((read && sets(read.getSymbolsAttr())) || (label && sets(label.getSetsAttr())))
      return true;
  }
  return false;
}

/// Whether the tensor is computed by a kernel of the entry, and may be computed anywhere.
bool isComputed(Value root) { return isa_and_nonnull<kernel::KernelOp>(root.getDefiningOp()); }

} // namespace

LogicalResult transept::insertCopies(kernel::EntryOp entry) {
  OpBuilder builder(entry.getContext());
  Block &block = entry.getBody().front();
  llvm::StringMap<SmallVector<kernel::StateOp>> reads;
  for (auto state : block.getOps<kernel::StateOp>())
    reads[state.getName()].push_back(state);

  DenseSet<Value> taken;
  llvm::StringMap<kernel::ExportOp> written;
  for (auto exported : llvm::make_early_inc_range(block.getOps<kernel::ExportOp>())) {
    if (!written.try_emplace(exported.getName(), exported).second)
      return exported.emitOpError() << "writes state '" << exported.getName() << "' a second time";
    Value root = rootOf(exported.getValue());
    bool inPlace = isComputed(root) && taken.insert(root).second;
    for (kernel::StateOp state : reads.lookup(exported.getName())) {
      Operation *last = lastUser(state);
      if (!last)
        continue;
      // The old content is needed until `last`.
      if (exported->isBeforeInBlock(last)) {
        builder.setInsertionPointAfter(state);
        Value copy = copyOf(builder, state.getLoc(), state);
        Operation *flat =
            copy.getDefiningOp<kernel::ViewOp>().getSource().getDefiningOp()->getOperand(0).getDefiningOp();
        state.getResult().replaceAllUsesExcept(copy, flat);
      } else if (inPlace && !last->isBeforeInBlock(root.getDefiningOp())) {
        inPlace = false;
        taken.erase(root);
      }
    }
    if (inPlace)
      continue;
    builder.setInsertionPoint(exported);
    Value copy = copyOf(builder, exported.getLoc(), exported.getValue());
    exported.getValueMutable().assign(copy);
    taken.insert(rootOf(copy));
  }

  // What a variable is set to is copied where the variable's memory is there: behind the label. There the symbols may
  // have new values, which only the variable's shape is in terms of.
  for (auto set : llvm::make_early_inc_range(block.getOps<kernel::SetOp>())) {
    builder.setInsertionPoint(set);
    set.getValueMutable().assign(copyOf(builder, set.getLoc(), set.getValue(), shapeOf(set.getVariable())));
  }

  Operation *terminator = block.getTerminator();
  builder.setInsertionPoint(terminator);
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value root = rootOf(operand.get());
    auto shape = cast<DimsAttr>(entry.getOutputShapes()[operand.getOperandNumber()]);
    if (isComputed(root) && !isShapedLater(root.getDefiningOp(), shape) && taken.insert(root).second)
      continue;
    Value copy = copyOf(builder, entry.getLoc(), operand.get());
    taken.insert(rootOf(copy));
    operand.set(copy);
  }
  return success();
}
