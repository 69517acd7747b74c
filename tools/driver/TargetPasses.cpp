//===- TargetPasses.cpp - the phases that are a target's own, as passes ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/TargetPasses.h"
#include "codegen/Codegen.h"
#include "ir/Transept.h"
#include "tools/driver/Phases.h"

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
    // The program's item counts are those of processors; shaders have theirs beside them.
    if (failed(kernel::scheduleCpu(getOperation())) ||
        (options.hasVulkan() && failed(kernel::scheduleVulkan(getOperation()))))
      signalPassFailure();
  }
};

class LowerPass : public TargetPass<LowerPass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerPass)
  using TargetPass::TargetPass;
  StringRef getArgument() const override { return "transept-lower"; }
  StringRef getDescription() const override {
    return "Kernels as functions of the LLVM dialect, per level, and as SPIR-V modules";
  }

  void runOnOperation() override {
    ModuleOp program = getOperation();
    SmallVector<OwningOpRef<ModuleOp>> modules;
    for (const std::string &name : options.cpuLevels) {
      const kernel::CpuLevel *cpu = level(name);
      if (cpu && !kernel::gainsFrom(program, *cpu)) {
        if (options.cpuLevels == defaultTarget().cpuLevels)
          continue;
        emitError(FusedLoc::get({program.getLoc()}, StringAttr::get(&getContext(), "unsupported"), &getContext()))
            << "CPU level '" << name << "' is of no use to this program: no product has numbers for its instructions";
        return signalPassFailure();
      }
      OwningOpRef<ModuleOp> lowered = cpu ? kernel::lowerCpu(getOperation(), *cpu) : nullptr;
      if (!lowered)
        return signalPassFailure();
      lowered->setSymName(name);
      modules.push_back(std::move(lowered));
    }
    if (options.hasVulkan()) {
      OwningOpRef<ModuleOp> lowered = kernel::lowerVulkan(getOperation());
      if (!lowered)
        return signalPassFailure();
      lowered->setSymName(shadersName);
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
  StringRef getDescription() const override { return "A shared object per level, and shaders"; }

  void runOnOperation() override {
    SmallVector<Attribute> objects;
    for (ModuleOp lowered : llvm::make_early_inc_range(getOperation().getOps<ModuleOp>())) {
      StringRef name = lowered.getSymName().value_or("");
      FailureOr<DictionaryAttr> object = name == shadersName ? emitShaders(lowered) : emitLevel(lowered, name.str());
      if (failed(object))
        return signalPassFailure();
      objects.push_back(*object);
      lowered.erase();
    }
    getOperation()->setAttr(codeAttrName, Builder(&getContext()).getArrayAttr(objects));
  }

private:
  FailureOr<DictionaryAttr> emitLevel(ModuleOp lowered, const std::string &name) {
    const kernel::CpuLevel *cpu = level(name);
    if (!cpu)
      return failure();
    FailureOr<std::string> bytes = kernel::emitLoweredCpu(lowered, *cpu);
    if (failed(bytes))
      return failure();
    SmallVector<StringRef> features;
    cpu->features.split(features, ',', -1, /*KeepEmpty=*/false);
    return describe("cpu", cpu->name, features, *bytes);
  }

  FailureOr<DictionaryAttr> emitShaders(ModuleOp lowered) {
    FailureOr<kernel::VulkanCode> code = kernel::emitLoweredVulkan(lowered);
    if (failed(code))
      return failure();
    SmallVector<StringRef> features(code->features.begin(), code->features.end());
    return describe("vulkan", options.precision, features, code->bytes,
                    Builder(&getContext()).getNamedAttr("shaders", shadersToAttribute(&getContext(), code->shaders)));
  }

  DictionaryAttr describe(StringRef target, StringRef level, ArrayRef<StringRef> features, StringRef bytes,
                          std::optional<NamedAttribute> more = std::nullopt) {
    Builder builder(&getContext());
    auto type = RankedTensorType::get({static_cast<int64_t>(bytes.size())}, builder.getI8Type());
    std::string key = WeightStore::of(&getContext()).add(type, ArrayRef<char>(bytes.data(), bytes.size()));
    SmallVector<NamedAttribute> fields = {builder.getNamedAttr("features", builder.getStrArrayAttr(features)),
                                          builder.getNamedAttr("level", builder.getStringAttr(level)),
                                          builder.getNamedAttr("object", builder.getStringAttr(key)),
                                          builder.getNamedAttr("target", builder.getStringAttr(target))};
    if (more)
      fields.push_back(*more);
    return builder.getDictionaryAttr(fields);
  }
};

} // namespace

ArrayAttr mlir::transept::shadersToAttribute(MLIRContext *context, ArrayRef<kernel::VulkanCode::Shader> shaders) {
  Builder builder(context);
  SmallVector<Attribute> all;
  for (const kernel::VulkanCode::Shader &shader : shaders) {
    SmallVector<Attribute> variants;
    for (const kernel::VulkanCode::Variant &variant : shader) {
      SmallVector<StringRef> features(variant.features.begin(), variant.features.end());
      auto number = [&](StringRef name, uint64_t value) {
        return builder.getNamedAttr(name, builder.getI64IntegerAttr(static_cast<int64_t>(value)));
      };
      variants.push_back(builder.getDictionaryAttr(
          {number("bytes", variant.bytes), builder.getNamedAttr("features", builder.getStrArrayAttr(features)),
           number("offset", variant.offset), number("shared_bytes", variant.sharedBytes),
           number("shared_bytes_per_invocation", variant.sharedBytesPerInvocation)}));
    }
    all.push_back(builder.getArrayAttr(variants));
  }
  return builder.getArrayAttr(all);
}

std::vector<kernel::VulkanCode::Shader> mlir::transept::shadersFromAttribute(ArrayAttr attribute) {
  std::vector<kernel::VulkanCode::Shader> shaders;
  for (Attribute element : attribute) {
    kernel::VulkanCode::Shader &shader = shaders.emplace_back();
    auto variants = dyn_cast<ArrayAttr>(element);
    for (Attribute entry : variants ? variants.getValue() : ArrayRef<Attribute>()) {
      auto fields = dyn_cast<DictionaryAttr>(entry);
      if (!fields)
        continue;
      auto number = [&](StringRef name) -> uint64_t {
        auto value = fields.getAs<IntegerAttr>(name);
        return value ? static_cast<uint64_t>(value.getInt()) : 0;
      };
      kernel::VulkanCode::Variant variant{
          number("offset"), number("bytes"), {}, number("shared_bytes"), number("shared_bytes_per_invocation")};
      if (auto features = fields.getAs<ArrayAttr>("features"))
        for (Attribute feature : features)
          if (auto name = dyn_cast<StringAttr>(feature))
            variant.features.push_back(name.str());
      shader.push_back(std::move(variant));
    }
  }
  return shaders;
}

std::unique_ptr<Pass> mlir::transept::createSchedulePass(const TargetOptions &options) {
  return std::make_unique<SchedulePass>(options);
}
std::unique_ptr<Pass> mlir::transept::createLowerPass(const TargetOptions &options) {
  return std::make_unique<LowerPass>(options);
}
std::unique_ptr<Pass> mlir::transept::createEmitPass(const TargetOptions &options) {
  return std::make_unique<EmitPass>(options);
}
