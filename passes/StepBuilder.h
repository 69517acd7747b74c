//===- StepBuilder.h - one position computed from caches ----------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values fall into three classes. *Static* ones do not see the decoder: those that depend on the source are computed by
// @encode and kept per source slot. *Positional* ones depend on target positions but not on the batch: they get a row
// axis in front, since every row has its own position. *Decoder* values keep their shape with target = 1 and batch =
// rows.
//
// The proof: every op on decoder values is pointwise along the axes that hold target and batch (its own statement,
// axisBehaviour), or is attention that is causal with offset 0 over decoder keys, or attention over static keys. A
// model with explicit caches computes one position already: what is proved is that rows are independent, and that its
// caches are only appended to and attended over.

#ifndef TRANSEPT_PASSES_STEPBUILDER_H
#define TRANSEPT_PASSES_STEPBUILDER_H

#include "passes/ElementExpr.h"
#include "passes/Shapes.h"
#include "passes/Stage.h"

namespace mlir::transept {

class StepBuilder {
public:
  StepBuilder(ModuleOp module, const WholeModel &model)
      : module(module), model(model), context(module.getContext()), exprs(context),
        along(model.explicitCaches ? "past" : "target"), rows(dimSymbol(context, "rows")), one(dimConstant(context, 1)),
        width(one), builder(context) {}

  FailureOr<Derivation> run();

private:
  enum class Class { Static, Positional, Decoder };

  Class classOf(Value value) {
    auto it = classes.find(value);
    return it == classes.end() ? Class::Static : it->second;
  }
  LogicalResult classify();
  /// Whether the op is the graph's own shift of its targets: ids at i - 1, a constant at 0.
  bool matchShift(Operation *op);
  bool hasSymbol(Value value, StringRef symbol) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && llvm::any_of(dimsOf(type), [&](DimAttr dim) { return dim && dependsOn(dim, symbol); });
  }
  bool dependsOnPositions(Value value) { return hasSymbol(value, along); }
  bool dependsOnBatch(Value value) { return hasSymbol(value, "batch"); }

  LogicalResult broken(Operation *op, const Twine &why);

  DimAttr inStep(DimAttr dim) { return substitute(substitute(dim, "target", width), "batch", rows); }
  RankedTensorType stepType(RankedTensorType type, bool positional);
  Value reshape(Location loc, Value value, ArrayRef<DimAttr> dims);
  Value state(StringRef name, ArrayRef<DimAttr> dims, Type elementType) {
    return builder.create<StateOp>(module.getLoc(), makeType(dims, elementType), name);
  }
  /// value + offset for integers, by NumPy's rules.
  Value addNumber(Location loc, Value value, int64_t offset);

  /// The value in the entry that is built: itself cloned for constants, a state for what @encode keeps, else what was
  /// built for it.
  FailureOr<Value> inStepValue(Value value, Operation *user);
  FailureOr<Value> aligned(Value value, Operation *user, RankedTensorType resultType);
  std::string hoist(Value value);
  /// A row of `value` for each row of the step, from the slot of its source; null where the batch is no axis of its
  /// own.
  Value perRow(Location loc, Value value);

  LogicalResult build(Operation *op);
  /// Notes what the positions that were just read from a running sum assume.
  void noteCounted();
  LogicalResult buildDecoder(Operation *op);
  LogicalResult buildPositional(Operation *op);
  FailureOr<bool> buildTableSlice(SliceOp slice);
  LogicalResult provePointwise(Operation *op);
  FailureOr<Value> positionsOf(Value value);
  std::optional<int64_t> positionOffset(const Elem *elem, ArrayRef<DimAttr> dims, ArrayRef<DimAttr> symbols);

  LogicalResult buildAttention(AttentionOp op);
  LogicalResult buildSelfAttention(AttentionOp op, Value query);
  LogicalResult appendToCache(AttentionOp op);
  LogicalResult buildCrossAttention(AttentionOp op, Value query);
  /// Keys or values that are [past, new]: the new part.
  Value newPart(Value joined);
  /// The same in the entry that is built, [rows, 1, heads, size].
  FailureOr<Value> appended(Value joined, AttentionOp op);

  /// The ops that `wanted` need, decoder key masks (dropped under a stated assumption) excepted.
  llvm::SetVector<Operation *> neededFor(ArrayRef<Value> wanted);
  func::FuncOp startEntry(StringRef name, ArrayRef<Type> inputs);
  LogicalResult buildOps(ArrayRef<Value> wanted);
  /// @step, or with `withWeights` @step_alignments.
  LogicalResult buildStep(StringRef name, bool withWeights);
  LogicalResult buildHead();
  LogicalResult readRecurrent();
  LogicalResult writeRecurrent();
  void returnWeights(func::FuncOp step);
  /// @prefill: the caches of a prompt. Leaves no trace where it cannot be made.
  void buildPrefill();
  /// Exports the rows' next tokens, i32 [rows, 1], and their positions.
  void continueRows(Value token);
  /// @advance: of each row the best candidate of the search head becomes its token, at the next position.
  void buildAdvance();
  /// @advance_beams: of each search the best continuations of all its hypotheses become its hypotheses.
  void buildAdvanceBeams();
  void buildEncode();
  void buildRecompute(StringRef name, bool withWeights);

  ModuleOp module;
  WholeModel model;
  MLIRContext *context;
  ElementExprs exprs;
  StringRef along; ///< the symbol that positions depend on
  DimAttr rows, one;
  DimAttr width; ///< target positions of the entry that is built
  OpBuilder builder;
  Derivation result;
  bool withWeights = false;
  unsigned crossSites = 0;                      ///< in the entry that is built
  SmallVector<Value> weights;                   ///< of cross-attention, [rows, heads, 1, source] each
  llvm::MapVector<Operation *, int64_t> layers; ///< attention over decoder keys, and which cache it has
  llvm::SmallPtrSet<Operation *, 8> appendedTo; ///< those whose cache the entry has appended to
  llvm::DenseMap<Value, Class> classes;
  llvm::DenseMap<Value, Value> built;
  llvm::MapVector<Value, std::string> hoisted;
  Value position;
  unsigned nextHoisted = 0;
};

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_STEPBUILDER_H
