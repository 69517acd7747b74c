//===- Tile.cpp - the inner loop of matrix products ---------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;

/// One register tile: rows * columns / 16 sums are loop-carried, each step loads a row of w and broadcasts `rows`
/// elements of x.
static void emitTile(Emitter &e, const Product &product, int64_t rows, Value column, int64_t columns) {
  int64_t vectors = columns / lanes;
  Type f32 = e.f32();
  SmallVector<Value> xRows, sums, sumPointers;
  for (int64_t r = 0; r < rows; ++r) {
    xRows.push_back(e.pointer(product.x, e.mul(e.index(r), product.xStride), f32));
    Value sumRow = e.pointer(product.sums, e.add(e.mul(e.index(r), product.sumsStride), column), f32);
    for (int64_t v = 0; v < vectors; ++v) {
      sumPointers.push_back(e.pointer(sumRow, v * lanes, f32));
      sums.push_back(product.accumulate ? e.load(sumPointers.back(), e.vf32()) : e.number(e.vf32(), 0));
    }
  }
  Value w = e.pointer(product.w, column, f32);
  PanelAhead ahead(e, product.ahead, column, columns, product.depth);
  sums = e.forLoop(e.index(0), product.depth, 1, sums, [&](Value k, ValueRange carried) {
    Emitter::Carried next(carried);
    Value wRow = e.pointer(w, e.mul(k, product.wStride), f32);
    ahead.fetch(k);
    SmallVector<Value> wVectors;
    for (int64_t v = 0; v < vectors; ++v)
      wVectors.push_back(e.load(e.pointer(wRow, v * lanes, f32), e.vf32()));
    if (product.present) {
      Value present = e.load(e.pointer(product.present, k, e.b.getI1Type()), e.b.getI1Type());
      for (Value &vector : wVectors)
        vector = e.select(present, vector, e.number(e.vf32(), 0));
    }
    for (int64_t r = 0; r < rows; ++r) {
      Value x = e.broadcast(e.load(e.pointer(xRows[r], k, f32), f32));
      for (int64_t v = 0; v < vectors; ++v)
        next[r * vectors + v] = e.fma(x, wVectors[v], next[r * vectors + v]);
    }
    return next;
  });
  for (auto [sum, pointer] : llvm::zip(sums, sumPointers))
    e.store(sum, pointer);
}

/// Columns of the widest tile of that many rows: sums, a row of w and one broadcast have to fit into the registers.
/// With one row, w is an operand from memory.
static int64_t widestTile(const Machine &machine, int64_t rows) {
  for (int64_t vectors = panelColumns / lanes; vectors > 1; vectors /= 2)
    if (rows * vectors + (rows > 1 ? vectors : 0) + 1 <= machine.registers)
      return vectors * lanes;
  return lanes;
}

void cpu::emitProductRows(Emitter &e, const Product &product, int64_t rows, Value columns) {
  auto constant = getConstantIntValue(columns);
  Value from = e.index(0);
  for (int64_t width = widestTile(e.machine, rows); width >= lanes; width /= 2) {
    Value to = e.mul(e.div(columns, e.index(width)), e.index(width));
    e.forLoop(from, to, width, [&](Value column) { emitTile(e, product, rows, column, width); });
    if (constant && *constant % width == 0)
      return;
    from = to;
  }
}

// Tiles of equal height as far as possible: 7 rows are 4 and 3, not 6 and 1.
void cpu::forRowTiles(Emitter &e, Value rows, int64_t highest, llvm::function_ref<void(Value, int64_t)> tile,
                      llvm::function_ref<void(Value, Value)> after) {
  auto body = [&](ValueRange carried) {
    Value row = carried[0], left = e.sub(rows, row);
    Value tiles = e.ceilDiv(left, highest);
    Value height = e.div(e.sub(e.add(left, tiles), e.index(1)), tiles);
    SmallVector<int64_t> heights;
    for (int64_t count = 1; count < highest; ++count)
      heights.push_back(count);
    auto choice = e.b.create<scf::IndexSwitchOp>(e.loc, TypeRange{}, height, heights, heights.size());
    auto fill = [&](Region &region, int64_t count) {
      OpBuilder::InsertionGuard inner(e.b);
      e.b.createBlock(&region);
      tile(row, count);
      e.b.create<scf::YieldOp>(e.loc);
    };
    fill(choice.getDefaultRegion(), highest);
    for (auto [region, count] : llvm::zip(choice.getCaseRegions(), heights))
      fill(region, count);
    if (after)
      after(row, height);
    return Emitter::Carried{e.add(row, height)};
  };
  e.whileLoop({e.index(0)}, [&](ValueRange row) { return e.less(row[0], rows); }, body);
}
