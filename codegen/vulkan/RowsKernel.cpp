//===- RowsKernel.cpp - kernel.rows as a shader -------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A workgroup takes a row. Invocation i of g reduces positions i, i + g, …; then all combine what the g have.

#include "codegen/emit/RowStages.h"
#include "codegen/vulkan/Kernels.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Body;
using emit::Emitter;

namespace {

class RowsEmitter {
public:
  RowsEmitter(Shader &shader, RowsOp op)
      : shader(shader), e(shader.e), op(op), kernel(cast<KernelOp>(op.getOperation())), length(e.dim(op.getLength())) {
    Body::addInputs(e, buffers, kernel, op.getBody().getArguments().drop_front());
  }

  LogicalResult emit() {
    LogicalResult result = success();
    // Memory of the workgroup belongs to the whole function.
    op.walk([&](RowReduceOp reduce) {
      Type type = reduce.getResult().getType();
      slots[reduce] = shader.sharedArrayPerInvocation(type);
    });
    shader.forGroupItem(e.liveRows(kernel, op.getRows()), [&](Value row) { result = emitRow(row); });
    return result;
  }

private:
  LogicalResult emitRow(Value row) {
    IRMapping values;
    values.map(op.getBody().getArgument(0), row);
    auto reduce = [&](RowReduceOp stage) { return emitReduce(stage, values); };
    auto map = [&](RowMapOp stage) { return emitMap(stage, row, values); };
    LogicalResult result = emit::forRowStages(e, op, buffers, values, reduce, map);
    Value first = e.compare(arith::CmpIPredicate::eq, shader.local, e.index(0));
    e.ifThen(first,
             [&] { result = success(succeeded(result) && succeeded(emit::storeRowResults(e, op, row, values))); });
    return result;
  }

  /// The value that the body of a stage yields at a position.
  FailureOr<Value> valueAt(Block &block, Value position, const IRMapping &outer) {
    IRMapping values = outer;
    values.map(block.getArgument(0), position);
    FailureOr<SmallVector<Value>> yielded = emitBlock(shader, block, buffers, values);
    if (failed(yielded))
      return failure();
    return yielded->front();
  }

  LogicalResult emitMap(RowMapOp map, Value row, IRMapping &values) {
    Value output = op.getOutputs()[map.getOutput()];
    Type element = elementTypeOf(output.getType());
    Value target = e.pointer(e.buffer(output), e.mul(row, length), element);
    LogicalResult result = success();
    shader.forShare(e.index(0), length, [&](Value position) {
      FailureOr<Value> value = valueAt(map.getBody().front(), position, values);
      result = value;
      if (succeeded(value))
        e.store(*value, e.pointer(target, position, element));
    });
    return result;
  }

  LogicalResult emitReduce(RowReduceOp reduce, IRMapping &values) {
    FailureOr<Value> neutral = emit::neutralElement(e, reduce);
    if (failed(neutral))
      return failure();
    StringRef kind = reduce.getKind();
    LogicalResult result = success();
    Value mine = shader.forShare(e.index(0), length, *neutral, [&](Value position, ValueRange sofar) {
      FailureOr<Value> value = valueAt(reduce.getBody().front(), position, values);
      result = value;
      return Emitter::Carried{succeeded(value) ? emit::combined(e, kind, sofar[0], *value) : sofar[0]};
    })[0];
    values.map(reduce.getResult(), shader.combineAll(kind, mine, slots.lookup(reduce)));
    return result;
  }

  Shader &shader;
  Emitter &e;
  RowsOp op;
  KernelOp kernel;
  Value length;
  Body::Buffers buffers;
  llvm::DenseMap<Operation *, Value> slots;
};

} // namespace

LogicalResult vulkan::emitRows(Shader &shader, RowsOp op) { return RowsEmitter(shader, op).emit(); }
