//===- ScreenedHead.cpp - the best logit, from approximations of all and few of them computed ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Logits are R = fl(chain + bias), where chain is the f32 sum over k of x[k] w[k], in order. An approximation A of the
// chain comes from a matrix of 8-bit integers q, with w = s q + e, and a row of 8-bit integers p, with x = t p + d:
// A = s t I up to three roundings, I = sum q p being exact. All norms are Euclidean, u = 2^-24.
//
//   |x w - s t I|    <= |e| |x| + |s q| |d|                                   (Cauchy and Schwarz, twice)
//   |chain - x w|    <= (2 K + 2) u (1 + tiny) |x| |w|, |w| <= |s q| + |e|    (K products and K sums, fused or not)
//   |A - s t I|      <= 4 u |A|
//   |d[k] - d'[k]|   <= 4 u max |x|, where d' is the difference as it is rounded; t = fl(max |x| / 127)
//
// Products that underflow add less than 2^-100 in all: x is not small (below), and what is smaller than 2^-126 counts
// at most 2^-126 for each k. |e| and |s q| are rounded up when the program is compiled. The sum of these terms is
// computed with at most ten roundings, all of terms that are not negative, and made larger by 2^-18 of itself; 6 u |A|
// instead of 4 covers adding it to A. So fl(A + D) >= chain >= fl(A - D), and since rounded addition is monotonic,
// fl(fl(A ± D) + bias) encloses R.
//
// A token whose upper bound is below the lower bound of another one is not the best, and no tie. All others are
// computed, by the same chain as a product's, and compared in order: the best token, and the lowest among equal ones,
// are those of all logits. Where something overflows or is not a number, a bound is infinite or not ordered, which
// excludes nothing; a logit that is not finite is therefore seen. Where max |x| is below 1e-30, |d| counts as infinite.
//
// An item is a block of a row. What a row's blocks need of all the others, the best lower bound, every call computes
// for itself: that costs less than a barrier.

#include "codegen/cpu/Kernels.h"
#include "codegen/cpu/NarrowTile.h"
#include "codegen/emit/Math.h"
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

class ScreenedHead {
public:
  ScreenedHead(Emitter &emitter, SearchHeadOp op)
      : e(emitter), op(op), kernel(cast<KernelOp>(op.getOperation())), first(op.getInputs().size()),
        vocabulary(op.getVocabulary()), f32(e.f32()), vf32(e.vf32()), i32(e.b.getI32Type()) {}

  LogicalResult emit() {
    std::optional<int64_t> k = constantValue(shapeOf(2)[1]);
    if (first < 6 || first > 7 || !k)
      return op.emitOpError("needs approximations, special tokens, rows, a matrix, two norms and at most a bias");
    depth = *k;
    blockSize = static_cast<int64_t>(op.getBlockSize());
    blocks = (vocabulary + blockSize - 1) / blockSize;
    specials = e.dim(shapeOf(1)[1]);
    topk = e.dim(shapeOf(first + 2)[2]);
    Value perRow = e.index(blocks);
    DimAttr items = dimMul(shapeOf(0)[0], dimConstant(op.getContext(), blocks));
    auto [begin, limit] = e.shareOf(e.liveRows(kernel, items), e.dim(items));
    auto rowOf = [&, limit = limit](ValueRange item) {
      Value row = e.div(item[0], perRow), firstItem = e.mul(row, perRow);
      Value next = e.minimum(limit, e.add(firstItem, perRow));
      beginRow(row);
      Value lowest = e.broadcast(bestLowerBound());
      e.forLoop(item[0], next, 1, [&](Value at) { emitBlock(at, e.sub(at, firstItem), lowest); });
      return Emitter::Carried{next};
    };
    e.whileLoop({begin}, [&, limit = limit](ValueRange item) { return e.less(item[0], limit); }, rowOf);
    return success();
  }

private:
  ArrayRef<DimAttr> shapeOf(unsigned operand) { return cast<DimsAttr>(kernel.getShapes()[operand]).getDims(); }
  Value input(unsigned number) { return e.buffer(op.getInputs()[number]); }
  Value output(unsigned number) { return e.buffer(op.getOutputs()[number]); }
  Value number(double value) { return e.number(vf32, value); }
  Value abs(Value value) { return e.b.create<math::AbsFOp>(e.loc, value); }

  void beginRow(Value r) {
    approximations = e.pointer(input(0), e.mul(r, e.index(vocabulary)), f32);
    special = e.pointer(input(1), e.mul(r, specials), i32);
    x = e.pointer(input(2), e.mul(r, e.index(depth)), f32);
    specialLogits = e.pointer(output(4), e.mul(r, specials), f32);
    // Special tokens are no bound for others, and always computed. Several threads may write this.
    e.forLoop(e.index(0), specials, 1, [&](Value s) {
      Value token = e.castIndex(e.load(e.pointer(special, s, i32), i32), e.b.getIndexType());
      Value known = e.compare(arith::CmpIPredicate::ult, token, e.index(vocabulary));
      e.ifThen(known, [&] { e.store(e.number(f32, std::nan("")), e.pointer(approximations, token, f32)); });
    });
    measureRow();
  }

  void emitBlock(Value item, Value block, Value lowest) {
    maximum = e.pointer(output(0), item, f32);
    computed = e.pointer(output(1), item, f32);
    best = e.pointer(output(2), e.mul(item, topk), f32);
    bestToken = e.pointer(output(3), e.mul(item, topk), i32);
    e.store(e.number(f32, -infinity), maximum);
    e.store(e.number(f32, 0), computed);
    e.forLoop(e.index(0), topk, 1, [&](Value place) {
      e.store(e.number(f32, -infinity), e.pointer(best, place, f32));
      e.store(e.integer(i32, -1), e.pointer(bestToken, place, i32));
    });
    Value from = e.mul(block, e.index(blockSize));
    Value to = e.minimum(e.add(from, e.index(blockSize)), e.index(vocabulary));
    e.forLoop(from, to, lanes, [&](Value at) { compute(at, notBelow(at, lowest)); });
  }

  /// Sixteen elements of x; zeros behind the last one.
  Value group(Value at) {
    return e.select(e.lanesBelow(e.sub(e.index(depth), at)), e.load(e.pointer(x, at, f32), vf32), number(0));
  }

  /// The root of a sum of K squares that was rounded, not below the exact one. Squares below 2^-126 may be lost.
  Value rootAbove(Value squares) {
    const double lost = std::ldexp(static_cast<double>(depth), -120);
    Value root = e.b.create<math::SqrtOp>(e.loc, e.add(squares, e.number(f32, lost)));
    return e.mul(root, e.number(f32, 1 + std::ldexp(1.0, -9) + static_cast<double>(depth) * 0x1p-23));
  }

  /// |x| and |d|.
  void measureRow() {
    auto sum = [&](Value a, Value b) { return e.add(a, b); };
    auto larger = [&](Value a, Value b) { return e.b.create<arith::MaximumFOp>(e.loc, a, b).getResult(); };
    Emitter::Carried stats =
        e.forLoop(e.index(0), e.index(depth), lanes, ValueRange{number(0), number(0)}, [&](Value at, ValueRange sofar) {
          Value elements = group(at);
          return Emitter::Carried{larger(sofar[0], abs(elements)), e.add(sofar[1], e.mul(elements, elements))};
        });
    Value largest = e.reduceLanes(stats[0], larger);
    Value factor = emitInt8Factor(e, largest);
    Value scale = e.broadcast(e.b.create<arith::DivFOp>(e.loc, largest, e.number(f32, 127)));
    Value missed = e.forLoop(e.index(0), e.index(depth), lanes, ValueRange{number(0)}, [&](Value at, ValueRange sofar) {
      Value elements = group(at);
      Value integers = e.b.create<arith::SIToFPOp>(e.loc, vf32, emitInt8Group(e, elements, factor));
      Value rest = e.sub(elements, e.mul(scale, integers));
      return Emitter::Carried{e.add(sofar[0], e.mul(rest, rest))};
    })[0];
    xNorm = e.broadcast(rootAbove(e.reduceLanes(stats[1], sum)));
    Value rounded = e.mul(largest, e.number(f32, std::sqrt(static_cast<double>(depth)) * 0x1p-21));
    Value known = e.compare(arith::CmpFPredicate::OGE, largest, e.number(f32, 1e-30));
    restNorm =
        e.broadcast(e.select(known, e.add(rootAbove(e.reduceLanes(missed, sum)), rounded), e.number(f32, infinity)));
  }

  struct Bounds {
    Value lower, upper;
  };
  Bounds bounds(Value at) {
    const double roundings = (2.0 * static_cast<double>(depth) + 16) * 0x1p-24;
    Value a = e.load(e.pointer(approximations, at, f32), vf32);
    Value error = e.load(e.pointer(input(4), at, f32), vf32), norm = e.load(e.pointer(input(5), at, f32), vf32);
    // Infinite before any partial sum of the chain can be.
    Value product = e.mul(e.mul(e.add(error, norm), xNorm), number(4));
    Value distance = e.add(e.mul(error, xNorm), e.mul(norm, restNorm));
    distance = e.add(distance, e.mul(product, number(roundings / 4)));
    distance = e.add(distance, e.add(e.mul(abs(a), number(6 * 0x1p-24)), number(0x1p-100)));
    distance = e.mul(distance, number(1 + 0x1p-18));
    Bounds result{e.sub(a, distance), e.add(a, distance)};
    if (first == 7) {
      Value bias = e.load(e.pointer(input(6), at, f32), vf32);
      result = {e.add(result.lower, bias), e.add(result.upper, bias)};
    }
    return result;
  }
  Value insideAt(Value at) { return e.lanesBelow(e.sub(e.index(vocabulary), at)); }

  Value bestLowerBound() {
    Value low = e.forLoop(
        e.index(0), e.index(vocabulary), lanes, ValueRange{number(-infinity)}, [&](Value at, ValueRange sofar) {
          Value lower = bounds(at).lower;
          Value higher =
              e.b.create<arith::AndIOp>(e.loc, e.compare(arith::CmpFPredicate::OGT, lower, sofar[0]), insideAt(at));
          return Emitter::Carried{e.select(higher, lower, sofar[0])};
        })[0];
    return e.reduceLanes(low,
                         [&](Value a, Value b) { return e.select(e.compare(arith::CmpFPredicate::OGT, a, b), a, b); });
  }

  /// Bits of the tokens whose upper bound is not below.
  Value notBelow(Value at, Value lowest) {
    Value left = e.compare(arith::CmpFPredicate::UGE, bounds(at).upper, lowest);
    left = e.b.create<arith::AndIOp>(e.loc, left, insideAt(at));
    return e.b.create<LLVM::BitcastOp>(e.loc, e.b.getIntegerType(lanes), left);
  }

  void compute(Value at, Value bits) {
    Type mask = bits.getType();
    auto any = [&](Value left) { return e.compare(arith::CmpIPredicate::ne, left, e.integer(mask, 0)); };
    e.ifThen(any(bits), [&] {
      Value panel = e.div(at, e.index(panelColumns)), column = e.rem(at, e.index(panelColumns));
      Value w = e.pointer(input(3), e.add(e.mul(panel, e.index(depth * panelColumns)), column), f32);
      Value sums = e.forLoop(e.index(0), e.index(depth), 1, ValueRange{number(0)}, [&](Value k, ValueRange sofar) {
        Value factor = e.broadcast(e.load(e.pointer(x, k, f32), f32));
        Value weights = e.load(e.pointer(w, e.mul(k, e.index(panelColumns)), f32), vf32);
        return Emitter::Carried{e.fma(factor, weights, sofar[0])};
      })[0];
      if (first == 7)
        sums = e.add(sums, e.load(e.pointer(input(6), at, f32), vf32));
      e.store(sums, e.scratch);
      e.whileLoop(
          {bits}, [&](ValueRange left) { return any(left[0]); },
          [&](ValueRange left) {
            Value lane = e.b.create<arith::IndexCastUIOp>(e.loc, e.b.getIndexType(),
                                                          e.b.create<math::CountTrailingZerosOp>(e.loc, left[0]));
            take(e.add(at, lane), e.load(e.pointer(e.scratch, lane, f32), f32));
            Value rest = e.b.create<arith::AndIOp>(e.loc, left[0], e.sub(left[0], e.integer(mask, 1)));
            return Emitter::Carried{rest};
          });
    });
  }

  /// A token and its logit; tokens ascend, so that earlier ones win ties.
  void take(Value token, Value logit) {
    e.store(e.b.create<arith::MaximumFOp>(e.loc, e.load(maximum, f32), logit), maximum);
    e.store(e.add(e.load(computed, f32), e.number(f32, 1)), computed);
    Value token32 = e.castIndex(token, i32), no = e.integer(e.b.getI1Type(), 0);
    Value isSpecial = e.forLoop(e.index(0), specials, 1, ValueRange{no}, [&](Value s, ValueRange sofar) {
      Value same = e.compare(arith::CmpIPredicate::eq, e.load(e.pointer(special, s, i32), i32), token32);
      e.ifThen(same, [&] { e.store(logit, e.pointer(specialLogits, s, f32)); });
      return Emitter::Carried{e.b.create<arith::OrIOp>(e.loc, sofar[0], same)};
    })[0];
    Value takes = e.select(isSpecial, no, e.less(e.index(0), topk));
    e.ifThen(takes, [&] {
      e.ifThen(e.compare(arith::CmpFPredicate::OGT, logit, e.load(best, f32)), [&] {
        e.store(logit, best);
        e.store(token32, bestToken);
      });
    });
  }

  Emitter &e;
  SearchHeadOp op;
  KernelOp kernel;
  const unsigned first; // of the outputs among the shapes
  const int64_t vocabulary;
  const Type f32, vf32, i32;
  int64_t depth = 0, blockSize = 0, blocks = 0;
  Value specials, topk;
  Value approximations, special, x, specialLogits, xNorm, restNorm; // of the row
  Value maximum, computed, best, bestToken;                         // of the block
};

} // namespace

LogicalResult cpu::emitScreenedHead(Emitter &e, SearchHeadOp op) { return ScreenedHead(e, op).emit(); }
