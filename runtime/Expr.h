// Size expressions of the manifest: a postfix sequence over symbols, in 64-bit arithmetic with overflow checks.
#ifndef TRANSEPT_RUNTIME_EXPR_H
#define TRANSEPT_RUNTIME_EXPR_H

#include "runtime/Span.h"
#include "runtime/Status.h"
#include "runtime/program.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace transept {

/// Deepest operand stack of an expression that is accepted.
constexpr int exprStackLimit = 64;

/// Accepts expressions that evaluateExpr can evaluate without reading out of range: known operators, operands present,
/// exactly one result, symbol indices below `symbolCount`, bounded stack.
Status verifyExpr(const program::Expr &expr, size_t symbolCount);

/// Value of an expression that verifyExpr accepted for symbols.size(). floordiv and mod round towards minus infinity.
/// Fails with Code::LimitExceeded on overflow and on a divisor of 0.
Result<int64_t> evaluateExpr(const program::Expr &expr, Span<const int64_t> symbols);

/// Infix text, e.g. "batch * (16 * blocks + 4)". For a verified expression; `names[i]` is symbol i.
std::string printExpr(const program::Expr &expr, const std::vector<std::string> &names);

/// The index of the symbol an expression consists of, or -1.
int64_t plainSymbol(const program::Expr &expr);

/// Whether no symbol occurs.
bool isConstant(const program::Expr &expr);

/// Whether a * b and a + b fit; `out` is set where they do.
inline bool checkedMul(int64_t a, int64_t b, int64_t &out) { return !__builtin_mul_overflow(a, b, &out); }
inline bool checkedAdd(int64_t a, int64_t b, int64_t &out) { return !__builtin_add_overflow(a, b, &out); }

} // namespace transept

#endif
