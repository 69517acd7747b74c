//===- RowAttention.cpp - one query row over its keys, by a workgroup ---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Online softmax over absolute blocks of 64 keys: invocation i of g takes keys i, i + g, … of a block, then such
// positions of the values, which it sums in the output.

#include "codegen/vulkan/RowAttention.h"
#include "codegen/emit/Math.h"
#include "codegen/emit/Num.h"
#include "codegen/emit/RowStages.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Emitter;
using emit::Num;
using transept::EmptyRow;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr int64_t blockKeys = 64;

/// `maximum`, or 0 where nothing was visible: what exponents are taken relative to.
static Value finiteMaximum(Emitter &e, Value maximum) {
  Value none = e.compare(arith::CmpFPredicate::OEQ, maximum, e.number(e.f32(), -infinity));
  return e.select(none, e.number(e.f32(), 0), maximum);
}

RowAttentionEmitter::RowAttentionEmitter(Shader &shader)
    : shader(shader), e(shader.e), f32(e.f32()), scores(shader.sharedArray(f32, blockKeys)),
      weights(shader.sharedArray(f32, blockKeys)), maxima(shader.sharedArrayPerInvocation(f32)),
      sums(shader.sharedArrayPerInvocation(f32)) {}

Value RowAttentionEmitter::product(const RowAttention &row, Value j) {
  Value key = row.key(j);
  if (row.fourAtOnce) {
    Value sums =
        e.forLoop(e.index(0), row.keySize, 4, ValueRange{e.number(shader.four(), 0)}, [&](Value d, ValueRange sofar) {
          Value x = shader.loadFour(e.pointer(row.query, d, f32));
          Value y = shader.loadFour(e.pointer(key, d, f32));
          return Emitter::Carried{e.fma(x, y, sofar[0])};
        })[0];
    Value sum = shader.component(sums, 0);
    for (int64_t i = 1; i < 4; ++i)
      sum = e.add(sum, shader.component(sums, i));
    return sum;
  }
  return e.forLoop(e.index(0), row.keySize, 1, ValueRange{e.number(f32, 0)}, [&](Value d, ValueRange sofar) {
    Value x = e.load(e.pointer(row.query, d, f32), f32), y = e.load(e.pointer(key, d, f32), f32);
    return Emitter::Carried{e.fma(x, y, sofar[0])};
  })[0];
}

void RowAttentionEmitter::emit(const RowAttention &row) {
  Value zero = e.number(f32, 0), low = e.number(f32, -infinity);
  shader.forShare(e.index(0), row.valueSize, [&](Value d) { e.store(zero, e.pointer(row.output, d, f32)); });
  if (row.probabilities) // until the end, the scores
    shader.forShare(e.index(0), row.keys, [&](Value j) { e.store(low, e.pointer(row.probabilities, j, f32)); });
  shader.barrier();
  Emitter::Carried state = e.forLoop(e.index(0), row.end, blockKeys, ValueRange{low, zero},
                                     [&](Value from, ValueRange sofar) { return emitBlock(row, from, sofar); });
  Value empty = e.compare(arith::CmpFPredicate::OEQ, state[0], low);
  e.ifElse(empty, [&] { emptyRow(row); }, [&] { finish(row, state[0], state[1]); });
}

/// The state is the maximum of the scores so far and the sum of exp(score - maximum).
Emitter::Carried RowAttentionEmitter::emitBlock(const RowAttention &row, Value from, ValueRange state) {
  Value low = e.number(f32, -infinity);
  shader.forShare(e.index(0), e.index(blockKeys), [&](Value i) {
    Value j = e.add(from, i), place = e.pointer(scores, i, f32);
    auto visit = [&] {
      Value score = row.score(j, product(row, j));
      e.store(score, place);
      if (row.probabilities)
        e.store(score, e.pointer(row.probabilities, j, f32));
    };
    e.ifElse(e.less(j, row.end), visit, [&] { e.store(low, place); });
  });
  // Every invocation has the scores that it wrote, and so the weights.
  auto overBlock = [&](StringRef kind, Value array, Value neutral, Value slots) {
    Value mine = shader.forShare(e.index(0), e.index(blockKeys), neutral, [&](Value i, ValueRange sofar) {
      return Emitter::Carried{emit::combined(e, kind, sofar[0], e.load(e.pointer(array, i, f32), f32))};
    })[0];
    return shader.combineAll(kind, mine, slots);
  };
  Value maximum = emit::combined(e, "max", state[0], overBlock("max", scores, low, maxima));
  Value shift = finiteMaximum(e, maximum);
  shader.forShare(e.index(0), e.index(blockKeys), [&](Value i) {
    Value score = e.load(e.pointer(scores, i, f32), f32);
    e.store(emit::emitExp(e, e.sub(score, shift)), e.pointer(weights, i, f32));
  });
  Value sum = overBlock("add", weights, e.number(f32, -0.0), sums);
  Value factor = emit::emitExp(e, e.sub(state[0], shift));
  addValues(row, from, e.minimum(e.sub(row.end, from), e.index(blockKeys)), factor);
  return {maximum, e.fma(state[1], factor, sum)};
}

void RowAttentionEmitter::addValues(const RowAttention &row, Value from, Value count, Value factor) {
  shader.forShare(e.index(0), row.valueSize, [&](Value d) {
    Value place = e.pointer(row.output, d, f32), start = e.mul(e.load(place, f32), factor);
    Value total = e.forLoop(e.index(0), count, 1, ValueRange{start}, [&](Value i, ValueRange sofar) {
      Value weight = e.load(e.pointer(weights, i, f32), f32);
      Value value = e.load(e.pointer(row.value(e.add(from, i)), d, f32), f32);
      // A hidden value counts as nothing, whatever it holds.
      Value hidden = e.compare(arith::CmpFPredicate::OEQ, weight, e.number(f32, 0));
      return Emitter::Carried{e.select(hidden, sofar[0], e.fma(weight, value, sofar[0]))};
    })[0];
    e.store(total, place);
  });
}

void RowAttentionEmitter::finish(const RowAttention &row, Value maximum, Value total) {
  auto divide = [&](Value x) { return (Num{e, x} / Num{e, total}).v; };
  shader.forShare(e.index(0), row.valueSize, [&](Value d) {
    Value place = e.pointer(row.output, d, f32);
    e.store(divide(e.load(place, f32)), place);
  });
  if (!row.probabilities)
    return;
  Value shift = finiteMaximum(e, maximum);
  shader.forShare(e.index(0), row.keys, [&](Value j) {
    Value place = e.pointer(row.probabilities, j, f32);
    e.store(divide(emit::emitExp(e, e.sub(e.load(place, f32), shift))), place);
  });
}

void RowAttentionEmitter::emptyRow(const RowAttention &row) {
  bool isUniform = row.emptyRow == EmptyRow::Uniform;
  Value fill = e.number(f32, row.emptyRow == EmptyRow::NaN ? std::numeric_limits<double>::quiet_NaN() : 0);
  Num count{e, e.b.create<arith::SIToFPOp>(e.loc, f32, e.castIndex(row.keys, e.b.getI64Type()))};
  shader.forShare(e.index(0), row.valueSize, [&](Value d) {
    Value value = fill;
    if (isUniform) {
      Value sum = e.forLoop(e.index(0), row.keys, 1, ValueRange{fill}, [&](Value j, ValueRange sofar) {
        return Emitter::Carried{e.add(sofar[0], e.load(e.pointer(row.value(j), d, f32), f32))};
      })[0];
      value = (Num{e, sum} / count).v;
    }
    e.store(value, e.pointer(row.output, d, f32));
  });
  if (row.probabilities)
    shader.forShare(e.index(0), row.keys, [&](Value j) {
      e.store(isUniform ? (1.0 / count).v : fill, e.pointer(row.probabilities, j, f32));
    });
}
