//===- CpuLevel.cpp - the instruction sets kernels are compiled for -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/Codegen.h"

using namespace mlir;
using namespace mlir::kernel;

// Registers: 32 of one vector, 16 of half a vector, 16 or 32 of a quarter.
static constexpr CpuLevel levels[] = {
    {"avx512bf16", "avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt", true, true, true, 32,
     6, 512, /*dotBf16=*/true, /*dotInt8=*/false, "bf16"},
    {"avx512vnni", "avx512vnni,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt", true, true, true, 32,
     6, 512, /*dotBf16=*/false, /*dotInt8=*/true, "int8"},
    {"avx512", "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt", true, true, true, 32, 6, 512},
    {"avx2", "avx2,fma,f16c,bmi,bmi2,popcnt", true, true, true, 8, 6, 256},
    {"x86-64", "sse2", false, false, false, 4, 2, 128},
    {"neon", "neon", true, true, true, 8, 6, 128, /*dotBf16=*/false, /*dotInt8=*/false, "", "aarch64"},
};

ArrayRef<CpuLevel> kernel::cpuLevels() { return levels; }

const CpuLevel *kernel::findCpuLevel(StringRef name) {
  for (const CpuLevel &level : levels)
    if (level.name == name)
      return &level;
  return nullptr;
}
