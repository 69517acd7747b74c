//===- PlanEntry.cpp - order, barriers and memory of one entry
//--------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/PlanEntry.h"
#include "ir/HostTensor.h"
#include "passes/FormBody.h"
#include "passes/FormContext.h"

using namespace mlir;
using namespace mlir::transept;

static Place placeFor(StringRef storage, StringRef name, Value tensor) {
  Place place;
  place.storage = storage;
  place.name = name.str();
  place.shape = shapeOf(tensor);
  place.elementType = kernel::elementTypeOf(tensor.getType());
  place.made = tensor.getDefiningOp();
  return place;
}

/// Everything whose place is given: inputs, constants, states, and what is computed into states and outputs.
void EntryPlan::placeInterface() {
  Block &block = entry.getBody().front();
  for (BlockArgument argument : block.getArguments()) {
    auto name = cast<StringAttr>(entry.getInputNames()[argument.getArgNumber()]);
    Place place = placeFor("input", name, argument);
    place.input = argument.getArgNumber();
    places[argument] = place;
  }
  Operation *terminator = block.getTerminator();
  for (auto [value, name, shape] :
       llvm::zip(terminator->getOperands(), entry.getOutputNames(), entry.getOutputShapes())) {
    Place place = placeFor("output", cast<StringAttr>(name), rootOf(value));
    place.shape = cast<DimsAttr>(shape);
    places[rootOf(value)] = place;
  }
  // A state is one buffer, however many ops name it.
  llvm::StringMap<Value> states;
  for (Operation &op : block) {
    if (auto constant = dyn_cast<kernel::ConstantOp>(op))
      places[constant] = placeFor("constant", "", constant);
    if (auto state = dyn_cast<kernel::StateOp>(op)) {
      Place place = placeFor("state", state.getName(), state);
      place.role = state.getRole().str();
      places[state] = place;
    }
    if (auto exported = dyn_cast<kernel::ExportOp>(op)) {
      Value root = rootOf(exported.getValue());
      Place place = placeFor("state", exported.getName(), root);
      place.shape = exported.getShape();
      place.role = exported.getRole().str();
      places[root] = place;
    }
  }
}

void EntryPlan::collectDispatches() {
  for (Operation &op : entry.getBody().front()) {
    auto kernelOp = dyn_cast<kernel::KernelOp>(op);
    if (!kernelOp)
      continue;
    PlannedDispatch dispatch;
    dispatch.op = &op;
    for (Value operand : op.getOperands())
      dispatch.reads.push_back(rootOf(operand));
    dispatch.writes.append(op.result_begin(), op.result_end());
    // Written in place, see the ops' descriptions.
    if (isa<kernel::CacheAppendOp>(op))
      dispatch.writes.push_back(rootOf(kernelOp.getInputs()[2]));
    if (isa<kernel::SearchHeadOp>(op))
      dispatch.writes.push_back(rootOf(kernelOp.getInputs()[0]));
    dispatches.push_back(std::move(dispatch));
  }
}

void EntryPlan::setBarriers() {
  // States that two ops name are the same memory.
  llvm::StringMap<Value> stateRoots;
  auto resource = [&](Value root) {
    auto place = places.find(root);
    if (place == places.end() || place->second.storage != "state")
      return root;
    return stateRoots.try_emplace(place->second.name, root).first->second;
  };
  DenseSet<Value> read, written;
  int epoch = 0;
  for (PlannedDispatch &dispatch : dispatches) {
    dispatch.barrier = llvm::any_of(dispatch.reads, [&](Value root) { return written.contains(resource(root)); }) ||
                       llvm::any_of(dispatch.writes, [&](Value root) {
                         return written.contains(resource(root)) || read.contains(resource(root));
                       });
    if (dispatch.barrier) {
      ++epoch;
      read.clear();
      written.clear();
    }
    dispatch.epoch = epoch;
    for (Value root : dispatch.reads)
      read.insert(resource(root));
    for (Value root : dispatch.writes)
      written.insert(resource(root));
  }
}

unsigned EntryPlan::takeSlot(DimAttr bytes, int epoch) {
  std::optional<unsigned> larger, smaller;
  for (auto [i, slot] : llvm::enumerate(slots)) {
    if (slot.lastEpoch >= epoch)
      continue;
    if (slot.bytes == bytes)
      return i;
    // The tightest of the larger ones; else one that can grow.
    if (provablyLessOrEqual(bytes, slot.bytes)) {
      if (!larger || provablyLessOrEqual(slot.bytes, slots[*larger].bytes))
        larger = i;
    } else if (provablyLessOrEqual(slot.bytes, bytes)) {
      if (!smaller || provablyLessOrEqual(slots[*smaller].bytes, slot.bytes))
        smaller = i;
    }
  }
  if (larger)
    return *larger;
  if (smaller) {
    slots[*smaller].bytes = bytes;
    return *smaller;
  }
  slots.push_back({bytes, DimAttr(), 0});
  return slots.size() - 1;
}

void EntryPlan::assignSlots() {
  MLIRContext *context = entry.getContext();
  DimAttr alignment = dimConstant(context, traits.alignment);
  DimAttr slack = dimConstant(context, traits.alignment - 1);
  DenseMap<Value, int> lastUse;
  for (const PlannedDispatch &dispatch : dispatches) {
    for (Value root : llvm::concat<const Value>(dispatch.reads, dispatch.writes))
      lastUse[root] = dispatch.epoch;
  }
  for (const PlannedDispatch &dispatch : dispatches)
    for (Value result : dispatch.op->getResults()) {
      if (places.contains(result))
        continue;
      Place place = placeFor("arena", sourceNodeOf(dispatch.op), result);
      DimAttr bytes =
          dimMul(elementCount(context, place.shape.getDims()), dimConstant(context, byteWidth(place.elementType)));
      bytes = dimMul(dimFloorDiv(dimAdd(bytes, slack), alignment), alignment);
      place.slot = takeSlot(bytes, dispatch.epoch);
      slots[place.slot].lastEpoch = lastUse.lookup(result);
      places[result] = place;
    }
  arenaBytes = dimConstant(context, 0);
  for (Slot &slot : slots) {
    slot.offset = arenaBytes;
    arenaBytes = dimAdd(arenaBytes, slot.bytes);
  }
}

LogicalResult EntryPlan::collectSymbols() {
  for (auto &[root, place] : places)
    if (place.storage == "input" || place.storage == "state")
      for (DimAttr dim : place.shape.getDims())
        transept::collectSymbols(dim, symbols);
  for (const PlannedDispatch &dispatch : dispatches) {
    SmallVector<StringRef> used;
    dispatch.op->getAttrDictionary().walk([&](DimAttr dim) { transept::collectSymbols(dim, used); });
    for (StringRef symbol : used)
      if (!llvm::is_contained(symbols, symbol))
        return emitUnsupported(dispatch.op) << "has a size that depends on '" << symbol
                                            << "', which no input of entry '" << entry.getSymName() << "' determines";
  }
  return success();
}

LogicalResult EntryPlan::run() {
  if (failed(insertCopies(entry)))
    return failure();
  placeInterface();
  collectDispatches();
  setBarriers();
  assignSlots();
  return collectSymbols();
}
