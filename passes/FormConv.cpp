//===- FormConv.cpp - convolutions
//--------------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With a constant matrix of weights: a map gathers the window of every output position as a row, and the product of the
// rows with the matrix is a contraction, of floats or of the bytes behind 32-bit integers. Otherwise loops over
// channels and window in the body of a map: so also groups, whose matrices are too narrow for panels of 64 columns.

#include "passes/ElementExpr.h"
#include "passes/FormIntegers.h"
#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

namespace {

struct Convolution {
  Convolution(FormContext &f, ConvOp op)
      : op(op), input(f.tensor(op.getInput())), dims(shapeOf(input).getDims()),
        weightDims(shapeOf(f.tensor(op.getWeight())).getDims()), spatial(dims.size() - 2) {}

  /// The element of `source`, which has the input's shape, that window element `inside` of output position `out` reads;
  /// `padding` (null: 0) in the padding.
  Value element(Body &b, Value source, Value batch, Value channel, ValueRange out, ValueRange inside,
                Value padding = {});
  /// The windows of all output positions: [batch, positions…, channels, kernel…]. Reads `inputs`, of which the first
  /// has the input's shape.
  using Element = function_ref<Value(Body &, ValueRange sources, function_ref<Value(Value padding)> at)>;
  Value windows(FormContext &f, ArrayRef<Value> inputs, Type elementType, ArrayRef<DimAttr> result, Element element);

  ConvOp op;
  Value input;
  ArrayRef<DimAttr> dims, weightDims;
  size_t spatial;
};

Value Convolution::element(Body &b, Value source, Value batch, Value channel, ValueRange out, ValueRange inside,
                           Value padding) {
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
  if (!isInside)
    return value;
  return b.select(isInside, value, padding ? padding : b.number(value.getType(), 0));
}

Value Convolution::windows(FormContext &f, ArrayRef<Value> inputs, Type elementType, ArrayRef<DimAttr> result,
                           Element element) {
  SmallVector<DimAttr> domain = {result.front()};
  llvm::append_range(domain, result.drop_front(2));
  llvm::append_range(domain, weightDims.drop_front());
  return f.map(op.getLoc(), domain, inputs, elementType, [&](Body &b, ValueRange at, ValueRange sources) {
    return element(b, sources, [&](Value padding) {
      return this->element(b, sources[0], at[0], at[1 + spatial], at.slice(1, spatial), at.take_back(spatial), padding);
    });
  });
}

/// The windows as rows of `k` elements.
Value asRows(FormContext &f, Convolution &conv, Value windows, int64_t k) {
  SmallVector<DimAttr> rows(shapeOf(windows).getDims().take_front(1 + conv.spatial));
  rows.push_back(f.constant(k));
  return f.view(conv.op.getLoc(), windows, rows);
}

/// A product [batch, positions…, channels] with its channels before the positions.
Value withChannelsFirst(FormContext &f, Convolution &conv, Value product) {
  SmallVector<int64_t> order = {0, static_cast<int64_t>(conv.spatial) + 1};
  for (size_t i = 0; i < conv.spatial; ++i)
    order.push_back(1 + i);
  return formTranspose(f, conv.op.getLoc(), product, order);
}

Value formByContraction(FormContext &f, Convolution &conv, const WeightMatrix &matrix, Value bias,
                        ArrayRef<DimAttr> result) {
  Value windows = conv.windows(f, {conv.input}, f.builder.getF32Type(), result,
                               [](Body &, ValueRange, function_ref<Value(Value)> at) { return at(Value()); });
  return withChannelsFirst(f, conv,
                           formContract(f, conv.op.getLoc(), asRows(f, conv, windows, matrix.k()), matrix, bias));
}

/// What the 32-bit integers are made of; nullopt where it is something else than bytes minus one zero point of them.
std::optional<CentredBytes> centredBytes(Value value) {
  CentredBytes centred;
  if (auto difference = value.getDefiningOp<SubOp>()) {
    value = difference.getLhs();
    centred.zero = difference.getRhs();
  }
  auto cast = value.getDefiningOp<CastOp>();
  if (!cast || !graphElementType(cast.getInput()).isInteger(8))
    return std::nullopt;
  centred.bytes = cast.getInput();
  if (!centred.zero)
    return centred;
  Type element = graphElementType(centred.bytes);
  if (auto zero = centred.zero.getDefiningOp<CastOp>())
    centred.zero = zero.getInput();
  auto isOne = [](DimAttr dim) { return constantValue(dim) == 1; };
  if (!llvm::all_of(graphDims(centred.zero), isOne))
    return std::nullopt;
  if (graphElementType(centred.zero) == element)
    return centred;
  HostTensor content = constantContent(centred.zero);
  const int64_t low = element.isUnsignedInteger() ? 0 : -128;
  bool fits =
      content && isa<IntegerType>(content.elementType()) && content.getInt(0) >= low && content.getInt(0) <= low + 255;
  return fits ? std::optional(centred) : std::nullopt;
}

/// A convolution of centred bytes with a constant weight. The padding holds the zero point. Null where it is none.
Value formByIntegers(FormContext &f, Convolution &conv, Value bias, ArrayRef<DimAttr> result) {
  ConvOp op = conv.op;
  HostTensor weight =
      graphElementType(op).isSignlessInteger(32) && op.getGroup() == 1 ? constantContent(op.getWeight()) : HostTensor();
  std::optional<CentredBytes> input = weight ? centredBytes(op.getInput()) : std::nullopt;
  if (!input || weight.numElements() == 0)
    return {};
  const int64_t n = weight.shape()[0], k = weight.numElements() / n;
  std::optional<IntegerMatrix> matrix =
      integerMatrix(f.context(), k, n, [&](int64_t row, int64_t column) { return weight.getInt(column * k + row); });
  if (!matrix)
    return {};
  Value zero = zeroPointOf(f, op.getLoc(), *input);
  Type element = graphElementType(input->bytes);
  SmallVector<Value> inputs = {f.tensor(input->bytes)};
  if (zero)
    inputs.push_back(zero);
  Value windows = conv.windows(
      f, inputs, f.builder.getI8Type(), result, [&](Body &b, ValueRange sources, function_ref<Value(Value)> at) {
        Value padding;
        if (zero)
          padding = b.convert(b.loadWide(sources[1], {}), kernel::elementTypeOf(zero.getType()), element);
        return toSignedByte(b, at(padding), element);
      });
  return withChannelsFirst(
      f, conv, formIntegerContract(f, op.getLoc(), asRows(f, conv, windows, k), shiftOf(element), zero, *matrix, bias));
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
  Value formed = matrix ? formByContraction(f, conv, *matrix, bias, result) : formByIntegers(f, conv, bias, result);
  f.define(op, formed ? formed : formByLoops(f, conv, f.tensor(op.getWeight()), bias, result));
  return success();
}
