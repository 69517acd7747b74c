//===- FoldSharing.cpp - weights that are one another's transpose ---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Fold.h"
#include <cstring>
#include <map>

using namespace mlir;
using namespace mlir::transept;

namespace {
/// All ops of one weight, in program order.
struct Matrix {
  RankedTensorType type;
  ArrayRef<char> bytes;
  SmallVector<WeightOp> ops;
  /// The same for a matrix and its transpose: a sum over the elements.
  uint64_t fingerprint = 0;

  /// Whether a transpose can stand for it everywhere: a gather, for one, needs its rows as they are.
  bool replaceable() const {
    return llvm::all_of(ops, [](WeightOp op) {
      return llvm::all_of(op->getUses(), [](OpOperand &use) {
        auto transpose = dyn_cast<TransposeOp>(use.getOwner());
        return acceptsTransposed(use) || (transpose && transpose.getPermutation() == ArrayRef<int64_t>{1, 0});
      });
    });
  }
};

uint64_t fingerprintOf(ArrayRef<char> bytes, unsigned width) {
  uint64_t sum = 0;
  for (size_t at = 0; at < bytes.size(); at += width) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, width);
    word = (word ^ (word >> 31)) * 0x9e3779b97f4a7c15; // spreads neighbouring values before they are summed
    sum += word ^ (word >> 29);
  }
  return sum;
}

bool isTranspose(const Matrix &a, const Matrix &b) {
  const int64_t rows = a.type.getDimSize(0), columns = a.type.getDimSize(1);
  if (a.type.getElementType() != b.type.getElementType() || b.type.getDimSize(0) != columns ||
      b.type.getDimSize(1) != rows || a.fingerprint != b.fingerprint)
    return false;
  const int64_t width = byteWidth(a.type.getElementType());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (std::memcmp(a.bytes.data() + (row * columns + column) * width, b.bytes.data() + (column * rows + row) * width,
                      width) != 0)
        return false;
  return true;
}

/// Puts the representative, whose transpose `op` is, in its place.
void replaceByTranspose(WeightOp op, WeightOp representative) {
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op.getType());
  auto swapped = RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType());
  auto weight =
      builder.create<WeightOp>(op.getLoc(), swapped, representative.getKeyAttr(), representative.getNameAttr());
  Value transposed;
  for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
    if (auto linear = dyn_cast<LinearOp>(use.getOwner())) {
      linear.setTransposed(!linear.getTransposed());
      use.set(weight);
    } else if (auto transpose = dyn_cast<TransposeOp>(use.getOwner())) {
      transpose.replaceAllUsesWith(weight.getResult());
      transpose.erase();
    } else {
      if (!transposed)
        transposed = builder.create<TransposeOp>(op.getLoc(), type, weight, ArrayRef<int64_t>{1, 0});
      use.set(transposed);
    }
  }
  op.erase();
}
} // namespace

bool transept::acceptsTransposed(OpOperand &use) {
  Operation *owner = use.getOwner();
  if (isa<LinearOp>(owner))
    return use.getOperandNumber() == 1;
  // A product with a stack of matrices on the left is one with a taller matrix: linear covers it.
  return isa<MatMulOp>(owner) && use.getOperandNumber() == 1 && owner->getOperand(0) != use.get();
}

void transept::shareTransposedWeights(Operation *root, const FoldOptions &options, FoldReport &report) {
  std::map<std::string, Matrix> matrices;
  root->walk([&](WeightOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    if (type.getRank() == 2 && isa<FloatType>(type.getElementType()) &&
        type.getNumElements() >= options.minSharedElements)
      matrices[op.getKey().str()].ops.push_back(op);
  });
  std::map<uint64_t, SmallVector<std::string>> byFingerprint;
  const WeightStore &store = WeightStore::of(root->getContext());
  for (auto &[key, matrix] : matrices) {
    WeightStore::Weight weight = store.lookup(key);
    if (!weight.type || weight.type != matrix.ops.front().getType())
      continue;
    matrix.type = weight.type;
    matrix.bytes = weight.bytes;
    matrix.fingerprint = fingerprintOf(weight.bytes, byteWidth(weight.type.getElementType()));
    byFingerprint[matrix.fingerprint].push_back(key);
  }
  for (auto &[fingerprint, keys] : byFingerprint)
    for (size_t i = 0; i < keys.size(); ++i)
      for (size_t j = i + 1; j < keys.size(); ++j) {
        Matrix *kept = &matrices[keys[i]], *replaced = &matrices[keys[j]];
        if (kept->ops.empty() || replaced->ops.empty() || !isTranspose(*kept, *replaced))
          continue;
        if (!replaced->replaceable())
          std::swap(kept, replaced);
        if (!replaced->replaceable())
          continue;
        for (WeightOp op : replaced->ops)
          replaceByTranspose(op, kept->ops.front());
        replaced->ops.clear();
        ++report.sharedTransposed;
        report.sharedTransposedBytes += static_cast<int64_t>(replaced->bytes.size());
      }
}
