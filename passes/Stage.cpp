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

/// Whether the true elements of a boolean mask hide positions, by what the graph does with them.
std::optional<bool> trueHides(Value mask) {
  SmallVector<std::pair<Value, bool>> work{{mask, false}}; // a value, and whether it is the mask's opposite
  auto excludes = [](Value value) {
    auto constant = value.getDefiningOp<ConstantOp>();
    HostTensor number = constant ? HostTensor::fromElements(constant.getValue()) : HostTensor();
    return number && number.numElements() == 1 && isa<FloatType>(number.elementType()) && number.getDouble(0) <= -1e4;
  };
  for (unsigned visited = 0; !work.empty() && visited < 1000; ++visited) {
    auto [value, inverted] = work.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (auto attention = dyn_cast<AttentionOp>(user); attention && attention.getKeyMask() == value)
        return inverted;
      if (auto where = dyn_cast<WhereOp>(user); where && where.getCondition() == value) {
        if (excludes(where.getOnTrue()))
          return !inverted;
        if (excludes(where.getOnFalse()))
          return inverted;
      } else if (isa<NotOp>(user)) {
        work.push_back({user->getResult(0), !inverted});
      } else if (isa<ReshapeOp, TransposeOp, BroadcastOp, CastOp>(user) && user->getOperand(0) == value) {
        work.push_back({user->getResult(0), inverted});
      }
    }
  }
  return std::nullopt;
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
    if (!kind || (kind.getValue() != "encoder-decoder" && kind.getValue() != "decoder") ||
        module->hasAttr(generationAttrName))
      return;
    chooseFirstCall(module, exported);
    if (failed(shapes(module)))
      return signalPassFailure();
    bool ownCaches = module.lookupSymbol("decoder_with_past") || module.lookupSymbol("decoder_merged") ||
                     module.lookupSymbol("decoder_only");
    FailureOr<Staged> staged = stage(module);
    if (failed(staged) || failed(shapes(module)))
      return signalPassFailure();
    describe(module, *staged, exported, ownCaches);
    // Its one position is the step now.
    if (staged->whole.explicitCaches)
      staged->whole.function.erase();
  }

private:
  struct Staged {
    WholeModel whole;
    Derivation derivation;
  };

  /// From the prefix decoder where there is one; a decoder alone that takes several positions is one without its past.
  FailureOr<Staged> stage(ModuleOp module) {
    if (hasPrefixDecoder(module))
      return derive(module, composeWholeModel);
    OwningOpRef<ModuleOp> saved = module.clone();
    FailureOr<bool> prefix = makePrefixDecoder(module);
    if (failed(prefix))
      return failure();
    if (*prefix) {
      if (failed(shapes(module)))
        return failure();
      FailureOr<Staged> staged = derive(module, composeWholeModel);
      if (failed(staged) || staged->derivation.cached)
        return staged;
      // It is not known to be right for several positions; for one, with its own caches, it is.
      module.getBody()->clear();
      module.getBody()->getOperations().splice(module.getBody()->end(), saved->getBody()->getOperations());
    }
    return derive(module, composeExplicitModel);
  }

  FailureOr<Staged> derive(ModuleOp module, function_ref<FailureOr<WholeModel>(ModuleOp)> compose) {
    FailureOr<WholeModel> whole = compose(module);
    if (failed(whole))
      return failure();
    for (func::FuncOp function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (function != whole->function)
        function.erase();
    if (failed(shapes(module)))
      return failure();
    FailureOr<Derivation> derivation = deriveStep(module, *whole);
    if (failed(derivation))
      return failure();
    return Staged{*whole, *derivation};
  }

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

  void describe(ModuleOp module, Staged &staged, DictionaryAttr exported, bool ownCaches) {
    WholeModel &whole = staged.whole;
    const Derivation &derivation = staged.derivation;
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
    auto encode = module.lookupSymbol<func::FuncOp>(encodeName);
    func::FuncOp score = whole.function;
    SmallVector<Attribute> notes;
    auto note = [&](const Twine &line) { notes.push_back(builder.getStringAttr(line)); };

    text("kind", whole.encoderInput ? "encoder-decoder" : "decoder");
    text("encode", encode ? encodeName : "");
    text("step", stepName);
    text("score", whole.explicitCaches ? "" : scoreName);
    text("prefill", derivation.prefill ? prefillName : "");
    text("advance", derivation.advance ? advanceName : "");
    text("advance_beams", derivation.advance ? advanceBeamsName : "");
    text("step_alignments", derivation.alignments ? alignmentsName : "");
    text("strategy", derivation.cached ? "cached" : "recompute");
    number("layers", derivation.layers);
    auto logits = cast<RankedTensorType>(score.getFunctionType().getResult(0));
    number("vocabulary", logits.getShape().back());
    number("position_limit", whole.explicitCaches ? transept::positionLimit(score, "past", /*newPosition=*/true)
                                                  : transept::positionLimit(score, "target"));
    number("source_limit", encode ? transept::positionLimit(encode, "source") : 0);
    auto nameOf = [&](unsigned index) {
      auto name = score.getArgAttrOfType<StringAttr>(index, "transept.name");
      return name ? name.getValue() : StringRef();
    };
    auto nameIf = [&](std::optional<unsigned> index) { return index ? nameOf(*index) : StringRef(); };
    text("encoder_input", nameIf(whole.encoderInput));
    text("encoder_mask", nameIf(whole.encoderMask));
    text("encoder_lengths", nameIf(whole.encoderLengths));
    auto roles = exported.getAs<DictionaryAttr>("roles");
    bool marksPadding = false;
    if (whole.encoderMask && roles)
      for (NamedAttribute ports : roles)
        if (auto role = cast<DictionaryAttr>(ports.getValue()).getAs<StringAttr>(nameOf(*whole.encoderMask)))
          marksPadding |= role.getValue() == "source_padding";
    if (whole.encoderMask)
      if (BlockArgument mask = score.getArgument(*whole.encoderMask);
          cast<RankedTensorType>(mask.getType()).getElementType().isInteger(1))
        marksPadding = trueHides(mask).value_or(marksPadding);
    flag("mask_marks_padding", marksPadding);
    if (whole.encoderInput)
      if (std::optional<int64_t> pad = paddingId(score, score.getArgument(*whole.encoderInput)))
        number("pad_id", *pad);
    std::string reason;
    bool independent = !encode || rowsAreIndependent(encode, reason);
    flag("equal_lengths", !independent);
    if (!independent)
      note("sentences of a batch must have equal lengths: " + reason);
    if (derivation.startToken)
      number("start_token", *derivation.startToken);

    std::string cross = encode ? "; cross keys and values are kept per source" : "";
    if (whole.explicitCaches)
      note("caches as exported: the decoder's " + Twine(derivation.layers) + " self caches and " +
           Twine(whole.recurrent.size()) + " states are kept by the runtime" + cross);
    else if (derivation.cached)
      note(Twine(ownCaches ? "caches as in the export, derived from its decoder of a whole prefix" : "caches derived") +
           ": one position is computed from " + Twine(derivation.layers) + " self caches" + cross);
    else
      note("no caches: every step recomputes the prefix, because of " + derivation.reason);
    for (const std::string &line : derivation.notes)
      note("assumed: " + line);
    module->setAttr(generationAttrName, builder.getDictionaryAttr(entries));
    for (const WholeModel::Recurrent &recurrent : whole.recurrent)
      if (!recurrent.initial)
        note("assumed: '" + nameOf(recurrent.argument) +
             "' begins with zeros, since the encoder makes nothing of that name");
    module->setAttr(stagingNotesAttrName, builder.getArrayAttr(notes));
  }
};

} // namespace

std::unique_ptr<Pass> transept::createStagePass() { return std::make_unique<StagePass>(); }
