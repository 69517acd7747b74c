//===- OnlineSoftmax.cpp - softmax over blocks of keys ------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/OnlineSoftmax.h"
#include "codegen/emit/Math.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;

static constexpr double infinity = std::numeric_limits<double>::infinity();

Value cpu::finiteMaximum(Emitter &e, Value maximum) {
  Value none = e.compare(arith::CmpFPredicate::OEQ, maximum, e.number(maximum.getType(), -infinity));
  return e.select(none, e.number(maximum.getType(), 0), maximum);
}

Value cpu::emitRelative(Emitter &e, Value table, ArrayRef<transept::DimAttr> shape, Value row, Value column) {
  Value columns = e.dim(shape[1]);
  Value first = e.maximum(e.minimum(column, e.sub(columns, e.index(lanes))), e.index(0));
  return e.load(e.pointer(table, e.add(e.mul(row, columns), first), e.f32()), e.vf32());
}

SoftmaxState cpu::emitSoftmaxBlock(Emitter &e, Value scores, Value count, ScoreOf scoreOf, Value maximum, Value total) {
  Value low = e.number(e.vf32(), -infinity);
  auto larger = [&](Value x, Value y) -> Value { return e.b.create<arith::MaximumFOp>(e.loc, x, y); };
  Value best = e.forLoop(e.index(0), count, lanes, ValueRange{low}, [&](Value at, ValueRange sofar) {
    Value place = e.pointer(scores, at, e.f32());
    Value score = e.select(e.lanesBelow(e.sub(count, at)), scoreOf(e.load(place, e.vf32()), at), low);
    e.store(score, place);
    return Emitter::Carried{larger(sofar[0], score)};
  })[0];
  SoftmaxState state;
  state.maximum = larger(maximum, e.reduceLanes(best, larger));
  Value shift = finiteMaximum(e, state.maximum), shifts = e.broadcast(shift);
  state.factor = emitExp(e, e.sub(maximum, shift));
  Value sums = e.forLoop(e.index(0), count, lanes, ValueRange{e.number(e.vf32(), 0)}, [&](Value at, ValueRange sofar) {
    Value place = e.pointer(scores, at, e.f32());
    Value weights = emitExp(e, e.sub(e.load(place, e.vf32()), shifts));
    e.store(weights, place);
    return Emitter::Carried{e.add(sofar[0], weights)};
  })[0];
  Value sum = e.reduceLanes(sums, [&](Value x, Value y) { return e.add(x, y); });
  state.total = e.fma(total, state.factor, sum);
  return state;
}
