//===- Shader.h - what a compute shader adds to scalar code --------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_SHADER_H
#define TRANSEPT_CODEGEN_VULKAN_SHADER_H

#include "codegen/emit/Emitter.h"

namespace mlir::kernel::vulkan {

/// Invocations of most workgroups. Nothing depends on how many of them a device runs in lockstep.
constexpr int64_t usualGroupSize = 64;

/// The code of one kernel.func, executed by all invocations of a workgroup.
class Shader {
public:
  /// Appends the function, with the arguments of ShaderArgument, at the builder's insertion point.
  Shader(OpBuilder &builder, FuncOp source, int64_t groupSize);

  emit::Emitter e;
  const int64_t groupSize;
  Value group, local; // index: which workgroup, which invocation of it

  /// An invocation computes one item. Items at or above `limit` are left out.
  void forItem(Value limit, llvm::function_ref<void(Value item)> body);
  /// A workgroup computes one item together; all its invocations run `body`.
  void forGroupItem(Value limit, llvm::function_ref<void(Value item)> body);
  /// Positions from + local, from + local + groupSize, … below `to`.
  void forShare(Value from, Value to, llvm::function_ref<void(Value position)> body);

  /// Four f32 at a multiple of 16 bytes, a component of them, and a scalar four times.
  VectorType four() { return VectorType::get({4}, e.f32()); }
  Value loadFour(Value pointer);
  Value component(Value four, int64_t i);
  Value splat(Value scalar);

  /// An array that the invocations of a workgroup share.
  Value sharedArray(Type element, int64_t count);
  /// All invocations come here before one goes on; what they wrote, to shared arrays and to buffers, is seen by all.
  /// Only where all invocations of the workgroup pass.
  void barrier();
  /// Combines what every invocation has, in the order of the invocations, for all of them. `slots` is a shared array of
  /// groupSize elements for this call alone.
  Value combineAll(Value mine, Value slots, llvm::function_ref<Value(Value, Value)> combine);
};

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_SHADER_H
