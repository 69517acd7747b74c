//===- SearchHead.cpp - block maxima, sums and candidates of logits -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of a row goes through three loops: the first, which brings it to the processor's nearest cache, finds the
// maximum, the second the sum, and the third the candidates. Of lanes' maxima, the k-th largest is no larger than the
// k-th largest logit: what is below it is no candidate, so that few logits are looked at one by one.

#include "codegen/cpu/Kernels.h"
#include "codegen/cpu/Schedule.h"
#include "codegen/emit/MathParts.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;
using namespace mlir::transept;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// exp(x) for x <= 0; 0 below e^-80, which is nothing beside the largest term of a sum, 1. NaN stays.
Value expOfDifference(Emitter &e, Value value) {
  Num x{e, value}, small = x < -80;
  auto [n, r] = reduceByLn2(select(small, -80.0, x));
  Num scale = ((n + n.likeInteger(singlePrecision.bias)) << singlePrecision.mantissaBits).asFloat();
  return select(small, 0.0, expOfReduced({n.likeInteger(0), r}) * scale).v;
}

class SearchHead {
public:
  SearchHead(Emitter &emitter, SearchHeadOp op)
      : e(emitter), op(op), kernel(cast<KernelOp>(op.getOperation())), f32(e.f32()), vf32(e.vf32()),
        i32(e.b.getI32Type()) {}

  LogicalResult emit() {
    if (op.getInputs().size() > 3)
      return op.emitOpError("needs logits, special tokens, and at most whether only the best is wanted");
    const int64_t vocabulary = op.getVocabulary(), blockSize = op.getBlockSize();
    const int64_t blocks = (vocabulary + blockSize - 1) / blockSize;
    specials = e.dim(shapeOf(1)[1]);
    topk = e.dim(shapeOf(op.getInputs().size() + 2)[2]);
    Value wanted = op.getInputs().size() == 3
                       ? e.compare(arith::CmpIPredicate::eq, e.load(input(2), i32), e.integer(i32, 0))
                       : e.integer(e.b.getI1Type(), 1);
    e.forLiveItems(kernel, dimMul(shapeOf(0)[0], dimConstant(op.getContext(), blocks)), [&](Value item) {
      Value r = e.div(item, e.index(blocks)), block = e.rem(item, e.index(blocks));
      from = e.mul(block, e.index(blockSize));
      to = e.minimum(e.add(from, e.index(blockSize)), e.index(vocabulary));
      row = e.pointer(input(0), e.mul(r, e.index(vocabulary)), f32);
      Value lanesMaxima, maximum = findMaximum(lanesMaxima);
      e.store(maximum, e.pointer(output(0), item, f32));
      e.store(e.select(wanted, sum(maximum, e.select(wanted, to, from)), e.number(f32, 1)),
              e.pointer(output(1), item, f32));
      Value kept = keepSpecials(r);
      values = e.pointer(output(2), e.mul(item, topk), f32);
      tokens = e.pointer(output(3), e.mul(item, topk), i32);
      e.forLoop(e.index(0), topk, 1, [&](Value k) {
        e.store(number(-infinity), e.pointer(values, k, f32));
        e.store(e.integer(i32, -1), e.pointer(tokens, k, i32));
      });
      e.ifThen(e.less(e.index(0), topk), [&] { insertCandidates(threshold(lanesMaxima, e.add(topk, kept))); });
    });
    return success();
  }

private:
  ArrayRef<DimAttr> shapeOf(unsigned operand) { return cast<DimsAttr>(kernel.getShapes()[operand]).getDims(); }
  Value input(unsigned number) { return e.buffer(op.getInputs()[number]); }
  Value output(unsigned number) { return e.buffer(op.getOutputs()[number]); }
  Value number(double value) { return e.number(f32, value); }
  Value numbers(double value) { return e.number(vf32, value); }
  Value logits(Value at) { return e.load(e.pointer(row, at, f32), vf32); }
  Value logit(Value token) { return e.load(e.pointer(row, token, f32), f32); }
  /// The last logits of the block; behind them, -inf.
  Value lastLogits(Value at) { return e.select(e.lanesBelow(e.sub(to, at)), logits(at), numbers(-infinity)); }
  /// One instruction. NaN is lost, or loses.
  Value larger(Value x, Value y) { return e.select(e.compare(arith::CmpFPredicate::OGT, x, y), x, y); }
  /// Where groups of `count` tokens end and the rest begins.
  Value wholeUntil(int64_t count, Value end) {
    return e.add(from, e.mul(e.div(e.sub(end, from), e.index(count)), e.index(count)));
  }

  /// Four groups of sixteen logits at once, then the rest group by group.
  Emitter::Carried forGroups(ValueRange init,
                             llvm::function_ref<Emitter::Carried(Value, ArrayRef<Value>, ValueRange)> body) {
    Value whole = wholeUntil(4 * lanes, to);
    Emitter::Carried carried = e.forLoop(from, whole, 4 * lanes, init, [&](Value at, ValueRange sofar) {
      SmallVector<Value> groups;
      for (int64_t group = 0; group < 4; ++group)
        groups.push_back(logits(e.add(at, e.index(group * lanes))));
      return body(at, groups, sofar);
    });
    return e.forLoop(whole, to, lanes, carried,
                     [&](Value at, ValueRange sofar) { return body(at, lastLogits(at), sofar); });
  }

  /// The maximum of the block, NaN where a logit is; `maxima` become those of sixteen parts of it.
  Value findMaximum(Value &maxima) {
    Emitter::Carried found =
        forGroups({numbers(-infinity), numbers(-infinity), numbers(-infinity), numbers(-infinity), numbers(0)},
                  [&](Value, ArrayRef<Value> groups, ValueRange sofar) {
                    Emitter::Carried next(sofar);
                    for (auto [i, group] : llvm::enumerate(groups))
                      next[i] = larger(group, sofar[i]);
                    for (size_t i = 0; i < groups.size(); i += 2) {
                      Value pair =
                          e.compare(arith::CmpFPredicate::UNO, groups[i], groups[groups.size() == 1 ? 0 : i + 1]);
                      next[4] = e.select(pair, numbers(std::nan("")), next[4]);
                    }
                    return next;
                  });
    maxima = larger(larger(found[0], found[1]), larger(found[2], found[3]));
    Value maximum = e.reduceLanes(maxima, [&](Value x, Value y) { return larger(x, y); });
    Value unordered = e.reduceLanes(found[4], [&](Value x, Value y) { return e.add(x, y); });
    return e.add(maximum, unordered);
  }

  /// Of exp(logit - maximum), up to `end`. A block of -inf only has the sum 0, not NaN.
  Value sum(Value maximum, Value end) {
    Value none = e.compare(arith::CmpFPredicate::OEQ, maximum, number(-infinity));
    Value shift = e.broadcast(e.select(none, number(0), maximum)), whole = wholeUntil(lanes, end);
    auto addTo = [&](Value sofar, Value group) {
      return Emitter::Carried{e.add(sofar, expOfDifference(e, e.sub(group, shift)))};
    };
    Emitter::Carried total = e.forLoop(from, whole, lanes, ValueRange{numbers(0)},
                                       [&](Value at, ValueRange sofar) { return addTo(sofar[0], logits(at)); });
    total = e.forLoop(whole, end, lanes, total,
                      [&](Value at, ValueRange sofar) { return addTo(sofar[0], lastLogits(at)); });
    return e.reduceLanes(total[0], [&](Value x, Value y) { return e.add(x, y); });
  }

  /// Special tokens of this block: their logits are kept, then they are out of the race. How many these are.
  Value keepSpecials(Value r) {
    return e.forLoop(e.index(0), specials, 1, ValueRange{e.index(0)}, [&](Value s, ValueRange sofar) {
      Value place = e.add(e.mul(r, specials), s);
      Value token = e.castIndex(e.load(e.pointer(input(1), place, i32), i32), e.b.getIndexType());
      Value here =
          e.b.createOrFold<arith::AndIOp>(e.loc, e.compare(arith::CmpIPredicate::sge, token, from), e.less(token, to));
      e.ifThen(here, [&] {
        e.store(logit(token), e.pointer(output(4), place, f32));
        e.store(number(-infinity), e.pointer(row, token, f32));
      });
      return Emitter::Carried{e.select(here, e.add(sofar[0], e.index(1)), sofar[0])};
    })[0];
  }

  /// The `count`-th largest of `maxima`, or less; -inf where they are not that many.
  Value threshold(Value maxima, Value count) {
    Value below = e.select(e.less(e.index(lanes), count), e.index(0), count);
    auto largest = [&](Value left) { return e.reduceLanes(left, [&](Value x, Value y) { return larger(x, y); }); };
    Emitter::Carried found =
        e.forLoop(e.index(0), below, 1, ValueRange{maxima, number(-infinity)}, [&](Value, ValueRange sofar) {
          Value next = largest(sofar[0]);
          Value taken = e.compare(arith::CmpFPredicate::OEQ, sofar[0], e.broadcast(next));
          return Emitter::Carried{e.select(taken, numbers(-infinity), sofar[0]), next};
        });
    return found[1];
  }

  /// The topk largest, in order: a token enters where it beats what is there; earlier tokens win ties. Those below
  /// `lowest` need not be looked at.
  void insertCandidates(Value lowest) {
    Value last = e.pointer(values, e.sub(topk, e.index(1)), f32), lowestLanes = e.broadcast(lowest);
    Type mask = e.b.getIntegerType(lanes);
    auto candidates = [&](Value group) {
      Value enough = e.compare(arith::CmpFPredicate::OGE, group, lowestLanes);
      Value beats = e.compare(arith::CmpFPredicate::OGT, group, e.broadcast(e.load(last, f32)));
      return e.b.create<LLVM::BitcastOp>(e.loc, mask, e.b.create<arith::AndIOp>(e.loc, enough, beats)).getResult();
    };
    auto any = [&](Value bits) { return e.compare(arith::CmpIPredicate::ne, bits, e.integer(mask, 0)); };
    auto look = [&](Value at, Value bits) {
      e.whileLoop(
          {bits}, [&](ValueRange left) { return any(left[0]); },
          [&](ValueRange left) {
            Value lane = e.b.create<arith::IndexCastUIOp>(e.loc, e.b.getIndexType(),
                                                          e.b.create<math::CountTrailingZerosOp>(e.loc, left[0]));
            Value token = e.add(at, lane), found = logit(token);
            e.ifThen(e.compare(arith::CmpFPredicate::OGT, found, e.load(last, f32)), [&] { insert(found, token); });
            Value without = e.b.create<arith::AndIOp>(e.loc, left[0], e.sub(left[0], e.integer(mask, 1)));
            return Emitter::Carried{without};
          });
    };
    forGroups({}, [&](Value at, ArrayRef<Value> groups, ValueRange) {
      if (groups.size() == 1) {
        look(at, candidates(groups[0]));
        return Emitter::Carried{};
      }
      Value best = larger(larger(groups[0], groups[1]), larger(groups[2], groups[3]));
      e.ifThen(any(candidates(best)), [&] {
        Value end = e.add(at, e.index(4 * lanes));
        e.forLoop(at, end, lanes, [&](Value group) { look(group, candidates(logits(group))); });
      });
      return Emitter::Carried{};
    });
  }

  /// Inserts a token that beats the last candidate: behind those that are not smaller, so that earlier tokens win ties.
  void insert(Value found, Value token) {
    Value last = e.sub(topk, e.index(1));
    Value place = e.whileLoop(
        {last},
        [&](ValueRange at) {
          // The first place has nothing above it; reading it twice is harmless.
          Value above = e.maximum(e.sub(at[0], e.index(1)), e.index(0));
          Value beats = e.compare(arith::CmpFPredicate::OGT, found, e.load(e.pointer(values, above, f32), f32));
          Value inside = e.compare(arith::CmpIPredicate::sgt, at[0], e.index(0));
          return e.b.create<arith::AndIOp>(e.loc, inside, beats).getResult();
        },
        [&](ValueRange at) {
          Value above = e.sub(at[0], e.index(1));
          e.store(e.load(e.pointer(values, above, f32), f32), e.pointer(values, at[0], f32));
          e.store(e.load(e.pointer(tokens, above, i32), i32), e.pointer(tokens, at[0], i32));
          return Emitter::Carried{above};
        })[0];
    e.store(found, e.pointer(values, place, f32));
    e.store(e.castIndex(token, i32), e.pointer(tokens, place, i32));
  }

  Emitter &e;
  SearchHeadOp op;
  KernelOp kernel;
  const Type f32, vf32, i32;
  Value specials, topk;
  Value row, from, to;  // of the item: the logits of its row, its tokens
  Value values, tokens; // where the best go, in order
};

} // namespace

LogicalResult cpu::emitSearchHead(Emitter &e, SearchHeadOp op) { return SearchHead(e, op).emit(); }
