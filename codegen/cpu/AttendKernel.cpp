//===- AttendKernel.cpp - kernel.attend ---------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An item is a batch entry, a head and up to 48 query rows; up to eight that follow each other in a call and have the
// same keys are computed together. For each absolute block of 64 keys the keys are transposed; then, item by item,
// scores are a small matrix product, softmax makes them weights, and a second product adds the weighted values.

#include "codegen/cpu/Kernels.h"
#include "codegen/cpu/LaneMatrix.h"
#include "codegen/cpu/OnlineSoftmax.h"
#include "codegen/cpu/Schedule.h"
#include "codegen/cpu/Tile.h"
#include "codegen/emit/Math.h"
#include "codegen/emit/Num.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;
using namespace mlir::transept;

static constexpr double infinity = std::numeric_limits<double>::infinity();
static constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();
/// A bias of this much or less is a mask in disguise.
static constexpr double exclusion = -1e4;

namespace {

class AttendEmitter {
public:
  AttendEmitter(Emitter &emitter, AttendOp op)
      : e(emitter), op(op), kernel(cast<KernelOp>(op.getOperation())), f32(e.f32()), vf32(e.vf32()) {
    unsigned next = 3;
    auto optional = [&](bool there) { return there ? std::optional<unsigned>(next++) : std::nullopt; };
    keyMask = optional(op.getHasKeyMask());
    bias = optional(op.getHasBias());
    mask = optional(op.getHasMask());
    relative = optional(op.getRelativeOrigin().has_value());
    ArrayRef<DimAttr> query = shapeOf(0), key = shapeOf(1), value = shapeOf(2);
    queries = e.dim(query[1]);
    heads = e.dim(query[2]);
    keyHeads = e.dim(key[2]);
    keys = e.dim(key[1]);
    keySize = e.dim(query[3]);
    valueSize = e.dim(value[3]);
    paddedKeySize = roundUp(keySize);
    paddedValueSize = roundUp(valueSize);
    blocks = e.maximum(e.dim(chunksOf(query[1], attendRows)), e.index(1));
    Value place = e.index(0);
    auto part = [&](Value count) {
      Value pointer = e.pointer(e.scratch, place, f32);
      place = e.add(place, count);
      return pointer;
    };
    keysTransposed = part(e.mul(paddedKeySize, e.index(attendKeys)));
    sums = part(e.mul(paddedValueSize, e.index(attendRowsHeld)));
    softmax.scores = part(e.index(attendRows * attendKeys));
    maxima = part(e.index(attendRowsHeld + lanes));
    totals = part(e.index(attendRowsHeld + lanes));
    softmax.parts = part(e.index(lanes * lanes));
    softmax.shifts = part(e.index(lanes));
    softmax.factors = part(e.index(lanes));
    visible = part(e.index(attendKeys));
    present = part(e.index(attendKeys));
  }

  LogicalResult emit() {
    for (Value operand : op.getInputs().take_front(3))
      if (!elementTypeOf(operand.getType()).isF32())
        return op.emitOpError("attends over ") << elementTypeOf(operand.getType()) << ", not f32";
    e.whileLoop(
        {e.begin}, [&](ValueRange item) { return e.less(item[0], e.end); },
        [&](ValueRange item) { return Emitter::Carried{emitItems(item[0])}; });
    return success();
  }

private:
  ArrayRef<DimAttr> shapeOf(unsigned operand) { return cast<DimsAttr>(kernel.getShapes()[operand]).getDims(); }
  Value roundUp(Value size) { return e.mul(e.ceilDiv(size, lanes), e.index(lanes)); }
  Value input(unsigned i) { return e.buffer(op.getInputs()[i]); }
  Type elementOf(unsigned i) { return elementTypeOf(op.getInputs()[i].getType()); }
  Value at(Value base, Value position) { return e.pointer(base, position, f32); }
  bool mayHide() { return op.getCausalOffset() || keyMask || bias || mask; }

  /// Computes items from `item` on; the first that is left.
  Value emitItems(Value item) {
    Value block = e.rem(item, blocks), batchHead = e.div(item, blocks);
    batch = e.div(batchHead, heads);
    head = e.rem(batchHead, heads);
    keyHead = e.div(head, e.maximum(e.div(heads, keyHeads), e.index(1)));
    Value next = e.minimum(e.minimum(e.end, e.add(e.sub(item, block), blocks)), e.add(item, e.index(attendTogether)));
    first = e.mul(block, e.index(attendRows));
    rows = e.minimum(e.sub(queries, first), e.mul(e.sub(next, item), e.index(attendRows)));
    Value zeros = e.number(vf32, 0);
    e.forLoop(e.index(0), e.mul(rows, paddedValueSize), lanes, [&](Value i) { e.store(zeros, at(sums, i)); });
    e.forLoop(e.index(0), rows, 1, [&](Value r) {
      e.store(e.number(f32, -infinity), at(maxima, r));
      e.store(e.number(f32, 0), at(totals, r));
      if (op.getOutputs().size() > 1)
        fillRow(probabilities(r), e.number(vf32, -infinity));
    });
    // No row sees a key behind the last row's diagonal.
    Value end = keys;
    if (op.getCausalOffset())
      end = e.maximum(e.minimum(end, e.add(e.add(first, rows), e.dim(*op.getCausalOffset()))), e.index(0));
    e.forLoop(e.index(0), end, attendKeys, [&](Value from) {
      Value count = e.minimum(e.sub(end, from), e.index(attendKeys));
      if (!keyMask)
        return emitBlock(from, count, Value());
      auto [some, all] = readKeyMask(from, count);
      e.ifThen(some, [&, all = all] { emitBlock(from, count, all); });
    });
    e.forLoop(e.index(0), rows, 1, [&](Value r) { finishRow(r); });
    return next;
  }

  //===- A block of keys ---===//

  /// Position of [batch, j, keyHead, 0] of the keys or values.
  Value keyPosition(Value j, Value size) {
    return e.mul(e.add(e.mul(e.add(e.mul(batch, keys), j), keyHeads), keyHead), size);
  }

  /// Writes which keys of the block the mask shows; whether one is, and whether all are.
  std::pair<Value, Value> readKeyMask(Value from, Value count) {
    Type element = elementOf(*keyMask), i1 = e.b.getI1Type(), bits = e.b.getIntegerType(lanes);
    Value row = e.pointer(input(*keyMask), e.add(e.mul(batch, keys), from), element);
    Value none = e.integer(e.vectorOf(i1), 0), every = e.integer(e.vectorOf(i1), 1);
    Emitter::Carried found =
        e.forLoop(e.index(0), count, lanes, ValueRange{none, every}, [&](Value position, ValueRange sofar) {
          Value shown = e.load(e.pointer(row, position, element), e.vectorOf(element));
          if (!element.isInteger(1))
            shown = e.compare(arith::CmpIPredicate::ne, shown, e.integer(shown.getType(), 0));
          shown = e.b.create<arith::AndIOp>(e.loc, shown, e.lanesBelow(e.sub(count, position)));
          e.store(shown, e.pointer(visible, position, i1));
          return Emitter::Carried{e.b.create<arith::OrIOp>(e.loc, sofar[0], shown),
                                  e.b.create<arith::AndIOp>(e.loc, sofar[1], shown)};
        });
    auto isNot = [&](Value lanesOfBits, int64_t value) {
      return e.compare(arith::CmpIPredicate::ne, e.b.create<LLVM::BitcastOp>(e.loc, bits, lanesOfBits),
                       e.integer(bits, value));
    };
    Value some = isNot(found[0], 0), hidden = isNot(found[1], -1);
    return {some, e.select(hidden, e.integer(i1, 0), e.integer(i1, 1))};
  }

  /// keysTransposed[d][j] for whole groups of keys; behind the last key the last one is repeated.
  void transposeKeys(Value from, Value count) {
    e.forLoop(e.index(0), count, lanes, [&](Value group) {
      SmallVector<Value> pointers;
      for (int64_t i = 0; i < lanes; ++i) {
        Value j = e.minimum(e.add(group, e.index(i)), e.sub(count, e.index(1)));
        pointers.push_back(at(input(1), keyPosition(e.add(from, j), keySize)));
      }
      e.forLoop(e.index(0), keySize, lanes, [&](Value d) {
        SmallVector<Value> tile;
        for (Value pointer : pointers)
          tile.push_back(e.load(at(pointer, d), vf32));
        emitTranspose(e, tile);
        Value target = at(keysTransposed, e.add(e.mul(d, e.index(attendKeys)), group));
        for (auto [i, row] : llvm::enumerate(tile))
          e.store(row, e.pointer(target, i * attendKeys, f32));
      });
    });
  }

  /// `allShown`: whether the key mask shows every key of a whole block; null without a mask.
  void emitBlock(Value from, Value count, Value allShown) {
    transposeKeys(from, count);
    // Rows whose diagonal lies before the block see none of it.
    Value begin = e.index(0);
    if (op.getCausalOffset())
      begin = e.maximum(e.sub(from, e.add(first, e.dim(*op.getCausalOffset()))), begin);
    Value finite, plain = isPlain(from, count, allShown);
    if (mayHide())
      finite =
          emitAllFinite(e, at(input(2), keyPosition(from, valueSize)), count, valueSize, e.mul(keyHeads, valueSize));
    e.forLoop(begin, rows, attendRows, [&](Value band) {
      Value height = e.minimum(e.sub(rows, band), e.index(attendRows));
      multiplyKeys(band, height, from, count);
      auto weigh = [&](bool whole) { weighRows(band, height, from, count, whole); };
      if (plain)
        e.ifElse(plain, [&] { weigh(true); }, [&] { weigh(false); });
      else
        weigh(false);
      addValues(band, height, from, count, finite);
    });
  }

  /// Whether all rows see all keys of a whole block; null where that is not worth a version of the code.
  Value isPlain(Value from, Value count, Value allShown) {
    if (bias || mask || op.getOutputs().size() > 1)
      return Value();
    Value plain = e.compare(arith::CmpIPredicate::eq, count, e.index(attendKeys));
    auto also = [&](Value condition) { plain = e.b.create<arith::AndIOp>(e.loc, plain, condition); };
    if (allShown)
      also(allShown);
    if (op.getCausalOffset())
      also(e.less(e.add(from, e.index(attendKeys - 1)), e.add(e.add(first, e.dim(*op.getCausalOffset())), e.index(1))));
    return plain;
  }

  /// Has keys and values of the following block brought near, as many of them as `height` rows are of all: rows of
  /// heads lie too far apart for the processor to see where they go. Not into the first level, where they would share
  /// few sets.
  void prefetchNext(Value row, int64_t height, Value from) {
    auto share = [&](Value r) { return e.div(e.mul(r, e.index(attendKeys)), rows); };
    Value next = e.add(from, e.index(attendKeys)),
          last = e.minimum(e.sub(keys, next), share(e.add(row, e.index(height))));
    e.forLoop(share(row), last, 1, [&](Value j) {
      constexpr int64_t line = 16; // floats
      for (auto [operand, size] : {std::pair{1u, keySize}, {2u, valueSize}})
        e.forLoop(e.index(0), size, line, [&, operand = operand, size = size](Value d) {
          Value place = at(input(operand), e.add(keyPosition(e.add(next, j), size), d));
          e.b.create<LLVM::Prefetch>(e.loc, place, /*rw=*/0, /*hint=*/2, /*cache=*/1);
        });
    });
  }

  void multiplyKeys(Value band, Value height, Value from, Value count) {
    Value queryStride = e.mul(heads, keySize);
    Value query = e.mul(e.add(e.mul(e.add(e.mul(batch, queries), e.add(first, band)), heads), head), keySize);
    Product scoring;
    scoring.xStride = queryStride;
    scoring.w = keysTransposed;
    scoring.wStride = scoring.sumsStride = e.index(attendKeys);
    scoring.depth = keySize;
    Value columns = roundUp(count);
    forRowTiles(e, height, e.machine.tileRows, [&](Value row, int64_t tileHeight) {
      prefetchNext(e.add(band, row), tileHeight, from);
      scoring.x = at(input(0), e.add(query, e.mul(row, queryStride)));
      scoring.sums = at(softmax.scores, e.mul(row, e.index(attendKeys)));
      // A short block is rare, a whole one takes the widest tiles.
      emitProductRows(e, scoring, tileHeight, columns);
    });
  }

  /// Scores of a band become weights. `whole`: every row sees all keys of the block, which are attendKeys.
  void weighRows(Value band, Value height, Value from, Value count, bool whole) {
    softmax.maxima = at(maxima, band);
    softmax.totals = at(totals, band);
    softmax.rows = height;
    softmax.count = count;
    softmax.whole = whole;
    auto scoreOf = [&](Value raw, Value row, Value position) {
      Value r = e.add(band, row), score = scoreOfKeys(raw, e.add(first, r), e.add(from, position), position, whole);
      if (op.getOutputs().size() > 1) {
        Value target = at(probabilities(r), e.add(from, position));
        e.maskedStore(score, target, e.lanesBelow(e.sub(count, position)));
      }
      return score;
    };
    auto rescale = [&](Value row, Value factor) {
      Value factors = e.broadcast(factor), rowSums = at(sums, e.mul(e.add(band, row), paddedValueSize));
      e.forLoop(e.index(0), valueSize, lanes,
                [&](Value d) { e.store(e.mul(e.load(at(rowSums, d), vf32), factors), at(rowSums, d)); });
    };
    emitSoftmaxRows(e, softmax, scoreOf, rescale);
  }

  /// Scale, cap, bias and visibility of the keys j … j + 15 for query i; `seen`: they are visible.
  Value scoreOfKeys(Value raw, Value i, Value j, Value position, bool seen) {
    Value shown, score = e.mul(raw, e.number(vf32, op.getScale().convertToFloat()));
    auto also = [&](Value condition) {
      shown = shown ? e.b.create<arith::AndIOp>(e.loc, shown, condition).getResult() : condition;
    };
    if (double cap = op.getSoftcap().convertToFloat(); cap > 0) {
      Num capped{e, emitTanh(e, (Num{e, score} / Num{e, e.number(vf32, cap)}).v)};
      score = (capped * cap).v;
    }
    if (bias) {
      Type element = elementOf(*bias);
      Value value = loadBroadcast(*bias, i, j);
      value = emitTruncateOrExtend(value, element);
      score = e.add(score, value);
      also(e.compare(arith::CmpFPredicate::UGT, value, e.number(vf32, exclusion)));
    }
    if (relative) {
      ArrayRef<DimAttr> table = shapeOf(*relative);
      Value row = constantValue(table[0]) == 1 ? e.index(0) : head;
      Value column = e.sub(e.sub(j, i), e.dim(*op.getRelativeOrigin()));
      score = e.add(score, emitRelative(e, input(*relative), table, row, column));
    }
    if (seen)
      return score;
    if (op.getCausalOffset()) {
      Value last = e.add(i, e.dim(*op.getCausalOffset()));
      also(e.lanesBelow(e.minimum(e.add(e.sub(last, j), e.index(1)), e.index(lanes))));
    }
    if (keyMask)
      also(e.load(e.pointer(visible, position, e.b.getI1Type()), e.vectorOf(e.b.getI1Type())));
    if (mask)
      also(loadBroadcast(*mask, i, j));
    return shown ? e.select(shown, score, e.number(vf32, -infinity)) : score;
  }

  Value emitTruncateOrExtend(Value value, Type element) {
    return element.isF64() ? emitTruncate(e, value, f32) : emitExtend(e, value, element, f32);
  }

  /// Sixteen keys of an operand whose axes are those of [B, H, T, S] or 1.
  Value loadBroadcast(unsigned operand, Value i, Value j) {
    Type element = elementOf(operand);
    ArrayRef<DimAttr> dims = shapeOf(operand);
    Value coordinates[4] = {batch, head, i, j}, position = e.index(0);
    for (auto [axis, dim] : llvm::enumerate(dims)) {
      position = e.mul(position, e.dim(dim));
      if (constantValue(dim) != 1)
        position = e.add(position, coordinates[4 - dims.size() + axis]);
    }
    Value pointer = e.pointer(input(operand), position, element);
    if (dims.empty() || constantValue(dims.back()) == 1)
      return e.broadcast(e.load(pointer, e.carriedType(element)));
    return e.load(pointer, e.vectorOf(e.carriedType(element)));
  }

  /// `finite`: whether the values of the block are; null where no key is hidden.
  void addValues(Value band, Value height, Value from, Value count, Value finite) {
    Product weighing;
    weighing.xStride = e.index(attendKeys);
    weighing.w = at(input(2), keyPosition(from, valueSize));
    weighing.wStride = e.mul(keyHeads, valueSize);
    weighing.depth = count;
    weighing.sumsStride = paddedValueSize;
    weighing.accumulate = true;
    auto setRow = [&](Value row) {
      weighing.x = at(softmax.scores, e.mul(row, e.index(attendKeys)));
      weighing.sums = at(sums, e.mul(e.add(band, row), paddedValueSize));
    };
    auto addTiles = [&] {
      forRowTiles(e, height, e.machine.tileRows, [&](Value row, int64_t tileHeight) {
        setRow(row);
        emitProductRows(e, weighing, tileHeight, paddedValueSize);
      });
    };
    if (!finite)
      return addTiles();
    // 0 times infinity is not 0: where values are not finite, hidden keys have to be left out row by row.
    e.ifElse(finite, addTiles, [&] {
      e.forLoop(e.index(0), height, 1, [&](Value row) {
        setRow(row);
        weighing.present = present;
        e.forLoop(e.index(0), count, lanes, [&](Value position) {
          Value weights = e.load(at(weighing.x, position), vf32);
          e.store(e.compare(arith::CmpFPredicate::UNE, weights, e.number(vf32, 0)),
                  e.pointer(present, position, e.b.getI1Type()));
        });
        emitProductRows(e, weighing, 1, paddedValueSize);
      });
    });
  }

  //===- The end of a row ---===//

  Value probabilities(Value r) {
    Value row = e.add(e.mul(e.add(e.mul(batch, heads), head), queries), e.add(first, r));
    return at(e.buffer(op.getOutputs()[1]), e.mul(row, keys));
  }

  void forGroups(Value size, llvm::function_ref<Value(Value)> valueAt, llvm::function_ref<Value(Value)> pointerAt) {
    e.forLaneGroups(e.index(0), size, [&](Value position, Value rest) {
      Value value = valueAt(position);
      if (rest)
        e.maskedStore(value, pointerAt(position), e.lanesBelow(rest));
      else
        e.store(value, pointerAt(position));
    });
  }
  void fillRow(Value row, Value value) {
    forGroups(keys, [&](Value) { return value; }, [&](Value position) { return at(row, position); });
  }

  void finishRow(Value r) {
    Value maximum = e.load(at(maxima, r), f32), total = e.load(at(totals, r), f32);
    Value output = e.mul(e.add(e.mul(e.add(e.mul(batch, queries), e.add(first, r)), heads), head), valueSize);
    Value outputRow = at(e.buffer(op.getOutputs()[0]), output), rowSums = at(sums, e.mul(r, paddedValueSize));
    auto outputAt = [&](Value d) { return at(outputRow, d); };
    bool hasProbabilities = op.getOutputs().size() > 1;
    auto visibleRow = [&] {
      Value totalsOfRow = e.broadcast(total);
      forGroups(
          valueSize, [&](Value d) { return (Num{e, e.load(at(rowSums, d), vf32)} / Num{e, totalsOfRow}).v; }, outputAt);
      if (!hasProbabilities)
        return;
      Value row = probabilities(r), shift = e.broadcast(finiteMaximum(e, maximum));
      auto pointerAt = [&](Value j) { return at(row, j); };
      forGroups(
          keys,
          [&](Value j) {
            Num weight{e, emitExp(e, e.sub(e.load(pointerAt(j), vf32), shift))};
            return (weight / Num{e, totalsOfRow}).v;
          },
          pointerAt);
    };
    auto emptyRow = [&] {
      auto policy = static_cast<EmptyRow>(op.getEmptyRow());
      Value fill = e.number(vf32, policy == EmptyRow::NaN ? notANumber : 0);
      if (policy == EmptyRow::Uniform) {
        Num count{e, e.b.create<arith::SIToFPOp>(e.loc, f32, e.castIndex(keys, e.b.getI64Type()))};
        Value counts = e.broadcast(count.v);
        Value values = at(input(2), keyPosition(e.index(0), valueSize)), stride = e.mul(keyHeads, valueSize);
        forGroups(
            valueSize,
            [&](Value d) {
              Value sum = e.forLoop(e.index(0), keys, 1, ValueRange{e.number(vf32, 0)}, [&](Value j, ValueRange sofar) {
                return Emitter::Carried{e.add(sofar[0], e.load(at(values, e.add(e.mul(j, stride), d)), vf32))};
              })[0];
              return (Num{e, sum} / Num{e, counts}).v;
            },
            outputAt);
        if (hasProbabilities)
          fillRow(probabilities(r), e.broadcast((1.0 / count).v));
        return;
      }
      forGroups(valueSize, [&](Value) { return fill; }, outputAt);
      if (hasProbabilities)
        fillRow(probabilities(r), fill);
    };
    if (!mayHide())
      return visibleRow();
    Value empty = e.compare(arith::CmpFPredicate::OEQ, total, e.number(f32, 0));
    e.ifElse(empty, emptyRow, visibleRow);
  }

  Emitter &e;
  AttendOp op;
  KernelOp kernel;
  Type f32, vf32;
  std::optional<unsigned> keyMask, bias, mask, relative; // operand numbers
  // Sizes.
  Value queries, heads, keyHeads, keys, keySize, valueSize, paddedKeySize, paddedValueSize, blocks;
  // Parts of the scratch memory. `visible` and `present` have one byte per key of the block.
  Value keysTransposed, sums, maxima, totals, visible, present;
  SoftmaxRows softmax;
  // The item.
  Value batch, head, keyHead, first, rows;
};

} // namespace

LogicalResult cpu::emitAttend(Emitter &emitter, AttendOp op) { return AttendEmitter(emitter, op).emit(); }
