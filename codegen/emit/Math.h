//===- Math.h - elementary functions as code ---------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every function expands into the same elementary operations for scalars and vectors, so that both give the same bits.
// Operands are f32 or f64. Errors, in units in the last place of f32: exp, log, sin, cos below 1.5; the others below 4.
// Results in f64 have a relative error below 1e-13 (absolute for sin and cos), near zeros of the function more.

#ifndef TRANSEPT_CODEGEN_EMIT_MATH_H
#define TRANSEPT_CODEGEN_EMIT_MATH_H

#include "codegen/emit/Emitter.h"

namespace mlir::kernel::emit {

Value emitExp(Emitter &emitter, Value x);
Value emitExpM1(Emitter &emitter, Value x);
Value emitLog(Emitter &emitter, Value x);
Value emitLog1p(Emitter &emitter, Value x);
Value emitTanh(Emitter &emitter, Value x);
Value emitErf(Emitter &emitter, Value x);
/// Arguments above 2^45 give some value of the function, not the right one.
Value emitSin(Emitter &emitter, Value x);
Value emitCos(Emitter &emitter, Value x);
Value emitTan(Emitter &emitter, Value x);
Value emitAsin(Emitter &emitter, Value x);
Value emitAcos(Emitter &emitter, Value x);
Value emitAtan(Emitter &emitter, Value x);
Value emitAtan2(Emitter &emitter, Value y, Value x);
Value emitSinh(Emitter &emitter, Value x);
Value emitCosh(Emitter &emitter, Value x);
Value emitAsinh(Emitter &emitter, Value x);
Value emitAcosh(Emitter &emitter, Value x);
Value emitAtanh(Emitter &emitter, Value x);
Value emitExp2(Emitter &emitter, Value x);
Value emitLog2(Emitter &emitter, Value x);
Value emitLog10(Emitter &emitter, Value x);
Value emitPow(Emitter &emitter, Value x, Value y);
/// x - trunc(x / y) * y; exact while the quotient is below 2^29, and always where there is no f64.
Value emitRemainder(Emitter &emitter, Value x, Value y);

/// Integral values: towards zero, down, up, nearest with ties to even or away from zero.
Value emitTrunc(Emitter &emitter, Value x);
Value emitFloor(Emitter &emitter, Value x);
Value emitCeil(Emitter &emitter, Value x);
Value emitRoundEven(Emitter &emitter, Value x);
Value emitRound(Emitter &emitter, Value x);

Value emitAbs(Emitter &emitter, Value x);
Value emitCopySign(Emitter &emitter, Value magnitude, Value sign);

/// Conversions between f16, bf16, f32 and f64; f16 and bf16 are carried as i16 and round to nearest even.
Value emitExtend(Emitter &emitter, Value x, Type from, Type to);
Value emitTruncate(Emitter &emitter, Value x, Type to);

} // namespace mlir::kernel::emit

#endif // TRANSEPT_CODEGEN_EMIT_MATH_H
