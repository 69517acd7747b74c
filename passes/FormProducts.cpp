//===- FormProducts.cpp - matrix products and convolutions
//-------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/FormOps.h"
#include "passes/Quantise.h"

using namespace mlir;
using namespace mlir::transept;

/// The content of a weight or constant; a null type where the operand is neither.
static WeightStore::Weight contentOf(Value graphValue, std::string &key) {
  WeightStore &store = WeightStore::of(graphValue.getContext());
  if (auto weight = graphValue.getDefiningOp<WeightOp>())
    key = weight.getKey();
  else if (auto constant = graphValue.getDefiningOp<ConstantOp>())
    if (HostTensor tensor = HostTensor::fromElements(constant.getValue()))
      key = store.add(tensor.getType(), tensor.bytes());
  return key.empty() ? WeightStore::Weight() : store.lookup(key);
}

std::optional<WeightMatrix> transept::weightMatrix(Value graphValue) {
  WeightMatrix matrix;
  if (auto transpose = graphValue.getDefiningOp<TransposeOp>()) {
    matrix.transposed = true;
    if (transpose.getPermutation() != ArrayRef<int64_t>{1, 0})
      return std::nullopt;
    graphValue = transpose.getInput();
  }
  matrix.type = contentOf(graphValue, matrix.key).type;
  bool isMatrix = matrix.type && matrix.type.getRank() == 2 && matrix.type.getElementType().isF32() &&
                  matrix.type.getNumElements() > 0;
  return isMatrix ? std::optional(matrix) : std::nullopt;
}

std::optional<WeightMatrix> transept::flattenedWeight(Value graphValue) {
  WeightMatrix matrix;
  WeightStore::Weight content = contentOf(graphValue, matrix.key);
  if (!content.type || content.type.getRank() < 2 || !content.type.getElementType().isF32() ||
      content.type.getNumElements() == 0)
    return std::nullopt;
  int64_t n = content.type.getDimSize(0);
  matrix.type = RankedTensorType::get({n, content.type.getNumElements() / n}, content.type.getElementType());
  matrix.key = WeightStore::of(graphValue.getContext()).add(matrix.type, content.bytes);
  matrix.transposed = true;
  return matrix;
}

Value transept::packedOperand(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return linear.getWeight();
  if (auto product = dyn_cast<MatMulOp>(op))
    return product.getRhs();
  auto conv = dyn_cast<ConvOp>(op);
  return conv && conv.getGroup() == 1 ? conv.getWeight() : Value();
}

std::optional<WeightMatrix> transept::packedMatrix(Operation *op) {
  Value operand = packedOperand(op);
  if (!operand || !graphElementType(op->getResult(0)).isF32())
    return std::nullopt;
  std::optional<WeightMatrix> matrix = isa<ConvOp>(op) ? flattenedWeight(operand) : weightMatrix(operand);
  if (auto linear = dyn_cast<LinearOp>(op); linear && matrix)
    matrix->transposed ^= linear.getTransposed();
  return matrix;
}

LogicalResult transept::addNarrow(Operation *op, WeightMatrix &matrix) {
  auto narrow = op->getAttrOfType<DictionaryAttr>(narrowAttrName);
  if (!narrow)
    return success();
  WeightStore &store = WeightStore::of(op->getContext());
  auto contentOf = [&](StringRef name, std::string &key) {
    auto attribute = narrow.getAs<StringAttr>(name);
    key = attribute ? attribute.str() : "";
    return store.lookup(key).type;
  };
  RankedTensorType weight = contentOf("weight", matrix.narrowKey), scales = contentOf("scales", matrix.scalesKey);
  auto activations = narrow.getAs<StringAttr>("activations");
  matrix.quantised = activations && activations.getValue() == "int8";
  matrix.narrowType = weight ? weight.getElementType() : Type();
  bool isInteger = matrix.narrowType && matrix.narrowType.isUnsignedInteger(8);
  if (auto block = narrow.getAs<IntegerAttr>("block"))
    matrix.block = block.getInt();
  SmallVector<int64_t> wanted = {matrix.n()};
  if (matrix.block > 0)
    wanted.insert(matrix.transposed ? wanted.end() : wanted.begin(), llvm::divideCeil(matrix.k(), matrix.block));
  bool hasScales = scales && scales.getElementType().isF32() && scales.getShape() == ArrayRef(wanted) &&
                   matrix.block >= 0 && !(matrix.block && matrix.quantised);
  bool fits = weight && weight.getShape() == matrix.type.getShape() &&
              (isInteger ? hasScales : matrix.narrowType.isBF16() && !scales && !matrix.quantised);
  return fits ? success() : op->emitOpError() << "has an attribute '" << narrowAttrName << "' that does not fit";
}

Value transept::formContract(FormContext &f, Location loc, Value input, const WeightMatrix &matrix, Value bias) {
  SmallVector<DimAttr> dims(shapeOf(input).getDims());
  Value x = f.viewAsRows(loc, input);
  DimAttr rows = shapeOf(x).getDims().front(), n = f.constant(matrix.n());
  int64_t panelCount = llvm::divideCeil(matrix.n(), kernel::panelColumns);
  Type element = matrix.narrowType ? matrix.narrowType : matrix.type.getElementType();
  SmallVector<Value> inputs = {x, f.panels({matrix.narrowType ? matrix.narrowKey : matrix.key}, {matrix.transposed},
                                           kernel::panelType(element, panelCount, matrix.k()))};
  Value scales;
  if (matrix.block)
    inputs.push_back(
        f.panels({matrix.scalesKey}, {matrix.transposed},
                 kernel::panelType(f.builder.getF32Type(), panelCount, llvm::divideCeil(matrix.k(), matrix.block))));
  else if (!matrix.scalesKey.empty())
    scales =
        inputs.emplace_back(f.weight(matrix.scalesKey, RankedTensorType::get({matrix.n()}, f.builder.getF32Type())));
  if (bias)
    inputs.push_back(bias);
  SmallVector<DimAttr> result = {rows, n};
  Type f32 = f.builder.getF32Type();
  auto op = f.builder.create<kernel::ContractOp>(
      loc, TypeRange{plainType(result, f32)}, inputs, ValueRange{}, Value(), f.shapes(inputs, f.dims(result)), rows,
      f.builder.getI64IntegerAttr(matrix.k()), f.builder.getDenseI64ArrayAttr({matrix.n()}),
      matrix.quantised ? f.builder.getUnitAttr() : UnitAttr(), f.builder.getI64IntegerAttr(matrix.block), 1);
  Block *block = f.builder.createBlock(&op.getEpilogues().front());
  block->addArguments({f.builder.getIndexType(), f.builder.getIndexType(), f32}, {loc, loc, loc});
  Value value = block->getArgument(2);
  Body b(loc, f.builder);
  if (matrix.block)
    block->addArgument(inputs[2].getType(), loc); // the product takes them, no epilogue
  if (scales)
    value = b.mul(value, b.load(block->addArgument(scales.getType(), loc), {block->getArgument(1)}));
  if (bias)
    value = b.add(value, b.load(block->addArgument(bias.getType(), loc), {block->getArgument(1)}));
  b.create<kernel::YieldOp>(value);
  f.builder.setInsertionPointAfter(op);
  dims.back() = n;
  return f.view(loc, op.getResult(0), dims);
}

Value transept::formProduct(FormContext &f, Operation *op, Value lhs, Value rhs, bool transposed) {
  SmallVector<DimAttr> domain = graphDims(op->getResult(0));
  Type type = graphElementType(op->getResult(0)), elementType = kernel::elementTypeOf(lhs.getType());
  ArrayRef<DimAttr> left = shapeOf(lhs).getDims(), right = shapeOf(rhs).getDims();
  bool hasRow = left.size() > 1, hasColumn = right.size() > 1;
  size_t batchRank = domain.size() - hasRow - hasColumn;
  auto batchOf = [](ArrayRef<DimAttr> dims) { return dims.drop_back(std::min<size_t>(dims.size(), 2)); };
  ArrayRef<DimAttr> batchDims = ArrayRef(domain).take_front(batchRank);
  return f.map(op->getLoc(), domain, {lhs, rhs}, type, [&](Body &b, ValueRange at, ValueRange sources) {
    ValueRange batch = at.take_front(batchRank);
    SmallVector<Value> leftBatch = broadcastIndices(b, batch, batchOf(left), batchDims);
    SmallVector<Value> rightBatch = broadcastIndices(b, batch, batchOf(right), batchDims);
    return b.accumulate(b.size(left.back()), b.integer(computeType(type), 0), [&](Body &inner, Value k, Value sum) {
      SmallVector<Value> leftAt(leftBatch), rightAt(rightBatch);
      if (hasRow)
        leftAt.push_back(at[batchRank]);
      leftAt.push_back(k);
      if (!transposed)
        rightAt.push_back(k);
      if (hasColumn)
        rightAt.push_back(at.back());
      if (transposed)
        rightAt.push_back(k);
      Value product = inner.mul(inner.convert(inner.loadWide(sources[0], leftAt), elementType, type),
                                inner.convert(inner.loadWide(sources[1], rightAt), elementType, type));
      return inner.add(sum, product);
    });
  });
}

LogicalResult transept::form(FormContext &f, LinearOp op) {
  std::optional<WeightMatrix> matrix = packedMatrix(op);
  Value bias = op.getBias() ? f.tensor(op.getBias()) : Value();
  if (matrix) {
    if (failed(addNarrow(op, *matrix)))
      return failure();
    f.define(op, formContract(f, op.getLoc(), f.tensor(op.getInput()), *matrix, bias));
    return success();
  }
  Value product = formProduct(f, op, f.tensor(op.getInput()), f.tensor(op.getWeight()), op.getTransposed());
  if (bias) {
    SmallVector<DimAttr> domain = graphDims(op);
    product = f.map(op.getLoc(), domain, {product, bias}, graphElementType(op),
                    [&](Body &b, ValueRange at, ValueRange sources) {
                      return b.add(b.loadWide(sources[0], at), b.loadWide(sources[1], {at.back()}));
                    });
  }
  f.define(op, product);
  return success();
}

LogicalResult transept::form(FormContext &f, MatMulOp op) {
  Value lhs = f.tensor(op.getLhs());
  std::optional<WeightMatrix> matrix = packedMatrix(op);
  if (matrix && failed(addNarrow(op, *matrix)))
    return failure();
  f.define(op, matrix ? formContract(f, op.getLoc(), lhs, *matrix, Value())
                      : formProduct(f, op, lhs, f.tensor(op.getRhs()), /*transposed=*/false));
  return success();
}

/// Elimination with the largest remaining element of a column as pivot.
LogicalResult transept::form(FormContext &f, DetOp op) {
  Value input = f.tensor(op.getInput());
  ArrayRef<DimAttr> dims = shapeOf(input).getDims();
  DimAttr count = elementCount(f.context(), dims.drop_back(2)), n = dims.back();
  Type type = graphElementType(op), wide = computeType(type);
  auto body = [&](Body &b, Value item, ValueRange outputs, ValueRange sources) {
    Value size = b.size(n), matrix = outputs[1];
    b.repeat(size, [&](Body &inner, Value i) {
      inner.repeat(size, [&](Body &deeper, Value j) {
        deeper.store(deeper.loadWide(sources[0], {item, i, j}), matrix, {item, i, j});
      });
    });
    Value det = b.accumulate(size, b.number(wide, 1), [&](Body &inner, Value k, Value product) -> Value {
      Value below = inner.sub(size, k);
      auto magnitude = [&](Body &deeper, Value row) -> Value {
        return deeper.create<math::AbsFOp>(deeper.load(matrix, {item, row, k}));
      };
      Value pivot = inner.accumulate(below, k, [&](Body &deeper, Value offset, Value best) {
        Value row = deeper.add(k, offset);
        return deeper.select(deeper.less(magnitude(deeper, best), magnitude(deeper, row)), row, best);
      });
      inner.repeat(size, [&](Body &deeper, Value j) {
        Value upper = deeper.load(matrix, {item, k, j}), lower = deeper.load(matrix, {item, pivot, j});
        deeper.store(lower, matrix, {item, k, j});
        deeper.store(upper, matrix, {item, pivot, j});
      });
      Value top = inner.load(matrix, {item, k, k}), zero = inner.number(wide, 0);
      inner.when(inner.different(top, zero), [&](Body &deeper) {
        deeper.repeat(deeper.sub(below, deeper.index(1)), [&](Body &rows, Value offset) {
          Value row = rows.add(rows.add(k, offset), rows.index(1));
          Value factor = rows.create<arith::DivFOp>(rows.load(matrix, {item, row, k}), top);
          rows.repeat(size, [&](Body &columns, Value j) {
            Value less = columns.mul(factor, columns.load(matrix, {item, k, j}));
            columns.store(columns.sub(columns.load(matrix, {item, row, j}), less), matrix, {item, row, j});
          });
        });
      });
      Value signedTop = inner.select(inner.equal(pivot, k), top, inner.sub(zero, top));
      return inner.mul(product, signedTop);
    });
    b.store(det, outputs[0], {item});
  };
  Value result = f.serial(op.getLoc(), count, {f.view(op.getLoc(), input, {count, n, n})},
                          {{{count}, type}, {{count, n, n}, wide}}, body)
                     .front();
  f.define(op, f.view(op.getLoc(), result, graphDims(op)));
  return success();
}
