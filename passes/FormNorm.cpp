//===- FormNorm.cpp - softmax and norms as rows
//--------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

/// [rows, length], one row at a time.
static Value softmaxRows(FormContext &f, SoftmaxOp op, Value rows) {
  ArrayRef<DimAttr> dims = shapeOf(rows).getDims();
  Type type = graphElementType(op), scalar = computeType(type);
  return f.rows(
      op.getLoc(), dims[0], dims[1], {rows}, type, /*mapped=*/true, [&](Body &b, Value row, ValueRange sources) {
        auto load = [&](Body &inner, Value p) { return inner.loadWide(sources[0], {row, p}); };
        Value top = rowReduce(b, "max", scalar, load);
        auto power = [&](Body &inner, Value p) -> Value {
          return inner.create<math::ExpOp>(inner.sub(load(inner, p), top));
        };
        Value sum = rowReduce(b, "add", scalar, power);
        if (op.getLogarithm()) {
          Value logarithm = b.create<math::LogOp>(sum);
          return rowMap(b, 0, [&](Body &inner, Value p) {
            return inner.narrow(inner.sub(inner.sub(load(inner, p), top), logarithm), type);
          });
        }
        Value scale = b.create<arith::DivFOp>(b.number(scalar, 1), sum);
        rowMap(b, 0, [&](Body &inner, Value p) { return inner.narrow(inner.mul(power(inner, p), scale), type); });
      });
}

LogicalResult transept::form(FormContext &f, SoftmaxOp op) {
  Value input = f.tensor(op.getInput());
  SmallVector<DimAttr> dims = graphDims(op);
  if (dims.empty() || !isa<FloatType>(graphElementType(op)))
    return emitUnsupported(op) << "has an operand of type " << op.getInput().getType();
  int64_t rank = dims.size(), axis = axisFromFront(op.getAxis(), rank);
  // The axis changes places with the last one, and back.
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[axis], order.back());
  bool isLast = axis == rank - 1;
  Value turned = isLast ? input : formTranspose(f, op.getLoc(), input, order);
  SmallVector<DimAttr> turnedDims(shapeOf(turned).getDims());
  Value result = f.view(op.getLoc(), softmaxRows(f, op, f.viewAsRows(op.getLoc(), turned)), turnedDims);
  f.define(op, isLast ? result : formTranspose(f, op.getLoc(), result, order));
  return success();
}

LogicalResult transept::form(FormContext &f, LayerNormOp op) {
  Value input = f.tensor(op.getInput());
  SmallVector<DimAttr> dims = graphDims(op);
  int64_t rank = dims.size(), axis = axisFromFront(op.getAxis(), rank);
  Type type = graphElementType(op), scalar = computeType(type);
  if (axis < 0 || axis >= rank || !isa<FloatType>(type))
    return emitUnsupported(op) << "has an operand of type " << op.getInput().getType();
  ArrayRef<DimAttr> leading = ArrayRef(dims).take_front(axis), normal = ArrayRef(dims).drop_front(axis);
  DimAttr rowCount = elementCount(f.context(), leading), length = elementCount(f.context(), normal);
  Location loc = op.getLoc();

  // Scale and bias broadcast to the normalised axes.
  SmallVector<Value> inputs = {f.view(loc, input, {rowCount, length})};
  auto factor = [&](Value graphValue) -> std::optional<size_t> {
    if (!graphValue)
      return std::nullopt;
    inputs.push_back(f.tensor(graphValue));
    return inputs.size() - 1;
  };
  std::optional<size_t> scale = factor(op.getScale()), bias = factor(op.getBias());
  for (std::optional<size_t> place : {scale, bias})
    if (place && shapeOf(inputs[*place]).getDims().size() > normal.size())
      return emitUnsupported(op) << "has a scale or bias of higher rank than what it normalises";

  Value rows =
      f.rows(loc, rowCount, length, inputs, type, /*mapped=*/true, [&](Body &b, Value row, ValueRange sources) {
        auto load = [&](Body &inner, Value p) { return inner.loadWide(sources[0], {row, p}); };
        Value count = b.fromIndex(b.size(length), scalar), mean;
        if (!op.getRms())
          mean = b.create<arith::DivFOp>(rowReduce(b, "add", scalar, load), count);
        auto deviation = [&](Body &inner, Value p) { return mean ? inner.sub(load(inner, p), mean) : load(inner, p); };
        Value squares = rowReduce(b, "add", scalar, [&](Body &inner, Value p) {
          Value x = deviation(inner, p);
          return inner.mul(x, x);
        });
        Value variance =
            b.add(b.create<arith::DivFOp>(squares, count), b.number(scalar, op.getEpsilon().convertToFloat()));
        Value inverse = b.create<arith::DivFOp>(b.number(scalar, 1), b.create<math::SqrtOp>(variance));
        rowMap(b, 0, [&](Body &inner, Value p) {
          auto element = [&](size_t place) {
            ArrayRef<DimAttr> shape = shapeOf(inputs[place]).getDims();
            if (shape == ArrayRef(length))
              return inner.loadWide(sources[place], {p});
            SmallVector<Value> at = inner.delinearize(p, normal);
            return inner.loadWide(sources[place], broadcastIndices(inner, at, shape, normal));
          };
          Value value = inner.mul(deviation(inner, p), inverse);
          if (scale)
            value = inner.mul(value, element(*scale));
          if (bias)
            value = inner.add(value, element(*bias));
          return inner.narrow(value, type);
        });
      });
  f.define(op, f.view(loc, rows, dims));
  return success();
}
