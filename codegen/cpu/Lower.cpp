//===- Lower.cpp - kernel functions to LLVM dialect functions -----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/Kernels.h"
#include "codegen/cpu/Schedule.h"
#include "codegen/emit/Emitter.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"
#include "transept/abi.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;

void kernel::registerCpuDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// A function with the calling convention of transept/abi.h.
static KernelFunction createFunction(OpBuilder &b, FuncOp source) {
  Location loc = source.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  // LLVM takes functions named like those of the C library for them.
  auto function = b.create<func::FuncOp>(loc, ("kernel." + source.getSymName()).str(),
                                         b.getFunctionType({pointer, i64, i64, pointer}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
  auto field = [&](int32_t offset) -> Value {
    Value place =
        b.create<LLVM::GEPOp>(loc, pointer, b.getI8Type(), function.getArgument(0), ArrayRef<LLVM::GEPArg>{offset});
    return b.create<LLVM::LoadOp>(loc, pointer, place, /*alignment=*/8);
  };
  return {function,
          field(offsetof(transept_dispatch, buffers)),
          field(offsetof(transept_dispatch, sizes)),
          field(offsetof(transept_dispatch, error)),
          function.getArgument(1),
          function.getArgument(2),
          function.getArgument(3)};
}

static LogicalResult emitKernel(OpBuilder &builder, FuncOp func, const CpuLevel &level) {
  if (!func.getItemsAttr())
    return func.emitOpError("is not scheduled");
  Emitter emitter(builder, func, level.machine(), createFunction(builder, func));
  LogicalResult emitted =
      TypeSwitch<Operation *, LogicalResult>(&func.getBody().front().front())
          .Case([&](MapOp op) { return emitMap(emitter, op); })
          .Case([&](ContractOp op) { return emitContract(emitter, op); })
          .Case([&](RowsOp op) { return emitRows(emitter, op); })
          .Case([&](SerialOp op) { return emitSerial(emitter, op); })
          .Case([&](AttendOp op) { return emitAttend(emitter, op); })
          .Case([&](AttendCacheOp op) { return emitAttendCache(emitter, op); })
          .Case([&](AttendSourceOp op) { return emitAttendSource(emitter, op); })
          .Case([&](CacheAppendOp op) { return emitCacheAppend(emitter, op); })
          .Case([&](SearchHeadOp op) {
            return isListed(op)     ? emitListedHead(emitter, op)
                   : isScreened(op) ? emitScreenedHead(emitter, op)
                                    : emitSearchHead(emitter, op);
          })
          .Default([](Operation *op) { return op->emitOpError("is no kernel that processors implement"); });
  return success(succeeded(emitted) && succeeded(emitter.finish()));
}

static LogicalResult convertToLLVM(ModuleOp module) {
  PassManager pipeline(module.getContext());
  pipeline.addPass(createCanonicalizerPass());
  pipeline.addPass(createCSEPass());
  pipeline.addPass(arith::createArithExpandOpsPass());
  pipeline.addPass(createConvertSCFToCFPass());
  pipeline.addPass(createConvertVectorToLLVMPass());
  pipeline.addPass(createConvertMathToLLVMPass());
  pipeline.addPass(createConvertFuncToLLVMPass());
  pipeline.addPass(createArithToLLVMConversionPass());
  pipeline.addPass(createConvertControlFlowToLLVMPass());
  pipeline.addPass(createReconcileUnrealizedCastsPass());
  return pipeline.run(module);
}

OwningOpRef<ModuleOp> kernel::lowerCpu(ModuleOp module, const CpuLevel &level) {
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  registerCpuDialects(registry);
  context->appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context->getOrLoadDialect(name);

  OwningOpRef<ModuleOp> lowered = ModuleOp::create(module.getLoc());
  OpBuilder builder(context);
  for (FuncOp func : module.getOps<FuncOp>()) {
    builder.setInsertionPointToEnd(lowered->getBody());
    if (failed(emitKernel(builder, func, level)))
      return {};
  }
  if (failed(convertToLLVM(*lowered)))
    return {};
  return lowered;
}
