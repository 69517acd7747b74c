//===- PlanProgram.cpp - functions and programs
//------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormContext.h"
#include "passes/PlanEntry.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::transept;

//===- Functions
//--------------------------------------------------------------------------------------------------------===//

/// Functions compute on scalar types: whether a buffer's integers are unsigned is a matter of the ops on them.
static kernel::BufferType bufferType(Value tensor) {
  return kernel::BufferType::get(tensor.getContext(), scalarType(kernel::elementTypeOf(tensor.getType())));
}

/// The symbols of all size expressions in and below `op`, sorted.
static SmallVector<StringRef> symbolsOf(Operation *op) {
  SmallVector<StringRef> symbols;
  op->walk(
      [&](Operation *inner) { inner->getAttrDictionary().walk([&](DimAttr dim) { collectSymbols(dim, symbols); }); });
  llvm::sort(symbols);
  return symbols;
}

/// Appends the kernel on buffers to `block`, whose arguments are added: inputs, outputs, live rows.
static void outline(Operation *op, Block *block) {
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  auto kernelOp = cast<kernel::KernelOp>(op);
  unsigned inputs = kernelOp.getInputs().size(), live = op->getNumOperands() - inputs;
  for (Value tensor :
       llvm::concat<Value>(SmallVector<Value>(kernelOp.getInputs()), SmallVector<Value>(op->getResults()),
                           SmallVector<Value>(op->getOperands().drop_front(inputs))))
    block->addArgument(bufferType(tensor), op->getLoc());

  OperationState state(op->getLoc(), op->getName());
  state.addOperands(block->getArguments());
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.set("operandSegmentSizes",
                 builder.getDenseI32ArrayAttr({static_cast<int32_t>(inputs), static_cast<int32_t>(op->getNumResults()),
                                               static_cast<int32_t>(live)}));
  state.addAttributes(attributes);
  for (Region &region : op->getRegions()) {
    Region *body = state.addRegion();
    IRMapping mapping;
    region.cloneInto(body, mapping);
    for (BlockArgument argument : body->getArguments())
      if (isa<RankedTensorType>(argument.getType()))
        argument.setType(bufferType(argument));
  }
  builder.create(state);
}

/// "a, b and 3 more".
static std::string nodeList(Location location) {
  constexpr size_t shown = 4;
  SmallVector<StringRef> names = sourceNodesOf(location);
  std::string text = llvm::join(ArrayRef(names).take_front(shown), ", ");
  if (names.size() > shown)
    text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

kernel::FuncOp FunctionTable::functionFor(Operation *op) {
  SmallVector<StringRef> symbols = symbolsOf(op);
  auto function = end.create<kernel::FuncOp>(op->getLoc(), "", end.getStrArrayAttr(symbols), "", DimAttr(), DimAttr());
  outline(op, &function.getBody().emplaceBlock());
  // The text leaves out locations, so that the layers of a model share their kernels.
  std::string text;
  llvm::raw_string_ostream os(text);
  function->print(os, OpPrintingFlags().useLocalScope().printGenericOpForm());
  auto [known, isNew] = byText.try_emplace(text, function);
  if (!isNew) {
    function.erase();
    return known->second;
  }
  StringRef kind = op->getName().stripDialect();
  function.setSymName((kind + "_" + Twine(counters[kind]++)).str());
  function.setSourceNodes(nodeList(op->getLoc()));
  return function;
}

void transept::numberChecks(ModuleOp module) {
  Builder builder(module.getContext());
  llvm::SetVector<StringAttr> texts;
  module.walk([&](kernel::BoundedOp op) {
    texts.insert(op.getCheckAttr());
    op.setId(llvm::find(texts, op.getCheckAttr()) - texts.begin() + 1);
  });
  SmallVector<Attribute> list(texts.begin(), texts.end());
  module->setAttr("kernel.checks", builder.getArrayAttr(list));
}

//===- Programs
//--------------------------------------------------------------------------------------------------------===//

static kernel::BufferOp emitBuffer(OpBuilder &builder, const EntryPlan &plan, Value root, const Place &place) {
  auto type = kernel::BufferType::get(builder.getContext(), place.elementType);
  Location loc = root.getLoc();
  auto buffer = builder.create<kernel::BufferOp>(
      loc, type, builder.getStringAttr(place.storage), builder.getStringAttr(place.name), place.shape, DimAttr(),
      ArrayAttr(), DenseBoolArrayAttr(), StringAttr(), StringAttr(), ElementsAttr(), IntegerAttr());
  if (place.storage == "arena")
    buffer.setOffsetAttr(plan.slots[place.slot].offset);
  if (place.arena != 0)
    buffer.setArena(place.arena);
  if (place.storage == "state")
    buffer.setRole(place.role);
  if (place.storage == "input")
    if (auto value = dyn_cast<ElementsAttr>(kernel::EntryOp(plan.entry).getInputDefaults()[place.input]))
      buffer.setDefaultValueAttr(value);
  if (place.storage == "constant") {
    auto constant = cast<kernel::ConstantOp>(place.made);
    buffer.setKeysAttr(constant.getKeysAttr());
    buffer.setTransposedAttr(constant.getTransposedAttr());
    buffer.setLayoutAttr(constant.getLayoutAttr());
  }
  return buffer;
}

/// Guards with the segments that, once entered, know all their symbols. What the ways of a branch and the repetitions
/// of a loop set, each before its end, is known at that end.
static ArrayAttr placeGuards(const EntryPlan &plan) {
  Builder builder(kernel::EntryOp(plan.entry).getContext());
  SmallVector<Attribute> guards;
  auto add = [&](Attribute guard, unsigned segment) {
    NamedAttrList entries(cast<DictionaryAttr>(guard));
    if (segment != 0)
      entries.set("segment", builder.getI64IntegerAttr(segment));
    guards.push_back(entries.getDictionary(builder.getContext()));
  };
  for (Attribute guard : kernel::EntryOp(plan.entry).getGuards()) {
    SmallVector<StringRef> used;
    guard.walk([&](DimAttr dim) { collectSymbols(dim, used); });
    auto defines = [&](ArrayAttr names) {
      return names && llvm::any_of(names.getAsRange<StringAttr>(),
                                   [&](StringAttr name) { return llvm::is_contained(used, name.getValue()); });
    };
    std::set<unsigned> definers;
    for (auto [i, segment] : llvm::enumerate(plan.segments)) {
      if (segment.label && defines(kernel::LabelOp(segment.label).getSetsAttr()))
        definers.insert(kernel::LabelOp(segment.label).getArena() ? i + 1 : i);
      for (kernel::ReadSizesOp read : segment.reads)
        if (defines(read.getSymbolsAttr()))
          definers.insert(i + 1);
    }
    add(guard, definers.empty() ? 0 : *definers.rbegin());
  }
  for (auto [i, segment] : llvm::enumerate(plan.segments))
    for (kernel::GuardOp guard : segment.guards)
      add(guard.getRelation(), i);
  return builder.getArrayAttr(guards);
}

static SmallVector<kernel::SegmentOp> emitSegments(OpBuilder &builder, const EntryPlan &plan,
                                                   const DenseMap<Value, Value> &buffers) {
  llvm::StringMap<int64_t> labels;
  for (auto [i, planned] : llvm::enumerate(plan.segments))
    if (planned.label)
      labels[kernel::LabelOp(planned.label).getName()] = i;
  SmallVector<kernel::SegmentOp> segments;
  for (auto [i, planned] : llvm::enumerate(plan.segments)) {
    auto next = static_cast<int64_t>(i + 1);
    Value condition;
    IntegerAttr otherwise;
    if (auto jump = dyn_cast_or_null<kernel::JumpOp>(planned.exit))
      next = labels.lookup(jump.getTarget());
    if (auto branch = dyn_cast_or_null<kernel::BranchOp>(planned.exit)) {
      next = labels.lookup(branch.getTarget());
      condition = buffers.lookup(rootOf(branch.getCondition()));
      otherwise = builder.getI64IntegerAttr(labels.lookup(branch.getOtherwise()));
    }
    kernel::LabelOp label = planned.label;
    auto segment = builder.create<kernel::SegmentOp>(
        kernel::EntryOp(plan.entry).getLoc(), builder.getI64IntegerAttr(planned.arena), plan.arenaBytes[planned.arena],
        builder.getI64IntegerAttr(next), condition, otherwise, label ? label.getSetsAttr() : ArrayAttr(),
        label ? label.getSetValuesAttr() : ArrayAttr());
    segment.getBody().emplaceBlock();
    segments.push_back(segment);
  }
  return segments;
}

void transept::emitProgram(const EntryPlan &plan, FunctionTable &functions) {
  kernel::EntryOp entry = plan.entry;
  OpBuilder builder(entry);
  SmallVector<kernel::FuncOp> callees;
  for (const PlannedDispatch &dispatch : plan.dispatches)
    callees.push_back(functions.functionFor(dispatch.op));

  auto program = builder.create<kernel::ProgramOp>(
      entry.getLoc(), entry.getSymName(), builder.getStrArrayAttr(plan.symbols),
      plan.runTimeSymbols.empty() ? ArrayAttr() : builder.getStrArrayAttr(plan.runTimeSymbols), placeGuards(plan));
  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  DenseMap<Value, Value> buffers;
  llvm::StringMap<Value> shared;
  for (auto &[root, place] : plan.places) {
    Value &buffer = buffers[root];
    if (!place.memory.empty())
      buffer = shared.lookup(place.memory);
    if (!buffer)
      buffer = emitBuffer(builder, plan, root, place);
    if (!place.memory.empty())
      shared.try_emplace(place.memory, buffer);
  }
  SmallVector<kernel::SegmentOp> segments = emitSegments(builder, plan, buffers);
  for (auto [dispatch, callee] : llvm::zip(plan.dispatches, callees)) {
    builder.setInsertionPointToEnd(&segments[dispatch.segment].getBody().front());
    Operation *op = dispatch.op;
    SmallVector<Value> passed;
    unsigned inputs = cast<kernel::KernelOp>(op).getInputs().size();
    for (Value tensor : llvm::concat<Value>(SmallVector<Value>(op->getOperands().take_front(inputs)),
                                            SmallVector<Value>(op->getResults()),
                                            SmallVector<Value>(op->getOperands().drop_front(inputs))))
      passed.push_back(buffers.lookup(rootOf(tensor)));
    builder.create<kernel::DispatchOp>(op->getLoc(), FlatSymbolRefAttr::get(callee.getSymNameAttr()), passed,
                                       dispatch.barrier ? builder.getUnitAttr() : UnitAttr());
  }
  for (auto [segment, planned] : llvm::zip(segments, plan.segments)) {
    builder.setInsertionPointToEnd(&segment.getBody().front());
    for (kernel::ReadSizesOp read : planned.reads)
      builder.create<kernel::ReadBackOp>(read.getLoc(), buffers.lookup(rootOf(read.getValues())), read.getSymbols(),
                                         nodeList(read.getLoc()));
  }
  entry.erase();
}
