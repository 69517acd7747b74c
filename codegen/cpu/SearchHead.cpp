//===- SearchHead.cpp - block maxima, sums and candidates of logits -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/Math.h"
#include "codegen/cpu/Schedule.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::transept;

LogicalResult cpu::emitSearchHead(Emitter &e, SearchHeadOp op) {
  KernelOp kernel = cast<KernelOp>(op.getOperation());
  auto shapeOf = [&](unsigned operand) { return cast<DimsAttr>(kernel.getShapes()[operand]).getDims(); };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  int64_t vocabulary = op.getVocabulary(), blockSize = op.getBlockSize();
  int64_t blocks = (vocabulary + blockSize - 1) / blockSize;
  Value logits = e.buffer(op.getInputs()[0]), special = e.buffer(op.getInputs()[1]);
  Value maxima = e.buffer(op.getOutputs()[0]), sums = e.buffer(op.getOutputs()[1]),
        values = e.buffer(op.getOutputs()[2]), tokens = e.buffer(op.getOutputs()[3]),
        specialLogits = e.buffer(op.getOutputs()[4]);
  Type i32 = e.b.getI32Type();
  Value specials = e.dim(shapeOf(1)[1]), topk = e.dim(shapeOf(4)[2]);
  Value limit = e.minimum(e.end, e.liveRows(kernel, dimMul(shapeOf(0)[0], dimConstant(op.getContext(), blocks))));
  e.forLoop(e.begin, limit, 1, [&](Value item) {
    Value r = e.div(item, e.index(blocks)), block = e.rem(item, e.index(blocks));
    Value from = e.mul(block, e.index(blockSize)), to = e.minimum(e.add(from, e.index(blockSize)), e.index(vocabulary));
    Value row = e.pointer(logits, e.mul(r, e.index(vocabulary)), e.f32());
    Value low = e.number(e.vf32(), -infinity);
    auto group = [&](Value at) {
      Value loaded = e.load(e.pointer(row, at, e.f32()), e.vf32());
      return e.select(e.lanesBelow(e.sub(to, at)), loaded, low);
    };
    Value best = e.forLoop(from, to, lanes, ValueRange{low}, [&](Value at, ValueRange sofar) {
      return Emitter::Carried{e.b.create<arith::MaximumFOp>(e.loc, sofar[0], group(at))};
    })[0];
    Value maximum = e.reduceLanes(best, [&](Value x, Value y) { return e.b.create<arith::MaximumFOp>(e.loc, x, y); });
    // A block of -inf only has the sum 0, not NaN.
    Value none = e.compare(arith::CmpFPredicate::OEQ, maximum, e.number(e.f32(), -infinity));
    Value shift = e.broadcast(e.select(none, e.number(e.f32(), 0), maximum));
    Value total = e.forLoop(from, to, lanes, ValueRange{e.number(e.vf32(), 0)}, [&](Value at, ValueRange sofar) {
      return Emitter::Carried{e.add(sofar[0], emitExp(e, e.sub(group(at), shift)))};
    })[0];
    Value sum = e.reduceLanes(total, [&](Value x, Value y) { return e.add(x, y); });
    e.store(maximum, e.pointer(maxima, item, e.f32()));
    e.store(sum, e.pointer(sums, item, e.f32()));

    // Special tokens of this block: their logits are kept, then they are out of the race.
    e.forLoop(e.index(0), specials, 1, [&](Value s) {
      Value place = e.add(e.mul(r, specials), s);
      Value token = e.castIndex(e.load(e.pointer(special, place, i32), i32), e.b.getIndexType());
      Value here =
          e.b.createOrFold<arith::AndIOp>(e.loc, e.compare(arith::CmpIPredicate::sge, token, from), e.less(token, to));
      e.ifThen(here, [&] {
        Value logit = e.pointer(row, token, e.f32());
        e.store(e.load(logit, e.f32()), e.pointer(specialLogits, place, e.f32()));
        e.store(e.number(e.f32(), -infinity), logit);
      });
    });

    // The topk largest, in order: a token enters where it beats what is there; earlier tokens win ties.
    Value bestValues = e.pointer(values, e.mul(item, topk), e.f32()),
          bestTokens = e.pointer(tokens, e.mul(item, topk), i32);
    e.forLoop(e.index(0), topk, 1, [&](Value k) {
      e.store(e.number(e.f32(), -infinity), e.pointer(bestValues, k, e.f32()));
      e.store(e.integer(i32, -1), e.pointer(bestTokens, k, i32));
    });
    Value last = e.pointer(bestValues, e.sub(topk, e.index(1)), e.f32());
    auto insert = [&](Value token) {
      Value logit = e.load(e.pointer(row, token, e.f32()), e.f32());
      e.ifThen(e.compare(arith::CmpFPredicate::OGT, logit, e.load(last, e.f32())), [&] {
        // From the end: smaller ones move one place down until the token's own place is found.
        Value place =
            e.forLoop(e.index(1), topk, 1, ValueRange{e.sub(topk, e.index(1))}, [&](Value step, ValueRange at) {
              Value above = e.sub(e.sub(topk, e.index(1)), step), below = e.add(above, e.index(1));
              Value value = e.load(e.pointer(bestValues, above, e.f32()), e.f32());
              Value moves = e.b.createOrFold<arith::AndIOp>(e.loc, e.compare(arith::CmpFPredicate::OGT, logit, value),
                                                            e.compare(arith::CmpIPredicate::eq, at[0], below));
              e.ifThen(moves, [&] {
                e.store(value, e.pointer(bestValues, below, e.f32()));
                e.store(e.load(e.pointer(bestTokens, above, i32), i32), e.pointer(bestTokens, below, i32));
              });
              return Emitter::Carried{e.select(moves, above, at[0])};
            })[0];
        e.store(logit, e.pointer(bestValues, place, e.f32()));
        e.store(e.castIndex(token, i32), e.pointer(bestTokens, place, i32));
      });
    };
    e.ifThen(e.less(e.index(0), topk), [&] {
      e.forLoop(from, to, lanes, [&](Value at) {
        Value threshold = e.broadcast(e.load(last, e.f32()));
        Value above = e.compare(arith::CmpFPredicate::OGT, group(at), threshold);
        Value any = e.b.create<LLVM::BitcastOp>(e.loc, e.b.getIntegerType(lanes), above);
        e.ifThen(e.compare(arith::CmpIPredicate::ne, any, e.integer(e.b.getIntegerType(16), 0)), [&] {
          e.forLoop(at, e.minimum(to, e.add(at, e.index(lanes))), 1, [&](Value token) { insert(token); });
        });
      });
    });
  });
  return success();
}
