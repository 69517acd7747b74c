//===- ProductKind.cpp - what a contraction multiplies ------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/emit/ProductKind.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::emit;

FailureOr<ProductKind> emit::productKindOf(ContractOp op) {
  if (op.getInputs().size() < 2 || op.getShapes().size() < 2)
    return op.emitOpError("needs two inputs");
  Type element = elementTypeOf(op.getInputs()[1].getType());
  auto shape = cast<transept::DimsAttr>(op.getShapes()[1]).getDims();
  int64_t group = element.isIntOrFloat() ? panelGroup(element) : 0;
  bool fits = group == 1 ? shape.size() == 3
                         : shape.size() == 4 && constantValue(shape[3]) == group &&
                               constantValue(shape[1]) == (static_cast<int64_t>(op.getK()) + group - 1) / group;
  if (elementTypeOf(op.getInputs()[0].getType()).isInteger(8)) {
    // 128 * 255 * 2^16 is below 2^31.
    if (element.isInteger(8) && fits && !op.getQuantised() && op.getK() <= 1 << 16)
      return ProductKind::Integers;
    return op.emitOpError("multiplies integers by a packed matrix of ") << element;
  }
  if (element.isF32() && fits && !op.getQuantised())
    return ProductKind::Float;
  if (element.isBF16() && fits && !op.getQuantised())
    return ProductKind::Bf16;
  // 127 * 127 * 2^17 is below 2^31. Buffers know no signs.
  constexpr int64_t longest = 1 << 17;
  if (int64_t block = op.getBlock()) {
    if (op.getInputs().size() < 3 || op.getQuantised() || !element.isInteger(8) || block < 0 || block % group != 0 ||
        !elementTypeOf(op.getInputs()[2].getType()).isF32() ||
        cast<transept::DimsAttr>(op.getShapes()[2]).getDims().size() != 3)
      return op.emitOpError("has blocks of ") << block << " that no product takes";
    return ProductKind::Int8Weights;
  }
  if (element.isInteger(8) && fits && op.getK() <= longest)
    return op.getQuantised() ? ProductKind::Int8 : ProductKind::Int8Weights;
  return op.emitOpError("has a packed matrix of ") << element << " that no product takes";
}
