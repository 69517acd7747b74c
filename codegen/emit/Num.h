//===- Num.h - formulas over values that are still to be computed ------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_EMIT_NUM_H
#define TRANSEPT_CODEGEN_EMIT_NUM_H

#include "codegen/emit/Emitter.h"

namespace mlir::kernel::emit {

/// A value with its emitter: `x * y + 1.0` emits the operations. Literals take the type of the other operand.
struct Num {
  Emitter &e;
  Value v;

  Num(Emitter &emitter, Value value) : e(emitter), v(value) {}
  Num(const Num &) = default;
  Num &operator=(const Num &other) {
    v = other.v;
    return *this;
  }

  Type type() const { return v.getType(); }
  Type element() const { return getElementTypeOrSelf(v.getType()); }
  bool isDouble() const { return element().isF64(); }
  Num of(Value value) const { return {e, value}; }
  Num like(double value) const { return {e, e.number(type(), value)}; }
  Num likeInteger(int64_t value) const { return {e, e.integer(type(), value)}; }
  /// The integer type of the same width.
  Type bitsType() const { return e.sameShape(type(), e.b.getIntegerType(element().getIntOrFloatBitWidth())); }
  Num bits() const { return of(e.b.create<arith::BitcastOp>(e.loc, bitsType(), v)); }
  /// The float of the same width with these bits.
  Num asFloat() const {
    Type to = element().isInteger(64) ? Type(e.b.getF64Type()) : Type(e.b.getF32Type());
    return of(e.b.create<arith::BitcastOp>(e.loc, e.sameShape(type(), to), v));
  }
};

inline Num operator+(Num x, Num y) { return x.of(x.e.add(x.v, y.v)); }
inline Num operator-(Num x, Num y) { return x.of(x.e.sub(x.v, y.v)); }
inline Num operator*(Num x, Num y) { return x.of(x.e.mul(x.v, y.v)); }
inline Num operator+(Num x, double y) { return x + x.like(y); }
inline Num operator-(Num x, double y) { return x - x.like(y); }
inline Num operator*(Num x, double y) { return x * x.like(y); }
inline Num operator-(double x, Num y) { return y.like(x) - y; }
inline Num operator/(Num x, Num y) { return x.of(x.e.b.createOrFold<arith::DivFOp>(x.e.loc, x.v, y.v)); }
inline Num operator/(double x, Num y) { return y.like(x) / y; }
inline Num fma(Num x, Num y, Num z) {
  return x.e.machine.loosensMultiplyAdd ? x * y + z : x.of(x.e.fma(x.v, y.v, z.v));
}

/// Ordered comparisons: false for NaN.
inline Num operator<(Num x, Num y) { return x.of(x.e.compare(arith::CmpFPredicate::OLT, x.v, y.v)); }
inline Num operator>(Num x, Num y) { return x.of(x.e.compare(arith::CmpFPredicate::OGT, x.v, y.v)); }
inline Num operator<(Num x, double y) { return x < x.like(y); }
inline Num operator>(Num x, double y) { return x > x.like(y); }
inline Num equal(Num x, Num y) { return x.of(x.e.compare(arith::CmpFPredicate::OEQ, x.v, y.v)); }
inline Num equal(Num x, double y) { return equal(x, x.like(y)); }
inline Num operator&(Num x, Num y) { return x.of(x.e.b.createOrFold<arith::AndIOp>(x.e.loc, x.v, y.v)); }
inline Num operator|(Num x, Num y) { return x.of(x.e.b.createOrFold<arith::OrIOp>(x.e.loc, x.v, y.v)); }
inline Num operator^(Num x, Num y) { return x.of(x.e.b.createOrFold<arith::XOrIOp>(x.e.loc, x.v, y.v)); }
inline Num operator!(Num x) { return x ^ x.likeInteger(1); }
inline Num operator<<(Num x, int64_t n) {
  return x.of(x.e.b.createOrFold<arith::ShLIOp>(x.e.loc, x.v, x.likeInteger(n).v));
}
/// Arithmetic shift.
inline Num operator>>(Num x, int64_t n) {
  return x.of(x.e.b.createOrFold<arith::ShRSIOp>(x.e.loc, x.v, x.likeInteger(n).v));
}
inline Num shiftRight(Num x, int64_t n) { // zeros come in
  return x.of(x.e.b.createOrFold<arith::ShRUIOp>(x.e.loc, x.v, x.likeInteger(n).v));
}
inline Num select(Num condition, Num x, Num y) { return x.of(x.e.select(condition.v, x.v, y.v)); }
inline Num select(Num condition, double x, Num y) { return select(condition, y.like(x), y); }
inline Num select(Num condition, Num x, double y) { return select(condition, x, x.like(y)); }

/// Horner's rule with fused multiply-adds; the constant term comes first.
inline Num polynomial(Num x, ArrayRef<double> coefficients) {
  Num result = x.like(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    result = fma(result, x, x.like(coefficient));
  return result;
}

} // namespace mlir::kernel::emit

#endif // TRANSEPT_CODEGEN_EMIT_NUM_H
