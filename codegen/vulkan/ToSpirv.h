//===- ToSpirv.h - scalar code as a SPIR-V module ------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the code that emit::Emitter builds (func, arith, math, scf, LLVM pointers) to the spirv dialect, op by op.
// Pointers are of two kinds: to buffers, which are 64-bit addresses and nothing else, and to arrays of a function or a
// workgroup, which are variables. Indices have 64 bits.

#ifndef TRANSEPT_CODEGEN_VULKAN_TOSPIRV_H
#define TRANSEPT_CODEGEN_VULKAN_TOSPIRV_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"

namespace mlir::kernel::vulkan {

/// Address space of LLVM pointers to arrays that the invocations of a workgroup share.
constexpr unsigned workgroupAddressSpace = 3;

/// Arguments of a function that becomes the entry point of a shader.
enum ShaderArgument : unsigned {
  BuffersArgument, // pointers: the tables and the error word of transept_shader_call
  SizesArgument,
  ErrorArgument,
  BeginArgument, // i64
  EndArgument,
  GroupArgument, // i64: which workgroup, which invocation of it, of how many
  LocalArgument,
  GroupSizeArgument,
  SubgroupArgument, // i64: which subgroup of the workgroup, of how many
  SubgroupsArgument,
  MatrixRowsArgument, // i64: sizes of the matrices that a subgroup multiplies
  MatrixColumnsArgument,
  MatrixDepthArgument,
  ShaderArguments
};

/// Sizes of matrices that are constants of the pipeline, TRANSEPT_SHADER_MATRIX_…; until finishWords, types say
/// matrixSizeWord instead of them.
enum class MatrixSize : uint32_t { Rows = 1, Columns, Depth };
constexpr uint32_t matrixSizeWord(MatrixSize size) { return 0x7d000000 + static_cast<uint32_t>(size); }

/// Unit attribute of an alloca: its size is meant for each invocation of the workgroup.
constexpr llvm::StringLiteral perInvocationAttrName = "per_invocation";

/// Appends a SPIR-V module to `target`, with `function` as its entry point in workgroups of `groupSize` invocations
/// unless another size is asked for when the pipeline is made (specialisation constant TRANSEPT_SHADER_GROUP_SIZE).
/// Fails, with an error at the op, for what shaders cannot do.
FailureOr<spirv::ModuleOp> convertToSpirv(func::FuncOp function, int64_t groupSize, OpBuilder &target);

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_TOSPIRV_H
