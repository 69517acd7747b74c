//===- PlanEntry.h - the parts of planning ------------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_PLANENTRY_H
#define TRANSEPT_PASSES_PLANENTRY_H

#include "ir/Kernel.h"
#include "passes/Plan.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::transept {

/// The tensor behind views.
Value rootOf(Value tensor);

/// Afterwards every exported or returned tensor is the result of a kernel that can write it where it must end up:
/// copies are inserted for tensors with two destinations, for inputs and constants that are returned, and where a state
/// is still read when its new content is computed.
LogicalResult insertCopies(kernel::EntryOp entry);

/// A kernel of the entry and the tensors it touches, as roots.
struct PlannedDispatch {
  Operation *op = nullptr;
  SmallVector<Value> reads, writes;
  unsigned segment = 0;
  bool barrier = false;
  /// Barriers and segments before and at this dispatch.
  int epoch = 0;
};

/// What is set up and walked at once: it ends where sizes become known and where control flow joins or parts.
struct PlannedSegment {
  kernel::LabelOp label; // null where nothing jumps to it
  SmallVector<kernel::GuardOp> guards;
  SmallVector<kernel::ReadSizesOp> reads;
  Operation *exit = nullptr; // a jump or branch; null: the next segment follows
  unsigned arena = 0;
};

/// Where a tensor lives.
struct Place {
  StringRef storage; // as in kernel.buffer
  std::string name;
  std::string memory; // of a state or variable: places with the same are one buffer
  DimsAttr shape;
  Type elementType;
  std::string role;  // of a state
  unsigned slot = 0; // of the arena
  unsigned arena = 0;
  Operation *made = nullptr; // a constant, state or variable op, or the kernel
  unsigned input = 0;        // number of the entry's argument
};

/// A range of the arena that holds one tensor at a time.
struct Slot {
  DimAttr bytes;
  unsigned arena = 0;
  DimAttr offset;
  int lastEpoch = 0; // of the last use of its tensor
};

/// One entry in the order in which it runs.
class EntryPlan {
public:
  EntryPlan(kernel::EntryOp entry, const TargetTraits &traits) : entry(entry), traits(traits) {}

  /// Fills everything below.
  LogicalResult run();

  kernel::EntryOp entry;
  const TargetTraits &traits;
  std::vector<PlannedDispatch> dispatches;
  /// By root, in the order of the program's buffers.
  llvm::MapVector<Value, Place> places;
  std::vector<Slot> slots;
  std::vector<PlannedSegment> segments;
  std::vector<DimAttr> arenaBytes; // by arena
  /// Of inputs and states, in order of first use.
  SmallVector<StringRef> symbols;
  /// Those that a segment sets.
  SmallVector<StringRef> runTimeSymbols;

private:
  void placeInterface();
  /// Cuts the entry into segments.
  void collectDispatches();
  PlannedSegment &beginSegment(kernel::LabelOp label = {});
  void placeVariables();
  /// A barrier where a dispatch depends on one since the last barrier.
  void setBarriers();
  /// A tensor takes a slot whose last user ended before a barrier: reuse never costs one.
  void assignSlots();
  LogicalResult collectSymbols();
  DimAttr slotBytes(const Place &place) const;
  unsigned takeSlot(DimAttr bytes, unsigned arena, int epoch);
};

/// The kernel.func ops of a module; equal kernels are one.
class FunctionTable {
public:
  explicit FunctionTable(ModuleOp module) : module(module), end(OpBuilder::atBlockEnd(module.getBody())) {}

  /// The function that computes what `op`, a kernel on tensors, does. Its buffers are the op's inputs, results, live
  /// rows.
  kernel::FuncOp functionFor(Operation *op);

private:
  ModuleOp module;
  OpBuilder end;
  llvm::StringMap<kernel::FuncOp> byText;
  llvm::StringMap<unsigned> counters;
};

/// Replaces the entry by a program of the same name.
void emitProgram(const EntryPlan &plan, FunctionTable &functions);

/// Gives every kernel.bounded the id of its text and records the texts in the module.
void numberChecks(ModuleOp module);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_PLANENTRY_H
