//===- Plan.cpp - kernels get buffers and an order
//--------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Plan.h"
#include "ir/Transept.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/PlanEntry.h"
#include "passes/Stage.h"

using namespace mlir;
using namespace mlir::transept;

/// A step is a walk over a list that was resolved before: its sizes may depend on what a session fixes, and on the
/// length of the prefix where it is recomputed, never on the state of the step.
static LogicalResult verifyStep(const EntryPlan &plan) {
  static constexpr StringLiteral callSymbols[] = {"batch",  "source",   "rows", "capacity",
                                                  "blocks", "specials", "topk", "target"};
  if (plan.segments.size() > 1)
    return emitError(plan.entry->getLoc()) << "entry 'step' branches or repeats, or has sizes that only data says";
  for (StringRef symbol : plan.symbols)
    if (!llvm::is_contained(callSymbols, symbol))
      return emitError(plan.entry->getLoc()) << "sizes of entry 'step' depend on '" << symbol << "'";
  return success();
}

namespace {

struct PlanPass : PassWrapper<PlanPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlanPass)
  explicit PlanPass(TargetTraits traits) : traits(traits) {}
  StringRef getArgument() const override { return "transept-plan"; }
  StringRef getDescription() const override { return "Kernels become functions on buffers, entries become programs"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<kernel::KernelDialect, TranseptDialect, arith::ArithDialect>();
  }

  void runOnOperation() override {
    FunctionTable functions(getOperation());
    for (auto entry : llvm::make_early_inc_range(getOperation().getOps<kernel::EntryOp>())) {
      EntryPlan plan(entry, traits);
      if (failed(plan.run()) || (entry.getSymName() == stepName && failed(verifyStep(plan))))
        return signalPassFailure();
      emitProgram(plan, functions);
    }
    numberChecks(getOperation());
  }

  TargetTraits traits;
};

} // namespace

std::unique_ptr<Pass> transept::createPlanPass(TargetTraits traits) { return std::make_unique<PlanPass>(traits); }
