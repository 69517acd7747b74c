//===- ConstantMask.cpp - causal masks that an exporter stored as a table -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/WeightStore.h"
#include "passes/ElementExpr.h"

using namespace mlir;
using namespace mlir::transept;

/// Tables above this size are not read.
static constexpr int64_t maxElements = int64_t(1) << 26;

HostTensor transept::constantContent(Value value) {
  if (auto constant = value.getDefiningOp<ConstantOp>())
    return HostTensor::fromElements(constant.getValue());
  auto weight = value.getDefiningOp<WeightOp>();
  WeightStore::Weight stored =
      weight ? WeightStore::of(value.getContext()).lookup(weight.getKey()) : WeightStore::Weight();
  return stored.type ? HostTensor::fromBytes(stored.type, stored.bytes) : HostTensor();
}

/// [1, …, rows, columns] with one number up to a diagonal and another one behind it.
static std::optional<ElementExprs::Triangle> findTriangle(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!isa_and_nonnull<ConstantOp, WeightOp>(value.getDefiningOp()) || !type || !type.hasStaticShape() ||
      type.getRank() < 2 || type.getNumElements() > maxElements)
    return std::nullopt;
  int64_t rows = type.getDimSize(type.getRank() - 2), columns = type.getDimSize(type.getRank() - 1);
  if (rows < 2 || columns < 2 || type.getNumElements() != rows * columns)
    return std::nullopt;
  HostTensor content = constantContent(value);
  if (!content)
    return std::nullopt;
  ElementExprs::Triangle triangle;
  triangle.upTo = content.getDouble((rows - 1) * columns);
  triangle.behind = content.getDouble(columns - 1);
  if (!(triangle.upTo != triangle.behind)) // not a number, or the same everywhere
    return std::nullopt;
  // The diagonal, from the first row that has both numbers.
  std::optional<int64_t> offset;
  for (int64_t row = 0; row < rows && !offset; ++row) {
    int64_t first = 0;
    while (first < columns && content.getDouble(row * columns + first) == triangle.upTo)
      ++first;
    if (first > 0 && first < columns)
      offset = first - 1 - row;
  }
  if (!offset)
    return std::nullopt;
  triangle.offset = *offset;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (content.getDouble(row * columns + column) !=
          (column <= row + triangle.offset ? triangle.upTo : triangle.behind))
        return std::nullopt;
  return triangle;
}

const Elem *ElementExprs::triangleAt(Value value, ArrayRef<const Elem *> indices) {
  auto [known, isNew] = triangles.try_emplace(value);
  if (isNew)
    known->second = findTriangle(value);
  if (!known->second)
    return nullptr;
  const Elem *row = indices[indices.size() - 2], *diagonal = apply("add", {row, number(known->second->offset)});
  return apply("where", {apply("less_or_equal", {indices.back(), diagonal}), number(known->second->upTo),
                         number(known->second->behind)});
}
