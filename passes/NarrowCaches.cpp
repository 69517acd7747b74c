//===- NarrowCaches.cpp - keys and values are kept in bf16 --------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/NarrowCaches.h"
#include "ir/Transept.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// A state of keys or values: who reads and writes it.
struct SourceState {
  SmallVector<StateOp> reads;
  SmallVector<ExportOp> writes;
  bool onlyKeysAndValues = true;
};

bool isKeyOrValue(OpOperand &use) {
  auto attention = dyn_cast<CrossAttentionOp>(use.getOwner());
  return attention && (use.get() == attention.getKey() || use.get() == attention.getValue()) &&
         use.get() != attention.getQuery() && use.get() != attention.getKeyMask();
}

Type narrowed(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(BFloat16Type::get(type.getContext()));
}

/// Rounds an operand in front of its user.
void round(OpOperand &operand) {
  if (!getElementTypeOrSelf(operand.get()).isF32())
    return;
  OpBuilder builder(operand.getOwner());
  operand.set(builder.create<CastOp>(operand.getOwner()->getLoc(), narrowed(operand.get().getType()), operand.get(),
                                     TypeAttr::get(builder.getBF16Type())));
}

struct NarrowCachesPass : PassWrapper<NarrowCachesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NarrowCachesPass)
  NarrowCachesPass() = default;
  NarrowCachesPass(const NarrowCachesPass &other) : PassWrapper(other) {}
  explicit NarrowCachesPass(StringRef name) { type = name.str(); }
  StringRef getArgument() const override { return "transept-narrow-caches"; }
  StringRef getDescription() const override { return "Caches of keys and values become bf16"; }

  void runOnOperation() override {
    if (type == cacheTypeNames[0])
      return;
    if (!llvm::is_contained(cacheTypeNames, type)) {
      getOperation().emitError("there are no caches in '") << type << "'";
      return signalPassFailure();
    }
    getOperation()->setAttr(narrowCachesAttrName, UnitAttr::get(&getContext()));
    llvm::StringMap<SourceState> states;
    getOperation().walk([&](Operation *op) {
      if (auto append = dyn_cast<CacheAppendOp>(op)) {
        round(append.getKeyMutable());
        round(append.getValueMutable());
      } else if (auto read = dyn_cast<StateOp>(op)) {
        SourceState &state = states[read.getName()];
        state.reads.push_back(read);
        state.onlyKeysAndValues &=
            getElementTypeOrSelf(read.getType()).isF32() && llvm::all_of(read->getUses(), isKeyOrValue);
      } else if (auto write = dyn_cast<ExportOp>(op)) {
        states[write.getName()].writes.push_back(write);
      }
    });
    for (auto &[name, state] : states) {
      // What the host writes or reads keeps its type.
      if (!state.onlyKeysAndValues || state.reads.empty() || state.writes.empty())
        continue;
      for (StateOp read : state.reads)
        read.getResult().setType(cast<RankedTensorType>(narrowed(read.getType())));
      for (ExportOp write : state.writes)
        round(write.getValueMutable());
    }
  }

  Option<std::string> type{*this, "type", llvm::cl::desc("fp32 or bf16"), llvm::cl::init(cacheTypeNames[0].str())};
};

} // namespace

std::unique_ptr<Pass> transept::createNarrowCachesPass(StringRef type) {
  return std::make_unique<NarrowCachesPass>(type);
}
