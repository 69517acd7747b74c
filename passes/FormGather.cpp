//===- FormGather.cpp - indices that are data
//--------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

Value transept::checkedIndex(Body &b, Operation *op, Value element, Type elementType, DimAttr dim) {
  Value given = b.toIndex(element, elementType), size = b.size(dim);
  Value fromStart = given;
  if (!isUnsigned(elementType))
    fromStart = b.select(b.less(given, b.index(0)), b.add(given, size), given);
  std::optional<int64_t> constant = constantValue(dim);
  std::string low = constant ? std::to_string(-*constant) : "-(" + toString(dim) + ")";
  std::string high = constant ? std::to_string(*constant - 1) : toString(dim) + " - 1";
  std::string check = op->getName().stripDialect().str() + " node '" + sourceNodeOf(op) + "' reads index {} outside [" +
                      low + ", " + high + "]";
  check.front() = llvm::toUpper(check.front());
  return b.create<kernel::BoundedOp>(b.getIndexType(), fromStart, size, given, b.getStringAttr(check), IntegerAttr());
}

LogicalResult transept::form(FormContext &f, GatherOp op) {
  Value data = f.tensor(op.getData()), indexTensor = f.tensor(op.getIndices());
  ArrayRef<DimAttr> dims = shapeOf(data).getDims();
  size_t axis = axisFromFront(op.getAxis(), dims.size());
  size_t indexRank = shapeOf(indexTensor).getDims().size();
  f.define(op, f.map(op.getLoc(), graphDims(op), {data, indexTensor}, graphElementType(op),
                     [&](Body &b, ValueRange at, ValueRange sources) {
                       SmallVector<Value> read(at.take_front(axis));
                       Value element = b.load(sources[1], at.slice(axis, indexRank));
                       read.push_back(checkedIndex(b, op, element, graphElementType(op.getIndices()), dims[axis]));
                       llvm::append_range(read, at.drop_front(axis + indexRank));
                       return b.loadWide(sources[0], read);
                     }));
  return success();
}

LogicalResult transept::form(FormContext &f, GatherElementsOp op) {
  Value data = f.tensor(op.getData()), indexTensor = f.tensor(op.getIndices());
  ArrayRef<DimAttr> dims = shapeOf(data).getDims();
  size_t axis = axisFromFront(op.getAxis(), dims.size());
  f.define(op, f.map(op.getLoc(), graphDims(op), {data, indexTensor}, graphElementType(op),
                     [&](Body &b, ValueRange at, ValueRange sources) {
                       SmallVector<Value> read(at);
                       Value element = b.load(sources[1], at);
                       read[axis] = checkedIndex(b, op, element, graphElementType(op.getIndices()), dims[axis]);
                       return b.loadWide(sources[0], read);
                     }));
  return success();
}

FailureOr<int64_t> transept::tupleLength(Operation *op, Value indexTensor, size_t limit) {
  ArrayRef<DimAttr> dims = shapeOf(indexTensor).getDims();
  std::optional<int64_t> length = dims.empty() ? std::nullopt : constantValue(dims.back());
  if (!length || *length < 0 || static_cast<size_t>(*length) > limit)
    return emitUnsupported(op) << "has index tuples of a length that is not known or does not fit its data";
  return *length;
}

LogicalResult transept::form(FormContext &f, GatherNDOp op) {
  Value data = f.tensor(op.getData()), indexTensor = f.tensor(op.getIndices());
  ArrayRef<DimAttr> dims = shapeOf(data).getDims();
  size_t batch = op.getBatchDims(), indexRank = shapeOf(indexTensor).getDims().size();
  if (batch > dims.size() || batch >= indexRank)
    return op.emitOpError() << "has " << batch << " batch axes";
  FailureOr<int64_t> length = tupleLength(op, indexTensor, dims.size() - batch);
  if (failed(length))
    return failure();
  f.define(op, f.map(op.getLoc(), graphDims(op), {data, indexTensor}, graphElementType(op),
                     [&](Body &b, ValueRange at, ValueRange sources) {
                       SmallVector<Value> read(at.take_front(batch)), tuple(at.take_front(indexRank - 1));
                       tuple.emplace_back();
                       for (int64_t j = 0; j < *length; ++j) {
                         tuple.back() = b.index(j);
                         read.push_back(checkedIndex(b, op, b.load(sources[1], tuple),
                                                     graphElementType(op.getIndices()), dims[batch + j]));
                       }
                       llvm::append_range(read, at.drop_front(indexRank - 1));
                       return b.loadWide(sources[0], read);
                     }));
  return success();
}
