//===- PlanProgram.cpp - functions and programs
//------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormContext.h"
#include "passes/PlanEntry.h"
#include "llvm/ADT/StringExtras.h"

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
  auto buffer = builder.create<kernel::BufferOp>(loc, type, builder.getStringAttr(place.storage),
                                                 builder.getStringAttr(place.name), place.shape, DimAttr(), ArrayAttr(),
                                                 DenseBoolArrayAttr(), StringAttr(), StringAttr(), ElementsAttr());
  if (place.storage == "arena")
    buffer.setOffsetAttr(plan.slots[place.slot].offset);
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

void transept::emitProgram(const EntryPlan &plan, FunctionTable &functions) {
  kernel::EntryOp entry = plan.entry;
  OpBuilder builder(entry);
  SmallVector<kernel::FuncOp> callees;
  for (const PlannedDispatch &dispatch : plan.dispatches)
    callees.push_back(functions.functionFor(dispatch.op));

  auto program = builder.create<kernel::ProgramOp>(
      entry.getLoc(), entry.getSymName(), builder.getStrArrayAttr(plan.symbols), plan.arenaBytes, entry.getGuards());
  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  DenseMap<Value, Value> buffers;
  llvm::StringMap<Value> states;
  for (auto &[root, place] : plan.places) {
    Value &buffer = buffers[root];
    if (place.storage == "state")
      buffer = states.lookup(place.name);
    if (!buffer)
      buffer = emitBuffer(builder, plan, root, place);
    if (place.storage == "state")
      states.try_emplace(place.name, buffer);
  }
  for (auto [dispatch, callee] : llvm::zip(plan.dispatches, callees)) {
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
  entry.erase();
}
