//===- Codegen.h - from kernels to native code ------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Phases 9 to 11, for processors: schedule (once, for all levels), lower and emit (once per level); and for devices
// with Vulkan.

#ifndef TRANSEPT_CODEGEN_CODEGEN_H
#define TRANSEPT_CODEGEN_CODEGEN_H

#include "ir/DimExpr.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace mlir::kernel {

/// What the code of a kernel may use.
struct Machine {
  /// One rounding per multiply-add. Levels that have it agree in every bit.
  bool fusedMultiplyAdd;
  /// Rounding to an integral value is one instruction.
  bool roundInstruction;
  /// Conversion from and to f16 is one instruction.
  bool halfConversion;
  /// Vectors of 16 f32 that fit into the registers, and the most rows of a register tile of a matrix product; 0 where
  /// code computes one element at a time.
  int64_t registers, tileRows;
  /// Bits of a vector register.
  int64_t vectorBits = 0;
  /// Sums of products of two bf16, and of four 8-bit integers, are one instruction.
  bool dotBf16 = false, dotInt8 = false;
  /// Sums of two products of 16-bit integers are one instruction of x86.
  bool dotInt16 = false;
  /// There is f64, for what f32 alone would compute less exactly.
  bool doubles = true;
  /// A multiply-add may be taken apart and its parts reordered with those of its neighbours. Elementary functions,
  /// which do not survive that, multiply and add instead.
  bool loosensMultiplyAdd = false;

  bool hasVectors() const { return registers > 0; }
};

/// A set of instructions that kernels are compiled for, and the decisions that follow from it.
struct CpuLevel {
  /// Name in the artifact; the runtime picks the best level it can run.
  llvm::StringLiteral name;
  /// LLVM feature names, separated by commas; what a processor must have (and its system save).
  llvm::StringLiteral features;
  /// As in Machine.
  bool fusedMultiplyAdd, roundInstruction, halfConversion;
  int64_t registers, tileRows, vectorBits;
  /// One instruction sums several products of such numbers; the level is for programs that have them.
  bool dotBf16 = false, dotInt8 = false;
  /// As in a target triple.
  llvm::StringLiteral architecture = "x86_64";

  Machine machine() const {
    return {fusedMultiplyAdd,
            roundInstruction,
            halfConversion,
            registers,
            tileRows,
            vectorBits,
            dotBf16,
            dotInt8,
            /*dotInt16=*/architecture == "x86_64"};
  }
};

/// All levels, of each architecture the best first.
ArrayRef<CpuLevel> cpuLevels();
/// Null for an unknown name.
const CpuLevel *findCpuLevel(StringRef name);

/// Whether the program's kernels have instructions of their own at the level: one with dot products is of use only
/// where some contraction multiplies such numbers, any other always.
bool gainsFrom(ModuleOp module, const CpuLevel &level);

/// Registers what lowerCpu and emitCpu create and translate; needed where they run inside a pass manager.
void registerCpuDialects(DialectRegistry &registry);

/// Sets `items`, `scratch` and the schedule attributes of every kernel.func, and gives kernel.map ops the domain they
/// are walked in (adjacent dimensions that all accesses treat as one are merged).
LogicalResult scheduleCpu(ModuleOp module);

/// A module of LLVM dialect functions, one per kernel.func of `module` and in their order, for one level. The argument
/// must be scheduled. Null after an error was emitted.
OwningOpRef<ModuleOp> lowerCpu(ModuleOp module, const CpuLevel &level);

/// The bytes of a position-independent ELF shared object without undefined symbols, from a module of lowerCpu for the
/// same level; it exports `transept_kernels`, whose kernels are in the order of the functions. Deterministic. Not to be
/// called by two threads at a time with lld's global state in mind: calls are serialised.
FailureOr<std::string> emitLoweredCpu(ModuleOp lowered, const CpuLevel &level);

/// Both steps at once.
FailureOr<std::string> emitCpu(ModuleOp module, const CpuLevel &level);

/// The optimised assembly of the same code, for tests and for reading.
FailureOr<std::string> assembleCpu(ModuleOp module, const CpuLevel &level);

//===- Vulkan ---===//

/// Attribute of a scheduled kernel.func: how its shader's work is cut.
constexpr llvm::StringLiteral shaderAttrName = "kernel.shader";

/// `items` over the symbols of the kernel.func, of which a workgroup computes `perGroup`; 0: each invocation computes
/// one. A workgroup has `groupSize` invocations unless the device is better served by another multiple of `groupStep`.
/// `tiles`, where it is set: the items of a variant that multiplies matrices of subgroups, one for each workgroup.
struct ShaderWork {
  transept::DimAttr items;
  int64_t groupSize = 0, groupStep = 1, perGroup = 0;
  transept::DimAttr tiles = nullptr;

  DictionaryAttr toAttribute() const;
  /// Nothing where it says something else.
  static std::optional<ShaderWork> fromAttribute(Attribute attribute);
};

/// SPIR-V modules one after another, in the order of the kernel.funcs.
struct VulkanCode {
  struct Variant {
    uint64_t offset, bytes;
    /// Names of features that it needs and others do not, in alphabetical order.
    std::vector<std::string> features;
    /// Memory that a workgroup shares: in all, and more for each of its invocations.
    uint64_t sharedBytes, sharedBytesPerInvocation;
  };
  /// Of one kernel: the best first; the last one needs no features of its own.
  using Shader = std::vector<Variant>;
  std::string bytes;
  std::vector<Shader> shaders;
  /// Fields of Vulkan's feature structs that a device must offer, in alphabetical order.
  std::vector<std::string> features;
};

/// What a shader may use where a device offers it: products of matrices of signed 8-bit integers by a subgroup, with
/// all that they need; the dot product of four 8-bit integers; and sums, maxima and minima over a subgroup. The first
/// and the last one are properties of devices, not fields of a feature struct.
constexpr llvm::StringLiteral matrixFeature = "cooperativeMatrixInt8", integerDotFeature = "shaderIntegerDotProduct",
                              subgroupFeature = "subgroupArithmetic";

/// The tile of a workgroup that multiplies matrices of subgroups: its rows (its columns are a panel's), how many k are
/// multiplied between two barriers, and the most matrices of sums that a subgroup holds. The sizes of the device's
/// matrices divide the tile's.
constexpr int64_t matrixTileRows = 32, matrixTileDepth = 128, matricesPerSubgroup = 4;

/// Attribute of a spirv.module: an array of the features that make it another variant of its kernel than the plain one.
constexpr llvm::StringLiteral shaderFeaturesAttrName = "kernel.features";

/// Registers what lowerVulkan creates; needed where it runs inside a pass manager.
void registerVulkanDialects(DialectRegistry &registry);

/// Sets the attribute `shaderAttrName` of every kernel.func, and merges dimensions of kernel.map ops like scheduleCpu.
LogicalResult scheduleVulkan(ModuleOp module);

/// The spirv.modules of each kernel.func of `module`, in their order; of a kernel the plain one comes last. Null after
/// an error was emitted.
OwningOpRef<ModuleOp> lowerVulkan(ModuleOp module);

/// Serialises a module of lowerVulkan. Deterministic.
FailureOr<VulkanCode> emitLoweredVulkan(ModuleOp lowered);

} // namespace mlir::kernel

#endif // TRANSEPT_CODEGEN_CODEGEN_H
