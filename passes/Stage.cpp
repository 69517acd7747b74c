//===- Stage.cpp - the stage phase
//-----------------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Stage.h"
#include "mlir/Pass/PassManager.h"
#include "passes/ElementExpr.h"
#include "passes/Passes.h"
#include "passes/Shapes.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// The id whose equality hides source positions, where the encoder makes its mask from ids.
std::optional<int64_t> paddingId(func::FuncOp function, Value ids) {
  std::optional<int64_t> found;
  function.walk([&](EqualOp equal) {
    auto constant = equal.getRhs().getDefiningOp<ConstantOp>();
    if (equal.getLhs() != ids || !constant)
      return;
    HostTensor number = HostTensor::fromElements(constant.getValue());
    if (number && number.numElements() > 0)
      found = number.getInt(0);
  });
  return found;
}

/// Every attention over source positions hides padding, and nothing else in @encode mixes them.
bool rowsAreIndependent(func::FuncOp encode, std::string &reason) {
  bool independent = true;
  encode.walk([&](Operation *op) {
    if (!independent)
      return;
    auto fail = [&](const char *why) {
      independent = false;
      reason = (op->getName().stripDialect() + ": " + why).str();
    };
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      auto key = cast<RankedTensorType>(attention.getKey().getType());
      bool overSource = dependsOn(dimsOf(key)[1], "source");
      if (overSource && !attention.getKeyMask() && !attention.getMask() && !attention.getBias())
        fail("attention over the source without a padding mask");
      return;
    }
    auto graphOp = dyn_cast<GraphOp>(op);
    if (!graphOp || isa<ExportOp>(op))
      return;
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (!type || !isa<FloatType>(type.getElementType()))
        continue;
      for (auto [axis, dim] : llvm::enumerate(dimsOf(type))) {
        int64_t resultAxis = -1;
        if (dim && dependsOn(dim, "source") &&
            graphOp.axisBehaviour(operand.getOperandNumber(), axis, resultAxis) != AxisBehaviour::Pointwise)
          return fail("mixes source positions, padding included");
      }
    }
  });
  return independent;
}

class StagePass : public PassWrapper<StagePass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StagePass)
  StringRef getArgument() const override { return "transept-stage"; }
  StringRef getDescription() const override { return "One generation program, whatever was exported"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto exported = module->getAttrOfType<DictionaryAttr>("transept.export");
    auto kind = exported ? exported.getAs<StringAttr>("kind") : StringAttr();
    if (!kind || kind.getValue() != "encoder-decoder" || module->hasAttr(generationAttrName))
      return;
    chooseFirstCall(module, exported);
    if (failed(shapes(module)))
      return signalPassFailure();
    FailureOr<WholeModel> whole = composeWholeModel(module);
    if (failed(whole))
      return signalPassFailure();
    for (func::FuncOp function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (function != whole->function)
        function.erase();
    if (failed(shapes(module)))
      return signalPassFailure();
    FailureOr<Derivation> derivation = deriveStep(module, *whole);
    if (failed(derivation) || failed(shapes(module)))
      return signalPassFailure();
    describe(module, *whole, *derivation, exported);
  }

private:
  LogicalResult shapes(ModuleOp module) {
    OpPassManager pipeline(ModuleOp::getOperationName());
    pipeline.addPass(createShapesPass());
    return runPipeline(pipeline, module);
  }

  /// A merged decoder is asked for its branch without caches: the one that takes a whole prefix.
  void chooseFirstCall(ModuleOp module, DictionaryAttr exported) {
    auto function = module.lookupSymbol<func::FuncOp>("decoder_merged");
    auto roles = exported.getAs<DictionaryAttr>("roles");
    auto ports = roles ? roles.getAs<DictionaryAttr>("decoder_merged") : DictionaryAttr();
    if (!function || !ports)
      return;
    OpBuilder builder(&function.getBody().front(), function.getBody().front().begin());
    for (BlockArgument argument : function.getArguments()) {
      auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "transept.name");
      auto role = name ? ports.getAs<StringAttr>(name.getValue()) : StringAttr();
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!role || role.getValue() != "use_cache" || !type)
        continue;
      auto scalar = RankedTensorType::get(SmallVector<int64_t>(type.getRank(), 1), builder.getI1Type());
      argument.replaceAllUsesWith(
          builder.create<ConstantOp>(function.getLoc(), scalar, DenseElementsAttr::get(scalar, false)).getResult());
    }
  }

  void describe(ModuleOp module, WholeModel &whole, const Derivation &derivation, DictionaryAttr exported) {
    Builder builder(&getContext());
    SmallVector<NamedAttribute> entries;
    auto number = [&](StringRef name, int64_t value) {
      entries.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(value)));
    };
    auto text = [&](StringRef name, StringRef value) {
      entries.push_back(builder.getNamedAttr(name, builder.getStringAttr(value)));
    };
    auto flag = [&](StringRef name, bool value) {
      entries.push_back(builder.getNamedAttr(name, builder.getBoolAttr(value)));
    };
    auto encode = module.lookupSymbol<func::FuncOp>("encode"), step = module.lookupSymbol<func::FuncOp>("step");
    func::FuncOp score = whole.function;
    SmallVector<Attribute> notes;
    auto note = [&](const Twine &line) { notes.push_back(builder.getStringAttr(line)); };

    text("kind", "encoder-decoder");
    text("encode", "encode");
    text("step", "step");
    text("score", "score");
    text("strategy", derivation.cached ? "cached" : "recompute");
    number("layers", derivation.layers);
    auto logits = cast<RankedTensorType>(score.getFunctionType().getResult(0));
    number("vocabulary", logits.getShape().back());
    number("position_limit", transept::positionLimit(score, "target"));
    number("source_limit", transept::positionLimit(encode, "source"));
    auto nameOf = [&](unsigned index) {
      auto name = score.getArgAttrOfType<StringAttr>(index, "transept.name");
      return name ? name.getValue() : StringRef();
    };
    text("encoder_input", nameOf(whole.encoderInput));
    text("encoder_mask", whole.encoderMask ? nameOf(*whole.encoderMask) : "");
    auto roles = exported.getAs<DictionaryAttr>("roles");
    bool marksPadding = false;
    if (whole.encoderMask && roles)
      for (NamedAttribute ports : roles)
        if (auto role = cast<DictionaryAttr>(ports.getValue()).getAs<StringAttr>(nameOf(*whole.encoderMask)))
          marksPadding |= role.getValue() == "source_padding";
    flag("mask_marks_padding", marksPadding);
    if (std::optional<int64_t> pad = paddingId(score, score.getArgument(whole.encoderInput)))
      number("pad_id", *pad);
    std::string reason;
    bool independent = rowsAreIndependent(encode, reason);
    flag("equal_lengths", !independent);
    if (!independent)
      note("sentences of a batch must have equal lengths: " + reason);
    if (derivation.startToken)
      number("start_token", *derivation.startToken);

    if (derivation.cached)
      note("caches derived: one position is computed from " + Twine(derivation.layers) +
           " self caches; cross keys and values are kept per source");
    else
      note("no caches: every step recomputes the prefix, because of " + derivation.reason);
    for (const std::string &line : derivation.notes)
      note("assumed: " + line);
    module->setAttr(generationAttrName, builder.getDictionaryAttr(entries));
    module->setAttr(stagingNotesAttrName, builder.getArrayAttr(notes));
    (void)step;
  }
};

} // namespace

std::unique_ptr<Pass> transept::createStagePass() { return std::make_unique<StagePass>(); }
