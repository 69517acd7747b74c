//===- CpuLevel.cpp - the instruction sets kernels are compiled for -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/Codegen.h"

using namespace mlir;
using namespace mlir::kernel;

// Tile sizes follow from the register file: rows * columns / 16 accumulators, columns / 16 of the matrix and one
// broadcast, in vectors of 16 f32 (one zmm, two ymm or four xmm), have to fit into 32 zmm, 16 ymm or 16 xmm.
static constexpr CpuLevel levels[] = {
    {"avx512", "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,popcnt", true, true, true, 6, 64},
    {"avx2", "avx2,fma,f16c,bmi,bmi2,popcnt", true, true, true, 6, 16},
    {"x86-64", "", false, false, false, 2, 16},
};

ArrayRef<CpuLevel> kernel::cpuLevels() { return levels; }

const CpuLevel *kernel::findCpuLevel(StringRef name) {
  for (const CpuLevel &level : levels)
    if (level.name == name)
      return &level;
  return nullptr;
}
