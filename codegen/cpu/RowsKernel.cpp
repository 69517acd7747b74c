//===- RowsKernel.cpp - kernel.rows -------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/Kernels.h"
#include "codegen/emit/Body.h"
#include "codegen/emit/RowStages.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;

namespace {

/// An item is a row.
class RowsEmitter {
public:
  RowsEmitter(Emitter &emitter, RowsOp op) : e(emitter), op(op), length(emitter.dim(op.getLength())) {
    Body::addInputs(e, buffers, cast<KernelOp>(op.getOperation()), op.getBody().getArguments().drop_front());
  }

  LogicalResult emit() {
    LogicalResult result = success();
    e.forLiveItems(cast<KernelOp>(op.getOperation()), op.getRows(), [&](Value row) { result = emitRow(row); });
    return result;
  }

private:
  LogicalResult emitRow(Value row) {
    IRMapping values;
    values.map(op.getBody().getArgument(0), row);
    auto reduce = [&](RowReduceOp stage) { return emitReduce(stage, values); };
    auto map = [&](RowMapOp stage) { return emitMap(stage, row, values); };
    return success(succeeded(forRowStages(e, op, buffers, values, reduce, map)) &&
                   succeeded(storeRowResults(e, op, row, values)));
  }

  LogicalResult emitMap(RowMapOp map, Value row, IRMapping &values) {
    Value output = op.getOutputs()[map.getOutput()];
    Type element = elementTypeOf(output.getType());
    Value target = e.pointer(e.buffer(output), e.mul(row, length), element);
    Block &block = map.getBody().front();
    Body body(e, block, block.getArgument(0), {}, buffers, values);
    if (failed(body.emitUniform()))
      return failure();
    LogicalResult result = success();
    if (!body.vectorizable()) {
      e.forLoop(e.index(0), length, 1, [&](Value position) {
        auto yielded = body.emitScalar(position, {});
        result = yielded;
        if (succeeded(yielded))
          e.store(yielded->front(), e.pointer(target, position, element));
      });
      return result;
    }
    e.forLaneGroups(e.index(0), length, [&](Value position, Value count) {
      auto yielded = body.emitVector(position, {});
      if (failed(yielded))
        result = failure();
      else if (count)
        e.maskedStore(yielded->front(), e.pointer(target, position, element), e.lanesBelow(count));
      else
        e.store(yielded->front(), e.pointer(target, position, element));
    });
    return result;
  }

  LogicalResult emitReduce(RowReduceOp reduce, IRMapping &values) {
    FailureOr<Value> neutral = neutralElement(e, reduce);
    if (failed(neutral))
      return failure();
    Block &block = reduce.getBody().front();
    Body body(e, block, block.getArgument(0), {}, buffers, values);
    if (failed(body.emitUniform()))
      return failure();
    auto combine = [&](Value x, Value y) { return combined(e, reduce.getKind(), x, y); };
    FailureOr<Value> lanesOfRow = body.vectorizable() ? reduceGroups(body, e.broadcast(*neutral), combine)
                                                      : reduceElements(body, e.broadcast(*neutral), combine);
    if (failed(lanesOfRow))
      return failure();
    values.map(reduce.getResult(), e.reduceLanes(*lanesOfRow, combine));
    return success();
  }

  using Combine = llvm::function_ref<Value(Value, Value)>;

  /// Sixteen positions at a time; behind the last one the lanes keep what they have.
  FailureOr<Value> reduceGroups(Body &body, Value start, Combine combine) {
    LogicalResult result = success();
    auto step = [&](Value position, Value sofar) {
      auto yielded = body.emitVector(position, {});
      result = yielded;
      return succeeded(yielded) ? combine(sofar, yielded->front()) : sofar;
    };
    Value full = e.mul(e.div(length, e.index(lanes)), e.index(lanes));
    Value groups = e.forLoop(e.index(0), full, lanes, start, [&](Value position, ValueRange carried) {
      return Emitter::Carried{step(position, carried[0])};
    })[0];
    if (failed(result))
      return failure();
    auto constant = getConstantIntValue(length);
    if (constant && *constant % lanes == 0)
      return groups;
    // A loop of at most one pass: nothing is read where no element is left.
    return e.forLoop(full, length, lanes, groups, [&](Value position, ValueRange carried) {
      Value rest = e.lanesBelow(e.sub(length, position));
      return Emitter::Carried{e.select(rest, step(position, carried[0]), carried[0])};
    })[0];
  }

  /// One position at a time, with the lanes in memory.
  FailureOr<Value> reduceElements(Body &body, Value start, Combine combine) {
    LogicalResult result = success();
    Type element = getElementTypeOrSelf(start.getType());
    Value memory = e.stackArray(element, lanes);
    e.store(start, memory);
    e.forLoop(e.index(0), length, 1, [&](Value position) {
      auto yielded = body.emitScalar(position, {});
      result = yielded;
      if (failed(yielded))
        return;
      Value lane = e.pointer(memory, e.rem(position, e.index(lanes)), element);
      e.store(combine(e.load(lane, element), yielded->front()), lane);
    });
    if (failed(result))
      return failure();
    return e.load(memory, e.vectorOf(element));
  }

  Emitter &e;
  RowsOp op;
  Value length;
  Body::Buffers buffers;
};

} // namespace

LogicalResult cpu::emitRows(Emitter &emitter, RowsOp op) { return RowsEmitter(emitter, op).emit(); }
