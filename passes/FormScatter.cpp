//===- FormScatter.cpp - updates at indices that are data
//-------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Updates that may hit the same element are applied in their order, by one item. Items share nothing: each has its own
// line along the axis, or its own part of the slices.

#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

static Value combine(Body &b, ScatterKind kind, Value old, Value update, Type type) {
  bool isFloat = isa<FloatType>(old.getType());
  switch (kind) {
  case ScatterKind::Replace:
    return update;
  case ScatterKind::Add:
    return b.add(old, update);
  case ScatterKind::Mul:
    return b.mul(old, update);
  case ScatterKind::Max:
    if (isFloat)
      return b.create<arith::MaximumFOp>(old, update);
    return b.select(b.less(old, update, isUnsigned(type)), update, old);
  case ScatterKind::Min:
    if (isFloat)
      return b.create<arith::MinimumFOp>(old, update);
    return b.select(b.less(update, old, isUnsigned(type)), update, old);
  }
  return update;
}

/// Applies update `from` to element `to`.
static void apply(Body &b, ScatterKind kind, Value data, ValueRange to, Value updates, ValueRange from, Type type) {
  Value update = b.loadWide(updates, from);
  if (kind != ScatterKind::Replace)
    update = combine(b, kind, b.loadWide(data, to), update, type);
  b.store(update, data, to);
}

LogicalResult transept::form(FormContext &f, ScatterElementsOp op) {
  Value data = f.tensor(op.getData()), indices = f.tensor(op.getIndices()), updates = f.tensor(op.getUpdates());
  SmallVector<DimAttr> dims(shapeOf(data).getDims()), lines(dims);
  ArrayRef<DimAttr> indexDims = shapeOf(indices).getDims();
  size_t axis = axisFromFront(op.getAxis(), dims.size());
  lines.erase(lines.begin() + axis);
  Type type = graphElementType(op), indexType = graphElementType(op.getIndices());
  auto body = [&](Body &b, Value item, ValueRange outputs, ValueRange sources) {
    SmallVector<Value> line = b.delinearize(item, lines);
    line.insert(line.begin() + axis, Value());
    auto at = [&](Value position) {
      SmallVector<Value> point(line);
      point[axis] = position;
      return point;
    };
    b.repeat(b.size(dims[axis]),
             [&](Body &inner, Value i) { inner.store(inner.loadWide(sources[0], at(i)), outputs[0], at(i)); });
    // Indices may be fewer than the data on the other axes.
    Value hasUpdates = b.boolean(true);
    for (size_t other = 0; other < dims.size(); ++other)
      if (other != axis && indexDims[other] != dims[other])
        hasUpdates = b.both(hasUpdates, b.less(line[other], b.size(indexDims[other])));
    Value count = b.select(hasUpdates, b.size(indexDims[axis]), b.index(0));
    b.repeat(count, [&](Body &inner, Value i) {
      Value index = checkedIndex(inner, op, inner.load(sources[1], at(i)), indexType, dims[axis]);
      apply(inner, op.getReduction(), outputs[0], at(index), sources[2], at(i), type);
    });
  };
  f.define(
      op,
      f.serial(op.getLoc(), elementCount(f.context(), lines), {data, indices, updates}, {{dims, type}}, body).front());
  return success();
}

LogicalResult transept::form(FormContext &f, ScatterNDOp op) {
  Value data = f.tensor(op.getData()), indexTensor = f.tensor(op.getIndices()), updates = f.tensor(op.getUpdates());
  SmallVector<DimAttr> dims(shapeOf(data).getDims());
  FailureOr<int64_t> length = tupleLength(op, indexTensor, dims.size());
  if (failed(length))
    return failure();
  MLIRContext *context = f.context();
  ArrayRef<DimAttr> places = ArrayRef(dims).take_front(*length);
  DimAttr tuples = elementCount(context, shapeOf(indexTensor).getDims().drop_back());
  DimAttr place = elementCount(context, places), slice = elementCount(context, ArrayRef(dims).drop_front(*length));
  constexpr int64_t part = 1024; // elements of a slice that are one item's
  DimAttr items = dimFloorDiv(dimAdd(slice, f.constant(part - 1)), f.constant(part));
  Type type = graphElementType(op), indexType = graphElementType(op.getIndices());
  auto body = [&](Body &b, Value item, ValueRange outputs, ValueRange sources) {
    Value from = b.mul(item, b.index(part));
    Value count = b.create<arith::MinSIOp>(b.sub(b.size(slice), from), b.index(part));
    b.repeat(b.size(place), [&](Body &inner, Value p) {
      inner.repeat(count, [&](Body &deeper, Value i) {
        Value at = deeper.add(from, i);
        deeper.store(deeper.loadWide(sources[0], {p, at}), outputs[0], {p, at});
      });
    });
    b.repeat(b.size(tuples), [&](Body &inner, Value u) {
      SmallVector<Value> tuple;
      for (int64_t j = 0; j < *length; ++j)
        tuple.push_back(checkedIndex(inner, op, inner.load(sources[1], {u, inner.index(j)}), indexType, dims[j]));
      Value to = inner.linearize(tuple, places);
      inner.repeat(count, [&](Body &deeper, Value i) {
        Value at = deeper.add(from, i);
        apply(deeper, op.getReduction(), outputs[0], {to, at}, sources[2], {u, at}, type);
      });
    });
  };
  Location loc = op.getLoc();
  SmallVector<Value> inputs = {f.view(loc, data, {place, slice}),
                               f.view(loc, indexTensor, {tuples, f.constant(*length)}),
                               f.view(loc, updates, {tuples, slice})};
  Value result = f.serial(loc, items, inputs, {{{place, slice}, type}}, body).front();
  f.define(op, f.view(loc, result, dims));
  return success();
}
