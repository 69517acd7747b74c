//===- FormProducts.cpp - matrix products and convolutions
//-------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

std::optional<WeightMatrix> transept::weightMatrix(Value graphValue) {
  WeightMatrix matrix;
  if (auto transpose = graphValue.getDefiningOp<TransposeOp>()) {
    matrix.transposed = true;
    if (transpose.getPermutation() != ArrayRef<int64_t>{1, 0})
      return std::nullopt;
    graphValue = transpose.getInput();
  }
  if (auto weight = graphValue.getDefiningOp<WeightOp>()) {
    matrix.key = weight.getKey();
    matrix.type = cast<RankedTensorType>(weight.getType());
  } else if (auto constant = graphValue.getDefiningOp<ConstantOp>()) {
    HostTensor tensor = HostTensor::fromElements(constant.getValue());
    if (!tensor)
      return std::nullopt;
    matrix.type = tensor.getType();
    matrix.key = WeightStore::of(constant.getContext()).add(tensor.getType(), tensor.bytes());
  } else {
    return std::nullopt;
  }
  bool isMatrix =
      matrix.type.getRank() == 2 && matrix.type.getElementType().isF32() && matrix.type.getNumElements() > 0;
  return isMatrix ? std::optional(matrix) : std::nullopt;
}

Value transept::formContract(FormContext &f, Location loc, Value input, const WeightMatrix &matrix, Value bias) {
  SmallVector<DimAttr> dims(shapeOf(input).getDims());
  Value x = f.viewAsRows(loc, input);
  DimAttr rows = shapeOf(x).getDims().front(), n = f.constant(matrix.n());
  int64_t panelCount = llvm::divideCeil(matrix.n(), kernel::panelColumns);
  SmallVector<Value> inputs = {x, f.panels({matrix.key}, {matrix.transposed}, matrix.k(), panelCount)};
  if (bias)
    inputs.push_back(bias);
  SmallVector<DimAttr> result = {rows, n};
  Type f32 = f.builder.getF32Type();
  auto op = f.builder.create<kernel::ContractOp>(
      loc, TypeRange{plainType(result, f32)}, inputs, ValueRange{}, Value(), f.shapes(inputs, f.dims(result)), rows,
      f.builder.getI64IntegerAttr(matrix.k()), f.builder.getDenseI64ArrayAttr({matrix.n()}), 1);
  Block *block = f.builder.createBlock(&op.getEpilogues().front());
  block->addArguments({f.builder.getIndexType(), f.builder.getIndexType(), f32}, {loc, loc, loc});
  Value value = block->getArgument(2);
  Body b(loc, f.builder);
  if (bias)
    value = b.add(value, b.load(block->addArgument(bias.getType(), loc), {block->getArgument(1)}));
  b.create<kernel::YieldOp>(value);
  f.builder.setInsertionPointAfter(op);
  dims.back() = n;
  return f.view(loc, op.getResult(0), dims);
}

/// sum over k of lhs[…, m, k] * rhs[…, k, n] as a map.
static Value formProduct(FormContext &f, Operation *op, Value lhs, Value rhs, ArrayRef<DimAttr> domain,
                         Type elementType) {
  ArrayRef<DimAttr> left = shapeOf(lhs).getDims(), right = shapeOf(rhs).getDims();
  bool hasRow = left.size() > 1, hasColumn = right.size() > 1;
  size_t batchRank = domain.size() - hasRow - hasColumn;
  auto batchOf = [](ArrayRef<DimAttr> dims) { return dims.drop_back(std::min<size_t>(dims.size(), 2)); };
  return f.map(op->getLoc(), domain, {lhs, rhs}, elementType, [&](Body &b, ValueRange at, ValueRange sources) {
    ValueRange batch = at.take_front(batchRank);
    SmallVector<Value> leftBatch = broadcastIndices(b, batch, batchOf(left), domain.take_front(batchRank));
    SmallVector<Value> rightBatch = broadcastIndices(b, batch, batchOf(right), domain.take_front(batchRank));
    Value zero = b.number(computeType(elementType), 0);
    return b.forEach(b.size(left.back()), zero, [&](Body &inner, Value k, Value sum) {
      SmallVector<Value> leftAt(leftBatch), rightAt(rightBatch);
      if (hasRow)
        leftAt.push_back(at[batchRank]);
      leftAt.push_back(k);
      rightAt.push_back(k);
      if (hasColumn)
        rightAt.push_back(at.back());
      return inner.add(sum, inner.mul(inner.loadWide(sources[0], leftAt), inner.loadWide(sources[1], rightAt)));
    });
  });
}

LogicalResult transept::form(FormContext &f, LinearOp op) {
  std::optional<WeightMatrix> matrix = weightMatrix(op.getWeight());
  if (matrix && graphElementType(op).isF32()) {
    matrix->transposed ^= op.getTransposed();
    Value bias = op.getBias() ? f.tensor(op.getBias()) : Value();
    f.define(op, formContract(f, op.getLoc(), f.tensor(op.getInput()), *matrix, bias));
    return success();
  }
  return emitUnsupported(op) << "multiplies with a matrix that is no constant of 32-bit floats";
}

LogicalResult transept::form(FormContext &f, MatMulOp op) {
  Value lhs = f.tensor(op.getLhs()), rhs = f.tensor(op.getRhs());
  std::optional<WeightMatrix> matrix = weightMatrix(op.getRhs());
  if (matrix && graphElementType(op).isF32() && shapeOf(lhs).getDims().size() > 1) {
    f.define(op, formContract(f, op.getLoc(), lhs, *matrix, Value()));
    return success();
  }
  f.define(op, formProduct(f, op, lhs, rhs, graphDims(op), graphElementType(op)));
  return success();
}
