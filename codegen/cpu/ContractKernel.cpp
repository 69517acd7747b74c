//===- ContractKernel.cpp - kernel.contract -----------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An item is one panel of 64 columns for up to 96 rows. The panel is read once per tile of rows, from the second level
// cache, into which these tiles fetch the next one. Sums of a tile go through a small buffer to the epilogue, which is
// emitted once per part. f32 rows of x are read as they lie. Those that are rounded first go to scratch memory: items
// are ordered such that a call converts its rows once, whatever the number of panels; every thread does that for
// itself, which costs less than waiting for another one.

#include "codegen/cpu/Kernels.h"
#include "codegen/cpu/NarrowTile.h"
#include "codegen/cpu/Schedule.h"
#include "codegen/cpu/Tile.h"
#include "codegen/emit/Body.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;

namespace {

class ContractEmitter {
public:
  ContractEmitter(Emitter &emitter, ContractOp op) : e(emitter), op(op) {}

  LogicalResult emit() {
    if (op.getEpilogues().size() != op.getParts().size() || op.getOutputs().size() != op.getParts().size() ||
        op.getInputs().size() < 2)
      return op.emitOpError("needs one epilogue and one output per part, and two inputs");
    FailureOr<ProductKind> kind = productKindOf(op);
    if (failed(kind))
      return failure();
    return *kind == ProductKind::Float ? emitFloat() : emitNarrow(*kind);
  }

private:
  /// Items of a panel follow each other.
  LogicalResult emitFloat() {
    LogicalResult result = success();
    Value rows = e.liveRows(cast<KernelOp>(op.getOperation()), op.getRows()), chunks = chunksOfRows(rows);
    Value height = chunkHeight(rows);
    Value depth = e.index(op.getK());
    auto [begin, end] = shareOf(rows);
    Value last = lastAhead(begin, end, rows);
    auto panelAt = [&](Value panel) {
      return e.pointer(e.buffer(op.getInputs()[1]), e.mul(panel, e.index(op.getK() * panelColumns)), e.f32());
    };
    e.forLoop(begin, end, 1, [&](Value item) {
      Value panel = e.div(item, chunks), chunk = e.rem(item, chunks);
      Value from = e.mul(chunk, height), count = e.minimum(e.sub(rows, from), height);
      Product product;
      product.xStride = product.depth = depth;
      product.w = panelAt(panel);
      product.ahead = aheadOf(e, count, e.machine.tileRows);
      product.ahead.panel = panelAt(e.div(e.minimum(e.add(item, e.index(1)), last), chunks));
      product.wStride = product.sumsStride = e.index(panelColumns);
      product.sums = e.scratch;
      auto tile = [&](Value row, int64_t height) {
        product.ahead.row = row;
        product.x = e.pointer(e.buffer(op.getInputs()[0]), e.mul(e.add(from, row), depth), e.f32());
        emitProductRows(e, product, height, e.index(panelColumns));
      };
      auto after = [&](Value row, Value height) {
        result = success(succeeded(result) && succeeded(emitEpilogues(panel, e.add(from, row), height)));
      };
      forRowTiles(e, count, e.machine.tileRows, tile, after);
    });
    return result;
  }

  /// Items of the same rows follow each other.
  LogicalResult emitNarrow(ProductKind kind) {
    LogicalResult result = success();
    Value panels = e.index(panelCount()), rows = e.liveRows(cast<KernelOp>(op.getOperation()), op.getRows());
    Value height = chunkHeight(rows);
    const int64_t depth = op.getK();
    NarrowProduct product;
    product.kind = kind;
    product.depth = depth;
    product.block = op.getBlock();
    product.sums = e.scratch;
    product.xStride = e.index(kind == ProductKind::Int8Weights ? depth : narrowStride(depth));
    Type words = e.b.getI32Type();
    auto group = panelGroup(elementTypeOf(op.getInputs()[1].getType()));
    Value panelWords = e.index((depth + group - 1) / group * panelColumns);
    auto [begin, end] = shareOf(rows);
    auto panelAt = [&](Value panel) { return e.pointer(e.buffer(op.getInputs()[1]), e.mul(panel, panelWords), words); };
    auto chunkOf = [&, begin = begin, end = end](ValueRange first) {
      Value chunk = e.div(first[0], panels), from = e.mul(chunk, height);
      Value count = e.minimum(e.sub(rows, from), height), firstItem = e.mul(chunk, panels);
      Value next = e.minimum(end, e.add(firstItem, panels));
      convertRows(kind, from, count);
      const int64_t tileRows = narrowTileRows(e, product);
      product.ahead = aheadOf(e, count, tileRows);
      Value last = lastAhead(begin, end, rows);
      e.forLoop(first[0], next, 1, [&](Value item) {
        Value panel = e.sub(item, firstItem), following = e.minimum(e.add(item, e.index(1)), last);
        product.panel = panelAt(panel);
        Value place = e.sub(following, firstItem);
        product.ahead.panel = panelAt(e.select(e.less(following, end), e.rem(place, panels), place));
        if (product.block) {
          Value panelScales = e.index((depth + product.block - 1) / product.block * panelColumns);
          product.blockScales = e.pointer(e.buffer(op.getInputs()[2]), e.mul(panel, panelScales), e.f32());
        }
        auto tile = [&](Value row, int64_t height) {
          product.ahead.row = row;
          product.x = narrowRow(kind, from, row);
          product.scales = e.pointer(scratchAt(contractScales), row, e.f32());
          product.corrections = e.pointer(scratchAt(contractCorrections), row, words);
          emitNarrowRows(e, product, height);
        };
        auto after = [&](Value row, Value height) {
          result = success(succeeded(result) && succeeded(emitEpilogues(panel, e.add(from, row), height)));
        };
        forRowTiles(e, count, tileRows, tile, after);
      });
      return Emitter::Carried{next};
    };
    e.whileLoop({begin}, [&, end = end](ValueRange item) { return e.less(item[0], end); }, chunkOf);
    return result;
  }

  int64_t panelCount() {
    int64_t count = 0;
    for (int64_t columns : op.getParts())
      count += (columns + panelColumns - 1) / panelColumns;
    return count;
  }
  Value chunksOfRows(Value rows) { return e.ceilDiv(rows, contractRows); }
  /// Rows of a chunk: all have the same but the last, which may have fewer. 128 rows are twice 64, not 96 and 32.
  Value chunkHeight(Value rows) {
    Value chunks = e.maximum(chunksOfRows(rows), e.index(1));
    return e.div(e.sub(e.add(rows, chunks), e.index(1)), chunks);
  }
  /// What falls to this call where only `rows` rows are live.
  std::pair<Value, Value> shareOf(Value rows) {
    Value all = e.dim(op.getRows()), panels = e.index(panelCount());
    if (rows == all)
      return {e.begin, e.end};
    return e.shareOf(e.mul(chunksOfRows(rows), panels), e.mul(chunksOfRows(all), panels));
  }

  /// The last item whose panel is fetched ahead. Behind the last panel of a matrix most often lies the next one, for
  /// weights are stored in the order of their use: that one's first panel is fetched by who computes all of this one.
  Value lastAhead(Value begin, Value end, Value rows) {
    Value all = e.mul(chunksOfRows(rows), e.index(panelCount()));
    Value has = e.compare(arith::CmpIPredicate::sge, e.sub(end, begin), all);
    return e.select(has, end, e.sub(end, e.index(1)));
  }

  Value scratchAt(int64_t bytes) { return e.pointer(e.scratch, bytes, e.b.getI8Type()); }

  /// Row `row` of the chunk that begins at `from`, as the product reads it.
  Value narrowRow(ProductKind kind, Value from, Value row) {
    const int64_t depth = op.getK();
    if (kind == ProductKind::Int8Weights)
      return e.pointer(e.buffer(op.getInputs()[0]), e.mul(e.add(from, row), e.index(depth)), e.f32());
    return e.pointer(scratchAt(contractNarrowRows), e.mul(row, e.index(narrowStride(depth))),
                     kind == ProductKind::Bf16 ? e.b.getI16Type() : e.b.getI8Type());
  }

  void convertRows(ProductKind kind, Value from, Value count) {
    const int64_t depth = op.getK();
    if (kind == ProductKind::Int8Weights)
      return;
    e.forLoop(e.index(0), count, 1, [&](Value row) {
      Type element = elementTypeOf(op.getInputs()[0].getType());
      Value x = e.pointer(e.buffer(op.getInputs()[0]), e.mul(e.add(from, row), e.index(depth)), element);
      Value target = narrowRow(kind, from, row);
      if (kind == ProductKind::Bf16)
        return emitBf16Row(e, x, depth, target);
      Value correction = e.pointer(scratchAt(contractCorrections), row, e.b.getI32Type());
      if (kind == ProductKind::Integers)
        return emitIntegerRow(e, x, depth, target, correction);
      emitInt8Row(e, x, depth, target, e.pointer(scratchAt(contractScales), row, e.f32()), correction);
    });
  }

  LogicalResult emitEpilogues(Value panel, Value row, Value height) {
    LogicalResult result = success();
    int64_t first = 0;
    for (auto [part, columns] : llvm::enumerate(op.getParts())) {
      int64_t panels = (columns + panelColumns - 1) / panelColumns;
      Value inside = e.compare(arith::CmpIPredicate::ult, e.sub(panel, e.index(first)), e.index(panels));
      auto emitPart = [&, part = part, columns = columns] {
        Value column = e.mul(e.sub(panel, e.index(first)), e.index(panelColumns));
        e.forLoop(e.index(0), height, 1, [&](Value r) {
          if (failed(emitRow(part, columns, e.add(row, r), column,
                             e.pointer(e.scratch, e.mul(r, e.index(panelColumns)), e.f32()))))
            result = failure();
        });
      };
      if (op.getParts().size() == 1)
        emitPart();
      else
        e.ifThen(inside, emitPart);
      first += panels;
    }
    return result;
  }

  /// `column` is the first of the panel, within the part; `sums` its 64 sums.
  LogicalResult emitRow(unsigned part, int64_t columns, Value row, Value column, Value sums) {
    Block &block = op.getEpilogues()[part].front();
    Body::Buffers buffers;
    Body::addInputs(e, buffers, cast<KernelOp>(op.getOperation()), block.getArguments().drop_front(3), /*first=*/2);
    IRMapping outer;
    outer.map(block.getArgument(0), row);
    Body body(e, block, block.getArgument(1), {block.getArgument(2)}, buffers, outer);
    if (failed(body.emitUniform()))
      return failure();
    Value output = op.getOutputs()[part];
    Type element = elementTypeOf(output.getType()), sumType = block.getArgument(2).getType();
    Value outputRow = e.pointer(e.buffer(output), e.mul(row, e.index(columns)), element);
    Value end = e.minimum(e.index(columns), e.add(column, e.index(panelColumns)));
    LogicalResult result = success();
    if (!body.vectorizable()) {
      e.forLoop(column, end, 1, [&](Value position) {
        Value sum = e.load(e.pointer(sums, e.sub(position, column), sumType), sumType);
        auto yielded = body.emitScalar(position, {sum});
        result = yielded;
        if (succeeded(yielded))
          e.store(yielded->front(), e.pointer(outputRow, position, element));
      });
      return result;
    }
    auto group = [&](Value position, Value count) {
      Value sum = e.load(e.pointer(sums, e.sub(position, column), sumType), e.vectorOf(sumType));
      auto yielded = body.emitVector(position, {sum});
      if (failed(yielded)) {
        result = failure();
        return;
      }
      Value place = e.pointer(outputRow, position, element);
      if (count)
        e.maskedStore(yielded->front(), place, e.lanesBelow(count));
      else
        e.store(yielded->front(), place);
    };
    if (columns % lanes == 0)
      e.forLoop(column, end, lanes, [&](Value position) { group(position, Value()); });
    else
      e.forLaneGroups(column, end, group);
    return result;
  }

  Emitter &e;
  ContractOp op;
};

} // namespace

LogicalResult cpu::emitContract(Emitter &emitter, ContractOp op) { return ContractEmitter(emitter, op).emit(); }
