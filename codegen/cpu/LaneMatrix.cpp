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

// Zeros plus products with zero; four groups of a row side by side, as additions wait for each other.
Value cpu::emitAllFinite(Emitter &e, Value matrix, Value rows, Value width, Value stride) {
  Value zeros = e.number(e.vf32(), 0);
  auto probeGroups = [&](Value column, int64_t groups, ValueRange start) {
    return e.forLoop(e.index(0), rows, 1, start, [&](Value r, ValueRange sofar) {
      Value row = e.pointer(matrix, e.add(e.mul(r, stride), column), e.f32());
      Emitter::Carried next(sofar);
      for (int64_t g = 0; g < groups; ++g) {
        Value group = e.load(e.pointer(row, g * lanes, e.f32()), e.vf32());
        if (groups == 1)
          group = e.select(e.lanesBelow(e.sub(width, column)), group, zeros);
        next[g] = e.fma(group, zeros, sofar[g]);
      }
      return next;
    });
  };
  const int64_t together = 4;
  Value step = e.index(together * lanes), whole = e.mul(e.div(width, step), step);
  Emitter::Carried probes(together, zeros);
  probes = e.forLoop(e.index(0), whole, together * lanes, probes,
                     [&](Value column, ValueRange sofar) { return probeGroups(column, together, sofar); });
  for (unsigned i = 1; i < probes.size(); ++i)
    probes[0] = e.add(probes[0], probes[i]);
  Value probe = e.forLoop(whole, width, lanes, probes[0],
                          [&](Value column, ValueRange sofar) { return probeGroups(column, 1, sofar); })[0];
  Type bits = e.b.getIntegerType(lanes);
  Value broken = e.compare(arith::CmpFPredicate::UNO, probe, probe);
  return e.compare(arith::CmpIPredicate::eq, e.b.create<LLVM::BitcastOp>(e.loc, bits, broken), e.integer(bits, 0));
}
