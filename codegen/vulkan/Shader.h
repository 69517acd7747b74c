//===- Shader.h - what a compute shader adds to scalar code --------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_SHADER_H
#define TRANSEPT_CODEGEN_VULKAN_SHADER_H

#include "codegen/emit/Emitter.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::kernel::vulkan {

/// Invocations of most workgroups, unless the device is better served by others. Nothing depends on how many of them a
/// device runs in lockstep.
constexpr int64_t usualGroupSize = 64;

/// The code of one kernel.func, executed by all invocations of a workgroup.
class Shader {
public:
  /// Appends the function, with the arguments of ShaderArgument, at the builder's insertion point. Beyond what every
  /// device offers it may use the features of `usable`, which must outlive it.
  Shader(OpBuilder &builder, FuncOp source, ArrayRef<StringLiteral> usable);

  emit::Emitter e;
  Value group, local, groupSize;                // index: which workgroup, which invocation of it, of how many
  Value subgroup, subgroups;                    // index: which subgroup of the workgroup, of how many
  Value matrixRows, matrixColumns, matrixDepth; // index: the device's matrices have m rows, n columns, k in between

  /// Whether code may use a feature; where it asks, it does.
  bool mayUse(StringRef feature);
  /// All that was used.
  ArrayRef<StringRef> features() const { return used.getArrayRef(); }

  /// An invocation computes one item. Items at or above `limit` are left out.
  void forItem(Value limit, llvm::function_ref<void(Value item)> body);
  /// A workgroup computes one item together; all its invocations run `body`.
  void forGroupItem(Value limit, llvm::function_ref<void(Value item)> body);
  /// Positions from + local, from + local + groupSize, … below `to`.
  void forShare(Value from, Value to, llvm::function_ref<void(Value position)> body);
  emit::Emitter::Carried forShare(Value from, Value to, ValueRange init,
                                  llvm::function_ref<emit::Emitter::Carried(Value position, ValueRange)> body);
  /// Positions from, from + step, … below `to`, with a step that only the device knows.
  emit::Emitter::Carried strided(Value from, Value to, Value step, ValueRange init,
                                 llvm::function_ref<emit::Emitter::Carried(Value position, ValueRange)> body);

  /// Four f32 at a multiple of 16 bytes, a component of them, and a scalar four times.
  VectorType four() { return VectorType::get({4}, e.f32()); }
  Value loadFour(Value pointer);
  Value component(Value four, int64_t i);
  Value splat(Value scalar);

  /// An array that the invocations of a workgroup share, of `count` elements, or of that many for each of them.
  Value sharedArray(Type element, int64_t count);
  Value sharedArrayPerInvocation(Type element, int64_t count = 1);
  /// All invocations come here before one goes on; what they wrote, to shared arrays and to buffers, is seen by all.
  /// Only where all invocations of the workgroup pass.
  void barrier();
  /// Combines what every invocation has, for all of them: in the order of the invocations, or as the device's subgroups
  /// do. `kind` as for emit::combined. `slots` is a shared array of one element per invocation, which nobody may still
  /// be reading.
  Value combineAll(StringRef kind, Value mine, Value slots);
  Value combineInOrder(StringRef kind, Value mine, Value slots);

private:
  Value combineSubgroup(StringRef kind, Value mine);

  const ArrayRef<StringLiteral> usable;
  llvm::SetVector<StringRef> used;
};

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_SHADER_H
