//===- InferGather.cpp - ops that pick or place elements by index ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/InferSupport.h"

using namespace mlir;
using namespace mlir::transept;

/// C1: indices are integers.
static LogicalResult requireIndices(Operation *op, const Fact &indices) {
  if (elementTypeOf(indices).isInteger(64) || elementTypeOf(indices).isInteger(32))
    return success();
  return op->emitOpError() << "takes indices of i32 or i64, not " << elementTypeOf(indices);
}

LogicalResult GatherOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &data = operands[0], &indices = operands[1];
  if (failed(requireIndices(*this, indices)))
    return failure();
  std::optional<Dims> dataDims = dimsOf(context, *this, data), indexDims = dimsOf(context, *this, indices);
  if (!dataDims || !indexDims) {
    results.push_back(unrankedFact(elementTypeOf(data)));
    return success();
  }
  // C2: the axis exists.
  FailureOr<int64_t> axis = normalizeAxis(*this, getAxis(), dataDims->size());
  if (failed(axis))
    return failure();
  Dims dims(ArrayRef(*dataDims).take_front(*axis));
  dims.append(*indexDims);
  llvm::append_range(dims, ArrayRef(*dataDims).drop_front(*axis + 1));
  Fact result = rankedFact(dims, elementTypeOf(data));
  // C3: constant indices are in range of a constant size.
  std::optional<SmallVector<int64_t>> picked = constantInts(indices);
  std::optional<int64_t> size = constantValue((*dataDims)[*axis]);
  if (picked && size)
    for (int64_t &index : *picked) {
      if (index < -*size || index >= *size)
        return emitOpError() << "picks element " << index << " of an axis of size " << *size;
      if (index < 0)
        index += *size;
    }
  std::optional<SmallVector<int64_t>> shape = smallShape(result);
  if (picked && data.content && shape) {
    ArrayRef<int64_t> dataShape = data.ranked().getShape();
    SmallVector<int64_t> indexShape(indices.ranked().getShape());
    result.content.emplace();
    for (int64_t i = 0, e = ShapedType::getNumElements(*shape); i < e; ++i) {
      SmallVector<int64_t> position = coordinates(i, *shape);
      auto middle = position.begin() + *axis;
      int64_t index = (*picked)[linearIndex(ArrayRef(middle, indexShape.size()), indexShape)];
      position.erase(middle, middle + indexShape.size());
      position.insert(position.begin() + *axis, index);
      result.content->push_back((*data.content)[linearIndex(position, dataShape)]);
    }
  }
  results.push_back(std::move(result));
  return success();
}

LogicalResult GatherElementsOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &data = operands[0], &indices = operands[1];
  if (failed(requireIndices(*this, indices)))
    return failure();
  std::optional<Dims> dataDims = dimsOf(context, *this, data), indexDims = dimsOf(context, *this, indices);
  if (!indexDims) {
    results.push_back(unrankedFact(elementTypeOf(data)));
    return success();
  }
  if (dataDims) {
    // C2: both have the same axes, and the axis exists.
    if (dataDims->size() != indexDims->size())
      return emitOpError() << "picks " << toString(*indexDims) << " of " << toString(*dataDims);
    FailureOr<int64_t> axis = normalizeAxis(*this, getAxis(), dataDims->size());
    if (failed(axis))
      return failure();
    // C3: indices are not larger than the data on the other axes.
    for (auto [i, size, picked] : llvm::enumerate(*dataDims, *indexDims))
      if (static_cast<int64_t>(i) != *axis &&
          failed(requireLessOrEqual(context, *this, picked, size, "picks elements")))
        return failure();
  }
  results.push_back(rankedFact(*indexDims, elementTypeOf(data)));
  return success();
}

LogicalResult GatherNDOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &data = operands[0], &indices = operands[1];
  if (failed(requireIndices(*this, indices)))
    return failure();
  std::optional<Dims> dataDims = dimsOf(context, *this, data), indexDims = dimsOf(context, *this, indices);
  if (!dataDims || !indexDims) {
    results.push_back(unrankedFact(elementTypeOf(data)));
    return success();
  }
  int64_t batch = getBatchDims();
  // C2: the last axis of the indices is a tuple of known length that fits behind the batch axes.
  std::optional<int64_t> tuple = indexDims->empty() ? std::nullopt : constantValue(indexDims->back());
  if (batch < 0 || batch >= static_cast<int64_t>(indexDims->size()) || !tuple || *tuple < 1 ||
      batch + *tuple > static_cast<int64_t>(dataDims->size()))
    return emitOpError() << "picks tuples of " << toString(*indexDims) << " in " << toString(*dataDims) << " behind "
                         << batch << " batch axes";
  // C3: the batch axes agree.
  for (int64_t axis = 0; axis < batch; ++axis)
    if (failed(requireEqual(context, *this, (*dataDims)[axis], (*indexDims)[axis], "batches")))
      return failure();
  Dims dims(ArrayRef(*indexDims).drop_back());
  llvm::append_range(dims, ArrayRef(*dataDims).drop_front(batch + *tuple));
  results.push_back(rankedFact(dims, elementTypeOf(data)));
  return success();
}

LogicalResult ScatterElementsOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &data = operands[0], &indices = operands[1], &updates = operands[2];
  // C2: updates have the data's element type.
  if (failed(requireIndices(*this, indices)) || failed(requireSameElementType(*this, data, updates)))
    return failure();
  std::optional<Dims> dataDims = dimsOf(context, *this, data), indexDims = dimsOf(context, *this, indices),
                      updateDims = dimsOf(context, *this, updates);
  Fact result;
  result.type = data.type;
  results.push_back(std::move(result));
  if (!dataDims || !indexDims || !updateDims)
    return success();
  // C3: all three have the same axes, and the axis exists.
  FailureOr<int64_t> axis = normalizeAxis(*this, getAxis(), dataDims->size());
  if (failed(axis))
    return failure();
  if (indexDims->size() != dataDims->size() || updateDims->size() != dataDims->size())
    return emitOpError() << "places " << toString(*updateDims) << " at " << toString(*indexDims) << " in "
                         << toString(*dataDims);
  for (auto [i, size, index, update] : llvm::enumerate(*dataDims, *indexDims, *updateDims)) {
    // C4: there is one update per index.
    if (failed(requireEqual(context, *this, index, update, "places updates")))
      return failure();
    // C5: indices are not more than the data on the other axes.
    if (static_cast<int64_t>(i) != *axis && failed(requireLessOrEqual(context, *this, index, size, "places elements")))
      return failure();
  }
  return success();
}

LogicalResult ScatterNDOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &data = operands[0], &indices = operands[1], &updates = operands[2];
  // C2: updates have the data's element type.
  if (failed(requireIndices(*this, indices)) || failed(requireSameElementType(*this, data, updates)))
    return failure();
  std::optional<Dims> dataDims = dimsOf(context, *this, data), indexDims = dimsOf(context, *this, indices),
                      updateDims = dimsOf(context, *this, updates);
  Fact result;
  result.type = data.type;
  results.push_back(std::move(result));
  if (!dataDims || !indexDims || !updateDims)
    return success();
  // C3: the last axis of the indices is a tuple of known length that fits the data.
  std::optional<int64_t> tuple = indexDims->empty() ? std::nullopt : constantValue(indexDims->back());
  if (!tuple || *tuple < 1 || *tuple > static_cast<int64_t>(dataDims->size()))
    return emitOpError() << "places tuples of " << toString(*indexDims) << " in " << toString(*dataDims);
  // C4: there is one slice of updates per tuple.
  Dims slices(ArrayRef(*indexDims).drop_back());
  llvm::append_range(slices, ArrayRef(*dataDims).drop_front(*tuple));
  if (slices.size() != updateDims->size())
    return emitOpError() << "places " << toString(*updateDims) << " where " << toString(slices) << " fits";
  for (auto [wanted, given] : llvm::zip(slices, *updateDims))
    if (failed(requireEqual(context, *this, wanted, given, "places updates")))
      return failure();
  return success();
}

LogicalResult TriluOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  std::optional<Dims> dims = dimsOf(context, *this, operands[0]);
  // C1: there are rows and columns.
  if (dims && dims->size() < 2)
    return emitOpError() << "takes a triangle of " << toString(*dims);
  // C2: the diagonal is one number.
  if (getKValue())
    if (std::optional<Dims> own = dimsOf(context, *this, operands[1]))
      if (failed(requireEqual(context, *this, dimProduct(getContext(), *own), dimConstant(getContext(), 1),
                              "has one diagonal")))
        return failure();
  Fact result;
  result.type = operands[0].type;
  results.push_back(std::move(result));
  return success();
}
