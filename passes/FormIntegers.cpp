//===- FormIntegers.cpp - contractions of 8-bit integers ----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels multiply are signed bytes x and w. The graph's factors are x + a and w + c, with a number a for the
// tensor and c for a column: sums of (x + a)(w + c) are those of x w, plus c times the sum of the row's x, plus a times
// the sum of the column's w + c. Sums are taken modulo 2^32, as the graph's are.

#include "passes/FormIntegers.h"
#include "passes/ElementExpr.h"
#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

std::optional<IntegerMatrix> transept::integerMatrix(MLIRContext *context, int64_t k, int64_t n,
                                                     function_ref<int64_t(int64_t, int64_t)> element) {
  constexpr int64_t longest = 1 << 16;
  if (k < 1 || n < 1 || k > longest)
    return std::nullopt;
  Builder builder(context);
  auto vector = RankedTensorType::get({n}, builder.getI32Type());
  HostTensor bytes =
      HostTensor::make(RankedTensorType::get({k, n}, IntegerType::get(context, 8, IntegerType::Unsigned)));
  HostTensor sums = HostTensor::make(vector), offsets = HostTensor::make(vector);
  bool moves = false;
  for (int64_t column = 0; column < n; ++column) {
    int64_t low = element(0, column), high = low, sum = 0;
    for (int64_t row = 0; row < k; ++row) {
      int64_t value = element(row, column);
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
    }
    constexpr int64_t least = -128, most = 127;
    // Also keeps what is computed with the elements in range.
    if (low < -(int64_t(1) << 16) || high > (int64_t(1) << 16) || high - low > most - least)
      return std::nullopt;
    int64_t offset = low < least ? low - least : high > most ? high - most : 0;
    for (int64_t row = 0; row < k; ++row)
      bytes.setInt(row * n + column, element(row, column) - offset - least);
    sums.setInt(column, sum);
    offsets.setInt(column, offset);
    moves |= offset != 0;
  }
  WeightStore &store = WeightStore::of(context);
  auto add = [&](const HostTensor &tensor) { return store.add(tensor.getType(), tensor.bytes()); };
  return IntegerMatrix{k, n, add(bytes), add(sums), moves ? add(offsets) : ""};
}

Value transept::zeroPointOf(FormContext &f, Location loc, const CentredBytes &input) {
  return input.zero ? f.view(loc, f.tensor(input.zero), {}) : Value();
}

int64_t transept::shiftOf(Type elementType) { return elementType.isUnsignedInteger() ? 128 : 0; }

Value transept::toSignedByte(Body &b, Value element, Type elementType) {
  Type i8 = b.getI8Type(), i32 = b.getI32Type();
  int64_t shift = shiftOf(elementType);
  return shift ? b.convert(b.sub(b.convert(element, elementType, i32), b.integer(i32, shift)), i32, i8) : element;
}

/// The sum of each row of x, f32 [rows]: exact, for it stays below 2^24.
static Value rowSums(FormContext &f, Location loc, Value x, int64_t k) {
  Type f32 = f.builder.getF32Type(), element = kernel::elementTypeOf(x.getType());
  DimAttr rows = shapeOf(x).getDims().front();
  return f.rows(loc, rows, f.constant(k), {x}, f32, /*mapped=*/false, [&](Body &b, Value row, ValueRange sources) {
    Value sum = rowReduce(b, "add", f32, [&](Body &inner, Value position) {
      return inner.convert(inner.load(sources[0], {row, position}), element, f32);
    });
    b.create<kernel::YieldOp>(sum);
  });
}

Value transept::formIntegerContract(FormContext &f, Location loc, Value x, int64_t shift, Value zero,
                                    const IntegerMatrix &matrix, Value bias) {
  Type f32 = f.builder.getF32Type(), i32 = f.builder.getI32Type(), index = f.builder.getIndexType();
  SmallVector<DimAttr> dims(shapeOf(x).getDims());
  x = f.viewAsRows(loc, x);
  DimAttr rows = shapeOf(x).getDims().front(), n = f.constant(matrix.n);
  int64_t panels = llvm::divideCeil(matrix.n, kernel::panelColumns);
  Type stored = IntegerType::get(f.context(), 8, IntegerType::Unsigned);
  SmallVector<Value> inputs = {x, f.panels({matrix.key}, {false}, kernel::panelType(stored, panels, matrix.k))};
  auto column = RankedTensorType::get({matrix.n}, i32);
  Value sums = shift || zero ? f.weight(matrix.sumsKey, column) : Value();
  Value offsets = matrix.offsetsKey.empty() ? Value() : f.weight(matrix.offsetsKey, column);
  Value totals = offsets ? rowSums(f, loc, x, matrix.k) : Value();
  for (Value input : {sums, zero, offsets, totals, bias})
    if (input)
      inputs.push_back(input);
  SmallVector<DimAttr> result = {rows, n};
  auto contract = f.builder.create<kernel::ContractOp>(
      loc, TypeRange{plainType(result, i32)}, inputs, ValueRange{}, Value(), f.shapes(inputs, f.dims(result)), rows,
      f.builder.getI64IntegerAttr(matrix.k), f.builder.getDenseI64ArrayAttr({matrix.n}), UnitAttr(),
      f.builder.getI64IntegerAttr(0), 1);
  Block *block = f.builder.createBlock(&contract.getEpilogues().front());
  block->addArguments({index, index, i32}, {loc, loc, loc});
  Value row = block->getArgument(0), at = block->getArgument(1), value = block->getArgument(2);
  Body b(loc, f.builder);
  auto load = [&](Value input, ValueRange indices) {
    return b.load(block->addArgument(input.getType(), loc), indices);
  };
  if (sums) {
    Value sum = load(sums, at), factor = b.integer(i32, shift);
    if (zero)
      factor = b.sub(factor, b.convert(load(zero, {}), kernel::elementTypeOf(zero.getType()), i32));
    value = b.add(value, b.mul(factor, sum));
  }
  if (offsets) {
    Value offset = load(offsets, at);
    value = b.add(value, b.mul(offset, b.convert(load(totals, row), f32, i32)));
  }
  if (bias)
    value = b.add(value, load(bias, at));
  b.create<kernel::YieldOp>(value);
  f.builder.setInsertionPointAfter(contract);
  dims.back() = n;
  return f.view(loc, contract.getResult(0), dims);
}

/// The product as a contraction of bytes; null where an operand is none that one takes.
static Value formByContraction(FormContext &f, MatMulIntegerOp op) {
  Location loc = op.getLoc();
  Value lhs = f.tensor(op.getLhs()), zero = op.getLhsZeroPoint();
  Type element = kernel::elementTypeOf(lhs.getType());
  HostTensor content = constantContent(op.getRhs());
  HostTensor zeros = op.getRhsZeroPoint() ? constantContent(op.getRhsZeroPoint()) : HostTensor();
  auto isOne = [](DimAttr dim) { return constantValue(dim) == 1; };
  if (!element.isInteger(8) || shapeOf(lhs).getDims().empty() || (zero && !llvm::all_of(graphDims(zero), isOne)) ||
      !content || content.shape().size() != 2 || (op.getRhsZeroPoint() && !zeros))
    return {};
  const int64_t k = content.shape()[0], n = content.shape()[1];
  if (zeros && zeros.numElements() != 1 && zeros.numElements() != n)
    return {};
  auto centred = [&](int64_t row, int64_t column) {
    int64_t zeroPoint = zeros ? zeros.getInt(zeros.numElements() == 1 ? 0 : column) : 0;
    return content.getInt(row * n + column) - zeroPoint;
  };
  std::optional<IntegerMatrix> matrix = integerMatrix(f.context(), k, n, centred);
  if (!matrix)
    return {};
  if (shiftOf(element))
    lhs = f.map(
        loc, shapeOf(lhs).getDims(), {lhs}, f.builder.getI8Type(),
        [&](Body &b, ValueRange at, ValueRange sources) { return toSignedByte(b, b.load(sources[0], at), element); });
  return formIntegerContract(f, loc, lhs, shiftOf(element), zeroPointOf(f, loc, {op.getLhs(), zero}), *matrix, Value());
}

/// The tensor in 32 bits with its zero point subtracted: a scalar, or one per row (lhs) or column (rhs).
static Value withoutZeroPoint(FormContext &f, Location loc, Value tensor, Value zeroPoint, bool perRow) {
  SmallVector<DimAttr> domain(shapeOf(tensor).getDims());
  Type type = kernel::elementTypeOf(tensor.getType()), i32 = f.builder.getI32Type();
  SmallVector<Value> inputs = {tensor};
  if (zeroPoint)
    inputs.push_back(zeroPoint);
  return f.map(loc, domain, inputs, i32, [&](Body &b, ValueRange at, ValueRange sources) {
    Value value = b.convert(b.load(sources[0], at), type, i32);
    if (!zeroPoint)
      return value;
    ArrayRef<DimAttr> dims = shapeOf(zeroPoint).getDims();
    // One per row: a column.
    SmallVector<DimAttr> read(dims);
    if (dims.size() == 1 && perRow && at.size() > 1)
      read.push_back(f.constant(1));
    SmallVector<Value> place = broadcastIndices(b, at, read, domain);
    place.resize(dims.size());
    return b.sub(value, b.convert(b.load(sources[1], place), type, i32));
  });
}

LogicalResult transept::form(FormContext &f, MatMulIntegerOp op) {
  if (Value product = formByContraction(f, op)) {
    f.define(op, product);
    return success();
  }
  auto zeroPoint = [&](Value graphValue) { return graphValue ? f.tensor(graphValue) : Value(); };
  Value lhs = withoutZeroPoint(f, op.getLoc(), f.tensor(op.getLhs()), zeroPoint(op.getLhsZeroPoint()), true);
  Value rhs = withoutZeroPoint(f, op.getLoc(), f.tensor(op.getRhs()), zeroPoint(op.getRhsZeroPoint()), false);
  f.define(op, formProduct(f, op, lhs, rhs, /*transposed=*/false));
  return success();
}
