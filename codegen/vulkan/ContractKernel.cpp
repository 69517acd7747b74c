//===- ContractKernel.cpp - kernel.contract as a shader -----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A workgroup computes a panel of 64 columns for up to four rows: sixteen invocations take four adjacent columns each,
// and eight such teams a slice of k each. The slices of an element are the same whatever the rows, and their sums are
// added in order: an element has the same bits in any batch.

#include "codegen/vulkan/Kernels.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Body;
using emit::Emitter;

namespace {

static_assert(contractColumns == 4, "columns of an invocation are read at once");

class ContractEmitter {
public:
  ContractEmitter(Shader &shader, ContractOp op)
      : shader(shader), e(shader.e), op(op), kernel(cast<KernelOp>(op.getOperation())), f32(e.f32()),
        vf32(shader.four()), depth(op.getK()) {
    if (op.getInputs().size() > 1)
      integers = elementTypeOf(op.getInputs()[0].getType()).isInteger(8);
    sumType = integers ? Type(e.b.getI32Type()) : f32;
  }

  LogicalResult emit() {
    if (op.getEpilogues().size() != op.getParts().size() || op.getOutputs().size() != op.getParts().size() ||
        op.getInputs().size() < 2)
      return op.emitOpError("needs one epilogue and one output per part, and two inputs");
    if (integers && !elementTypeOf(op.getInputs()[1].getType()).isInteger(8))
      return op.emitOpError("multiplies integers by a packed matrix of other elements");
    int64_t panels = 0;
    for (int64_t columns : op.getParts())
      panels += panelsOf(columns);
    sums = shader.sharedArray(sumType, contractSlices * contractRows * panelColumns);
    Value rows = e.liveRows(kernel, op.getRows());
    constexpr int64_t team = panelColumns / contractColumns;
    slice = e.div(shader.local, e.index(team));
    column = e.mul(e.rem(shader.local, e.index(team)), e.index(contractColumns));
    LogicalResult result = success();
    shader.forGroupItem(e.end, [&](Value item) {
      Value panel = e.rem(item, e.index(panels));
      first = e.mul(e.div(item, e.index(panels)), e.index(contractRows));
      // Of integers, four adjacent k lie side by side.
      int64_t panelSize = integers ? (depth + 3) / 4 * 4 * panelColumns : depth * panelColumns;
      Value inside = integers ? e.mul(column, e.index(4)) : column;
      weights = e.pointer(e.buffer(op.getInputs()[1]), e.add(e.mul(panel, e.index(panelSize)), inside),
                          integers ? Type(e.b.getI8Type()) : f32);
      count = e.minimum(e.sub(rows, first), e.index(contractRows));
      e.ifThen(e.less(e.index(0), count), [&] {
        emitTile(contractRows);
        shader.barrier();
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

  /// Exact sums of signed bytes times bytes with the offset 128.
  void emitIntegerSums(int64_t height) {
    Type i8 = e.b.getI8Type(), i32 = sumType;
    SmallVector<Value> x;
    for (int64_t r = 0; r < height; ++r) {
      Value row = e.add(first, e.minimum(e.index(r), e.sub(count, e.index(1))));
      x.push_back(e.pointer(e.buffer(op.getInputs()[0]), e.mul(row, e.index(depth)), i8));
    }
    SmallVector<Value> totals(height * contractColumns, e.integer(i32, 0));
    int64_t length = (depth + contractSlices - 1) / contractSlices;
    Value from = e.mul(slice, e.index(length)), to = e.minimum(e.add(from, e.index(length)), e.index(depth));
    Emitter::Carried done = e.forLoop(from, to, 1, totals, [&](Value k, ValueRange sofar) {
      Emitter::Carried next(sofar);
      Value group = e.add(e.mul(e.div(k, e.index(4)), e.index(4 * panelColumns)), e.rem(k, e.index(4)));
      SmallVector<Value> w;
      for (int64_t c = 0; c < contractColumns; ++c) {
        Value byte = e.load(e.pointer(weights, e.add(group, e.index(4 * c)), i8), i8);
        w.push_back(e.sub(e.b.create<arith::ExtUIOp>(e.loc, i32, byte), e.integer(i32, 128)));
      }
      for (int64_t r = 0; r < height; ++r) {
        Value factor = e.b.create<arith::ExtSIOp>(e.loc, i32, e.load(e.pointer(x[r], k, i8), i8));
        for (int64_t c = 0; c < contractColumns; ++c)
          next[r * contractColumns + c] = e.add(next[r * contractColumns + c], e.mul(factor, w[c]));
      }
      return next;
    });
    for (int64_t r = 0; r < height; ++r)
      for (int64_t c = 0; c < contractColumns; ++c)
        e.store(done[r * contractColumns + c],
                e.pointer(sums, placeOf(slice, e.index(r), e.add(column, e.index(c))), i32));
  }

  void emitSums(int64_t height) {
    if (integers)
      return emitIntegerSums(height);
    SmallVector<Value> x;
    for (int64_t r = 0; r < height; ++r) { // a row behind the last one computes the last one again
      Value row = e.add(first, e.minimum(e.index(r), e.sub(count, e.index(1))));
      x.push_back(e.pointer(e.buffer(op.getInputs()[0]), e.mul(row, e.index(depth)), f32));
    }
    auto weightsAt = [&](Value k) { return shader.loadFour(e.pointer(weights, e.mul(k, e.index(panelColumns)), f32)); };
    SmallVector<Value> totals(height, e.number(vf32, 0));
    // Four values of a row at once where rows begin at multiples of 16 bytes.
    int64_t step = depth % 4 == 0 ? 4 : 1;
    int64_t length = (depth + contractSlices * step - 1) / (contractSlices * step) * step;
    Value from = e.mul(slice, e.index(length)), to = e.minimum(e.add(from, e.index(length)), e.index(depth));
    Emitter::Carried done = e.forLoop(from, to, step, totals, [&](Value k, ValueRange sofar) {
      Emitter::Carried next(sofar);
      SmallVector<Value> w, xs;
      for (int64_t i = 0; i < step; ++i)
        w.push_back(weightsAt(e.add(k, e.index(i))));
      for (Value row : x) {
        Value place = e.pointer(row, k, f32);
        xs.push_back(step == 4 ? shader.loadFour(place) : e.load(place, f32));
      }
      for (int64_t i = 0; i < step; ++i)
        for (int64_t r = 0; r < height; ++r)
          next[r] = e.fma(shader.splat(step == 4 ? shader.component(xs[r], i) : xs[r]), w[i], next[r]);
      return next;
    });
    for (int64_t r = 0; r < height; ++r)
      for (int64_t c = 0; c < contractColumns; ++c)
        e.store(shader.component(done[r], c),
                e.pointer(sums, placeOf(slice, e.index(r), e.add(column, e.index(c))), f32));
  }

  /// Of the sum of a slice, in the shared array.
  Value placeOf(Value slice, Value row, Value column) {
    return e.add(e.mul(e.add(e.mul(slice, e.index(contractRows)), row), e.index(panelColumns)), column);
  }

  LogicalResult emitEpilogues(Value panel) {
    LogicalResult result = success();
    int64_t firstPanel = 0;
    for (auto [part, columns] : llvm::enumerate(op.getParts())) {
      Value within = e.sub(panel, e.index(firstPanel));
      auto emitPart = [&, part = part, columns = columns] {
        shader.forShare(e.index(0), e.mul(count, e.index(panelColumns)), [&](Value i) {
          Value r = e.div(i, e.index(panelColumns)), c = e.rem(i, e.index(panelColumns));
          Value position = e.add(e.mul(within, e.index(panelColumns)), c);
          e.ifThen(e.less(position, e.index(columns)), [&] {
            if (failed(emitElement(part, columns, e.add(first, r), position, sumOf(r, c))))
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

  /// The slices of an element, added in order.
  Value sumOf(Value row, Value column) {
    Value sum;
    for (int64_t s = 0; s < contractSlices; ++s) {
      Value part = e.load(e.pointer(sums, placeOf(e.index(s), row, column), sumType), sumType);
      sum = sum ? e.add(sum, part) : part;
    }
    return sum;
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
  Type sumType; // i32 where integers are multiplied
  bool integers = false;
  const int64_t depth;
  Value sums;                  // shared: [contractSlices, contractRows, panelColumns]
  Value slice, column;         // of the invocation: its slice of k, its first column in the panel
  Value first, count, weights; // of the item: its rows, and the weights of the column
};

} // namespace

LogicalResult vulkan::emitContract(Shader &shader, ContractOp op) {
  auto elementOf = [&](unsigned i) { return elementTypeOf(op.getInputs()[i].getType()); };
  if (op.getInputs().size() > 1 && !elementOf(1).isF32() && (!elementOf(0).isInteger(8) || op.getQuantised()))
    return op.emitOpError("has a packed matrix of narrow elements, which shaders do not multiply with");
  return ContractEmitter(shader, op).emit();
}
