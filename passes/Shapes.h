//===- Shapes.h - symbolic shapes and integer values of a function ----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shapes phase: propagate facts forward (types are refined in place, decided branches are inlined), rewrite what
// became known (ops that take a shape or amounts become resolved, known values become constants or symbolic sizes),
// normalise, delete what is dead.
//
// Attributes: `transept.guards` on a function, or on the yield of a branch, holds the relations its ops rely on
// (ir/Guard.h). `transept.symbols` on an op names the run-time symbols it introduces.

#ifndef TRANSEPT_PASSES_SHAPES_H
#define TRANSEPT_PASSES_SHAPES_H

#include "ir/Guard.h"
#include "ir/InferSupport.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::transept {

constexpr StringLiteral symbolsAttrName = "transept.symbols";

/// Facts of all values of a function, forward from its arguments.
class ShapePropagation : public InferContext {
public:
  explicit ShapePropagation(func::FuncOp function);

  /// Refines all types in place and inlines decided branches. Emits an error on failure.
  LogicalResult run();

  func::FuncOp function;
  llvm::DenseMap<Value, Fact> facts;
  /// Guards by the block whose ops need them, in order of appearance.
  llvm::MapVector<Block *, SmallVector<Guard>> guards;

  /// Sizes of what loops carry that turned out to stay as they are at first, and what they are.
  std::vector<std::pair<std::string, DimAttr>> constantSizes;

  void guard(Operation *op, DimAttr lhs, GuardRelation relation, DimAttr rhs, StringRef message) override;
  DimAttr runtimeSymbol(Operation *op, StringRef hint) override;

private:
  void nameArguments();
  LogicalResult processBlock(Block &block);
  LogicalResult processOp(Operation *op);
  LogicalResult processLoop(LoopOp op);
  LogicalResult inferResults(Operation *op);
  /// Moves the ops of the branch that is taken before the op, which disappears; returns the first of them.
  Block::iterator inlineBranch(IfOp op, bool condition);
  /// Takes over guards that an op (a function, a yield) carries from an earlier run: what needed them may be resolved.
  /// They count as needed by `op`.
  void inheritGuards(Operation *op, Operation *owner);
  void evaluateConstants(Operation *op, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results);

  bool contradiction = false;
  unsigned symbolsHanded = 0; ///< by the op that is being inferred
  llvm::StringSet<> symbolNames;
};

/// Gives branches that yield values of different ranks one rank, where axes of size 1 in front make no difference to
/// those who use them. Whether it changed anything; the facts are old then.
bool alignBranchRanks(func::FuncOp function);
/// Rewrites ops by what `facts` says: resolved forms, constants, symbolic sizes, identities.
void rewriteByFacts(func::FuncOp function, ShapePropagation &propagation);
/// Removes ops without effect and use, in any order of appearance.
void eraseDeadOps(func::FuncOp function);
/// Normal forms of chains of ops that move elements; exact for every element type.
void populateNormalFormPatterns(RewritePatternSet &patterns);

/// Whether the operand only says a shape, amounts or axes.
bool isShapeOperand(OpOperand &operand);
/// Number of ops that compute a size which symbols can say.
unsigned countShapeOps(ModuleOp module);

/// Replaces a symbol in all types and attributes of a function. Fails (with an error) where a size would get negative.
/// The shapes pass must run afterwards.
LogicalResult substituteSymbol(func::FuncOp function, StringRef symbol, DimAttr replacement);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_SHAPES_H
