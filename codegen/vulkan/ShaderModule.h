//===- ShaderModule.h - building a SPIR-V module with one entry point ----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_SHADERMODULE_H
#define TRANSEPT_CODEGEN_VULKAN_SHADERMODULE_H

#include "codegen/vulkan/ToSpirv.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::kernel::vulkan {

/// A compute shader with the calling convention of transept_shader_call: its module, entry point and variables, and the
/// capabilities that its types need. Buffers are 64-bit addresses (PhysicalStorageBuffer64).
class ShaderModule {
public:
  /// `usesMatrices`: subgroups multiply matrices, for which the module has the memory model of Vulkan.
  ShaderModule(OpBuilder &target, Location loc, int64_t groupSize, bool usesMatrices);

  /// Where the code of the entry point goes.
  OpBuilder b;
  const Location loc;

  Value argument(ShaderArgument which);

  //===- Types and constants ---===//
  /// Whether there is a type for values of `type`.
  static bool holds(Type type);
  /// The type that holds values of `type`; index and pointers become i64.
  Type typeOf(Type type);
  int64_t bytesOf(Type type) const;
  Value constant(Attribute value);
  Value integer(int64_t value, Type type = nullptr); // i64 where no type is given
  Value number(Type type, double value);
  Value boolean(bool value);
  Value select(Value condition, Value x, Value y);
  Value bitcast(Value value, Type type);
  /// An integer with another number of bits: cut off, or extended by its sign or by zeros.
  Value resize(Value value, Type type, bool isSigned);

  //===- Variables ---===//
  Value variable(Type type);
  /// An array of the function, or of the workgroup: then `count` may be meant for each invocation of it.
  Value array(Type element, int64_t count) { return variable(spirv::ArrayType::get(element, count)); }
  Value sharedArray(Type element, int64_t count, bool perInvocation);
  Value element(Value array, Value index);
  Value load(Value pointer);
  void store(Value pointer, Value value);

  //===- Buffers ---===//
  Value loadFrom(Value address, Type type, int64_t alignment);
  void storeTo(Value address, Value value, int64_t alignment);
  /// Replaces the i32 there if it is `expected`; what it was.
  Value exchangeIfEqual(Value address, Value expected, Value replacement);

  //===- Control flow ---===//
  using Code = llvm::function_ref<void()>;
  void loop(llvm::function_ref<Value()> condition, Code body, Code next);
  void branch(Value condition, Code then);
  void branch(Value condition, Code then, Code otherwise);

  /// An op of the spirv dialect as it is, with these operands; declares the capabilities and extensions it needs.
  Operation *take(Operation &op, ValueRange operands);

  /// Writes down the entry point and the capabilities.
  spirv::ModuleOp finish();

private:
  void createGroupSize();
  void createMatrixSizes();
  spirv::SpecConstantOp specConstant(StringRef name, int64_t value, int64_t id);
  spirv::MemoryAccess sharedAccess() const;
  void createArguments();
  spirv::GlobalVariableOp global(StringRef name, Type type, spirv::StorageClass storage, StringRef builtIn = "");
  Value addressOf(spirv::GlobalVariableOp variable);
  Value pointerTo(Value address, Type type);
  Value firstComponent(spirv::GlobalVariableOp variable);

  const int64_t groupSize;
  const bool usesMatrices;
  spirv::ModuleOp module;
  spirv::FuncOp function;
  Value arguments[ShaderArguments];
  SmallVector<Attribute> interface; // all variables of the module
  llvm::SetVector<spirv::Capability> capabilities;
  llvm::SetVector<spirv::Extension> extensions;
};

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_SHADERMODULE_H
