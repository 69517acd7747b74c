//===- Shader.cpp - what a compute shader adds to scalar code -----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/vulkan/Shader.h"
#include "codegen/emit/Num.h"
#include "codegen/emit/RowStages.h"
#include "codegen/vulkan/ToSpirv.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Emitter;
using emit::Num;

/// One element at a time; rounding is an instruction, short floats are converted bit by bit. Not every device has f64.
static constexpr Machine machine = {/*fusedMultiplyAdd=*/true,
                                    /*roundInstruction=*/true,
                                    /*halfConversion=*/false,
                                    /*registers=*/0,
                                    /*tileRows=*/0,
                                    /*vectorBits=*/0,
                                    /*dotBf16=*/false,
                                    /*dotInt8=*/false,
                                    /*dotInt16=*/false,
                                    /*doubles=*/false,
                                    /*loosensMultiplyAdd=*/true};

static emit::KernelFunction createFunction(OpBuilder &b, FuncOp source) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  SmallVector<Type> arguments(ShaderArguments, i64);
  for (unsigned table : {BuffersArgument, SizesArgument, ErrorArgument})
    arguments[table] = pointer;
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

Shader::Shader(OpBuilder &builder, FuncOp source, ArrayRef<StringLiteral> usable)
    : e(builder, source, machine, createFunction(builder, source)), usable(usable) {
  Block *entry = builder.getInsertionBlock();
  auto argument = [&](ShaderArgument which) { return e.castIndex(entry->getArgument(which), builder.getIndexType()); };
  group = argument(GroupArgument);
  local = argument(LocalArgument);
  groupSize = argument(GroupSizeArgument);
  subgroup = argument(SubgroupArgument);
  subgroups = argument(SubgroupsArgument);
  matrixRows = argument(MatrixRowsArgument);
  matrixColumns = argument(MatrixColumnsArgument);
  matrixDepth = argument(MatrixDepthArgument);
}

bool Shader::mayUse(StringRef feature) {
  if (!llvm::is_contained(usable, feature))
    return false;
  used.insert(feature);
  return true;
}

void Shader::forItem(Value limit, llvm::function_ref<void(Value)> body) {
  Value item = e.add(e.begin, e.add(e.mul(group, groupSize), local));
  e.ifThen(e.less(item, e.minimum(e.end, limit)), [&] { body(item); });
}

void Shader::forGroupItem(Value limit, llvm::function_ref<void(Value)> body) {
  Value item = e.add(e.begin, group);
  e.ifThen(e.less(item, e.minimum(e.end, limit)), [&] { body(item); });
}

void Shader::forShare(Value from, Value to, llvm::function_ref<void(Value)> body) {
  forShare(from, to, ValueRange(), [&](Value position, ValueRange) {
    body(position);
    return Emitter::Carried();
  });
}

Emitter::Carried Shader::forShare(Value from, Value to, ValueRange init,
                                  llvm::function_ref<Emitter::Carried(Value, ValueRange)> body) {
  return strided(e.add(from, local), to, groupSize, init, body);
}

Emitter::Carried Shader::strided(Value from, Value to, Value step, ValueRange init,
                                 llvm::function_ref<Emitter::Carried(Value, ValueRange)> body) {
  auto loop = e.b.create<scf::ForOp>(e.loc, from, to, step, init);
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  Emitter::Carried next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!next.empty())
    e.b.create<scf::YieldOp>(e.loc, next);
  return Emitter::Carried(loop.getResults());
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

Value Shader::sharedArrayPerInvocation(Type element, int64_t count) {
  Value array = sharedArray(element, count);
  array.getDefiningOp()->setAttr(perInvocationAttrName, e.b.getUnitAttr());
  return array;
}

void Shader::barrier() {
  using spirv::MemorySemantics;
  e.b.create<spirv::ControlBarrierOp>(e.loc, spirv::Scope::Workgroup, spirv::Scope::Workgroup,
                                      MemorySemantics::AcquireRelease | MemorySemantics::WorkgroupMemory |
                                          MemorySemantics::UniformMemory);
}

Value Shader::combineInOrder(StringRef kind, Value mine, Value slots) {
  Type type = mine.getType();
  e.store(mine, e.pointer(slots, local, type));
  barrier();
  return e.forLoop(e.index(1), groupSize, 1, ValueRange{e.load(slots, type)}, [&](Value i, ValueRange sofar) {
    return Emitter::Carried{emit::combined(e, kind, sofar[0], e.load(e.pointer(slots, i, type), type))};
  })[0];
}

/// Numbers in the order of the floats, NaN above all; and back.
static Value orderedBits(Emitter &e, Value number) {
  Num x{e, number};
  Num bits = select(equal(x, x), x.bits(), x.bits().likeInteger(0x7fc00000));
  return (bits ^ ((bits >> 31) & bits.likeInteger(0x7fffffff))).v;
}
static Value fromOrderedBits(Emitter &e, Value bits) {
  Num x{e, bits};
  return (x ^ ((x >> 31) & x.likeInteger(0x7fffffff))).asFloat().v;
}

/// What subgroups combine in one instruction.
static bool subgroupsCombine(StringRef kind, Type type) {
  return kind == "add" || kind == "max" ? type.isF32() || type.isInteger(32) : kind == "min" && type.isInteger(32);
}

Value Shader::combineSubgroup(StringRef kind, Value mine) {
  auto reduce = [&](auto op, Value value) -> Value {
    return e.b.create<decltype(op)>(e.loc, value.getType(), spirv::Scope::Subgroup, spirv::GroupOperation::Reduce,
                                    value, /*cluster_size=*/Value());
  };
  const bool isFloat = mine.getType().isF32();
  if (kind == "add")
    return isFloat ? reduce(spirv::GroupNonUniformFAddOp(), mine) : reduce(spirv::GroupNonUniformIAddOp(), mine);
  if (kind == "min")
    return reduce(spirv::GroupNonUniformSMinOp(), mine);
  // Instructions for floats do with NaN as they like.
  Value largest = reduce(spirv::GroupNonUniformSMaxOp(), isFloat ? orderedBits(e, mine) : mine);
  return isFloat ? fromOrderedBits(e, largest) : largest;
}

Value Shader::combineAll(StringRef kind, Value mine, Value slots) {
  Type type = mine.getType();
  if (!subgroupsCombine(kind, type) || !mayUse(subgroupFeature))
    return combineInOrder(kind, mine, slots);
  Value ours = combineSubgroup(kind, mine);
  Value isFirst = e.b.create<spirv::GroupNonUniformElectOp>(e.loc, e.b.getI1Type(), spirv::Scope::Subgroup);
  e.ifThen(isFirst, [&] { e.store(ours, e.pointer(slots, subgroup, type)); });
  barrier();
  return e.forLoop(e.index(1), subgroups, 1, ValueRange{e.load(slots, type)}, [&](Value i, ValueRange sofar) {
    return Emitter::Carried{emit::combined(e, kind, sofar[0], e.load(e.pointer(slots, i, type), type))};
  })[0];
}
