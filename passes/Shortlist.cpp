//===- Shortlist.cpp - a step that computes the logits of some tokens ---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Shortlist.h"
#include "passes/FormOps.h"
#include "passes/Quantise.h"
#include "passes/Stage.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

void addListedStep(ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>(stepName);
  if (!step || !module->hasAttr(generationAttrName) || module.lookupSymbol(listedName))
    return;
  SearchHeadOp head;
  step.walk([&](SearchHeadOp op) { head = op; });
  LinearOp linear = head ? head.getLogits().getDefiningOp<LinearOp>() : LinearOp();
  if (!linear || linear->hasAttr(narrowAttrName) || !packedMatrix(linear))
    return;
  OpBuilder builder(module.getContext());
  builder.setInsertionPointAfter(step);
  auto listed = cast<func::FuncOp>(builder.clone(*step));
  listed.setName(listedName);
  listed.walk([&](SearchHeadOp op) { op->setAttr(listedAttrName, builder.getUnitAttr()); });
}

struct ShortlistPass : PassWrapper<ShortlistPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShortlistPass)
  ShortlistPass() = default;
  ShortlistPass(const ShortlistPass &other) : PassWrapper(other) {}
  explicit ShortlistPass(bool enabled) { this->enabled = enabled; }
  StringRef getArgument() const override { return "transept-shortlist"; }
  StringRef getDescription() const override { return "A step that computes the logits of listed tokens alone"; }

  void runOnOperation() override {
    if (enabled)
      addListedStep(getOperation());
  }

  Option<bool> enabled{*this, "enabled", llvm::cl::desc("Make it"), llvm::cl::init(false)};
};

} // namespace

std::unique_ptr<Pass> transept::createShortlistPass(bool enabled) { return std::make_unique<ShortlistPass>(enabled); }
