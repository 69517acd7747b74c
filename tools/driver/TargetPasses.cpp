//===- TargetPasses.cpp - the phases that are a target's own, as passes ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/TargetPasses.h"
#include "codegen/Codegen.h"
#include "ir/Transept.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

template <typename ConcretePass> class TargetPass : public PassWrapper<ConcretePass, OperationPass<ModuleOp>> {
public:
  explicit TargetPass(const TargetOptions &options) : options(options) {}

protected:
  const kernel::CpuLevel *level(const std::string &name) {
    const kernel::CpuLevel *found = kernel::findCpuLevel(name);
    if (!found)
      this->getOperation().emitError("there is no level '") << name << "'";
    return found;
  }

  TargetOptions options;
};

class SchedulePass : public TargetPass<SchedulePass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SchedulePass)
  using TargetPass::TargetPass;
  StringRef getArgument() const override { return "transept-schedule"; }
  StringRef getDescription() const override { return "Work items, scratch and tiles of every kernel"; }

  void runOnOperation() override {
    if (failed(kernel::scheduleCpu(getOperation())))
      signalPassFailure();
  }
};

class LowerPass : public TargetPass<LowerPass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerPass)
  using TargetPass::TargetPass;
  StringRef getArgument() const override { return "transept-lower"; }
  StringRef getDescription() const override { return "Kernels as functions of the LLVM dialect, per level"; }

  void runOnOperation() override {
    SmallVector<OwningOpRef<ModuleOp>> modules;
    for (const std::string &name : options.cpuLevels) {
      const kernel::CpuLevel *cpu = level(name);
      OwningOpRef<ModuleOp> lowered = cpu ? kernel::lowerCpu(getOperation(), *cpu) : nullptr;
      if (!lowered)
        return signalPassFailure();
      lowered->setSymName(name);
      modules.push_back(std::move(lowered));
    }
    for (OwningOpRef<ModuleOp> &lowered : modules)
      getOperation().push_back(lowered.release());
  }
};

class EmitPass : public TargetPass<EmitPass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitPass)
  using TargetPass::TargetPass;
  StringRef getArgument() const override { return "transept-emit"; }
  StringRef getDescription() const override { return "A shared object per level"; }

  void runOnOperation() override {
    Builder builder(&getContext());
    SmallVector<Attribute> objects;
    for (ModuleOp lowered : llvm::make_early_inc_range(getOperation().getOps<ModuleOp>())) {
      const kernel::CpuLevel *cpu = level(lowered.getSymName().value_or("").str());
      if (!cpu)
        return signalPassFailure();
      FailureOr<std::string> bytes = kernel::emitLoweredCpu(lowered, *cpu);
      if (failed(bytes))
        return signalPassFailure();
      SmallVector<StringRef> features;
      cpu->features.split(features, ',', -1, /*KeepEmpty=*/false);
      auto type = RankedTensorType::get({static_cast<int64_t>(bytes->size())}, builder.getI8Type());
      std::string key = WeightStore::of(&getContext()).add(type, llvm::ArrayRef<char>(bytes->data(), bytes->size()));
      objects.push_back(builder.getDictionaryAttr({builder.getNamedAttr("features", builder.getStrArrayAttr(features)),
                                                   builder.getNamedAttr("level", builder.getStringAttr(cpu->name)),
                                                   builder.getNamedAttr("object", builder.getStringAttr(key))}));
      lowered.erase();
    }
    getOperation()->setAttr(codeAttrName, builder.getArrayAttr(objects));
  }
};

} // namespace

std::unique_ptr<Pass> mlir::transept::createSchedulePass(const TargetOptions &options) {
  return std::make_unique<SchedulePass>(options);
}
std::unique_ptr<Pass> mlir::transept::createLowerPass(const TargetOptions &options) {
  return std::make_unique<LowerPass>(options);
}
std::unique_ptr<Pass> mlir::transept::createEmitPass(const TargetOptions &options) {
  return std::make_unique<EmitPass>(options);
}
