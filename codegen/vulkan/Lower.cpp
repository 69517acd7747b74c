//===- Lower.cpp - kernel functions to SPIR-V modules -------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/emit/WorkItems.h"
#include "codegen/vulkan/Kernels.h"
#include "codegen/vulkan/ToSpirv.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;

void kernel::registerVulkanDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                  spirv::SPIRVDialect, vector::VectorDialect>();
}

LogicalResult kernel::scheduleVulkan(ModuleOp module) {
  Builder builder(module.getContext());
  for (FuncOp func : module.getOps<FuncOp>()) {
    Block &body = func.getBody().front();
    if (!llvm::hasSingleElement(body))
      return func.emitOpError("holds not exactly one kernel");
    if (auto map = dyn_cast<MapOp>(body.front()))
      emit::mergeMapDimensions(map);
    ShaderWork work = workOf(&body.front());
    if (!work.items)
      return body.front().emitOpError("is no kernel that shaders implement");
    func->setAttr(shaderAttrName, work.toAttribute());
  }
  return success();
}

static LogicalResult emitKernel(Shader &shader, FuncOp func) {
  LogicalResult emitted =
      TypeSwitch<Operation *, LogicalResult>(&func.getBody().front().front())
          .Case([&](MapOp op) { return emitMap(shader, op); })
          .Case([&](ContractOp op) { return emitContract(shader, op); })
          .Case([&](RowsOp op) { return emitRows(shader, op); })
          .Case([&](SerialOp op) { return emitSerial(shader, op); })
          .Case([&](AttendOp op) { return emitAttend(shader, op); })
          .Case([&](AttendCacheOp op) { return emitAttendCache(shader, op); })
          .Case([&](AttendSourceOp op) { return emitAttendSource(shader, op); })
          .Case([&](CacheAppendOp op) { return emitCacheAppend(shader, op); })
          .Case([&](SearchHeadOp op) { return emitSearchHead(shader, op); })
          .Default([](Operation *op) { return op->emitOpError("is no kernel that shaders implement"); });
  return success(succeeded(emitted) && succeeded(shader.e.finish()));
}

namespace {

/// A function that becomes a shader.
struct Variant {
  func::FuncOp function;
  int64_t groupSize;
  SmallVector<StringRef> features;
};

} // namespace

/// What variants of a shader may use, the best first: each set without what its predecessor had before it.
static constexpr StringLiteral usable[] = {matrixFeature, integerDotFeature, subgroupFeature};
static constexpr size_t firstUsable[] = {0, 1, std::size(usable)};

/// Emits the function of a variant at the builder. Nothing where it uses no more than the next one may.
static FailureOr<std::optional<Variant>> emitVariant(OpBuilder &builder, FuncOp func, int64_t groupSize, size_t which) {
  Block *end = builder.getInsertionBlock();
  Shader shader(builder, func, ArrayRef(usable).drop_front(firstUsable[which]));
  LogicalResult emitted = emitKernel(shader, func);
  auto function = cast<func::FuncOp>(end->back());
  builder.setInsertionPointToEnd(end);
  if (failed(emitted))
    return failure();
  const bool isPlain = which + 1 == std::size(firstUsable);
  if (!isPlain && llvm::all_of(shader.features(), [&](StringRef feature) {
        return llvm::is_contained(ArrayRef(usable).drop_front(firstUsable[which + 1]), feature);
      })) {
    function.erase();
    return std::optional<Variant>();
  }
  Variant variant{function, groupSize, SmallVector<StringRef>(shader.features())};
  llvm::sort(variant.features);
  std::string name = func.getSymName().str();
  for (StringRef feature : variant.features)
    name += ("." + feature).str();
  function.setSymName(name);
  return std::optional<Variant>(std::move(variant));
}

static LogicalResult simplify(ModuleOp module) {
  PassManager pipeline(module.getContext());
  pipeline.addPass(createCanonicalizerPass());
  pipeline.addPass(createCSEPass());
  pipeline.addPass(arith::createArithExpandOpsPass());
  pipeline.addPass(createLoopInvariantCodeMotionPass());
  pipeline.addPass(createCanonicalizerPass());
  pipeline.addPass(createCSEPass());
  return pipeline.run(module);
}

OwningOpRef<ModuleOp> kernel::lowerVulkan(ModuleOp module) {
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  registerVulkanDialects(registry);
  context->appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context->getOrLoadDialect(name);

  OwningOpRef<ModuleOp> functions = ModuleOp::create(module.getLoc()), shaders = ModuleOp::create(module.getLoc());
  OpBuilder builder(context);
  builder.setInsertionPointToEnd(functions->getBody());
  SmallVector<Variant> variants;
  for (FuncOp func : module.getOps<FuncOp>()) {
    std::optional<ShaderWork> work = ShaderWork::fromAttribute(func->getAttr(shaderAttrName));
    if (!work) {
      func.emitOpError("is not scheduled for shaders");
      return {};
    }
    for (size_t which = work->tiles ? 0 : 1; which < std::size(firstUsable); ++which) {
      FailureOr<std::optional<Variant>> variant = emitVariant(builder, func, work->groupSize, which);
      if (failed(variant))
        return {};
      if (*variant)
        variants.push_back(std::move(**variant));
    }
  }
  if (failed(simplify(*functions)))
    return {};
  builder.setInsertionPointToEnd(shaders->getBody());
  for (Variant &variant : variants) {
    FailureOr<spirv::ModuleOp> shader = convertToSpirv(variant.function, variant.groupSize, builder);
    if (failed(shader))
      return {};
    shader->setSymName(variant.function.getSymName());
    if (!variant.features.empty())
      (*shader)->setAttr(shaderFeaturesAttrName, builder.getStrArrayAttr(variant.features));
  }
  return shaders;
}
