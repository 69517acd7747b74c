//===- MapKernel.cpp - kernel.map and kernel.serial as shaders ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/vulkan/Kernels.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Body;
using transept::DimAttr;

FailureOr<SmallVector<Value>> vulkan::emitBlock(Shader &shader, Block &block, const Body::Buffers &buffers,
                                                IRMapping &values) {
  for (Operation &op : block.without_terminator())
    if (failed(Body::emitOp(shader.e, op, buffers, values)))
      return failure();
  SmallVector<Value> yielded;
  for (Value value : block.getTerminator()->getOperands())
    yielded.push_back(values.lookup(value));
  return yielded;
}

/// An item is a point of the domain, the last dimension running fastest.
LogicalResult vulkan::emitMap(Shader &shader, MapOp op) {
  emit::Emitter &e = shader.e;
  auto kernel = cast<KernelOp>(op.getOperation());
  Block &block = op.getBody().front();
  ArrayRef<Attribute> domain = op.getDomain().getValue();
  Body::Buffers buffers;
  Body::addInputs(e, buffers, kernel, block.getArguments().drop_front(domain.size()));
  DimAttr points = transept::dimConstant(op.getContext(), 1);
  for (Attribute dim : domain)
    points = dimMul(points, cast<DimAttr>(dim));
  LogicalResult result = success();
  shader.forItem(e.liveRows(kernel, points), [&](Value item) {
    IRMapping values;
    Value rest = item;
    for (unsigned i = domain.size(); i-- > 0;) {
      Value size = e.dim(domain[i]);
      values.map(block.getArgument(i), i == 0 ? rest : e.rem(rest, size));
      if (i != 0)
        rest = e.div(rest, size);
    }
    FailureOr<SmallVector<Value>> yielded = emitBlock(shader, block, buffers, values);
    result = yielded;
    if (failed(yielded))
      return;
    for (auto [value, output] : llvm::zip(*yielded, op.getOutputs()))
      e.store(value, e.pointer(e.buffer(output), item, elementTypeOf(output.getType())));
  });
  return result;
}

LogicalResult vulkan::emitSerial(Shader &shader, SerialOp op) {
  emit::Emitter &e = shader.e;
  auto kernel = cast<KernelOp>(op.getOperation());
  Block &block = op.getBody().front();
  Body::Buffers buffers;
  Body::addOutputs(e, buffers, kernel, block.getArguments().slice(1, op.getOutputs().size()));
  Body::addInputs(e, buffers, kernel, block.getArguments().drop_front(1 + op.getOutputs().size()));
  LogicalResult result = success();
  shader.forItem(e.end, [&](Value item) {
    IRMapping values;
    values.map(block.getArgument(0), item);
    result = emitBlock(shader, block, buffers, values);
  });
  return result;
}
