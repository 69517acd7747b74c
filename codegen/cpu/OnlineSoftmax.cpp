//===- OnlineSoftmax.cpp - softmax over blocks of keys ------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/OnlineSoftmax.h"
#include "codegen/cpu/LaneMatrix.h"
#include "codegen/cpu/Schedule.h"
#include "codegen/emit/MathParts.h"
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

static Value larger(Emitter &e, Value x, Value y) { return e.select(e.compare(arith::CmpFPredicate::OGT, x, y), x, y); }

static Value weightOf(Emitter &e, Value score, Value shift) { return expOfNegative(Num{e, e.sub(score, shift)}).v; }

/// Walks the keys of a block 16 at a time.
static Value overKeys(Emitter &e, Value count, bool whole, Value start,
                      llvm::function_ref<Value(Value position, Value sofar)> step) {
  if (!whole)
    return e.forLoop(e.index(0), count, lanes, ValueRange{start},
                     [&](Value position, ValueRange sofar) { return Emitter::Carried{step(position, sofar[0])}; })[0];
  for (int64_t position = 0; position < attendKeys; position += lanes)
    start = step(e.index(position), start);
  return start;
}

/// Replaces raw scores by scores; their maximum per lane.
static Value emitScores(Emitter &e, Value scores, Value count, bool whole, ScoreOf scoreOf) {
  Value low = e.number(e.vf32(), -infinity);
  return overKeys(e, count, whole, low, [&](Value position, Value sofar) {
    Value place = e.pointer(scores, position, e.f32()), score = scoreOf(e.load(place, e.vf32()), position);
    if (!whole)
      score = e.select(e.lanesBelow(e.sub(count, position)), score, low);
    e.store(score, place);
    return larger(e, sofar, score);
  });
}

/// Replaces scores by weights; their sum per lane.
static Value emitWeights(Emitter &e, Value scores, Value count, bool whole, Value shifts) {
  return overKeys(e, count, whole, e.number(e.vf32(), 0), [&](Value position, Value sofar) {
    Value place = e.pointer(scores, position, e.f32()), weights = weightOf(e, e.load(place, e.vf32()), shifts);
    e.store(weights, place);
    return e.add(sofar, weights);
  });
}

SoftmaxState cpu::emitSoftmaxBlock(Emitter &e, Value scores, Value count, ScoreOf scoreOf, Value maximum, Value total) {
  Value best = emitScores(e, scores, count, /*whole=*/false, scoreOf);
  SoftmaxState state;
  state.maximum = larger(e, maximum, e.reduceLanes(best, [&](Value x, Value y) { return larger(e, x, y); }));
  Value shift = finiteMaximum(e, state.maximum);
  state.factor = weightOf(e, maximum, shift);
  Value sums = emitWeights(e, scores, count, /*whole=*/false, e.broadcast(shift));
  Value sum = e.reduceLanes(sums, [&](Value x, Value y) { return e.add(x, y); });
  state.total = e.fma(total, state.factor, sum);
  return state;
}

void cpu::emitSoftmaxRows(Emitter &e, const SoftmaxRows &softmax,
                          llvm::function_ref<Value(Value raw, Value row, Value position)> scoreOf,
                          llvm::function_ref<void(Value row, Value factor)> rescale) {
  Type vf32 = e.vf32();
  auto at = [&](Value base, Value position) { return e.pointer(base, position, e.f32()); };
  auto rowScores = [&](Value row) { return at(softmax.scores, e.mul(row, e.index(attendKeys))); };
  auto partOf = [&](Value i) { return at(softmax.parts, e.mul(i, e.index(lanes))); };
  auto parts = [&] {
    SmallVector<Value> vectors;
    for (int64_t i = 0; i < lanes; ++i)
      vectors.push_back(e.load(partOf(e.index(i)), vf32));
    return vectors;
  };
  e.forLoop(e.index(0), softmax.rows, lanes, [&](Value first) {
    Value height = e.minimum(e.sub(softmax.rows, first), e.index(lanes));
    e.forLoop(e.index(0), height, 1, [&](Value i) {
      Value row = e.add(first, i);
      auto ofRow = [&](Value raw, Value position) { return scoreOf(raw, row, position); };
      e.store(emitScores(e, rowScores(row), softmax.count, softmax.whole, ofRow), partOf(i));
    });
    // Behind the last row these lanes mean nothing.
    Value before = e.load(at(softmax.maxima, first), vf32);
    Value best = emitLaneTree(e, parts(), [&](Value x, Value y) { return larger(e, x, y); });
    Value maxima = larger(e, before, best), shifts = finiteMaximum(e, maxima), factors = weightOf(e, before, shifts);
    e.store(maxima, at(softmax.maxima, first));
    e.store(shifts, softmax.shifts);
    e.store(factors, softmax.factors);
    e.forLoop(e.index(0), height, 1, [&](Value i) {
      Value row = e.add(first, i), shift = e.broadcast(e.load(at(softmax.shifts, i), e.f32()));
      e.store(emitWeights(e, rowScores(row), softmax.count, softmax.whole, shift), partOf(i));
      Value factor = e.load(at(softmax.factors, i), e.f32());
      Value changed = e.compare(arith::CmpFPredicate::UNE, factor, e.number(e.f32(), 1));
      e.ifThen(changed, [&] { rescale(row, factor); });
    });
    Value totals = e.fma(e.load(at(softmax.totals, first), vf32), factors, emitLaneSums(e, parts()));
    e.store(totals, at(softmax.totals, first));
  });
}
