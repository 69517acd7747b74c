//===- FormSort.cpp - the first elements in order
//----------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every line along the axis is sorted by merging runs of doubling length from one half of its scratch memory into the
// other: stable, and n log n.

#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// Whether x goes before y even if it stands behind it. NaN is larger than every number.
Value goesBefore(Body &b, Value x, Value y, bool largest, Type type) {
  if (!largest)
    std::swap(x, y);
  Value greater = b.less(y, x, isUnsigned(type));
  if (!isa<FloatType>(x.getType()))
    return greater;
  return b.create<arith::OrIOp>(greater, b.both(b.different(x, x), b.equal(y, y)));
}

/// The positions of one line, sorted in scratch memory [2, n].
struct LineSort {
  Value size;
  function_ref<Value(Body &, Value)> element;                 // at a position of the line
  function_ref<SmallVector<Value>(Value half, Value i)> slot; // indices of the scratch memory
  Value scratch;
  bool largest;
  Type type;

  Value position(Body &b, Value half, Value i) const {
    return b.toIndex(b.load(scratch, slot(half, i)), b.getI64Type());
  }
  void put(Body &b, Value position, Value half, Value i) const {
    b.store(b.create<arith::IndexCastOp>(b.getI64Type(), position), scratch, slot(half, i));
  }

  /// Merges neighbouring runs of `width` positions.
  void merge(Body &b, Value width, Value half) const {
    Value last = b.sub(size, b.index(1)), pair = b.add(width, width), other = b.sub(b.index(1), half);
    b.forEach(size, {b.index(0), b.index(0)}, [&](Body &inner, Value i, ValueRange next) -> SmallVector<Value> {
      Value start = inner.mul(inner.create<arith::DivUIOp>(i, pair), pair), isFirst = inner.equal(i, start);
      Value middle = inner.create<arith::MinSIOp>(inner.add(start, width), size);
      Value end = inner.create<arith::MinSIOp>(inner.add(start, pair), size);
      Value left = inner.select(isFirst, start, next[0]), right = inner.select(isFirst, middle, next[1]);
      Value leftAt = position(inner, half, inner.create<arith::MinSIOp>(left, last));
      Value rightAt = position(inner, half, inner.create<arith::MinSIOp>(right, last));
      Value isBetter = goesBefore(inner, element(inner, rightAt), element(inner, leftAt), largest, type);
      Value leftIsEmpty = inner.lessOrEqual(middle, left);
      Value takesRight = inner.both(inner.less(right, end), inner.create<arith::OrIOp>(leftIsEmpty, isBetter));
      put(inner, inner.select(takesRight, rightAt, leftAt), other, i);
      Value one = inner.index(1);
      return {inner.select(takesRight, left, inner.add(left, one)),
              inner.select(takesRight, inner.add(right, one), right)};
    });
  }

  /// Returns the half that holds the result.
  Value sort(Body &b) const {
    b.repeat(size, [&](Body &inner, Value i) { put(inner, i, inner.index(0), i); });
    constexpr int64_t doublings = 62; // of a run, at most
    return b.forEach(b.index(doublings), {b.index(1), b.index(0)},
                     [&](Body &inner, Value, ValueRange carried) -> SmallVector<Value> {
                       Value width = carried[0], half = carried[1], isSorted = inner.lessOrEqual(size, width);
                       inner.when(inner.less(width, size), [&](Body &deeper) { merge(deeper, width, half); });
                       return {inner.select(isSorted, width, inner.add(width, width)),
                               inner.select(isSorted, half, inner.sub(inner.index(1), half))};
                     })[1];
  }
};

} // namespace

LogicalResult transept::form(FormContext &f, TopKOp op) {
  if (op.getKValue() || !op.getK())
    return emitUnresolved(op);
  Value input = f.tensor(op.getInput());
  SmallVector<DimAttr> dims(shapeOf(input).getDims()), lines(dims), result = graphDims(op.getValues());
  size_t axis = axisFromFront(op.getAxis(), dims.size());
  lines.erase(lines.begin() + axis);
  Type type = graphElementType(op.getInput()), i64 = f.builder.getI64Type();
  DimAttr items = elementCount(f.context(), lines);
  auto body = [&](Body &b, Value item, ValueRange outputs, ValueRange sources) {
    SmallVector<Value> line = b.delinearize(item, lines);
    line.insert(line.begin() + axis, Value());
    auto at = [&](Value position) {
      SmallVector<Value> point(line);
      point[axis] = position;
      return point;
    };
    auto element = [&](Body &inner, Value position) { return inner.loadWide(sources[0], at(position)); };
    auto slot = [&](Value half, Value i) { return SmallVector<Value>{item, half, i}; };
    LineSort sort{b.size(dims[axis]), element, slot, outputs[2], op.getLargest(), type};
    Value half = sort.sort(b);
    b.repeat(b.size(result[axis]), [&](Body &inner, Value i) {
      Value position = sort.position(inner, half, i);
      inner.store(element(inner, position), outputs[0], at(i));
      inner.store(inner.create<arith::IndexCastOp>(i64, position), outputs[1], at(i));
    });
  };
  SmallVector<Value> sorted = f.serial(
      op.getLoc(), items, {input}, {{result, type}, {result, i64}, {{items, f.constant(2), dims[axis]}, i64}}, body);
  f.define(op.getValues(), sorted[0]);
  f.define(op.getIndices(), sorted[1]);
  return success();
}
