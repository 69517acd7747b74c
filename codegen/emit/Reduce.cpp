//===- Reduce.cpp - what kernel.row_reduce combines with ----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/emit/Reduce.h"
#include <limits>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::emit;

FailureOr<Value> emit::neutralElement(Emitter &e, RowReduceOp reduce) {
  StringRef kind = reduce.getKind();
  Type element = reduce.getResult().getType();
  if (Emitter::isShortFloat(element) || !element.isIntOrFloat())
    return reduce.emitOpError("cannot reduce elements of type ") << element;
  bool isFloat = isa<FloatType>(element);
  unsigned width = element.getIntOrFloatBitWidth();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (kind == "add")
    return e.number(element, isFloat ? -0.0 : 0.0);
  if (kind == "mul")
    return e.number(element, 1);
  if (kind == "max")
    return isFloat ? e.number(element, -infinity) : e.integer(element, APInt::getSignedMinValue(width).getSExtValue());
  if (kind == "min")
    return isFloat ? e.number(element, infinity) : e.integer(element, APInt::getSignedMaxValue(width).getSExtValue());
  return reduce.emitOpError("has the unknown kind '") << kind << "'";
}

Value emit::combined(Emitter &e, StringRef kind, Value x, Value y) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(x.getType()));
  if (kind == "add")
    return e.add(x, y);
  if (kind == "mul")
    return e.mul(x, y);
  if (kind == "max")
    return isFloat ? e.b.create<arith::MaximumFOp>(e.loc, x, y).getResult() : e.maximum(x, y);
  return isFloat ? e.b.create<arith::MinimumFOp>(e.loc, x, y).getResult() : e.minimum(x, y);
}
