//===- Body.cpp - inlining scalar regions, one element or sixteen at a time ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/emit/Body.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::emit;

void Body::addInputs(Emitter &emitter, Buffers &buffers, KernelOp kernel, ValueRange arguments, unsigned first) {
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    Value input = kernel.getInputs()[first + i];
    buffers[argument] = {emitter.buffer(input), cast<transept::DimsAttr>(kernel.getShapes()[first + i]),
                         elementTypeOf(input.getType())};
  }
}

void Body::addOutputs(Emitter &emitter, Buffers &buffers, KernelOp kernel, ValueRange arguments) {
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    Value output = kernel.getOutputs()[i];
    buffers[argument] = {emitter.buffer(output),
                         cast<transept::DimsAttr>(kernel.getShapes()[kernel.getInputs().size() + i]),
                         elementTypeOf(output.getType())};
  }
}

Body::Body(Emitter &emitter, Block &block, Value inner, ArrayRef<Value> vectors, const Buffers &buffers,
           IRMapping &outer)
    : e(emitter), block(block), inner(inner), vectorArguments(vectors), buffers(buffers), uniform(outer) {
  if (inner)
    laneOfValue[inner] = Lane::Contiguous;
  for (Value value : vectors)
    laneOfValue[value] = Lane::Vector;
  for (Operation &op : block.without_terminator())
    classify(op);
}

LogicalResult Body::emitOp(Emitter &emitter, Operation &op, const Buffers &buffers, IRMapping &values) {
  return Body(emitter, *op.getBlock(), buffers).emit(op, values, /*vector=*/false);
}

//===- What depends on the inner index
//-----------------------------------------------------------------------------===//

std::optional<unsigned> Body::contiguousIndex(LoadOp op) const {
  std::optional<unsigned> found;
  for (auto [i, index] : llvm::enumerate(op.getIndices())) {
    if (laneOf(index) == Lane::Uniform)
      continue;
    if (found || laneOf(index) != Lane::Contiguous)
      return std::nullopt;
    found = i;
  }
  if (!found)
    return std::nullopt;
  ArrayRef<DimAttr> shape = buffers.lookup(op.getSource()).shape.getDims();
  for (DimAttr dim : shape.drop_front(*found + 1))
    if (transept::constantValue(dim) != 1)
      return std::nullopt;
  return found;
}

void Body::classify(Operation &op) {
  bool isUniform = true;
  op.walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      isUniform &= laneOf(operand) == Lane::Uniform;
  });
  if (isUniform) {
    uniformOps.insert(&op);
    return;
  }
  Lane lane = Lane::Vector;
  auto uniformOperand = [&](unsigned i) { return laneOf(op.getOperand(i)) == Lane::Uniform; };
  auto contiguousOperand = [&](unsigned i) { return laneOf(op.getOperand(i)) == Lane::Contiguous; };
  if (auto load = dyn_cast<LoadOp>(op)) {
    contiguous &= contiguousIndex(load).has_value();
  } else if (isa<arith::AddIOp>(op) && op.getResult(0).getType().isIndex()) {
    if ((contiguousOperand(0) && uniformOperand(1)) || (uniformOperand(0) && contiguousOperand(1)))
      lane = Lane::Contiguous;
  } else if (isa<arith::SubIOp>(op) && op.getResult(0).getType().isIndex()) {
    if (contiguousOperand(0) && uniformOperand(1))
      lane = Lane::Contiguous;
  } else {
    // A bounded index that differs between lanes, and control flow, are left to the scalar form.
    contiguous &= op.getNumRegions() == 0 && OpTrait::hasElementwiseMappableTraits(&op);
  }
  for (Value result : op.getResults())
    laneOfValue[result] = lane;
}

//===- Emission
//----------------------------------------------------------------------------------------------------===//

LogicalResult Body::emitUniform() {
  for (Operation &op : block.without_terminator())
    if (uniformOps.contains(&op) && failed(emit(op, uniform, /*vector=*/false)))
      return failure();
  return success();
}

FailureOr<SmallVector<Value>> Body::emitVector(Value position, ArrayRef<Value> vectors) {
  return emitAt(position, vectors, /*vector=*/true);
}
FailureOr<SmallVector<Value>> Body::emitScalar(Value position, ArrayRef<Value> vectors) {
  return emitAt(position, vectors, /*vector=*/false);
}

FailureOr<SmallVector<Value>> Body::emitAt(Value position, ArrayRef<Value> vectors, bool vector) {
  IRMapping values = uniform;
  if (inner)
    values.map(inner, position);
  for (auto [argument, value] : llvm::zip(vectorArguments, vectors))
    values.map(argument, value);
  SmallVector<Value> yielded;
  if (failed(emitRest(values, vector, yielded)))
    return failure();
  return yielded;
}

LogicalResult Body::emitRest(IRMapping &values, bool vector, SmallVectorImpl<Value> &yielded) {
  for (Operation &op : block.without_terminator())
    if (!uniformOps.contains(&op) && failed(emit(op, values, vector)))
      return failure();
  for (Value value : block.getTerminator()->getOperands())
    yielded.push_back(vector ? asVector(value, values) : values.lookup(value));
  return success();
}

Value Body::asVector(Value original, IRMapping &values) {
  Value value = values.lookup(original);
  if (isa<VectorType>(value.getType()))
    return value;
  Value all = e.broadcast(value);
  if (laneOf(original) == Lane::Contiguous)
    all = e.add(all, e.laneNumbers(value.getType()));
  return all;
}

LogicalResult Body::emit(Operation &op, IRMapping &values, bool vector) {
  if (auto load = dyn_cast<LoadOp>(op)) {
    values.map(load.getResult(), emitLoad(load, values, vector));
    return success();
  }
  if (auto store = dyn_cast<StoreOp>(op)) {
    e.store(values.lookup(store.getValue()), elementPointer(store.getTarget(), store.getIndices(), values));
    return success();
  }
  if (auto size = dyn_cast<SizeOp>(op)) {
    values.map(size.getResult(), e.dim(size.getDim()));
    return success();
  }
  if (auto bounded = dyn_cast<BoundedOp>(op)) {
    if (!bounded.getId())
      return op.emitOpError("has no id");
    values.map(bounded.getResult(), emitBounded(bounded, values));
    return success();
  }
  if (op.getNumRegions())
    return emitNested(op, values);
  // Contiguous index arithmetic stays scalar: it stands for its first lane.
  vector &= op.getNumResults() == 1 && laneOf(op.getResult(0)) == Lane::Vector;
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(vector ? asVector(operand, values) : values.lookup(operand));
  FailureOr<Value> result = emitScalarOp(e, op, operands);
  if (failed(result))
    return failure();
  values.map(op.getResult(0), *result);
  return success();
}

LogicalResult Body::emitNested(Operation &op, IRMapping &values) {
  if (!isa<scf::SCFDialect>(op.getDialect()))
    return op.emitOpError("is not supported in a kernel body");
  OperationState state(e.loc, op.getName());
  for (Value operand : op.getOperands())
    state.operands.push_back(values.lookup(operand));
  for (Type type : op.getResultTypes())
    state.addTypes(e.carriedType(type));
  state.addAttributes(op.getAttrs());
  for (unsigned i = 0; i < op.getNumRegions(); ++i)
    state.addRegion();
  Operation *copy = e.b.create(state);
  OpBuilder::InsertionGuard guard(e.b);
  for (auto [from, to] : llvm::zip(op.getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    if (!from.hasOneBlock())
      return op.emitOpError("has a region of several blocks");
    Block *body = e.b.createBlock(&to);
    for (BlockArgument argument : from.getArguments())
      values.map(argument, body->addArgument(e.carriedType(argument.getType()), e.loc));
    for (Operation &nested : from.front()) {
      if (!nested.hasTrait<OpTrait::IsTerminator>()) {
        if (failed(emit(nested, values, /*vector=*/false)))
          return failure();
        continue;
      }
      OperationState terminator(e.loc, nested.getName());
      for (Value operand : nested.getOperands())
        terminator.operands.push_back(values.lookup(operand));
      terminator.addAttributes(nested.getAttrs());
      e.b.create(terminator);
    }
  }
  values.map(op.getResults(), copy->getResults());
  return success();
}

Value Body::elementPointer(Value tensor, ValueRange indices, IRMapping &values) {
  const Buffer &buffer = buffers.find(tensor)->second;
  Value position = e.index(0);
  for (auto [index, dim] : llvm::zip(indices, buffer.shape.getDims()))
    position = e.add(e.mul(position, e.dim(dim)), values.lookup(index));
  return e.pointer(buffer.pointer, position, buffer.element);
}

Value Body::emitLoad(LoadOp op, IRMapping &values, bool vector) {
  Type element = e.carriedType(buffers.find(op.getSource())->second.element);
  bool adjacent = vector && laneOf(op.getResult()) == Lane::Vector;
  return e.load(elementPointer(op.getSource(), op.getIndices(), values),
                adjacent ? Type(e.vectorOf(element)) : element);
}

Value Body::emitBounded(BoundedOp op, IRMapping &values) {
  Value index = values.lookup(op.getIndex()), size = values.lookup(op.getSize());
  Value reported = values.lookup(op.getReported());
  e.ifThen(e.compare(arith::CmpIPredicate::uge, index, size), [&] { e.storeError(*op.getId(), reported); });
  // An empty extent leaves position 0, which the slack behind every buffer makes readable.
  return e.maximum(e.minimum(index, e.sub(size, e.index(1))), e.index(0));
}
