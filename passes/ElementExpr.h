//===- ElementExpr.h - what one element of a tensor is, as a function of its indices ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks and positions are recognised by what they compute, not by how an exporter spelled it: the element of a tensor
// at symbolic indices is expanded through the ops that made it into an expression over indices, sizes and elements of
// tensors that are opaque (inputs, products). Numbers are real numbers here; booleans are 0 and 1.

#ifndef TRANSEPT_PASSES_ELEMENTEXPR_H
#define TRANSEPT_PASSES_ELEMENTEXPR_H

#include "ir/HostTensor.h"
#include "ir/Transept.h"
#include <deque>
#include <map>
#include <string>

namespace mlir::transept {

/// An uniqued expression node: equal pointers are equal expressions.
struct Elem {
  enum class Kind { Number, Index, Load, Apply };
  Kind kind;
  double number = 0;                     ///< Number
  DimAttr index;                         ///< Index: a polynomial over symbols and index symbols
  Value tensor;                          ///< Load
  std::string function;                  ///< Apply: "add", "where", "le0" (operand <= 0), "eq0", "less", "equal", …
  Operation *op = nullptr;               ///< Apply: what says how results are rounded; null where they are exact
  SmallVector<const Elem *, 4> operands; ///< Load: indices; Apply: arguments
};

class ElementExprs {
public:
  explicit ElementExprs(MLIRContext *context) : context(context) {}

  /// A fresh index symbol with values 0 … extent - 1. Names start with '$' and cannot collide with the model's.
  DimAttr indexSymbol(StringRef name, DimAttr extent);

  const Elem *number(double value);
  const Elem *index(DimAttr value);
  const Elem *load(Value tensor, ArrayRef<const Elem *> indices);
  /// With `op`, an element-wise op whose evaluation gives the function's results; kept where foldNumbers() may not.
  const Elem *apply(StringRef function, ArrayRef<const Elem *> operands, Operation *op = nullptr);

  /// The element of `value` at `indices` (one per axis).
  const Elem *at(Value value, ArrayRef<const Elem *> indices);
  /// The same through ops that only move elements (reshape, transpose, slice, gather at constants, broadcast): the
  /// indices into the first value that is not such an op.
  struct Moved {
    Value root;
    SmallVector<const Elem *> indices;
  };
  Moved moved(Value value, ArrayRef<const Elem *> indices);

  /// Inside of running sums, elements of `ids` equal no number, as if none were padding. `padding` receives the number
  /// they were compared with.
  void countAll(Value ids) { counted = ids; }
  std::optional<double> padding;

  /// Splits index `value` into {value floordiv extent, value mod extent} where ranges prove that no floordiv is needed.
  std::optional<std::pair<DimAttr, DimAttr>> split(DimAttr value, DimAttr extent) const;
  /// Largest value the index expression takes, as a polynomial over sizes.
  DimAttr upperBound(DimAttr value) const;

  /// A table with `upTo` where column <= row + offset, else `behind`.
  struct Triangle {
    double upTo = 0, behind = 0;
    int64_t offset = 0;
  };

private:
  const Elem *unique(Elem elem);
  /// The element of a constant that is a triangle (a stored causal mask); null where it is none.
  const Elem *triangleAt(Value value, ArrayRef<const Elem *> indices);
  /// One step of `moved`; false where `value` is not a movement this class understands.
  bool step(Value &value, SmallVectorImpl<const Elem *> &indices);
  bool throughReshape(RankedTensorType from, RankedTensorType to, SmallVectorImpl<const Elem *> &indices);
  const Elem *elementwise(Operation *op, ArrayRef<const Elem *> indices);
  const Elem *scatter(ScatterNDOp op, ArrayRef<const Elem *> indices);
  const Elem *runningSum(CumSumOp op, ArrayRef<const Elem *> indices);

  MLIRContext *context;
  std::deque<Elem> nodes;
  std::map<std::string, const Elem *> byKey;
  llvm::StringMap<DimAttr> extents;
  llvm::DenseMap<Value, std::optional<Triangle>> triangles;
  unsigned fresh = 0;
  Value counted;
  bool counting = false;
};

/// The function of numbers where it is one of those that give exact results; nullopt for others.
std::optional<double> foldNumbers(StringRef function, ArrayRef<double> operands);

/// The content of a constant or weight; null for other values.
HostTensor constantContent(Value value);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_ELEMENTEXPR_H
