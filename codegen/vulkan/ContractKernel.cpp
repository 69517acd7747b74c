//===- ContractKernel.cpp - kernel.contract as a shader -----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An item is four adjacent columns of a panel and up to eight rows, in registers. Neighbouring invocations read
// neighbouring weights. Per element one chain of multiply-adds over ascending k.

#include "codegen/vulkan/Kernels.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Body;
using emit::Emitter;

namespace {

class ContractEmitter {
public:
  ContractEmitter(Shader &shader, ContractOp op)
      : shader(shader), e(shader.e), op(op), kernel(cast<KernelOp>(op.getOperation())), f32(e.f32()),
        vf32(VectorType::get({contractColumns}, f32)), depth(op.getK()) {}

  LogicalResult emit() {
    if (op.getEpilogues().size() != op.getParts().size() || op.getOutputs().size() != op.getParts().size() ||
        op.getInputs().size() < 2)
      return op.emitOpError("needs one epilogue and one output per part, and two inputs");
    constexpr int64_t quads = panelColumns / contractColumns;
    int64_t panels = 0;
    for (int64_t columns : op.getParts())
      panels += panelsOf(columns);
    sums = e.stackArray(f32, contractRows * contractColumns);
    rows = e.liveRows(kernel, op.getRows());
    LogicalResult result = success();
    shader.forItem(e.end, [&](Value item) {
      Value tile = e.div(item, e.index(panels * quads)), quad = e.rem(item, e.index(panels * quads));
      Value panel = e.div(quad, e.index(quads));
      column = e.mul(e.rem(quad, e.index(quads)), e.index(contractColumns));
      first = e.mul(tile, e.index(contractRows));
      weights = e.pointer(e.buffer(op.getInputs()[1]), e.add(e.mul(panel, e.index(depth * panelColumns)), column), f32);
      count = e.minimum(e.sub(rows, first), e.index(contractRows));
      e.ifThen(e.less(e.index(0), count), [&] {
        emitTile(contractRows);
        result = emitEpilogues(panel);
      });
    });
    return result;
  }

private:
  static int64_t panelsOf(int64_t columns) { return (columns + panelColumns - 1) / panelColumns; }

  /// The smallest of the heights 1, 2, 4, … that holds the rows.
  void emitTile(int64_t height) {
    if (height == 1)
      return emitSums(height);
    Value fits = e.less(count, e.index(height / 2 + 1));
    e.ifElse(fits, [&] { emitTile(height / 2); }, [&] { emitSums(height); });
  }

  Value loadFour(Value pointer) { return e.b.create<LLVM::LoadOp>(e.loc, vf32, pointer, /*alignment=*/16); }
  Value component(Value four, int64_t i) {
    return e.b.create<vector::ExtractOp>(e.loc, four, ArrayRef<int64_t>{i});
  }
  Value splat(Value scalar) { return e.b.create<vector::BroadcastOp>(e.loc, vf32, scalar); }

  void emitSums(int64_t height) {
    SmallVector<Value> x;
    for (int64_t r = 0; r < height; ++r) { // a row behind the last one computes the last one again
      Value row = e.add(first, e.minimum(e.index(r), e.sub(count, e.index(1))));
      x.push_back(e.pointer(e.buffer(op.getInputs()[0]), e.mul(row, e.index(depth)), f32));
    }
    auto weightsAt = [&](Value k) { return loadFour(e.pointer(weights, e.mul(k, e.index(panelColumns)), f32)); };
    SmallVector<Value> totals(height, e.number(vf32, 0));
    // Four values of a row at once where rows begin at multiples of 16 bytes.
    int64_t step = depth % 4 == 0 ? 4 : 1;
    Emitter::Carried done =
        e.forLoop(e.index(0), e.index(depth), step, totals, [&](Value k, ValueRange sofar) {
          Emitter::Carried next(sofar);
          SmallVector<Value> w, xs;
          for (int64_t i = 0; i < step; ++i)
            w.push_back(weightsAt(e.add(k, e.index(i))));
          for (Value row : x) {
            Value place = e.pointer(row, k, f32);
            xs.push_back(step == 4 ? loadFour(place) : e.load(place, f32));
          }
          for (int64_t i = 0; i < step; ++i)
            for (int64_t r = 0; r < height; ++r)
              next[r] = e.fma(splat(step == 4 ? component(xs[r], i) : xs[r]), w[i], next[r]);
          return next;
        });
    for (int64_t r = 0; r < height; ++r)
      for (int64_t c = 0; c < contractColumns; ++c)
        e.store(component(done[r], c), e.pointer(sums, r * contractColumns + c, f32));
  }

  LogicalResult emitEpilogues(Value panel) {
    LogicalResult result = success();
    int64_t firstPanel = 0;
    for (auto [part, columns] : llvm::enumerate(op.getParts())) {
      Value within = e.sub(panel, e.index(firstPanel));
      auto emitPart = [&, part = part, columns = columns] {
        Value from = e.add(e.mul(within, e.index(panelColumns)), column);
        Value width = e.minimum(e.sub(e.index(columns), from), e.index(contractColumns));
        e.forLoop(e.index(0), count, 1, [&](Value r) {
          e.forLoop(e.index(0), width, 1, [&](Value c) {
            Value sum = e.load(e.pointer(sums, e.add(e.mul(r, e.index(contractColumns)), c), f32), f32);
            if (failed(emitElement(part, columns, e.add(first, r), e.add(from, c), sum)))
              result = failure();
          });
        });
      };
      if (op.getParts().size() == 1)
        emitPart();
      else
        e.ifThen(e.compare(arith::CmpIPredicate::ult, within, e.index(panelsOf(columns))), emitPart);
      firstPanel += panelsOf(columns);
    }
    return result;
  }

  LogicalResult emitElement(unsigned part, int64_t columns, Value row, Value position, Value sum) {
    Block &block = op.getEpilogues()[part].front();
    Body::Buffers buffers;
    Body::addInputs(e, buffers, kernel, block.getArguments().drop_front(3), /*first=*/2);
    IRMapping values;
    values.map(block.getArguments().take_front(3), ValueRange{row, position, sum});
    FailureOr<SmallVector<Value>> yielded = emitBlock(shader, block, buffers, values);
    if (failed(yielded))
      return failure();
    Value output = op.getOutputs()[part];
    Value place = e.add(e.mul(row, e.index(columns)), position);
    e.store(yielded->front(), e.pointer(e.buffer(output), place, elementTypeOf(output.getType())));
    return success();
  }

  Shader &shader;
  Emitter &e;
  ContractOp op;
  KernelOp kernel;
  Type f32;
  VectorType vf32;
  const int64_t depth;
  Value rows, sums;                    // sums: [contractRows, contractColumns] of the item
  Value first, count, column, weights; // rows of the item, its first column in the panel, the weights there
};

} // namespace

LogicalResult vulkan::emitContract(Shader &shader, ContractOp op) { return ContractEmitter(shader, op).emit(); }
