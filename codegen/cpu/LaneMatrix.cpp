//===- LaneMatrix.cpp - several vectors of 16 lanes as a matrix ---------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/LaneMatrix.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;

// Eklundh: exchanges the off-diagonal squares of width 1, 2, 4 and 8.
void cpu::emitTranspose(Emitter &e, MutableArrayRef<Value> rows) {
  for (int64_t width = 1; width < lanes; width *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool second = lane & width;
      low.push_back(second ? lanes + lane - width : lane);
      high.push_back(second ? lanes + lane : lane + width);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & width)
        continue;
      Value x = rows[i], y = rows[i + width];
      rows[i] = e.shuffle(x, y, low);
      rows[i + width] = e.shuffle(x, y, high);
    }
  }
}

// A vector holds segments, one per given vector, whose lanes are still to be combined. Each step halves the segments
// and puts those of two vectors into one.
Value cpu::emitLaneTree(Emitter &e, ArrayRef<Value> vectors, llvm::function_ref<Value(Value, Value)> combine) {
  SmallVector<Value> left(vectors);
  for (int64_t length = lanes; length > 1; length /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t segment = 0; segment < 2 * lanes; segment += length)
      for (int64_t lane = 0; lane < length / 2; ++lane) {
        low.push_back(segment + lane);
        high.push_back(segment + length / 2 + lane);
      }
    SmallVector<Value> next;
    for (unsigned i = 0; i < left.size(); i += 2) {
      Value x = left[i], y = left.size() > 1 ? left[i + 1] : x;
      next.push_back(combine(e.shuffle(x, y, low), e.shuffle(x, y, high)));
    }
    left = next;
  }
  return left[0];
}

Value cpu::emitLaneSums(Emitter &e, ArrayRef<Value> vectors) {
  return emitLaneTree(e, vectors, [&](Value x, Value y) { return e.add(x, y); });
}
