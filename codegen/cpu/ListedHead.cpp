//===- ListedHead.cpp - logits of listed tokens -------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The columns of 64 tokens make a panel, so that the product is that of kernel.contract. They are copied when a token
// joins the list, not in every step: a column lies in as many lines of the memory as it has elements.

#include "codegen/cpu/Kernels.h"
#include "codegen/cpu/Schedule.h"
#include "codegen/cpu/Tile.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;
using namespace mlir::transept;

namespace {

class ListedHead {
public:
  ListedHead(Emitter &emitter, SearchHeadOp op)
      : e(emitter), op(op), kernel(cast<KernelOp>(op.getOperation())), f32(e.f32()), i32(e.b.getI32Type()) {}

  LogicalResult emit() {
    const size_t inputs = op.getInputs().size();
    std::optional<int64_t> k = inputs < 5 ? std::nullopt : constantValue(shapeOf(0)[1]);
    if (inputs > 6 || !k || op.getOutputs().size() != 1)
      return op.emitOpError("needs rows, a matrix, tokens, what is fresh, columns, and at most a bias");
    depth = *k;
    hasBias = inputs == 6;
    Value all = e.dim(shapeOf(0)[0]), rows = e.liveRows(kernel, shapeOf(0)[0]), panels = e.dim(shapeOf(3)[0]);
    Value chunks = e.ceilDiv(rows, contractRows), some = e.maximum(chunks, e.index(1));
    Value height = e.div(e.sub(e.add(rows, some), e.index(1)), some), total = e.mul(panels, e.index(panelColumns));
    auto [begin, end] = e.shareOf(e.mul(panels, chunks), e.mul(panels, e.ceilDiv(all, contractRows)));
    e.forLoop(begin, end, 1, [&](Value item) {
      Value panel = e.div(item, chunks), from = e.mul(e.rem(item, chunks), height);
      Value count = e.minimum(e.sub(rows, from), height), first = e.mul(panel, e.index(panelColumns));
      Value columns = e.pointer(input(4), e.mul(panel, e.index((depth + 1) * panelColumns)), f32);
      Value fresh = e.load(e.pointer(input(3), panel, i32), i32);
      e.ifThen(e.compare(arith::CmpIPredicate::ne, fresh, e.integer(i32, 0)), [&] { copy(first, columns); });
      Product product;
      product.xStride = product.depth = e.index(depth);
      product.w = columns;
      product.wStride = product.sumsStride = e.index(panelColumns);
      product.sums = e.scratch;
      auto tile = [&](Value row, int64_t height) {
        product.x = e.pointer(input(0), e.mul(e.add(from, row), e.index(depth)), f32);
        emitProductRows(e, product, height, e.index(panelColumns));
      };
      forRowTiles(e, count, e.machine.tileRows, tile, [&](Value row, Value height) {
        Value place = e.add(e.mul(e.add(from, row), total), first);
        e.forLoop(e.index(0), height, 1, [&](Value r) {
          store(e.pointer(e.scratch, e.mul(r, e.index(panelColumns)), f32), columns,
                e.pointer(e.buffer(op.getOutputs()[0]), e.add(place, e.mul(r, total)), f32));
        });
      });
    });
    return success();
  }

private:
  ArrayRef<DimAttr> shapeOf(unsigned operand) { return cast<DimsAttr>(kernel.getShapes()[operand]).getDims(); }
  Value input(unsigned number) { return e.buffer(op.getInputs()[number]); }

  /// The columns and biases of the tokens from `first` of the list on.
  void copy(Value first, Value columns) {
    e.forLoop(e.index(0), e.index(panelColumns), 1, [&](Value place) {
      Value listed = e.load(e.pointer(input(2), e.add(first, place), i32), i32);
      Value token = e.castIndex(e.b.create<arith::MaxSIOp>(e.loc, listed, e.integer(i32, 0)), e.b.getIndexType());
      Value panel = e.div(token, e.index(panelColumns)), column = e.rem(token, e.index(panelColumns));
      Value from = e.pointer(input(1), e.add(e.mul(panel, e.index(depth * panelColumns)), column), f32);
      Value to = e.pointer(columns, place, f32);
      e.forLoop(e.index(0), e.index(depth), 1, [&](Value k) {
        Value at = e.mul(k, e.index(panelColumns));
        e.store(e.load(e.pointer(from, at, f32), f32), e.pointer(to, at, f32));
      });
      if (hasBias)
        e.store(e.load(e.pointer(input(5), token, f32), f32), e.pointer(to, depth * panelColumns, f32));
    });
  }

  /// A row of sums, with the bias.
  void store(Value sums, Value columns, Value logits) {
    for (int64_t column = 0; column < panelColumns; column += lanes) {
      Value group = e.load(e.pointer(sums, column, f32), e.vf32());
      if (hasBias)
        group = e.add(group, e.load(e.pointer(columns, depth * panelColumns + column, f32), e.vf32()));
      e.store(group, e.pointer(logits, column, f32));
    }
  }

  Emitter &e;
  SearchHeadOp op;
  KernelOp kernel;
  const Type f32, i32;
  int64_t depth = 0;
  bool hasBias = false;
};

} // namespace

LogicalResult cpu::emitListedHead(Emitter &e, SearchHeadOp op) { return ListedHead(e, op).emit(); }
