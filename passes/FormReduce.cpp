//===- FormReduce.cpp - reductions and scans
//---------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions over the innermost axes of floats are rows, with sixteen lanes; others are loops in the body of a map.

#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

/// One reduction: what an element contributes, how contributions combine, and what is made of the outcome.
struct Reduction {
  ReduceKind kind;
  Type type; // of the tensor's elements

  bool isFloat() const { return isa<FloatType>(type); }
  Type scalar() const { return computeType(type); }
  StringRef combiner() const;
  Value initial(Body &b) const;
  Value combine(Body &b, Value lhs, Value rhs) const;
  Value contribution(Body &b, Value x) const;
  Value finish(Body &b, Value total, Value count) const;
};

StringRef Reduction::combiner() const {
  switch (kind) {
  case ReduceKind::Max:
    return "max";
  case ReduceKind::Min:
    return "min";
  case ReduceKind::Prod:
    return "mul";
  default:
    return "add";
  }
}

Value Reduction::initial(Body &b) const {
  if (kind == ReduceKind::Prod)
    return b.integer(scalar(), 1);
  if (kind != ReduceKind::Max && kind != ReduceKind::Min)
    return b.integer(scalar(), 0);
  bool isMax = kind == ReduceKind::Max;
  if (isFloat())
    return b.number(scalar(), isMax ? -INFINITY : INFINITY);
  unsigned width = scalar().getIntOrFloatBitWidth();
  APInt lowest = isUnsigned(type) ? APInt::getZero(width) : APInt::getSignedMinValue(width);
  APInt highest = isUnsigned(type) ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  return b.create<arith::ConstantOp>(b.getIntegerAttr(scalar(), isMax ? lowest : highest));
}

Value Reduction::combine(Body &b, Value lhs, Value rhs) const {
  switch (kind) {
  case ReduceKind::Max:
    if (isFloat())
      return b.create<arith::MaximumFOp>(lhs, rhs);
    return b.select(b.less(lhs, rhs, isUnsigned(type)), rhs, lhs);
  case ReduceKind::Min:
    if (isFloat())
      return b.create<arith::MinimumFOp>(lhs, rhs);
    return b.select(b.less(rhs, lhs, isUnsigned(type)), rhs, lhs);
  case ReduceKind::Prod:
    return b.mul(lhs, rhs);
  default:
    return b.add(lhs, rhs);
  }
}

Value Reduction::contribution(Body &b, Value x) const {
  switch (kind) {
  case ReduceKind::SumSquare:
  case ReduceKind::L2:
    return b.mul(x, x);
  case ReduceKind::L1:
    if (isFloat())
      return b.create<math::AbsFOp>(x);
    return isUnsigned(type) ? x : b.select(b.less(x, b.number(scalar(), 0)), b.sub(b.number(scalar(), 0), x), x);
  default:
    return x;
  }
}

Value Reduction::finish(Body &b, Value total, Value count) const {
  switch (kind) {
  case ReduceKind::Mean: {
    Value number = b.fromIndex(count, type);
    if (isFloat())
      return b.create<arith::DivFOp>(total, number);
    return isUnsigned(type) ? b.create<arith::DivUIOp>(total, number).getResult()
                            : b.create<arith::DivSIOp>(total, number).getResult();
  }
  case ReduceKind::L2:
    return b.create<math::SqrtOp>(total);
  case ReduceKind::LogSum:
  case ReduceKind::LogSumExp:
    return b.create<math::LogOp>(total);
  default:
    return total;
  }
}

/// Runs `element` over all points of `dims`, combined in row-major order.
Value reduceInLoops(Body &b, const Reduction &reduction, ArrayRef<DimAttr> dims,
                    function_ref<Value(Body &, ArrayRef<Value>)> element) {
  SmallVector<Value> at;
  std::function<Value(Body &, size_t, Value)> nest = [&](Body &inner, size_t axis, Value total) {
    if (axis == dims.size())
      return reduction.combine(inner, total, element(inner, at));
    return inner.accumulate(inner.size(dims[axis]), total, [&](Body &deeper, Value i, Value carried) {
      at.push_back(i);
      Value result = nest(deeper, axis + 1, carried);
      at.pop_back();
      return result;
    });
  };
  return nest(b, 0, reduction.initial(b));
}

/// The axes, ascending and non-negative; all of them where none is named and that means all.
SmallVector<int64_t> axesOf(ReduceOp op, int64_t rank) {
  SmallVector<int64_t> axes;
  for (int64_t axis : op.getAxes().value_or(ArrayRef<int64_t>()))
    axes.push_back(axis < 0 ? axis + rank : axis);
  if (axes.empty() && !op.getNoopWithEmptyAxes())
    for (int64_t axis = 0; axis < rank; ++axis)
      axes.push_back(axis);
  llvm::sort(axes);
  return axes;
}

bool areInnermost(ArrayRef<int64_t> axes, int64_t rank) {
  return !axes.empty() && axes.front() == rank - static_cast<int64_t>(axes.size());
}

/// [rows, length] reduced to [rows].
Value reduceRows(FormContext &f, Location loc, Value input, const Reduction &reduction) {
  ArrayRef<DimAttr> dims = shapeOf(input).getDims();
  return f.rows(
      loc, dims[0], dims[1], {input}, reduction.type, /*mapped=*/false, [&](Body &b, Value row, ValueRange sources) {
        auto load = [&](Body &inner, Value p) { return inner.loadWide(sources[0], {row, p}); };
        Value total;
        if (reduction.kind == ReduceKind::LogSumExp) {
          // Relative to the maximum, where that is finite.
          Value top = rowReduce(b, "max", reduction.scalar(), load);
          Value isFinite = b.less(b.create<math::AbsFOp>(top), b.number(reduction.scalar(), INFINITY));
          Value offset = b.select(isFinite, top, b.number(reduction.scalar(), 0));
          Value sum = rowReduce(b, "add", reduction.scalar(), [&](Body &inner, Value p) -> Value {
            return inner.create<math::ExpOp>(inner.sub(load(inner, p), offset));
          });
          total = b.add(b.create<math::LogOp>(sum), offset);
        } else {
          total = rowReduce(b, reduction.combiner(), reduction.scalar(),
                            [&](Body &inner, Value p) { return reduction.contribution(inner, load(inner, p)); });
          total = reduction.finish(b, total, b.size(dims[1]));
        }
        b.create<kernel::YieldOp>(b.narrow(total, reduction.type));
      });
}

} // namespace

LogicalResult transept::form(FormContext &f, ReduceOp op) {
  if (op.getAxesValue())
    return emitUnresolved(op);
  Value input = f.tensor(op.getInput());
  SmallVector<DimAttr> dims(shapeOf(input).getDims()), result = graphDims(op);
  SmallVector<int64_t> axes = axesOf(op, dims.size());
  Reduction reduction{op.getKind(), graphElementType(op)};
  bool needsFloat = llvm::is_contained({ReduceKind::L2, ReduceKind::LogSum, ReduceKind::LogSumExp}, reduction.kind);
  bool ofBooleans = reduction.kind == ReduceKind::Max || reduction.kind == ReduceKind::Min;
  if ((needsFloat && !reduction.isFloat()) || (reduction.type.isInteger(1) && !ofBooleans))
    return emitUnsupported(op) << "has elements of type " << reduction.type;

  bool useRows = areInnermost(axes, dims.size()) && reduction.scalar().isF32();
  if (useRows || reduction.kind == ReduceKind::LogSumExp) {
    // The axes become innermost where they are not.
    if (!areInnermost(axes, dims.size())) {
      SmallVector<int64_t> order;
      for (size_t axis = 0; axis < dims.size(); ++axis)
        if (!llvm::is_contained(axes, axis))
          order.push_back(axis);
      order.append(axes.begin(), axes.end());
      input = formTranspose(f, op.getLoc(), input, order);
      dims.assign(shapeOf(input).getDims().begin(), shapeOf(input).getDims().end());
    }
    ArrayRef<DimAttr> kept = ArrayRef(dims).drop_back(axes.size()), reduced = ArrayRef(dims).take_back(axes.size());
    Value rows = f.view(op.getLoc(), input, {elementCount(f.context(), kept), elementCount(f.context(), reduced)});
    f.define(op, f.view(op.getLoc(), reduceRows(f, op.getLoc(), rows, reduction), result));
    return success();
  }

  SmallVector<DimAttr> reduced;
  for (int64_t axis : axes)
    reduced.push_back(dims[axis]);
  f.define(op, f.map(op.getLoc(), result, {input}, reduction.type, [&](Body &b, ValueRange at, ValueRange sources) {
    Value total = reduceInLoops(b, reduction, reduced, [&](Body &inner, ArrayRef<Value> inside) {
      SmallVector<Value> read;
      size_t next = 0, nextInside = 0;
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        bool isReduced = llvm::is_contained(axes, axis);
        read.push_back(isReduced ? inside[nextInside++] : at[next]);
        next += !isReduced || op.getKeepdims();
      }
      return reduction.contribution(inner, inner.loadWide(sources[0], read));
    });
    return reduction.finish(b, total, b.size(elementCount(f.context(), reduced)));
  }));
  return success();
}

LogicalResult transept::form(FormContext &f, ArgMaxOp op) {
  Value input = f.tensor(op.getInput());
  SmallVector<DimAttr> dims(shapeOf(input).getDims());
  size_t axis = axisFromFront(op.getAxis(), dims.size());
  Type type = graphElementType(op.getInput()), index = graphElementType(op);
  Reduction best{op.getSmallest() ? ReduceKind::Min : ReduceKind::Max, type};
  f.define(op, f.map(op.getLoc(), graphDims(op), {input}, index, [&](Body &b, ValueRange at, ValueRange sources) {
    SmallVector<Value> read(at.take_front(axis));
    read.push_back(b.index(0));
    llvm::append_range(read, at.drop_front(axis + op.getKeepdims()));
    SmallVector<Value> found =
        b.forEach(b.size(dims[axis]), {best.initial(b), b.index(0)},
                  [&](Body &inner, Value i, ValueRange carried) -> SmallVector<Value> {
                    read[axis] = i;
                    Value x = inner.loadWide(sources[0], read);
                    Value low = op.getSmallest() ? x : carried[0], high = op.getSmallest() ? carried[0] : x;
                    Value better = op.getSelectLastIndex() ? inner.lessOrEqual(low, high, isUnsigned(type))
                                                           : inner.less(low, high, isUnsigned(type));
                    if (best.isFloat()) {
                      // The first NaN is the largest and the smallest, and stays.
                      Value isNaN = inner.different(x, x), wasNaN = inner.different(carried[0], carried[0]);
                      Value isFirstNaN = inner.both(isNaN, inner.equal(carried[0], carried[0]));
                      better =
                          inner.create<arith::OrIOp>(isFirstNaN, inner.select(wasNaN, inner.boolean(false), better));
                    }
                    return {inner.select(better, x, carried[0]), inner.select(better, i, carried[1])};
                  });
    return b.fromIndex(found[1], index);
  }));
  return success();
}

/// Every line along the axis is one item.
static Value sumAlong(FormContext &f, CumSumOp op, size_t axis) {
  SmallVector<DimAttr> dims = graphDims(op), lines(dims);
  lines.erase(lines.begin() + axis);
  Type type = graphElementType(op);
  auto body = [&](Body &b, Value item, ValueRange outputs, ValueRange sources) {
    SmallVector<Value> at = b.delinearize(item, lines);
    at.insert(at.begin() + axis, Value());
    Value size = b.size(dims[axis]);
    Value first = b.integer(computeType(type), op.getProduct() ? 1 : 0);
    b.accumulate(size, first, [&](Body &inner, Value i, Value sum) {
      at[axis] = op.getReverse() ? inner.sub(inner.sub(size, inner.index(1)), i) : i;
      Value element = inner.loadWide(sources[0], at);
      Value next = op.getProduct() ? inner.mul(sum, element) : inner.add(sum, element);
      inner.store(op.getExclusive() ? sum : next, outputs[0], at);
      return next;
    });
  };
  return f.serial(op.getLoc(), elementCount(f.context(), lines), {f.tensor(op.getInput())}, {{dims, type}}, body)
      .front();
}

/// Where the axis is data, the sums along all axes are computed and one is chosen.
LogicalResult transept::form(FormContext &f, CumSumOp op) {
  SmallVector<DimAttr> dims = graphDims(op);
  if (op.getAxis()) {
    f.define(op, sumAlong(f, op, axisFromFront(*op.getAxis(), dims.size())));
    return success();
  }
  if (dims.empty())
    return emitUnresolved(op);
  SmallVector<Value> inputs = {f.tensor(op.getAxisValue())};
  for (size_t axis = 0; axis < dims.size(); ++axis)
    inputs.push_back(sumAlong(f, op, axis));
  size_t axisRank = shapeOf(inputs.front()).getDims().size();
  Type axisType = graphElementType(op.getAxisValue());
  DimAttr rank = f.constant(static_cast<int64_t>(dims.size()));
  auto body = [&](Body &b, ValueRange at, ValueRange sources) {
    Value element = b.load(sources[0], SmallVector<Value>(axisRank, b.index(0)));
    Value axis = checkedIndex(b, op, element, axisType, rank), chosen = b.loadWide(sources[1], at);
    for (size_t other = 1; other < dims.size(); ++other)
      chosen =
          b.select(b.equal(axis, b.index(static_cast<int64_t>(other))), b.loadWide(sources[1 + other], at), chosen);
    return chosen;
  };
  f.define(op, f.map(op.getLoc(), dims, inputs, graphElementType(op), body));
  return success();
}
