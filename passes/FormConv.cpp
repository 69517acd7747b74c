//===- FormConv.cpp - convolutions
//--------------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With a constant matrix of weights: a map gathers the window of every output position as a row, and the product of the
// rows with the matrix is a contraction. Otherwise loops over channels and window in the body of a map.

#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

struct Convolution {
  Convolution(FormContext &f, ConvOp op)
      : op(op), input(f.tensor(op.getInput())), dims(shapeOf(input).getDims()),
        weightDims(shapeOf(f.tensor(op.getWeight())).getDims()), spatial(dims.size() - 2) {}

  /// The input element that window element `inside` of output position `out` reads, 0 in the padding.
  Value element(Body &b, Value source, Value batch, Value channel, ValueRange out, ValueRange inside);

  ConvOp op;
  Value input;
  ArrayRef<DimAttr> dims, weightDims;
  size_t spatial;
};

Value Convolution::element(Body &b, Value source, Value batch, Value channel, ValueRange out, ValueRange inside) {
  SmallVector<Value> at = {batch, channel};
  Value isInside;
  for (size_t i = 0; i < spatial; ++i) {
    Value position = b.add(b.mul(out[i], b.index(op.getStrides()[i])), b.mul(inside[i], b.index(op.getDilations()[i])));
    position = b.sub(position, b.index(op.getPads()[i]));
    if (op.getPads()[i] != 0 || op.getPads()[i + spatial] != 0) {
      Value size = b.size(dims[2 + i]);
      Value fits = b.less(position, size, /*isUnsigned=*/true);
      isInside = isInside ? b.both(isInside, fits) : fits;
      position = b.clampIndex(position, size);
    }
    at.push_back(position);
  }
  Value value = b.loadWide(source, at);
  return isInside ? b.select(isInside, value, b.number(value.getType(), 0)) : value;
}

Value formByContraction(FormContext &f, Convolution &conv, const WeightMatrix &matrix, Value bias,
                        ArrayRef<DimAttr> result) {
  ConvOp op = conv.op;
  SmallVector<DimAttr> positions = {result.front()};
  llvm::append_range(positions, result.drop_front(2));
  SmallVector<DimAttr> domain(positions);
  llvm::append_range(domain, conv.weightDims.drop_front());
  Value windows =
      f.map(op.getLoc(), domain, {conv.input}, f.builder.getF32Type(), [&](Body &b, ValueRange at, ValueRange sources) {
        return conv.element(b, sources[0], at[0], at[1 + conv.spatial], at.slice(1, conv.spatial),
                            at.take_back(conv.spatial));
      });
  SmallVector<DimAttr> rows(positions);
  rows.push_back(f.constant(matrix.k()));
  Value product = formContract(f, op.getLoc(), f.view(op.getLoc(), windows, rows), matrix, bias);
  // Channels stand before the positions.
  SmallVector<int64_t> order = {0, static_cast<int64_t>(conv.spatial) + 1};
  for (size_t i = 0; i < conv.spatial; ++i)
    order.push_back(1 + i);
  return formTranspose(f, op.getLoc(), product, order);
}

Value formByLoops(FormContext &f, Convolution &conv, Value weight, Value bias, ArrayRef<DimAttr> result) {
  ConvOp op = conv.op;
  Type type = graphElementType(op);
  SmallVector<Value> inputs = {conv.input, weight};
  if (bias)
    inputs.push_back(bias);
  return f.map(op.getLoc(), result, inputs, type, [&](Body &b, ValueRange at, ValueRange sources) {
    Value batch = at[0], output = at[1];
    Value channels = b.size(conv.weightDims[1]);
    Value perGroup = b.create<arith::DivUIOp>(b.size(conv.weightDims[0]), b.index(op.getGroup()));
    Value firstChannel = b.mul(b.create<arith::DivUIOp>(output, perGroup), channels);
    Value initial = bias ? b.loadWide(sources[2], {output}) : b.number(computeType(type), 0);
    ArrayRef<DimAttr> window = conv.weightDims.drop_front(2);
    Value steps = b.size(elementCount(f.context(), window));
    return b.accumulate(channels, initial, [&](Body &outer, Value channel, Value sum) {
      return outer.accumulate(steps, sum, [&](Body &inner, Value step, Value total) {
        SmallVector<Value> inside = inner.delinearize(step, window), weightAt = {output, channel};
        llvm::append_range(weightAt, inside);
        Value x = conv.element(inner, sources[0], batch, inner.add(firstChannel, channel), at.drop_front(2), inside);
        return inner.add(total, inner.mul(x, inner.loadWide(sources[1], weightAt)));
      });
    });
  });
}

} // namespace

LogicalResult transept::form(FormContext &f, ConvOp op) {
  Convolution conv(f, op);
  if (op.getStrides().size() != conv.spatial || op.getDilations().size() != conv.spatial ||
      op.getPads().size() != 2 * conv.spatial || op.getGroup() < 1 || conv.weightDims.size() != conv.dims.size())
    return op.emitOpError() << "has strides, pads or dilations of another number than its spatial axes";
  SmallVector<DimAttr> result = graphDims(op);
  Value bias = op.getBias() ? f.tensor(op.getBias()) : Value();
  std::optional<WeightMatrix> matrix = packedMatrix(op);
  if (matrix && failed(addNarrow(op, *matrix)))
    return failure();
  if (matrix)
    f.define(op, formByContraction(f, conv, *matrix, bias, result));
  else
    f.define(op, formByLoops(f, conv, f.tensor(op.getWeight()), bias, result));
  return success();
}
