//===- RowAttention.cpp - attention of single query rows
//------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Online softmax over absolute blocks of attendKeys keys from key 0. A hidden key has weight exactly 0, and a block
// without visible keys changes nothing, so a row's bits depend on its visible keys alone: not on padding, not on the
// batch.

#include "codegen/cpu/Math.h"
#include "codegen/cpu/Schedule.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::transept;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
enum EmptyRow : int64_t { Uniform = 0, Zero = 1, NaN = 2 };

/// One query row against `count` keys.
struct RowAttention {
  int64_t keySize = 0, valueSize = 0;
  double scale = 1, softcap = 0;
  int64_t emptyRow = Uniform;
  Value query;                                 // pointer to keySize floats
  Value count;                                 // index
  llvm::function_ref<Value(Value)> key, value; // pointers of key and value j
  std::function<Value(Value)> visible;         // i1 of key j; none: all
  std::function<Value(Value)> bias;            // f32 added to the scaled score of key j
  Value output;                                // pointer to valueSize floats
  Value probabilities;                         // pointer to `count` floats, or null
  Value scores;                                // pointer to attendKeys floats of scratch
};

class RowEmitter {
public:
  RowEmitter(Emitter &emitter, const RowAttention &row) : e(emitter), row(row) {}

  void emit() {
    for (int64_t at = 0; at < row.keySize; at += lanes)
      query.push_back(group(row.query, at, row.keySize));
    int64_t groups = (row.valueSize + lanes - 1) / lanes;
    Emitter::Carried start{e.number(e.f32(), -infinity), e.number(e.f32(), 0)};
    start.append(groups, e.number(e.vf32(), 0));
    Emitter::Carried state = e.forLoop(e.index(0), row.count, attendKeys, start,
                                       [&](Value from, ValueRange carried) { return block(from, carried); });
    Value maximum = state[0], sum = state[1];
    for (int64_t g = 0; g < groups; ++g) {
      Value quotient = e.b.create<arith::DivFOp>(e.loc, state[2 + g], e.broadcast(sum));
      storeGroup(quotient, g);
    }
    if (row.probabilities)
      e.forLoop(e.index(0), row.count, 1, [&](Value j) {
        Value weight = emitExp(e, e.sub(score(j), finite(maximum)));
        e.store(e.b.create<arith::DivFOp>(e.loc, weight, sum), e.pointer(row.probabilities, j, e.f32()));
      });
    if (row.visible || row.emptyRow != NaN)
      e.ifThen(e.compare(arith::CmpFPredicate::OEQ, sum, e.number(e.f32(), 0)), [&] { emptyRow(groups); });
  }

private:
  /// Sixteen floats; behind `size`, zeros.
  Value group(Value base, int64_t at, int64_t size) {
    Value loaded = e.load(e.pointer(base, at, e.f32()), e.vf32());
    if (at + lanes <= size)
      return loaded;
    return e.select(e.lanesBelow(e.index(size - at)), loaded, e.number(e.vf32(), 0));
  }

  void storeGroup(Value vector, int64_t g) {
    Value target = e.pointer(row.output, g * lanes, e.f32());
    if ((g + 1) * lanes <= row.valueSize)
      e.store(vector, target);
    else
      e.maskedStore(vector, target, e.lanesBelow(e.index(row.valueSize - g * lanes)));
  }

  /// The score of key j, -inf where it is hidden.
  Value score(Value j) {
    Value key = row.key(j), sums = e.number(e.vf32(), 0);
    for (auto [g, part] : llvm::enumerate(query))
      sums = e.fma(part, group(key, g * lanes, row.keySize), sums);
    Value result = e.reduceLanes(sums, [&](Value x, Value y) { return e.add(x, y); });
    result = e.mul(result, e.number(e.f32(), row.scale));
    if (row.softcap != 0)
      result = e.mul(emitTanh(e, e.b.create<arith::DivFOp>(e.loc, result, e.number(e.f32(), row.softcap))),
                     e.number(e.f32(), row.softcap));
    if (row.bias)
      result = e.add(result, row.bias(j));
    if (row.visible)
      result = e.select(row.visible(j), result, e.number(e.f32(), -infinity));
    return result;
  }

  Value finite(Value maximum) {
    Value none = e.compare(arith::CmpFPredicate::OEQ, maximum, e.number(e.f32(), -infinity));
    return e.select(none, e.number(e.f32(), 0), maximum);
  }

  Emitter::Carried block(Value from, ValueRange carried) {
    Value count = e.minimum(e.sub(row.count, from), e.index(attendKeys));
    Value best = e.forLoop(e.index(0), count, 1, ValueRange{carried[0]}, [&](Value j, ValueRange sofar) {
      Value current = score(e.add(from, j));
      e.store(current, e.pointer(row.scores, j, e.f32()));
      return Emitter::Carried{e.b.create<arith::MaximumFOp>(e.loc, sofar[0], current)};
    })[0];
    Value shift = finite(best), correction = emitExp(e, e.sub(carried[0], shift));
    Value shifts = e.broadcast(shift);
    Value sums =
        e.forLoop(e.index(0), count, lanes, ValueRange{e.number(e.vf32(), 0)}, [&](Value at, ValueRange sofar) {
          Value place = e.pointer(row.scores, at, e.f32());
          Value weights = emitExp(e, e.sub(e.load(place, e.vf32()), shifts));
          weights = e.select(e.lanesBelow(e.sub(count, at)), weights, e.number(e.vf32(), 0));
          e.store(weights, place);
          return Emitter::Carried{e.add(sofar[0], weights)};
        })[0];
    Value sum = e.fma(carried[1], correction, e.reduceLanes(sums, [&](Value x, Value y) { return e.add(x, y); }));
    Emitter::Carried values;
    for (Value part : carried.drop_front(2))
      values.push_back(e.mul(part, e.broadcast(correction)));
    values = e.forLoop(e.index(0), count, 1, values, [&](Value j, ValueRange sofar) {
      Value weight = e.load(e.pointer(row.scores, j, e.f32()), e.f32());
      Value weights = e.broadcast(weight), zeros = e.number(e.vf32(), 0);
      Value hidden = e.broadcast(e.compare(arith::CmpFPredicate::OEQ, weight, e.number(e.f32(), 0)));
      Value source = row.value(e.add(from, j));
      Emitter::Carried next;
      for (auto [g, part] : llvm::enumerate(sofar))
        next.push_back(e.fma(weights, e.select(hidden, zeros, group(source, g * lanes, row.valueSize)), part));
      return next;
    });
    Emitter::Carried result{best, sum};
    result.append(values);
    return result;
  }

  /// No key is visible.
  void emptyRow(int64_t groups) {
    Emitter::Carried values(groups,
                            e.number(e.vf32(), row.emptyRow == NaN ? std::numeric_limits<double>::quiet_NaN() : 0));
    Value weight = values.empty()
                       ? Value()
                       : e.number(e.f32(), row.emptyRow == Zero ? 0 : std::numeric_limits<double>::quiet_NaN());
    if (row.emptyRow == Uniform) {
      values = e.forLoop(e.index(0), row.count, 1, values, [&](Value j, ValueRange sofar) {
        Emitter::Carried next;
        for (auto [g, part] : llvm::enumerate(sofar))
          next.push_back(e.add(part, group(row.value(j), g * lanes, row.valueSize)));
        return next;
      });
      Value count = e.b.create<arith::UIToFPOp>(e.loc, e.f32(), e.castIndex(row.count, e.b.getI64Type()));
      weight = e.b.create<arith::DivFOp>(e.loc, e.number(e.f32(), 1), count);
      for (Value &part : values)
        part = e.b.create<arith::DivFOp>(e.loc, part, e.broadcast(count));
    }
    for (int64_t g = 0; g < groups; ++g)
      storeGroup(values[g], g);
    if (row.probabilities)
      e.forLoop(e.index(0), row.count, 1, [&](Value j) { e.store(weight, e.pointer(row.probabilities, j, e.f32())); });
  }

  Emitter &e;
  const RowAttention &row;
  SmallVector<Value> query;
};

ArrayRef<DimAttr> shapeOf(KernelOp op, unsigned operand) { return cast<DimsAttr>(op.getShapes()[operand]).getDims(); }

/// Non-zero elements of an integer or i1 mask.
Value isSet(Emitter &e, Value pointer, Type element) {
  Value loaded = e.load(pointer, element);
  return element.isInteger(1) ? loaded : e.compare(arith::CmpIPredicate::ne, loaded, e.integer(element, 0));
}

/// Constant head counts and sizes of [.., heads, size] operands.
FailureOr<int64_t> constantSize(Operation *op, DimAttr dim) {
  if (std::optional<int64_t> value = constantValue(dim))
    return *value;
  return op->emitOpError("needs constant heads and head sizes, not ") << toString(dim);
}

} // namespace

LogicalResult cpu::emitAttendCache(Emitter &e, AttendCacheOp op) {
  KernelOp kernel = cast<KernelOp>(op.getOperation());
  ArrayRef<DimAttr> pool = shapeOf(kernel, 1), table = shapeOf(kernel, 2);
  int64_t heads = op.getHeads(), kvHeads = op.getKvHeads(), keySize = op.getKeySize(), valueSize = op.getValueSize();
  Value query = e.buffer(op.getInputs()[0]), cache = e.buffer(op.getInputs()[1]), blocks = e.buffer(op.getInputs()[2]),
        positions = e.buffer(op.getInputs()[3]), output = e.buffer(op.getOutputs()[0]);
  Value limit =
      e.minimum(e.end, e.liveRows(kernel, dimMul(shapeOf(kernel, 0)[0], dimConstant(op.getContext(), heads))));
  e.forLoop(e.begin, limit, 1, [&](Value item) {
    Value r = e.div(item, e.index(heads)), h = e.rem(item, e.index(heads));
    Value kvHead = e.div(h, e.index(heads / kvHeads));
    Value tableRow = e.pointer(blocks, e.mul(r, e.dim(table[1])), e.b.getI32Type());
    auto at = [&](Value j, int64_t offset, int64_t size) {
      Value block = e.castIndex(e.load(e.pointer(tableRow, j, e.b.getI32Type()), e.b.getI32Type()), e.b.getIndexType());
      Value inside = e.add(e.mul(kvHead, e.index(cacheBlockPositions)), e.rem(j, e.index(cacheBlockPositions)));
      Value element = e.add(e.mul(block, e.dim(pool[1])), e.add(e.index(offset), e.mul(inside, e.index(size))));
      return e.pointer(cache, element, e.f32());
    };
    auto keyAt = [&](Value j) { return at(j, op.getKeyOffset(), keySize); };
    auto valueAt = [&](Value j) { return at(j, op.getValueOffset(), valueSize); };
    Value position = e.load(e.pointer(positions, r, e.b.getI64Type()), e.b.getI64Type());
    RowAttention row;
    row.keySize = keySize;
    row.valueSize = valueSize;
    row.scale = op.getScale().convertToFloat();
    row.query = e.pointer(query, e.mul(item, e.index(keySize)), e.f32());
    row.count = e.add(e.castIndex(position, e.b.getIndexType()), e.index(1));
    row.key = keyAt;
    row.value = valueAt;
    row.output = e.pointer(output, e.mul(item, e.index(valueSize)), e.f32());
    row.scores = e.scratch;
    RowEmitter(e, row).emit();
  });
  return success();
}

LogicalResult cpu::emitAttendSource(Emitter &e, AttendSourceOp op) {
  KernelOp kernel = cast<KernelOp>(op.getOperation());
  ArrayRef<DimAttr> queryDims = shapeOf(kernel, 0), keyDims = shapeOf(kernel, 1), valueDims = shapeOf(kernel, 2);
  FailureOr<int64_t> heads = constantSize(op, queryDims[2]), kvHeads = constantSize(op, keyDims[2]),
                     keySize = constantSize(op, keyDims[3]), valueSize = constantSize(op, valueDims[3]);
  if (failed(heads) || failed(kvHeads) || failed(keySize) || failed(valueSize))
    return failure();
  Value query = e.buffer(op.getInputs()[0]), keys = e.buffer(op.getInputs()[1]), values = e.buffer(op.getInputs()[2]),
        sources = e.buffer(op.getInputs()[3]), output = e.buffer(op.getOutputs()[0]);
  Value mask = op.getHasKeyMask() ? e.buffer(op.getInputs()[4]) : Value();
  Type maskType = mask ? elementTypeOf(op.getInputs()[4].getType()) : Type();
  Value limit = e.minimum(e.end, e.liveRows(kernel, dimMul(queryDims[0], queryDims[2])));
  Value length = e.dim(keyDims[1]);
  e.forLoop(e.begin, limit, 1, [&](Value item) {
    Value r = e.div(item, e.index(*heads)), h = e.rem(item, e.index(*heads));
    Value kvHead = e.div(h, e.index(*heads / *kvHeads));
    Value source = e.castIndex(e.load(e.pointer(sources, r, e.b.getI32Type()), e.b.getI32Type()), e.b.getIndexType());
    Value first = e.mul(source, length);
    auto at = [&](Value base, Value j, int64_t size) {
      Value element = e.mul(e.add(e.mul(e.add(first, j), e.index(*kvHeads)), kvHead), e.index(size));
      return e.pointer(base, element, e.f32());
    };
    auto keyAt = [&](Value j) { return at(keys, j, *keySize); };
    auto valueAt = [&](Value j) { return at(values, j, *valueSize); };
    RowAttention row;
    row.keySize = *keySize;
    row.valueSize = *valueSize;
    row.scale = op.getScale().convertToFloat();
    row.emptyRow = op.getEmptyRow();
    row.query = e.pointer(query, e.mul(item, e.index(*keySize)), e.f32());
    row.count = length;
    row.key = keyAt;
    row.value = valueAt;
    if (mask)
      row.visible = [&](Value j) { return isSet(e, e.pointer(mask, e.add(first, j), maskType), maskType); };
    row.output = e.pointer(output, e.mul(item, e.index(*valueSize)), e.f32());
    row.scores = e.scratch;
    RowEmitter(e, row).emit();
  });
  return success();
}

LogicalResult cpu::emitAttend(Emitter &e, AttendOp op) {
  KernelOp kernel = cast<KernelOp>(op.getOperation());
  ArrayRef<DimAttr> queryDims = shapeOf(kernel, 0), keyDims = shapeOf(kernel, 1), valueDims = shapeOf(kernel, 2);
  FailureOr<int64_t> heads = constantSize(op, queryDims[2]), kvHeads = constantSize(op, keyDims[2]),
                     keySize = constantSize(op, keyDims[3]), valueSize = constantSize(op, valueDims[3]);
  if (failed(heads) || failed(kvHeads) || failed(keySize) || failed(valueSize))
    return failure();
  for (Value operand : op.getInputs().take_front(3))
    if (!elementTypeOf(operand.getType()).isF32())
      return op.emitOpError("attends over ") << elementTypeOf(operand.getType()) << ", not f32";
  unsigned next = 3;
  auto optional = [&](bool there) { return there ? std::optional<unsigned>(next++) : std::nullopt; };
  std::optional<unsigned> keyMask = optional(op.getHasKeyMask()), bias = optional(op.getHasBias()),
                          mask = optional(op.getHasMask());
  Value query = e.buffer(op.getInputs()[0]), keys = e.buffer(op.getInputs()[1]), values = e.buffer(op.getInputs()[2]),
        output = e.buffer(op.getOutputs()[0]);
  Value queries = e.dim(queryDims[1]), length = e.dim(keyDims[1]), H = e.index(*heads);
  Value chunks = e.ceilDiv(queries, attendRows);
  e.forItems([&](Value item) {
    Value chunk = e.rem(item, chunks), batchHead = e.div(item, chunks);
    Value b = e.div(batchHead, H), h = e.rem(batchHead, H), kvHead = e.div(h, e.index(*heads / *kvHeads));
    Value from = e.mul(chunk, e.index(attendRows)), to = e.minimum(queries, e.add(from, e.index(attendRows)));
    Value first = e.mul(b, length);
    auto at = [&](Value base, Value j, int64_t size) {
      Value element = e.mul(e.add(e.mul(e.add(first, j), e.index(*kvHeads)), kvHead), e.index(size));
      return e.pointer(base, element, e.f32());
    };
    auto keyAt = [&](Value j) { return at(keys, j, *keySize); };
    auto valueAt = [&](Value j) { return at(values, j, *valueSize); };
    e.forLoop(from, to, 1, [&](Value i) {
      Value queryIndex = e.add(e.mul(e.add(e.mul(b, queries), i), H), h);
      // Broadcast operands: [.., .., T, S] with size-1 axes standing still.
      auto broadcastAt = [&](unsigned operand, Value j, Type element) {
        ArrayRef<DimAttr> dims = shapeOf(kernel, operand);
        Value coordinates[4] = {b, h, i, j}, position = e.index(0);
        for (auto [axis, dim] : llvm::enumerate(dims)) {
          position = e.mul(position, e.dim(dim));
          if (constantValue(dim) != 1)
            position = e.add(position, coordinates[4 - dims.size() + axis]);
        }
        return e.pointer(e.buffer(op.getInputs()[operand]), position, element);
      };
      RowAttention row;
      row.keySize = *keySize;
      row.valueSize = *valueSize;
      row.scale = op.getScale().convertToFloat();
      row.softcap = op.getSoftcap().convertToFloat();
      row.emptyRow = op.getEmptyRow();
      row.query = e.pointer(query, e.mul(queryIndex, e.index(*keySize)), e.f32());
      row.count = length;
      row.key = keyAt;
      row.value = valueAt;
      if (op.getCausalOffset() || keyMask || mask)
        row.visible = [&](Value j) {
          Value seen = e.b.create<arith::ConstantIntOp>(e.loc, 1, 1);
          auto also = [&](Value condition) { seen = e.b.createOrFold<arith::AndIOp>(e.loc, seen, condition); };
          if (op.getCausalOffset())
            also(e.compare(arith::CmpIPredicate::sle, j, e.add(i, e.dim(*op.getCausalOffset()))));
          if (keyMask) {
            Type element = elementTypeOf(op.getInputs()[*keyMask].getType());
            also(isSet(e, e.pointer(e.buffer(op.getInputs()[*keyMask]), e.add(first, j), element), element));
          }
          if (mask)
            also(isSet(e, broadcastAt(*mask, j, e.b.getI1Type()), e.b.getI1Type()));
          return seen;
        };
      if (bias)
        row.bias = [&](Value j) { return e.load(broadcastAt(*bias, j, e.f32()), e.f32()); };
      row.output = e.pointer(output, e.mul(queryIndex, e.index(*valueSize)), e.f32());
      if (op.getOutputs().size() > 1) {
        Value rowIndex = e.add(e.mul(e.add(e.mul(b, H), h), queries), i);
        row.probabilities = e.pointer(e.buffer(op.getOutputs()[1]), e.mul(rowIndex, length), e.f32());
      }
      row.scores = e.scratch;
      RowEmitter(e, row).emit();
    });
  });
  return success();
}

LogicalResult cpu::emitCacheAppend(Emitter &e, CacheAppendOp op) {
  KernelOp kernel = cast<KernelOp>(op.getOperation());
  ArrayRef<DimAttr> pool = shapeOf(kernel, 2), table = shapeOf(kernel, 3);
  Value cache = e.buffer(op.getInputs()[2]), blocks = e.buffer(op.getInputs()[3]),
        positions = e.buffer(op.getInputs()[4]);
  Value limit = e.minimum(e.end, e.liveRows(kernel, shapeOf(kernel, 0)[0]));
  e.forLoop(e.begin, limit, 1, [&](Value r) {
    Value position =
        e.castIndex(e.load(e.pointer(positions, r, e.b.getI64Type()), e.b.getI64Type()), e.b.getIndexType());
    Value entry = e.pointer(blocks, e.add(e.mul(r, e.dim(table[1])), position), e.b.getI32Type());
    Value block = e.castIndex(e.load(entry, e.b.getI32Type()), e.b.getIndexType());
    Value first = e.mul(block, e.dim(pool[1])), inside = e.rem(position, e.index(cacheBlockPositions));
    auto copy = [&](Value source, int64_t offset, int64_t size) {
      e.forLoop(e.index(0), e.index(op.getKvHeads()), 1, [&](Value h) {
        Value slot = e.add(e.mul(h, e.index(cacheBlockPositions)), inside);
        Value target = e.pointer(cache, e.add(first, e.add(e.index(offset), e.mul(slot, e.index(size)))), e.f32());
        Value from = e.pointer(source, e.mul(e.add(e.mul(r, e.index(op.getKvHeads())), h), e.index(size)), e.f32());
        e.forLaneGroups(e.index(0), e.index(size), [&](Value at, Value count) {
          Value group = e.load(e.pointer(from, at, e.f32()), e.vf32());
          if (count)
            e.maskedStore(group, e.pointer(target, at, e.f32()), e.lanesBelow(count));
          else
            e.store(group, e.pointer(target, at, e.f32()));
        });
      });
    };
    copy(e.buffer(op.getInputs()[0]), op.getKeyOffset(), op.getKeySize());
    copy(e.buffer(op.getInputs()[1]), op.getValueOffset(), op.getValueSize());
  });
  return success();
}
