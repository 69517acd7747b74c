//===- Shapes.cpp - the shapes pass ---------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Shapes.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/FormContext.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// The number of the first argument that has the symbol as one of its sizes.
std::optional<unsigned> firstArgumentOf(func::FuncOp function, StringRef symbol) {
  for (BlockArgument argument : function.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType()))
      for (DimAttr dim : dimsOf(type))
        if (dim && symbolName(dim) == symbol)
          return argument.getArgNumber();
  return std::nullopt;
}

/// An equality of two sizes of inputs that every run needs: the later named one, and what it is replaced by.
std::optional<std::pair<std::string, DimAttr>> findUnification(ShapePropagation &propagation) {
  func::FuncOp function = propagation.function;
  for (const Guard &guard : propagation.guards[&function.front()]) {
    StringRef lhs = symbolName(guard.lhs), rhs = symbolName(guard.rhs);
    if (guard.relation != GuardRelation::Equal || lhs.empty() || rhs.empty())
      continue;
    std::optional<unsigned> first = firstArgumentOf(function, lhs), second = firstArgumentOf(function, rhs);
    if (!first || !second)
      continue;
    if (*second >= *first)
      return std::pair(rhs.str(), guard.lhs);
    return std::pair(lhs.str(), guard.rhs);
  }
  return std::nullopt;
}

class ShapesPass : public PassWrapper<ShapesPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShapesPass)
  explicit ShapesPass(ShapesOptions options = {}) : options(options) {}

  StringRef getArgument() const override { return "transept-shapes"; }
  StringRef getDescription() const override {
    return "Infers symbolic shapes, propagates integer values, deletes shape arithmetic";
  }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<TranseptDialect>(); }

  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(runOnFunction(function)))
        return signalPassFailure();
  }

private:
  void recordGuards(ShapePropagation &propagation) {
    func::FuncOp function = propagation.function;
    auto record = [&](Operation *owner, Block &block) {
      ArrayRef<Guard> list = propagation.guards[&block];
      if (list.empty())
        owner->removeAttr(guardsAttrName);
      else
        owner->setAttr(guardsAttrName, guardsToAttr(&getContext(), list));
    };
    record(function, function.front());
    function.walk([&](YieldOp yield) { record(yield, *yield->getBlock()); });
  }

  LogicalResult normalize(func::FuncOp function) {
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(function);
    eliminateCommonSubExpressions(rewriter, dominance, function);
    RewritePatternSet patterns(&getContext());
    populateNormalFormPatterns(patterns);
    GreedyRewriteConfig config;
    config.enableRegionSimplification = GreedySimplifyRegionLevel::Disabled;
    (void)applyPatternsAndFoldGreedily(function, std::move(patterns), config);
    eliminateCommonSubExpressions(rewriter, dominance, function);
    eraseDeadOps(function);
    return success();
  }

  LogicalResult runOnFunction(func::FuncOp function) {
    // Each round with a unification removes a symbol; ranks are aligned once per branch.
    std::optional<ShapePropagation> propagation;
    while (true) {
      propagation.emplace(function);
      if (failed(propagation->run()))
        return failure();
      for (auto &[symbol, size] : propagation->constantSizes)
        if (failed(substituteSymbol(function, symbol, size)))
          return failure();
      if (!propagation->constantSizes.empty() || alignBranchRanks(function))
        continue;
      std::optional<std::pair<std::string, DimAttr>> pair;
      if (options.unifySymbols)
        pair = findUnification(*propagation);
      if (!pair)
        break;
      if (failed(substituteSymbol(function, pair->first, pair->second)))
        return failure();
    }
    recordGuards(*propagation);
    rewriteByFacts(function, *propagation);
    return normalize(function);
  }

  ShapesOptions options;
};

struct RequireRanksPass : PassWrapper<RequireRanksPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RequireRanksPass)
  StringRef getArgument() const override { return "transept-require-ranks"; }
  StringRef getDescription() const override { return "Refuses values whose number of axes only data says"; }

  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      auto isOpen = [](Type type) { return isa<UnrankedTensorType>(type); };
      // The first one: what depends on it is open as well.
      if (llvm::none_of(op->getResultTypes(), isOpen) || llvm::any_of(op->getOperandTypes(), isOpen))
        return WalkResult::advance();
      emitUnsupported(op) << "has a result whose number of axes only the data says";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> transept::createRequireRanksPass() { return std::make_unique<RequireRanksPass>(); }

std::unique_ptr<Pass> transept::createShapesPass(ShapesOptions options) {
  return std::make_unique<ShapesPass>(options);
}
