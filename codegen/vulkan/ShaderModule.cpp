//===- ShaderModule.cpp - building a SPIR-V module with one entry point -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/vulkan/ShaderModule.h"
#include "codegen/vulkan/FinishWords.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/IRMapping.h"
#include "transept/abi.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;

static constexpr StringLiteral groupSizeName = "group_size";
static constexpr StringLiteral matrixSizeNames[] = {"matrix_rows", "matrix_columns", "matrix_depth"};

ShaderModule::ShaderModule(OpBuilder &target, Location loc, int64_t groupSize, bool usesMatrices)
    : b(target.getContext()), loc(loc), groupSize(groupSize), usesMatrices(usesMatrices) {
  module = target.create<spirv::ModuleOp>(loc, spirv::AddressingModel::PhysicalStorageBuffer64,
                                          usesMatrices ? spirv::MemoryModel::Vulkan : spirv::MemoryModel::GLSL450);
  for (spirv::Capability needed :
       {spirv::Capability::Shader, spirv::Capability::PhysicalStorageBufferAddresses, spirv::Capability::Int64})
    capabilities.insert(needed);
  b.setInsertionPointToStart(module.getBody());
  function = b.create<spirv::FuncOp>(loc, TRANSEPT_SHADER_ENTRY_POINT, b.getFunctionType({}, {}),
                                     spirv::FunctionControl::None);
  createGroupSize();
  if (usesMatrices)
    createMatrixSizes();
  b.setInsertionPointToStart(function.addEntryBlock());
  createArguments();
}

/// The size of a workgroup is a constant that a pipeline may set. Emission makes the composite the size of workgroups.
void ShaderModule::createGroupSize() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(function);
  Type i32 = b.getI32Type();
  auto size = specConstant(groupSizeName, groupSize, TRANSEPT_SHADER_GROUP_SIZE);
  auto one = b.create<spirv::SpecConstantOp>(loc, b.getStringAttr("one"), b.getI32IntegerAttr(1));
  auto reference = [](spirv::SpecConstantOp constant) -> Attribute { return SymbolRefAttr::get(constant); };
  b.create<spirv::SpecConstantCompositeOp>(loc, TypeAttr::get(VectorType::get({3}, i32)),
                                           b.getStringAttr("group_sizes"),
                                           b.getArrayAttr({reference(size), reference(one), reference(one)}));
}

/// Where the pipeline says nothing, they are those of many devices.
void ShaderModule::createMatrixSizes() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(function);
  specConstant(matrixSizeNames[0], 16, TRANSEPT_SHADER_MATRIX_ROWS);
  specConstant(matrixSizeNames[1], 16, TRANSEPT_SHADER_MATRIX_COLUMNS);
  specConstant(matrixSizeNames[2], 32, TRANSEPT_SHADER_MATRIX_DEPTH);
  capabilities.insert(spirv::Capability::VulkanMemoryModel);
  capabilities.insert(spirv::Capability::Int8);
}

spirv::SpecConstantOp ShaderModule::specConstant(StringRef name, int64_t value, int64_t id) {
  auto constant = b.create<spirv::SpecConstantOp>(loc, b.getStringAttr(name), b.getI32IntegerAttr(value));
  constant->setAttr("spec_id", b.getI32IntegerAttr(id));
  return constant;
}

void ShaderModule::createArguments() {
  static_assert(sizeof(transept_shader_call) == 40 && offsetof(transept_shader_call, sizes) == 8 &&
                offsetof(transept_shader_call, error) == 16 && offsetof(transept_shader_call, end) == 32);
  Type i64 = b.getI64Type();
  SmallVector<Type> members(5, i64);
  SmallVector<spirv::StructType::OffsetInfo> offsets = {0, 8, 16, 24, 32};
  Value call = addressOf(global("call", spirv::StructType::get(members, offsets), spirv::StorageClass::PushConstant));
  for (unsigned i = BuffersArgument; i <= EndArgument; ++i) {
    Value member = b.create<spirv::AccessChainOp>(loc, call, ValueRange{integer(i, b.getI32Type())});
    arguments[i] = b.create<spirv::LoadOp>(loc, member);
  }
  Type triple = VectorType::get({3}, b.getI32Type());
  arguments[GroupArgument] = firstComponent(global("group", triple, spirv::StorageClass::Input, "WorkgroupId"));
  arguments[LocalArgument] = firstComponent(global("local", triple, spirv::StorageClass::Input, "LocalInvocationId"));
}

Value ShaderModule::argument(ShaderArgument which) {
  if (arguments[which])
    return arguments[which];
  Type i32 = b.getI32Type();
  Value word;
  if (which == GroupSizeArgument) {
    word = b.create<spirv::ReferenceOfOp>(loc, i32, groupSizeName);
  } else if (which >= MatrixRowsArgument) {
    word = b.create<spirv::ReferenceOfOp>(loc, i32, matrixSizeNames[which - MatrixRowsArgument]);
  } else {
    bool isOne = which == SubgroupArgument;
    capabilities.insert(spirv::Capability::GroupNonUniform);
    word =
        b.create<spirv::LoadOp>(loc, addressOf(global(isOne ? "subgroup" : "subgroups", i32, spirv::StorageClass::Input,
                                                      isOne ? "SubgroupId" : "NumSubgroups")));
  }
  return arguments[which] = resize(word, b.getI64Type(), /*isSigned=*/false);
}

Value ShaderModule::firstComponent(spirv::GlobalVariableOp variable) {
  Value all = b.create<spirv::LoadOp>(loc, addressOf(variable));
  Value first = b.create<spirv::CompositeExtractOp>(loc, all, ArrayRef<int32_t>{0});
  return resize(first, b.getI64Type(), /*isSigned=*/false);
}

spirv::GlobalVariableOp ShaderModule::global(StringRef name, Type type, spirv::StorageClass storage,
                                             StringRef builtIn) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(function);
  auto variable = b.create<spirv::GlobalVariableOp>(loc, TypeAttr::get(spirv::PointerType::get(type, storage)),
                                                    b.getStringAttr(name), FlatSymbolRefAttr());
  if (!builtIn.empty())
    variable->setAttr("built_in", b.getStringAttr(builtIn));
  interface.push_back(SymbolRefAttr::get(variable));
  return variable;
}

Value ShaderModule::addressOf(spirv::GlobalVariableOp variable) { return b.create<spirv::AddressOfOp>(loc, variable); }

//===- Types and constants
//-----------------------------------------------------------------------------------------===//

bool ShaderModule::holds(Type type) {
  if (isa<IndexType, LLVM::LLVMPointerType, spirv::CooperativeMatrixType>(type))
    return true;
  if (auto vector = dyn_cast<VectorType>(type))
    if (vector.getRank() != 1 || vector.getNumElements() < 2 || vector.getNumElements() > 4)
      return false;
  Type element = getElementTypeOrSelf(type);
  if (isa<FloatType>(element))
    return element.isF32() || element.isF64();
  return element.isInteger(1) || element.isInteger(8) || element.isInteger(16) || element.isInteger(32) ||
         element.isInteger(64);
}

Type ShaderModule::typeOf(Type type) {
  if (isa<IndexType, LLVM::LLVMPointerType>(type))
    return b.getI64Type();
  Type element = getElementTypeOrSelf(type);
  if (element.isInteger(8))
    capabilities.insert(spirv::Capability::Int8);
  if (element.isInteger(16))
    capabilities.insert(spirv::Capability::Int16);
  if (element.isF64())
    capabilities.insert(spirv::Capability::Float64);
  return type;
}

int64_t ShaderModule::bytesOf(Type type) const {
  int64_t count = 1;
  if (auto vector = dyn_cast<VectorType>(type))
    count = vector.getNumElements();
  return count * ((getElementTypeOrSelf(type).getIntOrFloatBitWidth() + 7) / 8);
}

Value ShaderModule::constant(Attribute value) {
  Type type = typeOf(cast<TypedAttr>(value).getType());
  if (auto integer = dyn_cast<IntegerAttr>(value); integer && isa<IndexType>(integer.getType()))
    value = b.getI64IntegerAttr(integer.getInt());
  return b.create<spirv::ConstantOp>(loc, type, value);
}

Value ShaderModule::integer(int64_t value, Type type) {
  return constant(b.getIntegerAttr(type ? type : b.getI64Type(), value));
}
Value ShaderModule::number(Type type, double value) { return constant(b.getFloatAttr(type, value)); }
Value ShaderModule::boolean(bool value) { return constant(b.getBoolAttr(value)); }
Value ShaderModule::select(Value condition, Value x, Value y) {
  return b.create<spirv::SelectOp>(loc, condition, x, y);
}
Value ShaderModule::bitcast(Value value, Type type) {
  return value.getType() == type ? value : b.create<spirv::BitcastOp>(loc, type, value).getResult();
}

Value ShaderModule::resize(Value value, Type type, bool isSigned) {
  Type i32 = b.getI32Type();
  unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  auto convert = [&](Type result) -> Value {
    if (isSigned)
      return b.create<spirv::SConvertOp>(loc, result, value);
    return b.create<spirv::UConvertOp>(loc, result, value);
  };
  if (to != 64 || from == 64)
    return convert(type);
  // Mesa 22.3 compares what was extended to 64 bits wrongly with constants; words put together it does not look
  // through.
  Value low = from == 32 ? value : convert(i32);
  Value high =
      isSigned ? b.create<spirv::ShiftRightArithmeticOp>(loc, low, integer(31, i32)).getResult() : integer(0, i32);
  Value words = b.create<spirv::CompositeConstructOp>(loc, VectorType::get({2}, i32), ValueRange{low, high});
  return b.create<spirv::BitcastOp>(loc, type, words);
}

//===- Variables
//---------------------------------------------------------------------------------------------------===//

Value ShaderModule::variable(Type type) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  return b.create<spirv::VariableOp>(loc, spirv::PointerType::get(type, spirv::StorageClass::Function),
                                     spirv::StorageClass::Function, /*initializer=*/Value());
}

Value ShaderModule::sharedArray(Type element, int64_t count, bool perInvocation) {
  Type type = spirv::ArrayType::get(element, perInvocation ? countPerInvocation(count) : count);
  return addressOf(global(("shared" + Twine(interface.size())).str(), type, spirv::StorageClass::Workgroup));
}

Value ShaderModule::element(Value array, Value index) {
  return b.create<spirv::AccessChainOp>(loc, array, ValueRange{index});
}
static bool isShared(Value pointer) {
  return cast<spirv::PointerType>(pointer.getType()).getStorageClass() == spirv::StorageClass::Workgroup;
}

/// How memory is accessed that others see, too: Vulkan's memory model takes it for the invocation's own otherwise.
spirv::MemoryAccess ShaderModule::sharedAccess() const {
  return usesMatrices ? spirv::MemoryAccess::NonPrivatePointer : spirv::MemoryAccess::None;
}

Value ShaderModule::load(Value pointer) {
  if (!usesMatrices || !isShared(pointer))
    return b.create<spirv::LoadOp>(loc, pointer);
  return b.create<spirv::LoadOp>(loc, pointer, spirv::MemoryAccessAttr::get(b.getContext(), sharedAccess()),
                                 IntegerAttr());
}

void ShaderModule::store(Value pointer, Value value) {
  if (!usesMatrices || !isShared(pointer))
    b.create<spirv::StoreOp>(loc, pointer, value);
  else
    b.create<spirv::StoreOp>(loc, pointer, value, spirv::MemoryAccessAttr::get(b.getContext(), sharedAccess()),
                             IntegerAttr());
}

//===- Buffers
//-----------------------------------------------------------------------------------------------------===//

Value ShaderModule::pointerTo(Value address, Type type) {
  switch (getElementTypeOrSelf(type).getIntOrFloatBitWidth()) {
  case 8:
    capabilities.insert(spirv::Capability::StorageBuffer8BitAccess);
    break;
  case 16:
    capabilities.insert(spirv::Capability::StorageBuffer16BitAccess);
    break;
  default:
    break;
  }
  auto pointer = spirv::PointerType::get(type, spirv::StorageClass::PhysicalStorageBuffer);
  return b.create<spirv::ConvertUToPtrOp>(loc, pointer, address);
}

Value ShaderModule::loadFrom(Value address, Type type, int64_t alignment) {
  auto aligned = spirv::MemoryAccessAttr::get(b.getContext(), spirv::MemoryAccess::Aligned | sharedAccess());
  return b.create<spirv::LoadOp>(loc, pointerTo(address, type), aligned, b.getI32IntegerAttr(alignment));
}

void ShaderModule::storeTo(Value address, Value value, int64_t alignment) {
  auto aligned = spirv::MemoryAccessAttr::get(b.getContext(), spirv::MemoryAccess::Aligned | sharedAccess());
  b.create<spirv::StoreOp>(loc, pointerTo(address, value.getType()), value, aligned, b.getI32IntegerAttr(alignment));
}

Value ShaderModule::exchangeIfEqual(Value address, Value expected, Value replacement) {
  // The queue's is as far as Vulkan's memory model goes without a feature more.
  return b.create<spirv::AtomicCompareExchangeOp>(loc, expected.getType(), pointerTo(address, expected.getType()),
                                                  usesMatrices ? spirv::Scope::QueueFamily : spirv::Scope::Device,
                                                  spirv::MemorySemantics::None, spirv::MemorySemantics::None,
                                                  replacement, expected);
}

//===- Control flow
//------------------------------------------------------------------------------------------------===//

void ShaderModule::loop(llvm::function_ref<Value()> condition, Code body, Code next) {
  auto op = b.create<spirv::LoopOp>(loc, spirv::LoopControl::None);
  OpBuilder::InsertionGuard guard(b);
  op.addEntryAndMergeBlock(b);
  Block *entry = op.getEntryBlock(), *merge = op.getMergeBlock();
  Block *header = b.createBlock(merge), *inside = b.createBlock(merge), *onward = b.createBlock(merge);
  b.setInsertionPointToEnd(entry);
  b.create<spirv::BranchOp>(loc, header);
  b.setInsertionPointToEnd(header);
  b.create<spirv::BranchConditionalOp>(loc, condition(), inside, ValueRange(), merge, ValueRange());
  b.setInsertionPointToEnd(inside);
  body();
  b.create<spirv::BranchOp>(loc, onward);
  b.setInsertionPointToEnd(onward);
  next();
  b.create<spirv::BranchOp>(loc, header);
}

void ShaderModule::branch(Value condition, Code then) { branch(condition, then, nullptr); }

void ShaderModule::branch(Value condition, Code then, Code otherwise) {
  auto op = b.create<spirv::SelectionOp>(loc, spirv::SelectionControl::None);
  OpBuilder::InsertionGuard guard(b);
  op.addMergeBlock(b);
  Block *merge = op.getMergeBlock();
  Block *header = b.createBlock(merge), *thenBlock = b.createBlock(merge);
  Block *elseBlock = otherwise ? b.createBlock(merge) : merge;
  b.setInsertionPointToEnd(header);
  b.create<spirv::BranchConditionalOp>(loc, condition, thenBlock, ValueRange(), elseBlock, ValueRange());
  b.setInsertionPointToEnd(thenBlock);
  then();
  b.create<spirv::BranchOp>(loc, merge);
  if (!otherwise)
    return;
  b.setInsertionPointToEnd(elseBlock);
  otherwise();
  b.create<spirv::BranchOp>(loc, merge);
}

//===- The end
//-----------------------------------------------------------------------------------------------------===//

Operation *ShaderModule::take(Operation &op, ValueRange operands) {
  auto insertAll = [](auto sets, auto &target) {
    for (auto alternatives : sets)
      target.insert(alternatives.front());
  };
  if (auto needs = dyn_cast<spirv::QueryCapabilityInterface>(op))
    insertAll(needs.getCapabilities(), capabilities);
  if (auto needs = dyn_cast<spirv::QueryExtensionInterface>(op))
    insertAll(needs.getExtensions(), extensions);
  IRMapping mapping;
  mapping.map(op.getOperands(), operands);
  Operation *taken = b.clone(op, mapping);
  if (auto barrier = dyn_cast<spirv::ControlBarrierOp>(taken); barrier && usesMatrices)
    barrier.setMemorySemantics(barrier.getMemorySemantics() | spirv::MemorySemantics::MakeAvailable |
                               spirv::MemorySemantics::MakeVisible);
  return taken;
}

spirv::ModuleOp ShaderModule::finish() {
  b.setInsertionPointToEnd(module.getBody());
  b.create<spirv::EntryPointOp>(loc, spirv::ExecutionModel::GLCompute, function, interface);
  b.create<spirv::ExecutionModeOp>(loc, function, spirv::ExecutionMode::LocalSize,
                                   ArrayRef<int32_t>{static_cast<int32_t>(groupSize), 1, 1});
  auto triple = spirv::VerCapExtAttr::get(spirv::Version::V_1_5, capabilities.getArrayRef(), extensions.getArrayRef(),
                                          b.getContext());
  module->setAttr(spirv::ModuleOp::getVCETripleAttrName(), triple);
  return module;
}
