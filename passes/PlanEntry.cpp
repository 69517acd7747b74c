//===- PlanEntry.cpp - order, barriers and memory of one entry
//--------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/PlanEntry.h"
#include "ir/HostTensor.h"
#include "ir/ListedTokens.h"
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
      place.memory = ("state " + state.getName()).str();
      places[state] = place;
    }
    if (auto exported = dyn_cast<kernel::ExportOp>(op)) {
      Value root = rootOf(exported.getValue());
      Place place = placeFor("state", exported.getName(), root);
      place.shape = exported.getShape();
      place.role = exported.getRole().str();
      place.memory = ("state " + exported.getName()).str();
      places[root] = place;
    }
  }
}

PlannedSegment &EntryPlan::beginSegment(kernel::LabelOp label) {
  PlannedSegment segment;
  segment.label = label;
  segment.arena = segments.size();
  if (label && label.getArena())
    for (PlannedSegment &other : segments)
      if (other.label && other.label.getArena() == label.getArena())
        segment.arena = other.arena;
  return segments.emplace_back(segment);
}

void EntryPlan::collectDispatches() {
  beginSegment();
  // Whether the current segment has ended: what follows begins another one.
  bool ended = false;
  for (Operation &op : entry.getBody().front()) {
    if (auto label = dyn_cast<kernel::LabelOp>(op)) {
      beginSegment(label);
      ended = false;
      continue;
    }
    if (isa<kernel::JumpOp, kernel::BranchOp>(op)) {
      if (ended)
        beginSegment();
      segments.back().exit = &op;
      ended = true;
      continue;
    }
    if (auto read = dyn_cast<kernel::ReadSizesOp>(op)) {
      if (segments.back().exit)
        beginSegment();
      segments.back().reads.push_back(read);
      ended = true;
      continue;
    }
    auto kernelOp = dyn_cast<kernel::KernelOp>(op);
    auto guard = dyn_cast<kernel::GuardOp>(op);
    if (!kernelOp && !guard)
      continue;
    // A guard is checked where a segment is entered.
    bool late = guard && llvm::any_of(dispatches, [&](const PlannedDispatch &dispatch) {
                  return dispatch.segment == segments.size() - 1;
                });
    if (ended || late)
      beginSegment();
    ended = false;
    if (guard) {
      segments.back().guards.push_back(guard);
      continue;
    }
    PlannedDispatch dispatch;
    dispatch.op = &op;
    dispatch.segment = segments.size() - 1;
    for (Value operand : op.getOperands())
      dispatch.reads.push_back(rootOf(operand));
    dispatch.writes.append(op.result_begin(), op.result_end());
    // Written in place, see the ops' descriptions.
    if (isa<kernel::CacheAppendOp>(op))
      dispatch.writes.push_back(rootOf(kernelOp.getInputs()[2]));
    if (isa<kernel::SearchHeadOp>(op))
      dispatch.writes.push_back(rootOf(kernelOp.getInputs()[op.hasAttr(kernel::listedAttrName) ? 4 : 0]));
    dispatches.push_back(std::move(dispatch));
  }
  // What depends on sizes read last, a guard for instance, needs a segment after them.
  if (ended)
    beginSegment();
}

void EntryPlan::placeVariables() {
  Block &block = entry.getBody().front();
  for (auto variable : block.getOps<kernel::VariableOp>()) {
    Place place = placeFor("arena", variable.getName(), variable);
    for (PlannedSegment &segment : segments)
      if (segment.label && segment.label.getArenaAttr() == variable.getArenaAttr())
        place.arena = segment.arena;
    place.memory = ("variable " + variable.getName()).str();
    place.slot = slots.size();
    // Never to be used for anything else.
    slots.push_back({slotBytes(place), place.arena, DimAttr(), std::numeric_limits<int>::max()});
    places[variable] = place;
  }
  for (auto set : block.getOps<kernel::SetOp>()) {
    Place place = places.lookup(set.getVariable());
    place.made = rootOf(set.getValue()).getDefiningOp();
    places[rootOf(set.getValue())] = place;
  }
}

/// Bytes of a place, in whole units of the alignment.
DimAttr EntryPlan::slotBytes(const Place &place) const {
  MLIRContext *context = entry->getContext();
  DimAttr alignment = dimConstant(context, traits.alignment), slack = dimConstant(context, traits.alignment - 1);
  DimAttr bytes =
      dimMul(elementCount(context, place.shape.getDims()), dimConstant(context, byteWidth(place.elementType)));
  return dimMul(dimFloorDiv(dimAdd(bytes, slack), alignment), alignment);
}

void EntryPlan::setBarriers() {
  // States that two ops name are the same memory, and so is a variable and what is set to it.
  llvm::StringMap<Value> roots;
  auto resource = [&](Value root) {
    auto place = places.find(root);
    if (place == places.end() || place->second.memory.empty())
      return root;
    return roots.try_emplace(place->second.memory, root).first->second;
  };
  DenseSet<Value> read, written;
  int epoch = 0;
  unsigned segment = 0;
  for (PlannedDispatch &dispatch : dispatches) {
    // Between segments everything is done.
    if (dispatch.segment != segment) {
      segment = dispatch.segment;
      ++epoch;
      read.clear();
      written.clear();
    }
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

unsigned EntryPlan::takeSlot(DimAttr bytes, unsigned arena, int epoch) {
  std::optional<unsigned> larger, smaller;
  for (auto [i, slot] : llvm::enumerate(slots)) {
    if (slot.arena != arena || slot.lastEpoch >= epoch)
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
  slots.push_back({bytes, arena, DimAttr(), 0});
  return slots.size() - 1;
}

void EntryPlan::assignSlots() {
  MLIRContext *context = entry.getContext();
  DenseMap<Value, int> lastUse;
  for (const PlannedDispatch &dispatch : dispatches) {
    for (Value root : llvm::concat<const Value>(dispatch.reads, dispatch.writes))
      lastUse[root] = dispatch.epoch;
  }
  // A size, or a condition, is read when its segment ends: after all its dispatches.
  for (auto [index, segment] : llvm::enumerate(segments)) {
    SmallVector<Value> read;
    for (kernel::ReadSizesOp op : segment.reads)
      read.push_back(rootOf(op.getValues()));
    if (auto branch = dyn_cast_or_null<kernel::BranchOp>(segment.exit))
      read.push_back(rootOf(branch.getCondition()));
    for (const PlannedDispatch &dispatch : dispatches)
      if (dispatch.segment <= index)
        for (Value root : read)
          lastUse[root] = std::max(lastUse[root], dispatch.epoch);
  }
  for (const PlannedDispatch &dispatch : dispatches)
    for (Value result : dispatch.op->getResults()) {
      if (auto known = places.find(result); known != places.end()) {
        if (known->second.storage == "output")
          known->second.arena = segments[dispatch.segment].arena;
        continue;
      }
      Place place = placeFor("arena", sourceNodeOf(dispatch.op), result);
      place.arena = segments[dispatch.segment].arena;
      place.slot = takeSlot(slotBytes(place), place.arena, dispatch.epoch);
      slots[place.slot].lastEpoch = lastUse.lookup(result);
      places[result] = place;
    }
  arenaBytes.assign(segments.size(), dimConstant(context, 0));
  for (Slot &slot : slots) {
    DimAttr &bytes = arenaBytes[slot.arena];
    slot.offset = bytes;
    bytes = dimAdd(bytes, slot.bytes);
  }
}

LogicalResult EntryPlan::collectSymbols() {
  for (auto &[root, place] : places)
    if (place.storage == "input" || place.storage == "state")
      for (DimAttr dim : place.shape.getDims())
        transept::collectSymbols(dim, symbols);
  auto define = [&](ArrayAttr names) {
    for (Attribute name : names ? names.getValue() : ArrayRef<Attribute>())
      if (StringRef text = cast<StringAttr>(name).getValue(); !llvm::is_contained(runTimeSymbols, text))
        runTimeSymbols.push_back(text);
  };
  for (PlannedSegment &segment : segments) {
    if (segment.label)
      define(segment.label.getSetsAttr());
    for (kernel::ReadSizesOp read : segment.reads)
      define(read.getSymbolsAttr());
  }
  for (const PlannedDispatch &dispatch : dispatches) {
    SmallVector<StringRef> used;
    dispatch.op->getAttrDictionary().walk([&](DimAttr dim) { transept::collectSymbols(dim, used); });
    for (StringRef symbol : used)
      if (!llvm::is_contained(symbols, symbol) && !llvm::is_contained(runTimeSymbols, symbol))
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
  placeVariables();
  setBarriers();
  assignSlots();
  return collectSymbols();
}
