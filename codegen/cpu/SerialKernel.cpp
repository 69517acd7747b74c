//===- SerialKernel.cpp - kernel.serial ---------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/Body.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;

LogicalResult cpu::emitSerial(Emitter &emitter, SerialOp op) {
  auto kernel = cast<KernelOp>(op.getOperation());
  Block &block = op.getBody().front();
  unsigned inputs = op.getInputs().size(), outputs = op.getOutputs().size();
  Body::Buffers buffers;
  for (auto [i, output] : llvm::enumerate(op.getOutputs()))
    buffers[block.getArgument(1 + i)] = {emitter.buffer(output),
                                         cast<transept::DimsAttr>(kernel.getShapes()[inputs + i]),
                                         elementTypeOf(output.getType())};
  Body::addInputs(emitter, buffers, kernel, block.getArguments().drop_front(1 + outputs));
  LogicalResult result = success();
  emitter.forItems([&](Value item) {
    IRMapping values;
    values.map(block.getArgument(0), item);
    for (Operation &inner : block.without_terminator())
      if (failed(Body::emitOp(emitter, inner, buffers, values)))
        result = failure();
  });
  return result;
}
