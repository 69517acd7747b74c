//===- Fuse.cpp - the fuse phase
//-----------------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Fuse.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Stage.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

constexpr StringLiteral reportAttr = "transept.fusion";

class FusePass : public PassWrapper<FusePass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FusePass)
  StringRef getArgument() const override { return "transept-fuse"; }
  StringRef getDescription() const override {
    return "Attention, norms, activations and linear layers from their parts";
  }

  void runOnOperation() override {
    // Linear layers, norms and layout first: they take the movement out of the way of attention, and once more after
    // it.
    if (failed(simplify()))
      return signalPassFailure();
    // Functions that staging does not use are fused too, but do not count.
    FusionReport report, unused;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      fuseAttention(function, isStaged(function) ? report : unused);
    if (failed(simplify()))
      return signalPassFailure();
    store(report);
  }

private:
  LogicalResult simplify() {
    RewritePatternSet patterns(&getContext());
    populateLinearPatterns(patterns);
    populateNormPatterns(patterns);
    populateLayoutPatterns(patterns);
    return applyPatternsAndFoldGreedily(getOperation(), std::move(patterns));
  }

  void store(const FusionReport &report) {
    Builder builder(&getContext());
    SmallVector<Attribute> unfused, assumptions;
    for (const FusionReport::Unfused &site : report.unfused)
      unfused.push_back(
          builder.getDictionaryAttr({builder.getNamedAttr("node", builder.getStringAttr(site.node)),
                                     builder.getNamedAttr("reason", builder.getStringAttr(site.reason))}));
    for (const std::string &assumption : report.assumptions)
      assumptions.push_back(builder.getStringAttr(assumption));
    getOperation()->setAttr(reportAttr, builder.getDictionaryAttr({
                                            builder.getNamedAttr("assumptions", builder.getArrayAttr(assumptions)),
                                            builder.getNamedAttr("fused", builder.getI64IntegerAttr(report.fused)),
                                            builder.getNamedAttr("sites", builder.getI64IntegerAttr(report.sites)),
                                            builder.getNamedAttr("unfused", builder.getArrayAttr(unfused)),
                                        }));
  }
};

} // namespace

std::unique_ptr<Pass> transept::createFusePass() { return std::make_unique<FusePass>(); }

FusionReport transept::fusionReport(ModuleOp module) {
  FusionReport report;
  auto attr = module->getAttrOfType<DictionaryAttr>(reportAttr);
  if (!attr)
    return report;
  report.fused = cast<IntegerAttr>(attr.get("fused")).getInt();
  report.sites = cast<IntegerAttr>(attr.get("sites")).getInt();
  for (Attribute site : cast<ArrayAttr>(attr.get("unfused"))) {
    auto entry = cast<DictionaryAttr>(site);
    report.unfused.push_back({cast<StringAttr>(entry.get("node")).str(), cast<StringAttr>(entry.get("reason")).str()});
  }
  for (Attribute assumption : cast<ArrayAttr>(attr.get("assumptions")))
    report.assumptions.push_back(cast<StringAttr>(assumption).str());
  return report;
}
