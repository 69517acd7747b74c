//===- NarrowTile.cpp - the inner loop of products with narrow weights --------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A vector of a panel holds sixteen columns times the 4 bytes of a group of adjacent k. A row of x gives the same 4
// bytes to all lanes. What a lane adds up is written once per kind; where one instruction does not do it, the group is
// taken apart into steps. Weights are the unsigned operand of integer products, so that the offset costs one correction
// per row of x, whatever the column.

#include "codegen/cpu/NarrowTile.h"
#include "codegen/emit/Math.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;

namespace {

/// How one group of k is added to sixteen sums.
class GroupProduct {
public:
  GroupProduct(Emitter &emitter, ProductKind kind, int64_t group, bool hasScales)
      : e(emitter), kind(kind), group(group), hasScales(hasScales) {}

  Type sumType() { return e.vectorOf(addsIntegers() ? Type(e.b.getI32Type()) : e.f32()); }
  /// Whether the registers hold the sums of a tile, the weights of a step as they lie and taken apart, and for a row
  /// one value, or where it is taken apart, the same in all parts of a vector, what that needs; scales of a block, too.
  bool fit(int64_t rows, int64_t vectors) const {
    const int64_t perVector = (isOneStep() ? 1 : 2) + hasScales;
    const int64_t forRow = kind == ProductKind::Int8Weights ? 1 : isOneStep() || e.machine.vectorBits < 512 ? 2 : 3;
    return rows * vectors + vectors * perVector + forRow <= e.machine.registers;
  }

  /// How many elements of a group are taken before others: all, where one load gives the factors of all.
  int64_t together(int64_t count) const { return kind == ProductKind::Int8Weights ? 1 : count; }
  /// The factors of each step for `count` elements from `first`: of a vector of the panel, and of group `index` of a
  /// row of x.
  SmallVector<Value> weights(Value vector, int64_t first, int64_t count);
  SmallVector<Value> row(Value x, Value index, int64_t first, int64_t count);
  Value add(Value sum, Value x, Value w);

private:
  bool addsIntegers() const { return kind == ProductKind::Int8 || kind == ProductKind::Integers; }
  bool isOneStep() const {
    return (kind == ProductKind::Bf16 && e.machine.dotBf16) || (addsIntegers() && e.machine.dotInt8);
  }
  Type vi32() { return e.vectorOf(e.b.getI32Type()); }
  Value bitcast(Value value, Type element, int64_t count) {
    return e.b.create<LLVM::BitcastOp>(e.loc, VectorType::get({count}, element), value);
  }
  Value shifted(Value value, int64_t left, int64_t right, bool isSigned);
  /// Two bf16 of each lane as f32.
  SmallVector<Value> bf16Pair(Value pair) {
    Value low = e.b.create<arith::ShLIOp>(e.loc, pair, e.integer(vi32(), 16));
    Value high = e.b.create<arith::AndIOp>(e.loc, pair, e.integer(vi32(), -65536));
    return {bitcast(low, e.f32(), lanes), bitcast(high, e.f32(), lanes)};
  }
  Value call(StringRef intrinsic, Type result, ValueRange operands) {
    return e.b
        .create<LLVM::CallIntrinsicOp>(e.loc, result, e.b.getStringAttr(intrinsic), operands,
                                       LLVM::FastmathFlagsAttr::get(e.b.getContext(), LLVM::FastmathFlags::none))
        .getResults();
  }
  Value addPairs(Value sum, Value x, Value w);
  Value addHalves(Value sum, Value x, Value w);

  Emitter &e;
  ProductKind kind;
  int64_t group;
  bool hasScales; // per block and column
};

Value GroupProduct::shifted(Value value, int64_t left, int64_t right, bool isSigned) {
  if (left)
    value = e.b.create<arith::ShLIOp>(e.loc, value, e.integer(value.getType(), left));
  Value by = e.integer(value.getType(), right);
  return isSigned ? e.b.create<arith::ShRSIOp>(e.loc, value, by).getResult()
                  : e.b.create<arith::ShRUIOp>(e.loc, value, by).getResult();
}

SmallVector<Value> GroupProduct::weights(Value vector, int64_t first, int64_t count) {
  Type i16 = e.b.getI16Type();
  if (kind == ProductKind::Bf16)
    return isOneStep() ? SmallVector<Value>{bitcast(vector, e.b.getBF16Type(), 2 * lanes)} : bf16Pair(vector);
  if (addsIntegers()) {
    if (isOneStep())
      return {vector};
    Value bytes = bitcast(vector, i16, 2 * lanes);
    Value even = e.b.create<arith::AndIOp>(e.loc, bytes, e.integer(bytes.getType(), 0xff));
    return {even, shifted(bytes, 0, 8, /*isSigned=*/false)};
  }
  // Without the offset of 128, bytes are signed.
  Value bytes = e.b.create<arith::XOrIOp>(e.loc, vector, e.integer(vi32(), static_cast<int32_t>(0x80808080)));
  SmallVector<Value> factors;
  for (int64_t i = first; i < first + count; ++i)
    factors.push_back(e.b.create<arith::SIToFPOp>(e.loc, e.vf32(), shifted(bytes, 24 - 8 * i, 24, /*isSigned=*/true)));
  return factors;
}

SmallVector<Value> GroupProduct::row(Value x, Value index, int64_t first, int64_t count) {
  Type i32 = e.b.getI32Type(), i16 = e.b.getI16Type();
  SmallVector<Value> factors;
  if (kind == ProductKind::Int8Weights) {
    Value start = e.pointer(x, e.mul(index, e.index(group)), e.f32());
    for (int64_t i = first; i < first + count; ++i)
      factors.push_back(e.broadcast(e.load(e.pointer(start, i, e.f32()), e.f32())));
    return factors;
  }
  Value bytes = e.broadcast(e.load(e.pointer(x, index, i32), i32));
  if (kind == ProductKind::Bf16)
    return isOneStep() ? SmallVector<Value>{bitcast(bytes, e.b.getBF16Type(), 2 * lanes)} : bf16Pair(bytes);
  if (isOneStep())
    return {bytes};
  Value words = bitcast(bytes, i16, 2 * lanes);
  return {shifted(words, 8, 8, /*isSigned=*/true), shifted(words, 0, 8, /*isSigned=*/true)};
}

/// sum + the products of pairs of i16, each taken out of its half of a lane.
Value GroupProduct::addHalves(Value sum, Value x, Value w) {
  for (int64_t left : {16, 0}) {
    auto factor = [&](Value pairs) {
      return shifted(bitcast(pairs, e.b.getI32Type(), lanes), left, 16, /*isSigned=*/true);
    };
    sum = e.add(sum, e.mul(factor(x), factor(w)));
  }
  return sum;
}

/// sum + the products of pairs of i16, with the instruction of the level's vectors.
Value GroupProduct::addPairs(Value sum, Value x, Value w) {
  int64_t pieces = lanes * 32 / e.machine.vectorBits;
  StringRef intrinsic = pieces == 1   ? "llvm.x86.avx512.pmaddw.d.512"
                        : pieces == 2 ? "llvm.x86.avx2.pmadd.wd"
                                      : "llvm.x86.sse2.pmadd.wd";
  auto piece = [&](Value value, int64_t length, int64_t i) {
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < length / pieces; ++lane)
      order.push_back(i * (length / pieces) + lane);
    return pieces == 1 ? value : e.shuffle(value, value, order);
  };
  SmallVector<Value> parts;
  for (int64_t i = 0; i < pieces; ++i)
    parts.push_back(call(intrinsic, VectorType::get({lanes / pieces}, e.b.getI32Type()),
                         {piece(x, 2 * lanes, i), piece(w, 2 * lanes, i)}));
  while (parts.size() > 1) {
    SmallVector<Value> joined;
    for (size_t i = 0; i < parts.size(); i += 2) {
      SmallVector<int64_t> order;
      for (int64_t lane = 0; lane < 2 * cast<VectorType>(parts[i].getType()).getDimSize(0); ++lane)
        order.push_back(lane);
      joined.push_back(e.shuffle(parts[i], parts[i + 1], order));
    }
    parts = joined;
  }
  return e.add(sum, parts.front());
}

Value GroupProduct::add(Value sum, Value x, Value w) {
  if (addsIntegers())
    return isOneStep()          ? call("llvm.x86.avx512.vpdpbusd.512", sumType(), {sum, w, x})
           : e.machine.dotInt16 ? addPairs(sum, x, w)
                                : addHalves(sum, x, w);
  if (kind == ProductKind::Bf16 && isOneStep())
    return call("llvm.x86.avx512bf16.dpbf16ps.512", sumType(), {sum, x, w});
  return e.fma(x, w, sum);
}

/// One register tile: `rows` rows of `vectors` vectors of columns.
class NarrowTile {
public:
  NarrowTile(Emitter &emitter, const NarrowProduct &product, int64_t rows, Value column, int64_t vectors)
      : e(emitter), product(product), rows(rows), column(column), vectors(vectors), group(groupOf(product.kind)),
        steps(emitter, product.kind, group, product.block > 0),
        ahead(emitter, product.ahead, column, vectors * lanes, emitter.index(product.depth / group)) {
    Type element = product.kind == ProductKind::Bf16          ? Type(e.b.getI16Type())
                   : product.kind == ProductKind::Int8Weights ? e.f32()
                                                              : Type(e.b.getI8Type());
    for (int64_t r = 0; r < rows; ++r)
      xRows.push_back(e.pointer(product.x, e.mul(e.index(r), product.xStride), element));
    panel = e.pointer(product.panel, column, e.b.getI32Type());
  }

  void emit() {
    Emitter::Carried sums(rows * vectors, e.number(steps.sumType(), 0));
    const int64_t whole = product.depth / group, perBlock = product.block / group;
    int64_t blocks = perBlock ? whole / perBlock : 0;
    if (blocks)
      sums = e.forLoop(e.index(0), e.index(blocks), 1, sums, [&](Value block, ValueRange carried) {
        loadScales(block);
        Value from = e.mul(block, e.index(perBlock));
        return addGroups(from, e.add(from, e.index(perBlock)), carried);
      });
    if (perBlock && blocks * product.block < product.depth)
      loadScales(e.index(blocks));
    sums = addGroups(e.index(blocks * perBlock), e.index(whole), sums);
    if (int64_t rest = product.depth % group)
      sums = addGroup(e.index(whole), sums, rest);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v) {
        Value place = e.pointer(product.sums, e.add(column, e.index(r * panelColumns + v * lanes)), e.f32());
        e.store(finished(sums[r * vectors + v], r), place);
      }
  }

  static int64_t groupOf(ProductKind kind) { return kind == ProductKind::Bf16 ? 2 : 4; }

private:
  /// The scales of a block, for the groups that follow.
  void loadScales(Value block) {
    Value place = e.pointer(product.blockScales, e.add(e.mul(block, e.index(panelColumns)), column), e.f32());
    scales.clear();
    for (int64_t v = 0; v < vectors; ++v)
      scales.push_back(e.load(e.pointer(place, v * lanes, e.f32()), e.vf32()));
  }

  Emitter::Carried addGroups(Value from, Value to, ValueRange sums) {
    return e.forLoop(from, to, 1, sums,
                     [&](Value index, ValueRange carried) { return addGroup(index, carried, group); });
  }

  Emitter::Carried addGroup(Value index, ValueRange carried, int64_t count) {
    Type i32 = e.b.getI32Type();
    Emitter::Carried next(carried);
    Value place = e.pointer(panel, e.mul(index, e.index(panelColumns)), i32);
    // Before the loads: behind them it costs up to a tenth of the tile's rate. Integer weights need the registers.
    if (product.kind != ProductKind::Int8Weights)
      ahead.fetch(index);
    SmallVector<Value> loaded;
    for (int64_t v = 0; v < vectors; ++v)
      loaded.push_back(e.load(e.pointer(place, v * lanes, i32), e.vectorOf(i32)));
    const int64_t together = steps.together(count);
    for (int64_t first = 0; first < count; first += together) {
      SmallVector<SmallVector<Value>> weights;
      for (Value vector : loaded)
        weights.push_back(steps.weights(vector, first, together));
      if (product.block)
        for (auto [v, factors] : llvm::enumerate(weights))
          for (Value &weight : factors)
            weight = e.mul(weight, scales[v]);
      for (int64_t r = 0; r < rows; ++r) {
        SmallVector<Value> x = steps.row(xRows[r], index, first, together);
        for (int64_t v = 0; v < vectors; ++v)
          for (auto [factor, weight] : llvm::zip(x, weights[v]))
            next[r * vectors + v] = steps.add(next[r * vectors + v], factor, weight);
      }
    }
    if (product.kind == ProductKind::Int8Weights)
      ahead.fetch(index);
    return next;
  }

  Value finished(Value sum, int64_t r) {
    if (product.kind != ProductKind::Int8 && product.kind != ProductKind::Integers)
      return sum;
    Type i32 = e.b.getI32Type();
    Value exact = e.sub(sum, e.broadcast(e.load(e.pointer(product.corrections, r, i32), i32)));
    if (product.kind == ProductKind::Integers)
      return exact;
    return e.mul(e.b.create<arith::SIToFPOp>(e.loc, e.vf32(), exact),
                 e.broadcast(e.load(e.pointer(product.scales, r, e.f32()), e.f32())));
  }

  Emitter &e;
  const NarrowProduct &product;
  const int64_t rows;
  const Value column;
  const int64_t vectors, group;
  GroupProduct steps;
  PanelAhead ahead;
  SmallVector<Value> xRows;
  Value panel;
  SmallVector<Value> scales; // of the block, per vector
};

} // namespace

/// Vectors of the widest tile of that many rows; 0 where not even one fits.
static int64_t widestTile(const GroupProduct &steps, int64_t rows) {
  for (int64_t vectors = panelColumns / lanes; vectors > 0; vectors /= 2)
    if (steps.fit(rows, vectors))
      return vectors;
  return 0;
}

// The largest tile takes apart the fewest groups for a multiply-add.
int64_t cpu::narrowTileRows(Emitter &e, const NarrowProduct &product) {
  GroupProduct steps(e, product.kind, NarrowTile::groupOf(product.kind), product.block > 0);
  int64_t best = e.machine.tileRows, largest = 0;
  for (int64_t rows = e.machine.tileRows; rows > 0; --rows)
    if (int64_t size = rows * widestTile(steps, rows); size > largest) {
      best = rows;
      largest = size;
    }
  return best;
}

void cpu::emitNarrowRows(Emitter &e, const NarrowProduct &product, int64_t rows) {
  GroupProduct steps(e, product.kind, NarrowTile::groupOf(product.kind), product.block > 0);
  int64_t vectors = std::max<int64_t>(widestTile(steps, rows), 1);
  e.forLoop(e.index(0), e.index(panelColumns), vectors * lanes,
            [&](Value column) { NarrowTile(e, product, rows, column, vectors).emit(); });
}

//===- Rows of x --------------------------------------------------------------------------------------------------===//

int64_t cpu::narrowStride(int64_t depth) { return (depth + lanes - 1) / lanes * lanes; }

/// Sixteen floats of a row, zeros behind its end.
static Value rowGroup(Emitter &e, Value x, Value at, int64_t count) {
  Value loaded = e.load(e.pointer(x, at, e.f32()), e.vf32());
  return count == lanes ? loaded : e.select(e.lanesBelow(e.index(count)), loaded, e.number(e.vf32(), 0));
}

/// Carries `values` over the groups of a row; the last one may be short.
static Emitter::Carried forRow(Emitter &e, Value x, int64_t depth, ValueRange init,
                               llvm::function_ref<Emitter::Carried(Value at, Value group, ValueRange)> body) {
  Value whole = e.index(depth / lanes * lanes);
  Emitter::Carried carried = e.forLoop(e.index(0), whole, lanes, init, [&](Value at, ValueRange values) {
    return body(at, rowGroup(e, x, at, lanes), values);
  });
  if (depth % lanes)
    carried = body(whole, rowGroup(e, x, whole, depth % lanes), carried);
  return carried;
}

void cpu::emitBf16Row(Emitter &e, Value x, int64_t depth, Value target) {
  forRow(e, x, depth, {}, [&](Value at, Value group, ValueRange) {
    e.store(emitTruncate(e, group, e.b.getBF16Type()), e.pointer(target, at, e.b.getI16Type()));
    return Emitter::Carried();
  });
}

constexpr double int8Steps = 127;

Value cpu::emitInt8Factor(Emitter &e, Value largest) {
  constexpr double smallest = 1e-35;
  return e.select(e.compare(arith::CmpFPredicate::OGE, largest, e.number(e.f32(), smallest)),
                  e.b.create<arith::DivFOp>(e.loc, e.number(e.f32(), int8Steps), largest), e.number(e.f32(), 0));
}

// Adding 1.5 * 2^23 leaves the integer, rounded to nearest even, in the low bits.
constexpr double int8Shift = 12582912.0;
constexpr int64_t int8ShiftBits = 0x4b400000;

/// The integers plus int8ShiftBits, i32 [16].
static Value shiftedInt8Group(Emitter &e, Value group, Value factor) {
  Value moved = e.add(e.mul(group, e.broadcast(factor)), e.number(e.vf32(), int8Shift));
  return e.b.create<arith::BitcastOp>(e.loc, e.vectorOf(e.b.getI32Type()), moved);
}

Value cpu::emitInt8Group(Emitter &e, Value group, Value factor) {
  return e.sub(shiftedInt8Group(e, group, factor), e.integer(e.vectorOf(e.b.getI32Type()), int8ShiftBits));
}

void cpu::emitInt8Row(Emitter &e, Value x, int64_t depth, Value target, Value scale, Value correction) {
  Type i32 = e.b.getI32Type(), vi32 = e.vectorOf(i32);
  // Magnitudes are ordered like their bits, NaN above all.
  Value magnitudes = forRow(e, x, depth, ValueRange{e.integer(vi32, 0)}, [&](Value, Value group, ValueRange largest) {
    Value bits = e.b.create<arith::BitcastOp>(e.loc, vi32, group);
    bits = e.b.create<arith::AndIOp>(e.loc, bits, e.integer(vi32, 0x7fffffff));
    return Emitter::Carried{e.maximum(largest[0], bits)};
  })[0];
  Value largest = e.b.create<arith::BitcastOp>(
      e.loc, e.f32(), e.reduceLanes(magnitudes, [&](Value a, Value b) { return e.maximum(a, b); }));
  Value factor = emitInt8Factor(e, largest);
  e.store(e.b.create<arith::DivFOp>(e.loc, largest, e.number(e.f32(), int8Steps)), scale);
  Value sums = forRow(e, x, depth, ValueRange{e.integer(vi32, 0)}, [&](Value at, Value group, ValueRange sum) {
    Value integers = shiftedInt8Group(e, group, factor);
    Type i8 = e.b.getI8Type();
    e.store(e.b.create<arith::TruncIOp>(e.loc, e.vectorOf(i8), integers), e.pointer(target, at, i8));
    return Emitter::Carried{e.add(sum[0], integers)};
  })[0];
  Value sum = e.reduceLanes(sums, [&](Value a, Value b) { return e.add(a, b); });
  // Modulo 2^32, like the sum. A byte holds nothing of the shift.
  Value shifts = e.integer(i32, static_cast<int32_t>(narrowStride(depth) * int8ShiftBits));
  e.store(e.mul(e.sub(sum, shifts), e.integer(i32, 128)), correction);
}

void cpu::emitIntegerRow(Emitter &e, Value x, int64_t depth, Value target, Value correction) {
  Type i8 = e.b.getI8Type(), i32 = e.b.getI32Type(), vi32 = e.vectorOf(i32);
  Value sums = e.integer(vi32, 0), whole = e.index(depth / lanes * lanes);
  auto copy = [&](Value at, int64_t count, Value sum) -> Value {
    Value group = e.load(e.pointer(x, at, i8), e.vectorOf(i8));
    if (count < lanes)
      group = e.select(e.lanesBelow(e.index(count)), group, e.integer(group.getType(), 0));
    e.store(group, e.pointer(target, at, i8));
    return e.add(sum, e.b.create<arith::ExtSIOp>(e.loc, vi32, group));
  };
  sums = e.forLoop(e.index(0), whole, lanes, ValueRange{sums},
                   [&](Value at, ValueRange sofar) { return Emitter::Carried{copy(at, lanes, sofar[0])}; })[0];
  if (depth % lanes)
    sums = copy(whole, depth % lanes, sums);
  Value sum = e.reduceLanes(sums, [&](Value a, Value b) { return e.add(a, b); });
  e.store(e.mul(sum, e.integer(i32, 128)), correction);
}
