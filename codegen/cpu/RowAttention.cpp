//===- RowAttention.cpp - attention of single query rows, and the cache they read ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An item is a row, one of its queries and a head. The elements of a query and a key are multiplied in 16 lanes that
// are then added up; the values are added key by key.

#include "codegen/cpu/Kernels.h"
#include "codegen/cpu/LaneMatrix.h"
#include "codegen/cpu/OnlineSoftmax.h"
#include "codegen/cpu/Schedule.h"
#include "codegen/emit/Math.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;
using namespace mlir::transept;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {

/// One query row against `count` keys.
struct RowAttention {
  int64_t keySize = 0, valueSize = 0;
  double scale = 1;
  EmptyRow emptyRow = EmptyRow::Uniform;
  Type element;                                // of keys and values, f32 or bf16
  Value query;                                 // pointer to keySize floats
  Value count;                                 // index
  llvm::function_ref<Value(Value)> key, value; // pointers of key and value j
  llvm::function_ref<Value(Value)> nextKey;    // of key j of the item that follows; any address does
  std::function<Value(Value)> visible;         // of keys j … j + 15 as i1 lanes; none: all are
  std::function<Value(Value)> relative;        // what is added to the scores of keys j … j + 15; none: nothing
  Value output;                                // pointer to valueSize floats
  Value probabilities;                         // pointer to `count` floats; none: not asked for
  Value scores;                                // pointer to attendKeys + 16 floats of scratch
};

class RowEmitter {
public:
  RowEmitter(Emitter &emitter, const RowAttention &row) : e(emitter), row(row), vf32(e.vf32()) {}

  void emit() {
    for (int64_t at = 0; at < row.keySize; at += lanes)
      query.push_back(group(row.query, at, row.keySize, e.f32()));
    int64_t groups = (row.valueSize + lanes - 1) / lanes;
    Emitter::Carried start{e.number(e.f32(), -infinity), e.number(e.f32(), 0)};
    start.append(groups, e.number(vf32, 0));
    Emitter::Carried state = e.forLoop(e.index(0), row.count, attendKeys, start,
                                       [&](Value from, ValueRange carried) { return block(from, carried); });
    Value maximum = state[0], totals = e.broadcast(state[1]);
    auto divide = [&] {
      for (int64_t g = 0; g < groups; ++g)
        storeGroup(e.b.create<arith::DivFOp>(e.loc, state[2 + g], totals), g);
      if (!row.probabilities)
        return;
      Value shifts = e.broadcast(finiteMaximum(e, maximum));
      forKeys([&](Value j) {
        Value score = e.load(e.pointer(row.probabilities, j, e.f32()), vf32);
        return e.b.create<arith::DivFOp>(e.loc, emitExp(e, e.sub(score, shifts)), totals);
      });
    };
    if (!row.visible)
      return divide();
    Value empty = e.compare(arith::CmpFPredicate::OEQ, state[1], e.number(e.f32(), 0));
    e.ifElse(empty, [&] { emptyRow(groups); }, divide);
  }

private:
  /// Sixteen elements as floats; behind `size`, zeros.
  Value group(Value base, int64_t at, int64_t size, Type element) {
    Value loaded = e.load(e.pointer(base, at, element), e.vectorOf(e.carriedType(element)));
    if (!element.isF32())
      loaded = emitExtend(e, loaded, element, e.f32());
    if (at + lanes <= size)
      return loaded;
    return e.select(e.lanesBelow(e.index(size - at)), loaded, e.number(vf32, 0));
  }

  void storeGroup(Value vector, int64_t g) {
    Value target = e.pointer(row.output, g * lanes, e.f32());
    if ((g + 1) * lanes <= row.valueSize)
      e.store(vector, target);
    else
      e.maskedStore(vector, target, e.lanesBelow(e.index(row.valueSize - g * lanes)));
  }

  /// Has the lines of `size` elements brought near: rows of different keys lie too far apart for the processor to see
  /// where they go. Not into the first level, in a few sets of which they would all be.
  void prefetch(Value base, int64_t size) {
    constexpr int64_t line = 64;
    for (int64_t at = 0; at < size * e.bytesOf(row.element); at += line)
      e.b.create<LLVM::Prefetch>(e.loc, e.pointer(base, at, e.b.getI8Type()), /*rw=*/0, /*hint=*/2, /*cache=*/1);
  }

  /// Writes the probabilities of all keys, 16 at a time.
  void forKeys(llvm::function_ref<Value(Value j)> valueAt) {
    e.forLaneGroups(e.index(0), row.count, [&](Value j, Value rest) {
      Value value = valueAt(j), target = e.pointer(row.probabilities, j, e.f32());
      if (rest)
        e.maskedStore(value, target, e.lanesBelow(rest));
      else
        e.store(value, target);
    });
  }

  /// Products of the query with keys from + position and the following ones, into the scores of the block. Behind the
  /// last key it is taken again.
  void multiplyKeys(Value from, Value count) {
    // As many sums as registers hold; the additions of a key are the same for any number.
    const int64_t together = e.machine.registers > lanes ? lanes : 4;
    e.forLoop(e.index(0), count, together, [&](Value position) {
      SmallVector<Value> pointers, sums(together, e.number(vf32, 0));
      for (int64_t i = 0; i < together; ++i) {
        Value j = e.minimum(e.add(position, e.index(i)), e.sub(count, e.index(1)));
        pointers.push_back(row.key(e.add(from, j)));
        prefetch(row.value(e.add(from, j)), row.valueSize);
      }
      for (auto [g, part] : llvm::enumerate(query))
        for (int64_t i = 0; i < together; ++i)
          sums[i] = e.fma(part, group(pointers[i], g * lanes, row.keySize, row.element), sums[i]);
      // What lies behind the sums of these keys is overwritten by the next ones.
      e.store(emitLaneSums(e, sums), e.pointer(row.scores, position, e.f32()));
    });
  }

  Emitter::Carried block(Value from, ValueRange carried) {
    Value count = e.minimum(e.sub(row.count, from), e.index(attendKeys));
    multiplyKeys(from, count);
    auto scoreOf = [&](Value raw, Value position) {
      Value score = e.mul(raw, e.number(vf32, row.scale));
      if (row.relative)
        score = e.add(score, row.relative(e.add(from, position)));
      if (row.visible)
        score = e.select(row.visible(e.add(from, position)), score, e.number(vf32, -infinity));
      if (row.probabilities) // until the end, the scores
        e.maskedStore(score, e.pointer(row.probabilities, e.add(from, position), e.f32()),
                      e.lanesBelow(e.sub(count, position)));
      return score;
    };
    SoftmaxState state = emitSoftmaxBlock(e, row.scores, count, scoreOf, carried[0], carried[1]);
    Emitter::Carried values;
    for (Value part : carried.drop_front(2))
      values.push_back(e.mul(part, e.broadcast(state.factor)));
    Value next = e.add(from, e.index(attendKeys)), more = e.less(next, row.count);
    values = e.forLoop(e.index(0), count, 1, values, [&](Value j, ValueRange sofar) {
      prefetch(e.select(more, row.key(e.minimum(e.add(next, j), e.sub(row.count, e.index(1)))), row.nextKey(j)),
               row.keySize);
      Value weight = e.load(e.pointer(row.scores, j, e.f32()), e.f32());
      Value weights = e.broadcast(weight), source = row.value(e.add(from, j));
      // A hidden value counts as zeros, whatever it holds.
      Value shown = e.compare(arith::CmpFPredicate::UNE, weights, e.number(vf32, 0));
      Emitter::Carried next;
      for (auto [g, part] : llvm::enumerate(sofar)) {
        Value value = group(source, g * lanes, row.valueSize, row.element);
        if (row.visible)
          value = e.select(shown, value, e.number(vf32, 0));
        next.push_back(e.fma(weights, value, part));
      }
      return next;
    });
    Emitter::Carried result{state.maximum, state.total};
    result.append(values);
    return result;
  }

  void emptyRow(int64_t groups) {
    Value uniform;
    double fill = row.emptyRow == EmptyRow::NaN ? std::numeric_limits<double>::quiet_NaN() : 0;
    Emitter::Carried values(groups, e.number(vf32, fill));
    if (row.emptyRow == EmptyRow::Uniform) {
      values = e.forLoop(e.index(0), row.count, 1, values, [&](Value j, ValueRange sofar) {
        Emitter::Carried next;
        for (auto [g, part] : llvm::enumerate(sofar))
          next.push_back(e.add(part, group(row.value(j), g * lanes, row.valueSize, row.element)));
        return next;
      });
      Value count = e.b.create<arith::SIToFPOp>(e.loc, e.f32(), e.castIndex(row.count, e.b.getI64Type()));
      for (Value &part : values)
        part = e.b.create<arith::DivFOp>(e.loc, part, e.broadcast(count));
      uniform = e.broadcast(e.b.create<arith::DivFOp>(e.loc, e.number(e.f32(), 1), count));
    }
    for (int64_t g = 0; g < groups; ++g)
      storeGroup(values[g], g);
    if (row.probabilities)
      forKeys([&](Value) { return uniform ? uniform : e.number(vf32, fill); });
  }

  Emitter &e;
  const RowAttention &row;
  Type vf32;
  SmallVector<Value> query;
};

ArrayRef<DimAttr> shapeOf(KernelOp op, unsigned operand) { return cast<DimsAttr>(op.getShapes()[operand]).getDims(); }

/// Constant head counts and sizes of [.., heads, size] operands.
FailureOr<int64_t> constantSize(Operation *op, DimAttr dim) {
  if (std::optional<int64_t> value = constantValue(dim))
    return *value;
  return op->emitOpError("needs constant heads and head sizes, not ") << toString(dim);
}

/// Keys to look at: those behind the last one that is shown have no weight, so a slot that is longer than its source
/// costs nothing. All of them where none is shown.
Value emitShownKeys(Emitter &e, Value length, llvm::function_ref<Value(Value)> visible) {
  Type bits = e.b.getIntegerType(lanes);
  Value zero = e.index(0), all = e.mul(e.ceilDiv(length, lanes), e.index(lanes));
  auto before = [&](Value end) { return e.sub(end, e.index(lanes)); };
  auto hidden = [&](ValueRange end) {
    Value first = e.maximum(before(end[0]), zero);
    Value shown = e.b.create<arith::AndIOp>(e.loc, visible(first), e.lanesBelow(e.sub(length, first)));
    Value none =
        e.compare(arith::CmpIPredicate::eq, e.b.create<LLVM::BitcastOp>(e.loc, bits, shown), e.integer(bits, 0));
    return e.select(e.less(zero, end[0]), none, e.integer(e.b.getI1Type(), 0));
  };
  Value end =
      e.whileLoop(ValueRange{all}, hidden, [&](ValueRange carried) { return Emitter::Carried{before(carried[0])}; })[0];
  return e.select(e.less(zero, end), e.minimum(end, length), length);
}

struct RowItem {
  Value row, position, head; // position: which of the row's queries
  Value index;               // of the query in [rows, positions, heads]
};

/// Calls `body` for the items of queries [rows, positions, heads, …], some rows at a time, for these head by head. It
/// gets the following item, too, of the last one itself.
void forRowItems(Emitter &e, KernelOp kernel, llvm::function_ref<void(const RowItem &, const RowItem &)> body) {
  ArrayRef<DimAttr> dims = shapeOf(kernel, 0);
  Value rows = e.liveRows(kernel, dims[0]), positions = e.dim(dims[1]), heads = e.dim(dims[2]);
  Value together = e.index(attendRowsTogether), whole = e.mul(e.mul(together, positions), heads);
  auto find = [&](Value item) {
    Value block = e.div(item, whole), inside = e.rem(item, whole), first = e.mul(block, together);
    Value ofHead = e.mul(e.minimum(e.sub(rows, first), together), positions), query = e.rem(inside, ofHead);
    RowItem found;
    found.head = e.div(inside, ofHead);
    found.row = e.add(first, e.div(query, positions));
    found.position = e.rem(query, positions);
    found.index = e.add(e.mul(e.add(e.mul(found.row, positions), found.position), heads), found.head);
    return found;
  };
  DimAttr items = dimMul(dimMul(dims[0], dims[1]), dims[2]);
  auto [from, to] = e.shareOf(e.liveRows(kernel, items), e.dim(items));
  e.forLoop(from, to, 1, [&, to = to](Value item) {
    body(find(item), find(e.minimum(e.add(item, e.index(1)), e.sub(to, e.index(1)))));
  });
}

} // namespace

LogicalResult cpu::emitAttendCache(Emitter &e, AttendCacheOp op) {
  KernelOp kernel = cast<KernelOp>(op.getOperation());
  ArrayRef<DimAttr> pool = shapeOf(kernel, 1), table = shapeOf(kernel, 2);
  int64_t heads = op.getHeads(), kvHeads = op.getKvHeads(), keySize = op.getKeySize(), valueSize = op.getValueSize();
  Value query = e.buffer(op.getInputs()[0]), cache = e.buffer(op.getInputs()[1]), blocks = e.buffer(op.getInputs()[2]),
        positions = e.buffer(op.getInputs()[3]), output = e.buffer(op.getOutputs()[0]);
  Type type = elementTypeOf(op.getInputs()[1].getType());
  forRowItems(e, kernel, [&](const RowItem &item, const RowItem &following) {
    Value r = item.row, h = item.head;
    auto at = [&](const RowItem &reader, Value j, int64_t offset, int64_t size) {
      Value kvHead = e.div(reader.head, e.index(heads / kvHeads));
      Value tableRow = e.pointer(blocks, e.mul(reader.row, e.dim(table[1])), e.b.getI32Type());
      Value block = e.castIndex(e.load(e.pointer(tableRow, j, e.b.getI32Type()), e.b.getI32Type()), e.b.getIndexType());
      Value inside = e.add(e.mul(kvHead, e.index(cacheBlockPositions)), e.rem(j, e.index(cacheBlockPositions)));
      Value element = e.add(e.mul(block, e.dim(pool[1])), e.add(e.index(offset), e.mul(inside, e.index(size))));
      return e.pointer(cache, element, type);
    };
    auto keyAt = [&](Value j) { return at(item, j, op.getKeyOffset(), keySize); };
    auto nextKeyAt = [&](Value j) { return at(following, j, op.getKeyOffset(), keySize); };
    auto valueAt = [&](Value j) { return at(item, j, op.getValueOffset(), valueSize); };
    Value position = e.load(e.pointer(positions, r, e.b.getI64Type()), e.b.getI64Type());
    RowAttention row;
    row.keySize = keySize;
    row.valueSize = valueSize;
    row.element = type;
    row.scale = op.getScale().convertToFloat();
    row.query = e.pointer(query, e.mul(item.index, e.index(keySize)), e.f32());
    row.count = e.add(e.add(e.castIndex(position, e.b.getIndexType()), e.index(1)), item.position);
    row.key = keyAt;
    row.nextKey = nextKeyAt;
    row.value = valueAt;
    if (op.getRelativeOrigin())
      row.relative = [&](Value j) {
        ArrayRef<DimAttr> table = shapeOf(kernel, 4);
        Value distance = e.sub(e.add(j, e.index(1)), row.count);
        return emitRelative(e, e.buffer(op.getInputs()[4]), table, constantValue(table[0]) == 1 ? e.index(0) : h,
                            e.sub(distance, e.index(static_cast<int64_t>(*op.getRelativeOrigin()))));
      };
    row.output = e.pointer(output, e.mul(item.index, e.index(valueSize)), e.f32());
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
  Value length = e.dim(keyDims[1]);
  Type type = elementTypeOf(op.getInputs()[1].getType());
  if (elementTypeOf(op.getInputs()[2].getType()) != type)
    return op.emitOpError("has keys and values of two types");
  forRowItems(e, kernel, [&](const RowItem &item, const RowItem &following) {
    Value r = item.row, h = item.head;
    auto firstOf = [&](Value row) {
      Value source = e.load(e.pointer(sources, row, e.b.getI32Type()), e.b.getI32Type());
      return e.mul(e.castIndex(source, e.b.getIndexType()), length);
    };
    Value first = firstOf(r), nextFirst = firstOf(following.row);
    auto at = [&](Value base, Value position, Value head, int64_t size) {
      Value kvHead = e.div(head, e.index(*heads / *kvHeads));
      return e.pointer(base, e.mul(e.add(e.mul(position, e.index(*kvHeads)), kvHead), e.index(size)), type);
    };
    auto keyAt = [&](Value j) { return at(keys, e.add(first, j), h, *keySize); };
    auto nextKeyAt = [&](Value j) { return at(keys, e.add(nextFirst, j), following.head, *keySize); };
    auto valueAt = [&](Value j) { return at(values, e.add(first, j), h, *valueSize); };
    RowAttention row;
    row.keySize = *keySize;
    row.valueSize = *valueSize;
    row.element = type;
    row.scale = op.getScale().convertToFloat();
    row.emptyRow = static_cast<EmptyRow>(op.getEmptyRow());
    row.query = e.pointer(query, e.mul(item.index, e.index(*keySize)), e.f32());
    row.count = length;
    row.key = keyAt;
    row.nextKey = nextKeyAt;
    row.value = valueAt;
    if (mask)
      row.visible = [&](Value j) {
        Value shown = e.load(e.pointer(mask, e.add(first, j), maskType), e.vectorOf(maskType));
        return maskType.isInteger(1) ? shown
                                     : e.compare(arith::CmpIPredicate::ne, shown, e.integer(shown.getType(), 0));
      };
    row.output = e.pointer(output, e.mul(item.index, e.index(*valueSize)), e.f32());
    if (op.getOutputs().size() > 1) {
      Value place = e.add(e.mul(e.add(e.mul(r, e.index(*heads)), h), e.dim(queryDims[1])), item.position);
      row.probabilities = e.pointer(e.buffer(op.getOutputs()[1]), e.mul(place, length), e.f32());
    } else if (mask) {
      row.count = emitShownKeys(e, length, row.visible);
    }
    row.scores = e.scratch;
    RowEmitter(e, row).emit();
  });
  return success();
}

LogicalResult cpu::emitCacheAppend(Emitter &e, CacheAppendOp op) {
  KernelOp kernel = cast<KernelOp>(op.getOperation());
  ArrayRef<DimAttr> pool = shapeOf(kernel, 2), table = shapeOf(kernel, 3);
  Value cache = e.buffer(op.getInputs()[2]), blocks = e.buffer(op.getInputs()[3]),
        positions = e.buffer(op.getInputs()[4]);
  ArrayRef<DimAttr> keyDims = shapeOf(kernel, 0);
  bool single = constantValue(keyDims[1]) == 1;
  Type type = elementTypeOf(op.getInputs()[2].getType()), carried = e.carriedType(type);
  for (Value operand : op.getInputs().take_front(2))
    if (elementTypeOf(operand.getType()) != type)
      return op.emitOpError("appends ") << operand.getType() << " to a cache of " << type;
  e.forLiveItems(kernel, dimMul(keyDims[0], keyDims[1]), [&](Value item) {
    Value r = single ? item : e.div(item, e.dim(keyDims[1]));
    Value position =
        e.castIndex(e.load(e.pointer(positions, r, e.b.getI64Type()), e.b.getI64Type()), e.b.getIndexType());
    if (!single)
      position = e.add(position, e.rem(item, e.dim(keyDims[1])));
    Value entry = e.pointer(blocks, e.add(e.mul(r, e.dim(table[1])), position), e.b.getI32Type());
    Value block = e.castIndex(e.load(entry, e.b.getI32Type()), e.b.getIndexType());
    Value first = e.mul(block, e.dim(pool[1])), inside = e.rem(position, e.index(cacheBlockPositions));
    auto copy = [&](Value source, int64_t offset, int64_t size) {
      e.forLoop(e.index(0), e.index(op.getKvHeads()), 1, [&](Value h) {
        Value slot = e.add(e.mul(h, e.index(cacheBlockPositions)), inside);
        Value target = e.pointer(cache, e.add(first, e.add(e.index(offset), e.mul(slot, e.index(size)))), type);
        Value from = e.pointer(source, e.mul(e.add(e.mul(item, e.index(op.getKvHeads())), h), e.index(size)), type);
        e.forLaneGroups(e.index(0), e.index(size), [&](Value at, Value count) {
          Value group = e.load(e.pointer(from, at, type), e.vectorOf(carried));
          if (count)
            e.maskedStore(group, e.pointer(target, at, type), e.lanesBelow(count));
          else
            e.store(group, e.pointer(target, at, type));
        });
      });
    };
    copy(e.buffer(op.getInputs()[0]), op.getKeyOffset(), op.getKeySize());
    copy(e.buffer(op.getInputs()[1]), op.getValueOffset(), op.getValueSize());
  });
  return success();
}
