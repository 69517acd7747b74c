//===- SearchHead.cpp - block maxima, sums and candidates of logits -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/Kernels.h"
#include "codegen/cpu/Schedule.h"
#include "codegen/emit/Math.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;
using namespace mlir::transept;

namespace {

struct Candidates {
  Value logits, from, to;     // tokens [from, to) of a row
  Value values, tokens, topk; // where the best go, in order
};

/// Sixteen logits; behind the last token, -inf.
Value logitGroup(Emitter &e, Value row, Value at, Value to) {
  Value loaded = e.load(e.pointer(row, at, e.f32()), e.vf32());
  return e.select(e.lanesBelow(e.sub(to, at)), loaded, e.number(e.vf32(), -std::numeric_limits<double>::infinity()));
}

/// Inserts a token that beats the last candidate: behind those that are not smaller, so that earlier tokens win ties.
void insert(Emitter &e, const Candidates &c, Value logit, Value token) {
  Type i32 = e.b.getI32Type();
  Value last = e.sub(c.topk, e.index(1));
  Value place = e.whileLoop(
      {last},
      [&](ValueRange at) {
        // The first place has nothing above it; reading it twice is harmless.
        Value above = e.maximum(e.sub(at[0], e.index(1)), e.index(0));
        Value larger =
            e.compare(arith::CmpFPredicate::OGT, logit, e.load(e.pointer(c.values, above, e.f32()), e.f32()));
        Value inside = e.compare(arith::CmpIPredicate::sgt, at[0], e.index(0));
        return e.b.create<arith::AndIOp>(e.loc, inside, larger).getResult();
      },
      [&](ValueRange at) {
        Value above = e.sub(at[0], e.index(1));
        e.store(e.load(e.pointer(c.values, above, e.f32()), e.f32()), e.pointer(c.values, at[0], e.f32()));
        e.store(e.load(e.pointer(c.tokens, above, i32), i32), e.pointer(c.tokens, at[0], i32));
        return Emitter::Carried{above};
      })[0];
  e.store(logit, e.pointer(c.values, place, e.f32()));
  e.store(e.castIndex(token, i32), e.pointer(c.tokens, place, i32));
}

/// Looks closely only at groups with a logit above the last candidate.
void insertCandidates(Emitter &e, const Candidates &c) {
  Value last = e.pointer(c.values, e.sub(c.topk, e.index(1)), e.f32());
  Type mask = e.b.getIntegerType(lanes);
  e.forLoop(c.from, c.to, lanes, [&](Value at) {
    Value threshold = e.broadcast(e.load(last, e.f32()));
    Value above = e.compare(arith::CmpFPredicate::OGT, logitGroup(e, c.logits, at, c.to), threshold);
    Value bits = e.b.create<LLVM::BitcastOp>(e.loc, mask, above);
    e.whileLoop(
        {bits}, [&](ValueRange left) { return e.compare(arith::CmpIPredicate::ne, left[0], e.integer(mask, 0)); },
        [&](ValueRange left) {
          Value lane = e.b.create<arith::IndexCastUIOp>(e.loc, e.b.getIndexType(),
                                                        e.b.create<math::CountTrailingZerosOp>(e.loc, left[0]));
          Value token = e.add(at, lane), logit = e.load(e.pointer(c.logits, token, e.f32()), e.f32());
          e.ifThen(e.compare(arith::CmpFPredicate::OGT, logit, e.load(last, e.f32())),
                   [&] { insert(e, c, logit, token); });
          Value without = e.b.create<arith::AndIOp>(e.loc, left[0], e.sub(left[0], e.integer(mask, 1)));
          return Emitter::Carried{without};
        });
  });
}

} // namespace

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
  e.forLiveItems(kernel, dimMul(shapeOf(0)[0], dimConstant(op.getContext(), blocks)), [&](Value item) {
    Value r = e.div(item, e.index(blocks)), block = e.rem(item, e.index(blocks));
    Value from = e.mul(block, e.index(blockSize)), to = e.minimum(e.add(from, e.index(blockSize)), e.index(vocabulary));
    Value row = e.pointer(logits, e.mul(r, e.index(vocabulary)), e.f32());
    Value low = e.number(e.vf32(), -infinity);
    auto group = [&](Value at) { return logitGroup(e, row, at, to); };
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
    e.ifThen(e.less(e.index(0), topk), [&] { insertCandidates(e, {row, from, to, bestValues, bestTokens, topk}); });
  });
  return success();
}
