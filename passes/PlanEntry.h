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
  bool barrier = false;
  /// Barriers before and at this dispatch.
  int epoch = 0;
};

/// Where a tensor lives.
struct Place {
  StringRef storage; // as in kernel.buffer
  std::string name;
  DimsAttr shape;
  Type elementType;
  std::string role;          // of a state
  unsigned slot = 0;         // of the arena
  Operation *made = nullptr; // a constant or state op, or the kernel
  unsigned input = 0;        // number of the entry's argument
};

/// A range of the arena that holds one tensor at a time.
struct Slot {
  DimAttr bytes;
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
  DimAttr arenaBytes;
  /// Of inputs and states, in order of first use.
  SmallVector<StringRef> symbols;

private:
  void placeInterface();
  void collectDispatches();
  /// A barrier where a dispatch depends on one since the last barrier.
  void setBarriers();
  /// A tensor takes a slot whose last user ended before a barrier: reuse never costs one.
  void assignSlots();
  LogicalResult collectSymbols();
  unsigned takeSlot(DimAttr bytes, int epoch);
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
