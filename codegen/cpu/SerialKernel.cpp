//===- SerialKernel.cpp - kernel.serial ---------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/cpu/Kernels.h"
#include "codegen/emit/Body.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::cpu;
using namespace mlir::kernel::emit;

LogicalResult cpu::emitSerial(Emitter &emitter, SerialOp op) {
  auto kernel = cast<KernelOp>(op.getOperation());
  Block &block = op.getBody().front();
  Body::Buffers buffers;
  Body::addOutputs(emitter, buffers, kernel, block.getArguments().slice(1, op.getOutputs().size()));
  Body::addInputs(emitter, buffers, kernel, block.getArguments().drop_front(1 + op.getOutputs().size()));
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
