//===- FormElementwise.cpp - element-wise ops as maps
//-----------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/FormOps.h"

using namespace mlir;
using namespace mlir::transept;

SmallVector<Value> transept::broadcastIndices(Body &b, ValueRange indices, ArrayRef<DimAttr> dims,
                                              ArrayRef<DimAttr> result) {
  SmallVector<Value> read;
  size_t skipped = result.size() - dims.size();
  for (auto [axis, dim] : llvm::enumerate(dims)) {
    Value at = indices[skipped + axis];
    if (dim == result[skipped + axis])
      read.push_back(at);
    else if (constantValue(dim) == 1)
      read.push_back(b.index(0));
    else // 1 or the result's size, which only a run knows
      read.push_back(b.create<arith::MinSIOp>(at, b.sub(b.size(dim), b.index(1))));
  }
  return read;
}

//===- Scalar meaning of the ops
//--------------------------------------------------------------------------------------===//

namespace {

/// What an element-wise op computes, from scalars of compute type. `type` is the operands' element type.
class ScalarCode {
public:
  ScalarCode(Body &b, Type type, ArrayRef<Value> values)
      : b(b), type(type), x(values.front()), y(values.size() > 1 ? values[1] : Value()),
        isFloat(isa<FloatType>(x.getType())), isUnsigned(transept::isUnsigned(type)) {}

  Value unary(Operation *op);
  Value binary(Operation *op);

private:
  Value number(double value) { return b.number(x.getType(), value); }
  Value sigmoid(Value v) {
    return b.create<arith::DivFOp>(number(1), b.add(number(1), b.create<math::ExpOp>(negate(v))));
  }
  Value negate(Value v) {
    return isFloat ? b.create<arith::NegFOp>(v).getResult() : b.sub(b.integer(v.getType(), 0), v);
  }
  Value sign();
  Value relu();
  Value gelu(StringRef approximate);
  Value divide();
  Value shift(bool right);
  Value cast(CastOp op);
  Value modulo(bool fmod);
  Value power(std::optional<double> exponent);
  Value integerPower();
  Value lesser() {
    if (isFloat)
      return b.create<arith::MinimumFOp>(x, y);
    return isUnsigned ? b.create<arith::MinUIOp>(x, y).getResult() : b.create<arith::MinSIOp>(x, y).getResult();
  }
  Value greater() {
    if (isFloat)
      return b.create<arith::MaximumFOp>(x, y);
    return isUnsigned ? b.create<arith::MaxUIOp>(x, y).getResult() : b.create<arith::MaxSIOp>(x, y).getResult();
  }

  Body &b;
  Type type;
  Value x, y;
  bool isFloat, isUnsigned;
};

Value ScalarCode::sign() {
  Value zero = number(0);
  Value one = number(1);
  if (isUnsigned)
    return b.select(b.equal(x, zero), zero, one);
  // Zero and NaN stay as they are.
  Value notPositive = b.select(b.less(x, zero), negate(one), isFloat ? x : zero);
  return b.select(b.less(zero, x), one, notPositive);
}

Value ScalarCode::relu() {
  // NaN compares false and stays.
  return isUnsigned ? x : b.select(b.less(x, number(0)), number(0), x);
}

Value ScalarCode::gelu(StringRef approximate) {
  Value inner;
  if (approximate == "tanh") {
    Value cube = b.mul(b.mul(x, x), x);
    Value argument = b.mul(number(0.7978845608028654), b.add(x, b.mul(number(0.044715), cube))); // sqrt(2 / pi)
    inner = b.create<math::TanhOp>(argument);
  } else {
    inner = b.create<math::ErfOp>(b.mul(x, number(0.7071067811865476))); // sqrt(1 / 2)
  }
  return b.mul(b.mul(number(0.5), x), b.add(number(1), inner));
}

Value ScalarCode::divide() {
  if (isFloat)
    return b.create<arith::DivFOp>(x, y);
  return isUnsigned ? b.create<arith::DivUIOp>(x, y).getResult() : b.create<arith::DivSIOp>(x, y).getResult();
}

/// Shifts by the width and more are none to a processor.
Value ScalarCode::shift(bool right) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  Value all = b.integer(x.getType(), width), zero = b.integer(x.getType(), 0);
  Value within = b.less(y, all, /*isUnsigned=*/true);
  Value count = b.select(within, y, zero);
  Value shifted =
      right ? b.create<arith::ShRUIOp>(x, count).getResult() : b.create<arith::ShLIOp>(x, count).getResult();
  return b.select(within, shifted, zero);
}

Value ScalarCode::cast(CastOp op) {
  Type to = op.getTo();
  if (!narrowFormat(to))
    return b.convert(x, type, to);
  NarrowRounding rounding = op.getRound() == "up"     ? NarrowRounding::Up
                            : op.getRound() == "down" ? NarrowRounding::Down
                                                      : NarrowRounding::Nearest;
  Value wide = isFloat ? x : b.convert(x, type, b.getF64Type());
  return b.decode(b.encode(wide, to, op.getSaturate(), rounding), to);
}

Value ScalarCode::modulo(bool fmod) {
  if (isUnsigned)
    return b.create<arith::RemUIOp>(x, y);
  Value rest = isFloat ? b.create<arith::RemFOp>(x, y).getResult() : b.create<arith::RemSIOp>(x, y).getResult();
  if (fmod)
    return rest;
  // The sign of the divisor.
  Value zero = number(0);
  Value differs = b.create<arith::XOrIOp>(b.less(rest, zero), b.less(y, zero));
  return b.select(b.both(differs, b.different(rest, zero)), b.add(rest, y), rest);
}

/// Square and multiply, wrapping. A negative exponent leaves the integer part of the quotient: 0 but for 1 and -1.
Value ScalarCode::integerPower() {
  Value zero = b.integer(y.getType(), 0), one = b.integer(x.getType(), 1);
  Value isNegative = isUnsigned ? b.boolean(false) : b.less(y, zero);
  Value magnitude = b.select(isNegative, b.sub(zero, y), y);
  unsigned width = y.getType().getIntOrFloatBitWidth();
  SmallVector<Value> results =
      b.forEach(b.index(width), {one, x}, [&](Body &inner, Value bit, ValueRange carried) -> SmallVector<Value> {
        Value shift = inner.create<arith::IndexCastOp>(y.getType(), bit);
        Value isSet = inner.create<arith::TruncIOp>(inner.getI1Type(), inner.create<arith::ShRUIOp>(magnitude, shift));
        return {inner.select(isSet, inner.mul(carried[0], carried[1]), carried[0]), inner.mul(carried[1], carried[1])};
      });
  Value isUnit = b.create<arith::OrIOp>(b.equal(x, one), b.equal(x, b.integer(x.getType(), -1)));
  return b.select(b.both(isNegative, b.different(b.integer(isUnit.getType(), 1), isUnit)), b.integer(x.getType(), 0),
                  results[0]);
}

Value ScalarCode::power(std::optional<double> exponent) {
  if (!isFloat && !isa<FloatType>(y.getType()))
    return integerPower();
  if (exponent == 1.0)
    return x;
  if (exponent == 2.0)
    return b.mul(x, x);
  if (exponent == 3.0)
    return b.mul(b.mul(x, x), x);
  if (exponent == 0.5)
    return b.create<math::SqrtOp>(x);
  if (exponent == -1.0)
    return b.create<arith::DivFOp>(number(1), x);
  if (exponent == -0.5)
    return b.create<arith::DivFOp>(number(1), b.create<math::SqrtOp>(x));
  return b.create<math::PowFOp>(x, y);
}

Value ScalarCode::unary(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](NegOp) { return negate(x); })
      .Case([&](AbsOp) {
        if (isFloat)
          return b.create<math::AbsFOp>(x).getResult();
        return isUnsigned ? x : b.select(b.less(x, number(0)), negate(x), x);
      })
      .Case([&](SignOp) { return sign(); })
      .Case([&](SqrtOp) { return b.create<math::SqrtOp>(x); })
      .Case([&](ReciprocalOp) { return b.create<arith::DivFOp>(number(1), x); })
      .Case([&](ExpOp) { return b.create<math::ExpOp>(x); })
      .Case([&](LogOp) { return b.create<math::LogOp>(x); })
      .Case([&](Log1pOp) { return b.create<math::Log1pOp>(x); })
      .Case([&](SinOp) { return b.create<math::SinOp>(x); })
      .Case([&](CosOp) { return b.create<math::CosOp>(x); })
      .Case([&](TanOp) { return b.create<math::TanOp>(x); })
      .Case([&](AsinOp) { return b.create<math::AsinOp>(x); })
      .Case([&](AcosOp) { return b.create<math::AcosOp>(x); })
      .Case([&](AtanOp) { return b.create<math::AtanOp>(x); })
      .Case([&](SinhOp) { return b.create<math::SinhOp>(x); })
      .Case([&](CoshOp) { return b.create<math::CoshOp>(x); })
      .Case([&](AsinhOp) { return b.create<math::AsinhOp>(x); })
      .Case([&](AcoshOp) { return b.create<math::AcoshOp>(x); })
      .Case([&](AtanhOp) { return b.create<math::AtanhOp>(x); })
      .Case([&](ErfOp) { return b.create<math::ErfOp>(x); })
      .Case([&](TanhOp) { return b.create<math::TanhOp>(x); })
      .Case([&](SigmoidOp) { return sigmoid(x); })
      .Case([&](ReluOp) { return relu(); })
      .Case([&](SiluOp) { return b.mul(x, sigmoid(x)); })
      .Case([&](FloorOp) { return b.create<math::FloorOp>(x); })
      .Case([&](CeilOp) { return b.create<math::CeilOp>(x); })
      .Case([&](RoundOp) { return b.create<math::RoundEvenOp>(x); })
      .Case([&](NotOp) { return b.create<arith::XOrIOp>(x, b.boolean(true)); })
      .Case([&](BitwiseNotOp) { return b.create<arith::XOrIOp>(x, b.integer(x.getType(), -1)); })
      .Case([&](IsNaNOp) { return b.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x); })
      .Case([&](GeluOp gelu) { return this->gelu(gelu.getApproximate()); })
      .Case([&](CastOp op) { return cast(op); })
      .Default([](Operation *) { return Value(); });
}

Value ScalarCode::binary(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](AddOp) { return b.add(x, y); })
      .Case([&](SubOp) { return b.sub(x, y); })
      .Case([&](MulOp) { return b.mul(x, y); })
      .Case([&](DivOp) { return divide(); })
      .Case([&](PowOp pow) { return power(splatValue(pow.getRhs())); })
      .Case([&](MinOp) { return lesser(); })
      .Case([&](MaxOp) { return greater(); })
      .Case([&](ModOp mod) { return modulo(mod.getFmod() != 0); })
      .Case([&](AndOp) { return b.create<arith::AndIOp>(x, y); })
      .Case([&](OrOp) { return b.create<arith::OrIOp>(x, y); })
      .Case([&](XorOp) { return b.create<arith::XOrIOp>(x, y); })
      .Case([&](BitwiseAndOp) { return b.create<arith::AndIOp>(x, y); })
      .Case([&](BitwiseOrOp) { return b.create<arith::OrIOp>(x, y); })
      .Case([&](BitwiseXorOp) { return b.create<arith::XOrIOp>(x, y); })
      .Case([&](BitShiftOp op) { return shift(op.getRight()); })
      .Case([&](EqualOp) { return b.equal(x, y); })
      .Case([&](LessOp) { return b.less(x, y, isUnsigned); })
      .Case([&](LessOrEqualOp) { return b.lessOrEqual(x, y, isUnsigned); })
      .Case([&](GreaterOp) { return b.less(y, x, isUnsigned); })
      .Case([&](GreaterOrEqualOp) { return b.lessOrEqual(y, x, isUnsigned); })
      .Default([](Operation *) { return Value(); });
}

/// Whether the scalar code of `op` has a meaning for elements of this type.
bool acceptsType(Operation *op, Type type) {
  if (isa<NotOp, AndOp, OrOp, XorOp>(op))
    return type.isInteger(1);
  // Their results would have to be cut to the few bits of the type.
  if (isNarrow(type) && isa<IntegerType>(type))
    return isa<CastOp, EqualOp, LessOp, LessOrEqualOp, GreaterOp, GreaterOrEqualOp, MinOp, MaxOp>(op);
  if (isa<BitwiseNotOp, BitwiseAndOp, BitwiseOrOp, BitwiseXorOp, BitShiftOp>(op))
    return isa<IntegerType>(type) && !type.isInteger(1);
  if (op->hasTrait<transept::FloatsOnly>())
    return isa<FloatType>(type);
  return true;
}

/// Bits are taken as they are stored: nothing is widened.
LogicalResult formBitCast(FormContext &f, BitCastOp op) {
  Type to = op.getTo(), scalar = scalarType(to);
  Value input = f.tensor(op.getInput());
  f.define(op, f.map(op.getLoc(), graphDims(op), {input}, to, [&](Body &b, ValueRange at, ValueRange sources) {
    Value bits = b.load(sources[0], at);
    if (bits.getType().isInteger(1) && !scalar.isInteger(1))
      bits = b.create<arith::ExtUIOp>(b.getI8Type(), bits);
    else if (scalar.isInteger(1) && !bits.getType().isInteger(1))
      bits = b.different(bits, b.integer(bits.getType(), 0));
    else if (bits.getType() != scalar)
      bits = b.create<arith::BitcastOp>(scalar, bits);
    return b.widen(bits, to);
  }));
  return success();
}

} // namespace

LogicalResult transept::formElementwise(FormContext &f, Operation *op) {
  if (auto bitCast = dyn_cast<BitCastOp>(op))
    return formBitCast(f, bitCast);
  Value graphResult = op->getResult(0);
  SmallVector<DimAttr> domain = graphDims(graphResult);
  SmallVector<Value> inputs;
  for (Value operand : op->getOperands())
    inputs.push_back(f.tensor(operand));
  Type type = graphElementType(op->getOperand(0));
  if (!acceptsType(op, type))
    return emitUnsupported(op) << "has elements of type " << type;
  // A power's operands may have types of their own; where one is a float, floats are computed.
  Type computed = type;
  if (isa<PowOp>(op) && !isa<FloatType>(type) && isa<FloatType>(graphElementType(op->getOperand(1))))
    computed = graphElementType(op->getOperand(1));
  bool mixed = isa<PowOp>(op) && isa<FloatType>(computed);
  bool failed = false;
  Value result = f.map(op->getLoc(), domain, inputs, graphElementType(graphResult),
                       [&](Body &b, ValueRange indices, ValueRange sources) {
                         SmallVector<Value> values;
                         for (auto [operand, input, source] : llvm::zip(op->getOperands(), inputs, sources)) {
                           ArrayRef<DimAttr> dims = shapeOf(input).getDims();
                           Value value = b.loadWide(source, broadcastIndices(b, indices, dims, domain));
                           values.push_back(mixed ? b.convert(value, graphElementType(operand), computed) : value);
                         }
                         if (isa<WhereOp>(op))
                           return b.select(values[0], values[1], values[2]);
                         ScalarCode code(b, computed, values);
                         Value value = values.size() == 1 ? code.unary(op) : code.binary(op);
                         failed = !value;
                         if (value && mixed)
                           value = b.convert(value, computed, type);
                         return value ? value : b.number(computeType(type), 0);
                       });
  if (failed)
    return emitUnsupported(op) << "has no kernel";
  f.define(graphResult, result);
  return success();
}
