//===- ScalarOps.cpp - the arith and math ops of kernel bodies on scalars and vectors -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/emit/Body.h"
#include "codegen/emit/Math.h"
#include "codegen/emit/Num.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::emit;

/// The same op on these operands, with a result of the given element type.
static Value rebuild(Emitter &e, Operation &op, ArrayRef<Value> operands, Type element) {
  OperationState state(e.loc, op.getName());
  state.addOperands(operands);
  Type type = element;
  for (Value operand : operands)
    if (isa<VectorType>(operand.getType()))
      type = e.sameShape(operand.getType(), element);
  state.addTypes(type);
  state.addAttributes(op.getAttrs());
  return e.b.create(state)->getResult(0);
}

/// A division whose divisor is known only at run time: x / 0 is 0 here, x % 0 is x, and the quotient of the least
/// number by -1 wraps. Processors trap.
static Value guardedDivision(Emitter &e, Operation &op, ArrayRef<Value> operands) {
  Num x{e, operands[0]}, y{e, operands[1]};
  auto is = [&](int64_t value) { return x.of(e.compare(arith::CmpIPredicate::eq, y.v, y.likeInteger(value).v)); };
  bool isSigned = isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(op);
  bool isRemainder = isa<arith::RemSIOp, arith::RemUIOp>(op);
  Num zero = is(0), one = y.likeInteger(1);
  Num divisor = select(zero, one, y);
  if (isSigned)
    divisor = select(is(-1), one, divisor);
  Num result{e, rebuild(e, op, {x.v, divisor.v}, x.element())};
  if (isSigned && !isRemainder)
    result = select(is(-1), x.likeInteger(0) - x, result);
  return select(zero, isRemainder ? x : x.likeInteger(0), result).v;
}

static bool hasConstantDivisor(Operation &op) {
  APInt divisor;
  return matchPattern(op.getOperand(1), m_ConstantInt(&divisor)) && !divisor.isZero() && !divisor.isAllOnes();
}

/// A conversion whose result is undefined out of range, for numbers that are; the rest is chosen.
static Value saturateByComparison(Emitter &e, Operation &op, Value value) {
  Num x{e, value};
  Type type = op.getResult(0).getType();
  unsigned width = type.getIntOrFloatBitWidth();
  bool isSigned = isa<arith::FPToSIOp>(op);
  APInt low = isSigned ? APInt::getSignedMinValue(width) : APInt::getZero(width);
  APInt high = isSigned ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width);
  // What lies between the bounds rounds towards zero into the range.
  double from = isSigned ? low.signedRoundToDouble() - 1 : 0, to = std::ldexp(1.0, isSigned ? width - 1 : width);
  Num above{e, e.compare(arith::CmpFPredicate::OGE, x.v, x.like(to).v)};
  Num below{e, e.compare(arith::CmpFPredicate::OLE, x.v, x.like(from).v)};
  Num unordered{e, e.compare(arith::CmpFPredicate::UNO, x.v, x.v)};
  Num inside = select(unordered | above | below, 0.0, x);
  Num result{e, rebuild(e, op, inside.v, type)};
  result = select(below, result.of(e.b.create<arith::ConstantOp>(e.loc, e.b.getIntegerAttr(type, low))), result);
  return select(above, result.of(e.b.create<arith::ConstantOp>(e.loc, e.b.getIntegerAttr(type, high))), result).v;
}

/// Out of range saturates, NaN becomes 0.
static Value floatToInteger(Emitter &e, Operation &op, Value x) {
  x = emitExtend(e, x, op.getOperand(0).getType(), e.f32());
  if (!e.machine.hasVectors())
    return saturateByComparison(e, op, x);
  Type type = e.sameShape(x.getType(), op.getResult(0).getType());
  StringRef name = isa<arith::FPToSIOp>(op) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
  return e.b
      .create<LLVM::CallIntrinsicOp>(e.loc, type, e.b.getStringAttr(name), ValueRange{x},
                                     LLVM::FastmathFlagsAttr::get(e.b.getContext(), {}))
      .getResults();
}

using UnaryFunction = Value (*)(Emitter &, Value);
static UnaryFunction unaryFunction(Operation &op) {
  return TypeSwitch<Operation *, UnaryFunction>(&op)
      .Case([](math::ExpOp) { return emitExp; })
      .Case([](math::ExpM1Op) { return emitExpM1; })
      .Case([](math::Exp2Op) { return emitExp2; })
      .Case([](math::LogOp) { return emitLog; })
      .Case([](math::Log1pOp) { return emitLog1p; })
      .Case([](math::Log2Op) { return emitLog2; })
      .Case([](math::Log10Op) { return emitLog10; })
      .Case([](math::TanhOp) { return emitTanh; })
      .Case([](math::ErfOp) { return emitErf; })
      .Case([](math::SinOp) { return emitSin; })
      .Case([](math::CosOp) { return emitCos; })
      .Case([](math::TanOp) { return emitTan; })
      .Case([](math::AsinOp) { return emitAsin; })
      .Case([](math::AcosOp) { return emitAcos; })
      .Case([](math::AtanOp) { return emitAtan; })
      .Case([](math::SinhOp) { return emitSinh; })
      .Case([](math::CoshOp) { return emitCosh; })
      .Case([](math::AsinhOp) { return emitAsinh; })
      .Case([](math::AcoshOp) { return emitAcosh; })
      .Case([](math::AtanhOp) { return emitAtanh; })
      .Case([](math::TruncOp) { return emitTrunc; })
      .Case([](math::FloorOp) { return emitFloor; })
      .Case([](math::CeilOp) { return emitCeil; })
      .Case([](math::RoundEvenOp) { return emitRoundEven; })
      .Case([](math::RoundOp) { return emitRound; })
      .Default([](Operation *) -> UnaryFunction { return nullptr; });
}

using BinaryFunction = Value (*)(Emitter &, Value, Value);
static BinaryFunction binaryFunction(Operation &op) {
  return TypeSwitch<Operation *, BinaryFunction>(&op)
      .Case([](math::PowFOp) { return emitPow; })
      .Case([](math::Atan2Op) { return emitAtan2; })
      .Case([](arith::RemFOp) { return emitRemainder; })
      .Default([](Operation *) -> BinaryFunction { return nullptr; });
}

/// What LLVM computes without a library on every level: integers, and float operations of one instruction.
static bool isPlain(Operation &op) {
  return isa<arith::ArithDialect>(op.getDialect()) ||
         isa<math::AbsFOp, math::AbsIOp, math::CopySignOp, math::SqrtOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp, math::CtPopOp>(op);
}

/// Ops that move values without looking at them.
static bool movesBits(Operation &op) { return isa<arith::SelectOp, arith::BitcastOp>(op); }

FailureOr<Value> emit::emitScalarOp(Emitter &e, Operation &op, ArrayRef<Value> operands) {
  if (op.getNumResults() != 1 || op.getNumRegions())
    return op.emitOpError("is not supported in a kernel body");
  Type type = op.getResult(0).getType();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto value = dyn_cast<FloatAttr>(constant.getValue()); value && Emitter::isShortFloat(type))
      return e.integer(e.b.getI16Type(), value.getValue().bitcastToAPInt().getZExtValue());
    return rebuild(e, op, operands, type);
  }
  if (movesBits(op)) {
    Type carried = e.carriedType(type);
    if (isa<arith::BitcastOp>(op) && getElementTypeOrSelf(operands[0].getType()) == carried)
      return operands[0];
    return rebuild(e, op, operands, carried);
  }
  if (isa<arith::ExtFOp>(op))
    return emitExtend(e, operands[0], op.getOperand(0).getType(), type);
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
    return floatToInteger(e, op, operands[0]);
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
          arith::CeilDivUIOp>(op))
    return hasConstantDivisor(op) ? rebuild(e, op, operands, type) : guardedDivision(e, op, operands);

  // The short floats are storage: arithmetic is done in f32 and rounded.
  SmallVector<Value> values;
  for (auto [value, original] : llvm::zip(operands, op.getOperandTypes()))
    values.push_back(Emitter::isShortFloat(original) ? emitExtend(e, value, original, e.f32()) : value);
  Type computed = Emitter::isShortFloat(type) ? e.f32() : type;
  auto finish = [&](Value result) { return computed == type ? result : emitTruncate(e, result, type); };

  if (isa<arith::TruncFOp>(op))
    return emitTruncate(e, values[0], type);
  if (UnaryFunction function = unaryFunction(op))
    return finish(function(e, values[0]));
  if (BinaryFunction function = binaryFunction(op))
    return finish(function(e, values[0], values[1]));
  if (isa<math::RsqrtOp>(op)) {
    Num root{e, e.b.create<math::SqrtOp>(e.loc, values[0])};
    return finish((1.0 / root).v);
  }
  if (isa<math::FmaOp>(op))
    return finish(e.fma(values[0], values[1], values[2]));
  if (!isPlain(op))
    return op.emitOpError("is not supported in a kernel body");
  return finish(rebuild(e, op, values, computed));
}
