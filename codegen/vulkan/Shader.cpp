//===- Shader.cpp - what a compute shader adds to scalar code -----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/vulkan/Shader.h"
#include "codegen/vulkan/ToSpirv.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Emitter;

/// One element at a time; rounding is an instruction, short floats are converted bit by bit.
static constexpr Machine machine = {/*fusedMultiplyAdd=*/true, /*roundInstruction=*/true, /*halfConversion=*/false,
                                    /*registers=*/0, /*tileRows=*/0};

static emit::KernelFunction createFunction(OpBuilder &b, FuncOp source) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  Type arguments[ShaderArguments] = {pointer, pointer, pointer, i64, i64, i64, i64};
  auto function =
      b.create<func::FuncOp>(source.getLoc(), source.getSymName(), b.getFunctionType(arguments, /*results=*/{}));
  function.addEntryBlock();
  return {function,
          function.getArgument(BuffersArgument),
          function.getArgument(SizesArgument),
          function.getArgument(ErrorArgument),
          function.getArgument(BeginArgument),
          function.getArgument(EndArgument),
          /*scratch=*/Value()};
}

Shader::Shader(OpBuilder &builder, FuncOp source, int64_t groupSize)
    : e(builder, source, machine, createFunction(builder, source)), groupSize(groupSize) {
  Block *entry = builder.getInsertionBlock();
  group = e.castIndex(entry->getArgument(GroupArgument), builder.getIndexType());
  local = e.castIndex(entry->getArgument(LocalArgument), builder.getIndexType());
}

void Shader::forItem(Value limit, llvm::function_ref<void(Value)> body) {
  Value item = e.add(e.begin, e.add(e.mul(group, e.index(groupSize)), local));
  e.ifThen(e.less(item, e.minimum(e.end, limit)), [&] { body(item); });
}

void Shader::forGroupItem(Value limit, llvm::function_ref<void(Value)> body) {
  Value item = e.add(e.begin, group);
  e.ifThen(e.less(item, e.minimum(e.end, limit)), [&] { body(item); });
}

void Shader::forShare(Value from, Value to, llvm::function_ref<void(Value)> body) {
  e.forLoop(e.add(from, local), to, groupSize, body);
}

Value Shader::loadFour(Value pointer) { return e.b.create<LLVM::LoadOp>(e.loc, four(), pointer, /*alignment=*/16); }
Value Shader::component(Value four, int64_t i) {
  return e.b.create<vector::ExtractOp>(e.loc, four, ArrayRef<int64_t>{i});
}
Value Shader::splat(Value scalar) { return e.b.create<vector::BroadcastOp>(e.loc, four(), scalar); }

Value Shader::sharedArray(Type element, int64_t count) {
  Value size = e.b.create<LLVM::ConstantOp>(e.loc, e.b.getI64Type(), e.b.getI64IntegerAttr(count));
  return e.b.create<LLVM::AllocaOp>(e.loc, LLVM::LLVMPointerType::get(e.b.getContext(), workgroupAddressSpace),
                                    e.storageOf(element), size, /*alignment=*/0);
}

void Shader::barrier() {
  using spirv::MemorySemantics;
  e.b.create<spirv::ControlBarrierOp>(e.loc, spirv::Scope::Workgroup, spirv::Scope::Workgroup,
                                      MemorySemantics::AcquireRelease | MemorySemantics::WorkgroupMemory |
                                          MemorySemantics::UniformMemory);
}

Value Shader::combineAll(Value mine, Value slots, llvm::function_ref<Value(Value, Value)> combine) {
  Type type = mine.getType();
  e.store(mine, e.pointer(slots, local, type));
  barrier();
  return e.forLoop(e.index(1), e.index(groupSize), 1, ValueRange{e.load(slots, type)}, [&](Value i, ValueRange sofar) {
    return Emitter::Carried{combine(sofar[0], e.load(e.pointer(slots, i, type), type))};
  })[0];
}
