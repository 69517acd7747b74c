//===- CpuLevel.cpp - the instruction sets kernels are compiled for -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/Codegen.h"
#include "codegen/emit/ProductKind.h"

using namespace mlir;
using namespace mlir::kernel;

// Registers: 32 of one vector, 16 of half a vector, 16 or 32 of a quarter.
static constexpr CpuLevel levels[] = {
    {"avx512bf16", "avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt", true, true, true, 32,
     6, 512, /*dotBf16=*/true, /*dotInt8=*/false},
    {"avx512vnni", "avx512vnni,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt", true, true, true, 32,
     6, 512, /*dotBf16=*/false, /*dotInt8=*/true},
    {"avx512", "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt", true, true, true, 32, 6, 512},
    {"avx2", "avx2,fma,f16c,bmi,bmi2,popcnt", true, true, true, 8, 6, 256},
    {"x86-64", "sse2", false, false, false, 4, 2, 128},
    {"neon", "neon", true, true, true, 8, 6, 128, /*dotBf16=*/false, /*dotInt8=*/false, "aarch64"},
};

ArrayRef<CpuLevel> kernel::cpuLevels() { return levels; }

const CpuLevel *kernel::findCpuLevel(StringRef name) {
  for (const CpuLevel &level : levels)
    if (level.name == name)
      return &level;
  return nullptr;
}

bool kernel::gainsFrom(ModuleOp module, const CpuLevel &level) {
  if (!level.dotBf16 && !level.dotInt8)
    return true;
  auto multiplies = [&](ContractOp op) {
    FailureOr<emit::ProductKind> kind = emit::productKindOf(op);
    bool bf16 = succeeded(kind) && *kind == emit::ProductKind::Bf16;
    bool int8 = succeeded(kind) && (*kind == emit::ProductKind::Int8 || *kind == emit::ProductKind::Integers);
    return (level.dotBf16 && bf16) || (level.dotInt8 && int8) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return module.walk(multiplies).wasInterrupted();
}
