//===- AttendKernel.cpp - kernel.attend ---------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An item is a batch entry, a head and up to 32 query rows. For each absolute block of 64 keys: the keys are
// transposed, scores are a small matrix product, softmax goes row by row, and a second product adds the weighted
// values.

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
    blocks = e.dim(chunksOf(query[1], attendRows));
    Value place = e.index(0);
    auto part = [&](Value count) {
      Value pointer = e.pointer(e.scratch, place, f32);
      place = e.add(place, count);
      return pointer;
    };
    keysTransposed = part(e.mul(paddedKeySize, e.index(attendKeys)));
    sums = part(e.mul(paddedValueSize, e.index(attendRows)));
    scores = part(e.index(attendRows * attendKeys));
    maxima = part(e.index(attendRows));
    totals = part(e.index(attendRows));
    visible = part(e.index(attendKeys));
  }

  LogicalResult emit() {
    for (Value operand : op.getInputs().take_front(3))
      if (!elementTypeOf(operand.getType()).isF32())
        return op.emitOpError("attends over ") << elementTypeOf(operand.getType()) << ", not f32";
    e.forItems([&](Value item) { emitItem(item); });
    return success();
  }

private:
  ArrayRef<DimAttr> shapeOf(unsigned operand) { return cast<DimsAttr>(kernel.getShapes()[operand]).getDims(); }
  Value roundUp(Value size) { return e.mul(e.ceilDiv(size, lanes), e.index(lanes)); }
  Value input(unsigned i) { return e.buffer(op.getInputs()[i]); }
  Type elementOf(unsigned i) { return elementTypeOf(op.getInputs()[i].getType()); }
  Value at(Value base, Value position) { return e.pointer(base, position, f32); }
  bool mayHide() { return op.getCausalOffset() || keyMask || bias || mask; }

  void emitItem(Value item) {
    Value block = e.rem(item, blocks), batchHead = e.div(item, blocks);
    batch = e.div(batchHead, heads);
    head = e.rem(batchHead, heads);
    keyHead = e.div(head, e.maximum(e.div(heads, keyHeads), e.index(1)));
    first = e.mul(block, e.index(attendRows));
    rows = e.minimum(e.sub(queries, first), e.index(attendRows));
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
        return emitBlock(from, count);
      Value some = readKeyMask(from, count);
      e.ifThen(some, [&] { emitBlock(from, count); });
    });
    e.forLoop(e.index(0), rows, 1, [&](Value r) { finishRow(r); });
  }

  //===- A block of keys ---===//

  /// Position of [batch, j, keyHead, 0] of the keys or values.
  Value keyPosition(Value j, Value size) {
    return e.mul(e.add(e.mul(e.add(e.mul(batch, keys), j), keyHeads), keyHead), size);
  }

  /// Writes which keys of the block the mask shows; true if one is.
  Value readKeyMask(Value from, Value count) {
    Type element = elementOf(*keyMask), i1 = e.b.getI1Type();
    Value row = e.pointer(input(*keyMask), e.add(e.mul(batch, keys), from), element);
    Value none = e.integer(e.vectorOf(i1), 0);
    Value some = e.forLoop(e.index(0), count, lanes, ValueRange{none}, [&](Value position, ValueRange sofar) {
      Value shown = e.load(e.pointer(row, position, element), e.vectorOf(element));
      if (!element.isInteger(1))
        shown = e.compare(arith::CmpIPredicate::ne, shown, e.integer(shown.getType(), 0));
      shown = e.b.create<arith::AndIOp>(e.loc, shown, e.lanesBelow(e.sub(count, position)));
      e.store(shown, e.pointer(visible, position, i1));
      return Emitter::Carried{e.b.create<arith::OrIOp>(e.loc, sofar[0], shown)};
    })[0];
    Type bits = e.b.getIntegerType(lanes);
    return e.compare(arith::CmpIPredicate::ne, e.b.create<LLVM::BitcastOp>(e.loc, bits, some), e.integer(bits, 0));
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

  void emitBlock(Value from, Value count) {
    transposeKeys(from, count);
    Value queryStride = e.mul(heads, keySize);
    Value query = e.mul(e.add(e.mul(e.add(e.mul(batch, queries), first), heads), head), keySize);
    Product scoring;
    scoring.xStride = queryStride;
    scoring.w = keysTransposed;
    scoring.wStride = scoring.sumsStride = e.index(attendKeys);
    scoring.depth = keySize;
    Value columns = roundUp(count);
    forRowTiles(e, rows, e.machine.tileRows, [&](Value row, int64_t height) {
      scoring.x = at(input(0), e.add(query, e.mul(row, queryStride)));
      scoring.sums = at(scores, e.mul(row, e.index(attendKeys)));
      // A short block is rare, a whole one takes the widest tiles.
      emitProductRows(e, scoring, height, columns);
    });
    e.forLoop(e.index(0), rows, 1, [&](Value r) { softmaxRow(r, from, count); });
    addValues(from, count);
  }

  void softmaxRow(Value r, Value from, Value count) {
    Value i = e.add(first, r), rowScores = at(scores, e.mul(r, e.index(attendKeys)));
    Value maximum = e.load(at(maxima, r), f32), total = e.load(at(totals, r), f32);
    auto scoreOf = [&](Value raw, Value position) {
      Value score = scoreOfKeys(raw, i, e.add(from, position), position);
      if (op.getOutputs().size() > 1) {
        Value target = at(probabilities(r), e.add(from, position));
        e.maskedStore(score, target, e.lanesBelow(e.sub(count, position)));
      }
      return score;
    };
    SoftmaxState state = emitSoftmaxBlock(e, rowScores, count, scoreOf, maximum, total);
    e.store(state.maximum, at(maxima, r));
    e.store(state.total, at(totals, r));
    Value changed = e.compare(arith::CmpFPredicate::UNE, state.factor, e.number(f32, 1));
    e.ifThen(changed, [&] {
      Value factors = e.broadcast(state.factor), rowSums = at(sums, e.mul(r, paddedValueSize));
      e.forLoop(e.index(0), valueSize, lanes,
                [&](Value d) { e.store(e.mul(e.load(at(rowSums, d), vf32), factors), at(rowSums, d)); });
    });
  }

  /// Scale, cap, bias and visibility of the keys j … j + 15 for query i.
  Value scoreOfKeys(Value raw, Value i, Value j, Value position) {
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

  void addValues(Value from, Value count) {
    Product weighing;
    weighing.xStride = e.index(attendKeys);
    weighing.w = at(input(2), keyPosition(from, valueSize));
    weighing.wStride = e.mul(keyHeads, valueSize);
    weighing.depth = count;
    weighing.sumsStride = paddedValueSize;
    weighing.accumulate = true;
    auto addTiles = [&] {
      forRowTiles(e, rows, e.machine.tileRows, [&](Value row, int64_t height) {
        weighing.x = at(scores, e.mul(row, e.index(attendKeys)));
        weighing.sums = at(sums, e.mul(row, paddedValueSize));
        emitProductRows(e, weighing, height, paddedValueSize);
      });
    };
    if (!mayHide())
      return addTiles();
    // 0 times infinity is not 0: where values are not finite, hidden keys have to be left out row by row.
    Value finite = allFinite(weighing.w, weighing.wStride, count);
    e.ifElse(finite, addTiles, [&] {
      e.forLoop(e.index(0), rows, 1, [&](Value r) {
        weighing.x = at(scores, e.mul(r, e.index(attendKeys)));
        weighing.sums = at(sums, e.mul(r, paddedValueSize));
        weighing.present = visible;
        e.forLoop(e.index(0), count, lanes, [&](Value position) {
          Value weights = e.load(at(weighing.x, position), vf32);
          e.store(e.compare(arith::CmpFPredicate::UNE, weights, e.number(vf32, 0)),
                  e.pointer(visible, position, e.b.getI1Type()));
        });
        emitProductRows(e, weighing, 1, paddedValueSize);
      });
    });
  }

  /// No infinity and no NaN among `count` rows of values.
  Value allFinite(Value values, Value stride, Value count) {
    Value zeros = e.number(vf32, 0);
    Value probe = e.forLoop(e.index(0), count, 1, ValueRange{zeros}, [&](Value j, ValueRange outer) {
      Value row = at(values, e.mul(j, stride));
      return e.forLoop(e.index(0), valueSize, lanes, outer, [&](Value d, ValueRange sofar) {
        Value group = e.select(e.lanesBelow(e.sub(valueSize, d)), e.load(at(row, d), vf32), zeros);
        return Emitter::Carried{e.fma(group, zeros, sofar[0])};
      });
    })[0];
    Type bits = e.b.getIntegerType(lanes);
    Value broken = e.compare(arith::CmpFPredicate::UNO, probe, probe);
    return e.compare(arith::CmpIPredicate::eq, e.b.create<LLVM::BitcastOp>(e.loc, bits, broken), e.integer(bits, 0));
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
    Value empty = e.compare(arith::CmpFPredicate::OEQ, maximum, e.number(f32, -infinity));
    e.ifElse(empty, emptyRow, visibleRow);
  }

  Emitter &e;
  AttendOp op;
  KernelOp kernel;
  Type f32, vf32;
  std::optional<unsigned> keyMask, bias, mask, relative; // operand numbers
  // Sizes.
  Value queries, heads, keyHeads, keys, keySize, valueSize, paddedKeySize, paddedValueSize, blocks;
  // Parts of the scratch memory. `visible` has one byte per key of the block.
  Value keysTransposed, sums, scores, maxima, totals, visible;
  // The item.
  Value batch, head, keyHead, first, rows;
};

} // namespace

LogicalResult cpu::emitAttend(Emitter &emitter, AttendOp op) { return AttendEmitter(emitter, op).emit(); }
