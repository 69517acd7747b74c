//===- AttendKernels.cpp - attention, and the cache it reads, as shaders ------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An item of the attention kernels is a query row and a head.

#include "codegen/emit/Math.h"
#include "codegen/emit/Num.h"
#include "codegen/vulkan/RowAttention.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using namespace mlir::transept;
using emit::Emitter;
using emit::Num;

static constexpr double infinity = std::numeric_limits<double>::infinity();
/// A bias of this much or less is a mask in disguise.
static constexpr double exclusion = -1e4;

static ArrayRef<DimAttr> shapeOf(KernelOp op, unsigned operand) {
  return cast<DimsAttr>(op.getShapes()[operand]).getDims();
}

/// The element of a relative bias [heads or 1, columns] at `column`, which may lie outside.
static Value loadRelative(Emitter &e, Value table, ArrayRef<DimAttr> shape, Value head, Value column) {
  Value columns = e.dim(shape[1]), row = constantValue(shape[0]) == 1 ? e.index(0) : head;
  column = e.maximum(e.minimum(column, e.sub(columns, e.index(1))), e.index(0));
  return e.load(e.pointer(table, e.add(e.mul(row, columns), column), e.f32()), e.f32());
}

static bool isMultipleOfFour(DimAttr dim) { return constantValue(dim).value_or(1) % 4 == 0; }

/// Keys to look at: those behind the last one that is shown have no weight, so a slot that is longer than its source
/// costs a look at its mask. 0 where none is shown. By all invocations of the workgroup; `slots` as for combineAll().
static Value emitShownKeys(Shader &shader, Value slots, Value keys, llvm::function_ref<Value(Value)> isShown) {
  Emitter &e = shader.e;
  Type i32 = e.b.getI32Type();
  Value last = shader.forShare(e.index(0), keys, ValueRange{e.integer(i32, 0)}, [&](Value j, ValueRange sofar) {
    Value behind = e.castIndex(e.add(j, e.index(1)), i32);
    return Emitter::Carried{e.select(isShown(j), behind, sofar[0])}; // j ascends
  })[0];
  return e.castIndex(shader.combineAll("max", last, slots), e.b.getIndexType());
}

//===- Dense keys
//--------------------------------------------------------------------------------------------------===//

namespace {

class AttendEmitter {
public:
  AttendEmitter(Shader &shader, AttendOp op)
      : shader(shader), e(shader.e), op(op), kernel(cast<KernelOp>(op.getOperation())), attention(shader) {
    unsigned next = 3;
    auto optional = [&](bool there) { return there ? std::optional<unsigned>(next++) : std::nullopt; };
    keyMask = optional(op.getHasKeyMask());
    bias = optional(op.getHasBias());
    mask = optional(op.getHasMask());
    relative = optional(op.getRelativeOrigin().has_value());
    ArrayRef<DimAttr> query = shapeOf(kernel, 0), key = shapeOf(kernel, 1), value = shapeOf(kernel, 2);
    queries = e.dim(query[1]);
    heads = e.dim(query[2]);
    keyHeads = e.dim(key[2]);
    row.keys = row.end = e.dim(key[1]);
    row.keySize = e.dim(query[3]);
    row.valueSize = e.dim(value[3]);
    row.emptyRow = static_cast<EmptyRow>(op.getEmptyRow());
    row.fourAtOnce = isMultipleOfFour(query[3]);
    if (keyMask)
      slots = shader.sharedArrayPerInvocation(e.b.getI32Type());
  }

  LogicalResult emit() {
    for (Value operand : op.getInputs().take_front(3))
      if (!elementTypeOf(operand.getType()).isF32())
        return op.emitOpError("attends over ") << elementTypeOf(operand.getType()) << ", not f32";
    shader.forGroupItem(e.end, [&](Value item) { emitItem(item); });
    return success();
  }

private:
  Value input(unsigned i) { return e.buffer(op.getInputs()[i]); }
  Type elementOf(unsigned i) { return elementTypeOf(op.getInputs()[i].getType()); }

  /// Items are numbered as the output's rows: [batch, query, head].
  void emitItem(Value item) {
    head = e.rem(item, heads);
    i = e.rem(e.div(item, heads), queries);
    batch = e.div(e.div(item, heads), queries);
    Value keyHead = e.div(head, e.maximum(e.div(heads, keyHeads), e.index(1)));
    auto at = [&](unsigned operand, Value j, Value size) {
      Value vector = e.add(e.mul(e.add(e.mul(batch, row.keys), j), keyHeads), keyHead);
      return e.pointer(input(operand), e.mul(vector, size), e.f32());
    };
    RowAttention mine = row;
    if (op.getCausalOffset()) {
      Value last = e.add(i, e.dim(*op.getCausalOffset()));
      mine.end = e.maximum(e.minimum(row.keys, e.add(last, e.index(1))), e.index(0));
    }
    if (keyMask)
      mine.end = e.minimum(mine.end, emitShownKeys(shader, slots, row.keys, [&](Value j) { return isKeyShown(j); }));
    mine.query = e.pointer(input(0), e.mul(item, row.keySize), e.f32());
    mine.key = [&](Value j) { return at(1, j, row.keySize); };
    mine.value = [&](Value j) { return at(2, j, row.valueSize); };
    mine.score = [&](Value j, Value product) { return scoreOf(j, product); };
    mine.output = e.pointer(e.buffer(op.getOutputs()[0]), e.mul(item, row.valueSize), e.f32());
    if (op.getOutputs().size() > 1) {
      Value place = e.add(e.mul(e.add(e.mul(batch, heads), head), queries), i);
      mine.probabilities = e.pointer(e.buffer(op.getOutputs()[1]), e.mul(place, row.keys), e.f32());
    }
    attention.emit(mine);
  }

  /// Scale, cap, bias and visibility of key j.
  Value scoreOf(Value j, Value product) {
    Value score = e.mul(product, e.number(e.f32(), op.getScale().convertToFloat())), shown;
    auto also = [&](Value condition) {
      shown = shown ? e.b.create<arith::AndIOp>(e.loc, shown, condition).getResult() : condition;
    };
    if (double cap = op.getSoftcap().convertToFloat(); cap > 0) {
      Num capped{e, emit::emitTanh(e, (Num{e, score} / Num{e, e.number(e.f32(), cap)}).v)};
      score = (capped * cap).v;
    }
    if (bias) {
      Type element = elementOf(*bias);
      Value value = loadBroadcast(*bias, j);
      value = element.isF64() ? emit::emitTruncate(e, value, e.f32()) : emit::emitExtend(e, value, element, e.f32());
      score = e.add(score, value);
      also(e.compare(arith::CmpFPredicate::UGT, value, e.number(e.f32(), exclusion)));
    }
    if (relative) {
      Value column = e.sub(e.sub(j, i), e.dim(*op.getRelativeOrigin()));
      score = e.add(score, loadRelative(e, input(*relative), shapeOf(kernel, *relative), head, column));
    }
    if (keyMask)
      also(isKeyShown(j));
    if (mask)
      also(loadBroadcast(*mask, j));
    return shown ? e.select(shown, score, e.number(e.f32(), -infinity)) : score;
  }

  /// By the mask of keys.
  Value isKeyShown(Value j) {
    Type element = elementOf(*keyMask);
    Value key = e.load(e.pointer(input(*keyMask), e.add(e.mul(batch, row.keys), j), element), element);
    return element.isInteger(1) ? key : e.compare(arith::CmpIPredicate::ne, key, e.integer(element, 0));
  }

  /// An element of an operand whose axes are those of [B, H, T, S] or 1.
  Value loadBroadcast(unsigned operand, Value j) {
    Type element = elementOf(operand);
    ArrayRef<DimAttr> dims = shapeOf(kernel, operand);
    Value coordinates[4] = {batch, head, i, j}, position = e.index(0);
    for (auto [axis, dim] : llvm::enumerate(dims)) {
      position = e.mul(position, e.dim(dim));
      if (constantValue(dim) != 1)
        position = e.add(position, coordinates[4 - dims.size() + axis]);
    }
    return e.load(e.pointer(input(operand), position, element), e.carriedType(element));
  }

  Shader &shader;
  Emitter &e;
  AttendOp op;
  KernelOp kernel;
  RowAttentionEmitter attention;
  RowAttention row;                                      // what is the same for all items
  std::optional<unsigned> keyMask, bias, mask, relative; // operand numbers
  Value queries, heads, keyHeads;                        // sizes
  Value slots;                                           // shared: of the search for the last key that is shown
  Value batch, head, i;                                  // of the item
};

} // namespace

LogicalResult vulkan::emitAttend(Shader &shader, AttendOp op) { return AttendEmitter(shader, op).emit(); }

//===- Keys of a source
//--------------------------------------------------------------------------------------------===//

LogicalResult vulkan::emitAttendSource(Shader &shader, AttendSourceOp op) {
  Emitter &e = shader.e;
  auto kernel = cast<KernelOp>(op.getOperation());
  ArrayRef<DimAttr> query = shapeOf(kernel, 0), key = shapeOf(kernel, 1), value = shapeOf(kernel, 2);
  Value heads = e.dim(query[2]), queries = e.dim(query[1]), keyHeads = e.dim(key[2]);
  RowAttentionEmitter attention(shader);
  Value slots = op.getHasKeyMask() ? shader.sharedArrayPerInvocation(e.b.getI32Type()) : Value();
  DimAttr items = dimMul(dimMul(query[0], query[1]), query[2]);
  shader.forGroupItem(e.liveRows(kernel, items), [&](Value item) {
    Value head = e.rem(item, heads), t = e.rem(e.div(item, heads), queries), r = e.div(e.div(item, heads), queries);
    Value keyHead = e.div(head, e.maximum(e.div(heads, keyHeads), e.index(1)));
    Type i32 = e.b.getI32Type();
    Value source = e.castIndex(e.load(e.pointer(e.buffer(op.getInputs()[3]), r, i32), i32), e.b.getIndexType());
    RowAttention row;
    row.keySize = e.dim(query[3]);
    row.valueSize = e.dim(value[3]);
    row.emptyRow = static_cast<EmptyRow>(op.getEmptyRow());
    row.fourAtOnce = isMultipleOfFour(query[3]);
    row.keys = row.end = e.dim(key[1]);
    Value first = e.mul(source, row.keys);
    auto at = [&](unsigned operand, Value j, Value size) {
      Value vector = e.add(e.mul(e.add(first, j), keyHeads), keyHead);
      return e.pointer(e.buffer(op.getInputs()[operand]), e.mul(vector, size), e.f32());
    };
    row.query = e.pointer(e.buffer(op.getInputs()[0]), e.mul(item, row.keySize), e.f32());
    row.key = [&](Value j) { return at(1, j, row.keySize); };
    row.value = [&](Value j) { return at(2, j, row.valueSize); };
    auto isShown = [&](Value j) {
      Type element = elementTypeOf(op.getInputs()[4].getType());
      Value shown = e.load(e.pointer(e.buffer(op.getInputs()[4]), e.add(first, j), element), element);
      return element.isInteger(1) ? shown : e.compare(arith::CmpIPredicate::ne, shown, e.integer(element, 0));
    };
    if (op.getHasKeyMask())
      row.end = emitShownKeys(shader, slots, row.keys, isShown);
    row.score = [&](Value j, Value product) {
      Value score = e.mul(product, e.number(e.f32(), op.getScale().convertToFloat()));
      return op.getHasKeyMask() ? e.select(isShown(j), score, e.number(e.f32(), -infinity)) : score;
    };
    row.output = e.pointer(e.buffer(op.getOutputs()[0]), e.mul(item, row.valueSize), e.f32());
    if (op.getOutputs().size() > 1) {
      Value place = e.add(e.mul(e.add(e.mul(r, heads), head), queries), t);
      row.probabilities = e.pointer(e.buffer(op.getOutputs()[1]), e.mul(place, row.keys), e.f32());
    }
    attention.emit(row);
  });
  return success();
}

//===- The cache
//---------------------------------------------------------------------------------------------------===//

namespace {

/// Where things lie in the paged cache: inputs `pool`, block table and positions of a kernel.
struct Cache {
  Emitter &e;
  KernelOp kernel;
  unsigned pool; // operand number; the table and the positions follow

  Value position(Value r) {
    Type i64 = e.b.getI64Type();
    return e.castIndex(e.load(e.pointer(e.buffer(kernel.getInputs()[pool + 2]), r, i64), i64), e.b.getIndexType());
  }
  /// Vector of `size` elements of position j of row r.
  Value at(Value r, Value j, Value head, int64_t offset, int64_t size) {
    Type i32 = e.b.getI32Type();
    Value entry = e.add(e.mul(r, e.dim(shapeOf(kernel, pool + 1)[1])), j);
    Value block =
        e.castIndex(e.load(e.pointer(e.buffer(kernel.getInputs()[pool + 1]), entry, i32), i32), e.b.getIndexType());
    Value inside = e.add(e.mul(head, e.index(cacheBlockPositions)), e.rem(j, e.index(cacheBlockPositions)));
    Value element =
        e.add(e.mul(block, e.dim(shapeOf(kernel, pool)[1])), e.add(e.index(offset), e.mul(inside, e.index(size))));
    return e.pointer(e.buffer(kernel.getInputs()[pool]), element, e.f32());
  }
};

} // namespace

LogicalResult vulkan::emitAttendCache(Shader &shader, AttendCacheOp op) {
  Emitter &e = shader.e;
  auto kernel = cast<KernelOp>(op.getOperation());
  ArrayRef<DimAttr> query = shapeOf(kernel, 0);
  Cache cache{e, kernel, /*pool=*/1};
  RowAttentionEmitter attention(shader);
  Value heads = e.index(op.getHeads()), queries = e.dim(query[1]);
  DimAttr items = dimMul(dimMul(query[0], query[1]), dimConstant(op.getContext(), op.getHeads()));
  shader.forGroupItem(e.liveRows(kernel, items), [&](Value item) {
    Value head = e.rem(item, heads), t = e.rem(e.div(item, heads), queries), r = e.div(e.div(item, heads), queries);
    Value keyHead = e.div(head, e.index(op.getHeads() / op.getKvHeads()));
    RowAttention row;
    row.fourAtOnce = op.getKeySize() % 4 == 0 && op.getKeyOffset() % 4 == 0 && isMultipleOfFour(shapeOf(kernel, 1)[1]);
    row.keySize = e.index(op.getKeySize());
    row.valueSize = e.index(op.getValueSize());
    row.keys = row.end = e.add(e.add(cache.position(r), t), e.index(1));
    row.query = e.pointer(e.buffer(op.getInputs()[0]), e.mul(item, row.keySize), e.f32());
    row.key = [&](Value j) { return cache.at(r, j, keyHead, op.getKeyOffset(), op.getKeySize()); };
    row.value = [&](Value j) { return cache.at(r, j, keyHead, op.getValueOffset(), op.getValueSize()); };
    row.score = [&](Value j, Value product) {
      Value score = e.mul(product, e.number(e.f32(), op.getScale().convertToFloat()));
      if (!op.getRelativeOrigin())
        return score;
      Value distance = e.sub(e.add(j, e.index(1)), row.keys);
      Value column = e.sub(distance, e.index(static_cast<int64_t>(*op.getRelativeOrigin())));
      return e.add(score, loadRelative(e, e.buffer(op.getInputs()[4]), shapeOf(kernel, 4), head, column));
    };
    row.output = e.pointer(e.buffer(op.getOutputs()[0]), e.mul(item, row.valueSize), e.f32());
    attention.emit(row);
  });
  return success();
}

/// An item is a row and one of its new positions, a workgroup's.
LogicalResult vulkan::emitCacheAppend(Shader &shader, CacheAppendOp op) {
  Emitter &e = shader.e;
  auto kernel = cast<KernelOp>(op.getOperation());
  ArrayRef<DimAttr> key = shapeOf(kernel, 0);
  Cache cache{e, kernel, /*pool=*/2};
  Value count = e.dim(key[1]);
  shader.forGroupItem(e.liveRows(kernel, dimMul(key[0], key[1])), [&](Value item) {
    Value r = e.div(item, count), position = e.add(cache.position(r), e.rem(item, count));
    auto copy = [&](unsigned operand, int64_t offset, int64_t size) {
      Value total = e.index(op.getKvHeads() * size);
      Value from = e.pointer(e.buffer(op.getInputs()[operand]), e.mul(item, total), e.f32());
      shader.forShare(e.index(0), total, [&](Value i) {
        Value to = cache.at(r, position, e.div(i, e.index(size)), offset, size);
        e.store(e.load(e.pointer(from, i, e.f32()), e.f32()), e.pointer(to, e.rem(i, e.index(size)), e.f32()));
      });
    };
    copy(0, op.getKeyOffset(), op.getKeySize());
    copy(1, op.getValueOffset(), op.getValueSize());
  });
  return success();
}
