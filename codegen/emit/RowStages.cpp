//===- RowStages.cpp - the stages of kernel.rows ------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/emit/RowStages.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::emit;

LogicalResult emit::forRowStages(Emitter &e, RowsOp op, const Body::Buffers &buffers, IRMapping &values,
                                 llvm::function_ref<LogicalResult(RowReduceOp)> reduceStage,
                                 llvm::function_ref<LogicalResult(RowMapOp)> mapStage) {
  for (Operation &stage : op.getBody().front().without_terminator()) {
    LogicalResult emitted = success();
    if (auto reduce = dyn_cast<RowReduceOp>(stage))
      emitted = reduceStage(reduce);
    else if (auto map = dyn_cast<RowMapOp>(stage))
      emitted = map.getOutput() < op.getOutputs().size()
                    ? mapStage(map)
                    : LogicalResult(map.emitOpError("writes an output that is not there"));
    else
      emitted = Body::emitOp(e, stage, buffers, values);
    if (failed(emitted))
      return failure();
  }
  return success();
}

LogicalResult emit::storeRowResults(Emitter &e, RowsOp op, Value row, IRMapping &values) {
  OperandRange yielded = op.getBody().front().getTerminator()->getOperands();
  if (yielded.size() > op.getOutputs().size())
    return op.emitOpError("yields more values than it has outputs");
  for (auto [value, output] : llvm::zip(yielded, op.getOutputs().take_back(yielded.size())))
    e.store(values.lookup(value), e.pointer(e.buffer(output), row, elementTypeOf(output.getType())));
  return success();
}

FailureOr<Value> emit::neutralElement(Emitter &e, RowReduceOp reduce) {
  StringRef kind = reduce.getKind();
  Type element = reduce.getResult().getType();
  if (Emitter::isShortFloat(element) || !element.isIntOrFloat())
    return reduce.emitOpError("cannot reduce elements of type ") << element;
  bool isFloat = isa<FloatType>(element);
  unsigned width = element.getIntOrFloatBitWidth();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (kind == "add")
    return e.number(element, isFloat ? -0.0 : 0.0);
  if (kind == "mul")
    return e.number(element, 1);
  if (kind == "max")
    return isFloat ? e.number(element, -infinity) : e.integer(element, APInt::getSignedMinValue(width).getSExtValue());
  if (kind == "min")
    return isFloat ? e.number(element, infinity) : e.integer(element, APInt::getSignedMaxValue(width).getSExtValue());
  return reduce.emitOpError("has the unknown kind '") << kind << "'";
}

Value emit::combined(Emitter &e, StringRef kind, Value x, Value y) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(x.getType()));
  if (kind == "add")
    return e.add(x, y);
  if (kind == "mul")
    return e.mul(x, y);
  if (kind == "max")
    return isFloat ? e.b.create<arith::MaximumFOp>(e.loc, x, y).getResult() : e.maximum(x, y);
  return isFloat ? e.b.create<arith::MinimumFOp>(e.loc, x, y).getResult() : e.minimum(x, y);
}
