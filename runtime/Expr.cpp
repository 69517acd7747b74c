#include "runtime/Expr.h"

#include <algorithm>
#include <array>
#include <limits>

namespace transept {

using Term = program::Expr::Term;

Status verifyExpr(const program::Expr &expr, size_t symbolCount) {
  auto refuse = [](const std::string &why) { return Status(Code::ArtifactRefused, "size expression " + why); };
  int depth = 0;
  for (const Term &term : expr.terms()) {
    switch (term.op()) {
    case program::Expr::SYMBOL:
      if (term.value() < 0 || static_cast<uint64_t>(term.value()) >= symbolCount)
        return refuse("uses symbol " + std::to_string(term.value()) + " of " + std::to_string(symbolCount));
      [[fallthrough]];
    case program::Expr::CONST:
      if (++depth > exprStackLimit)
        return refuse("is nested deeper than " + std::to_string(exprStackLimit));
      break;
    case program::Expr::ADD:
    case program::Expr::MUL:
    case program::Expr::FLOORDIV:
    case program::Expr::MOD:
    case program::Expr::MIN:
    case program::Expr::MAX:
      if (--depth < 1)
        return refuse("lacks an operand");
      break;
    default:
      return refuse("has unknown operator " + std::to_string(static_cast<int>(term.op())));
    }
  }
  return depth == 1 ? Status() : refuse("leaves " + std::to_string(depth) + " values instead of one");
}

namespace {
/// Applies a binary operator; false on overflow or a divisor of 0.
bool apply(program::Expr::Op op, int64_t a, int64_t b, int64_t &out) {
  switch (op) {
  case program::Expr::ADD:
    return checkedAdd(a, b, out);
  case program::Expr::MUL:
    return checkedMul(a, b, out);
  case program::Expr::MIN:
    out = std::min(a, b);
    return true;
  case program::Expr::MAX:
    out = std::max(a, b);
    return true;
  case program::Expr::FLOORDIV:
  case program::Expr::MOD: {
    if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min()))
      return false;
    int64_t quotient = a / b, rest = a % b;
    bool below = rest != 0 && (rest < 0) != (b < 0);
    out = op == program::Expr::FLOORDIV ? quotient - below : below ? rest + b : rest;
    return true;
  }
  default:
    return false;
  }
}
} // namespace

Result<int64_t> evaluateExpr(const program::Expr &expr, Span<const int64_t> symbols) {
  std::array<int64_t, exprStackLimit> stack;
  int depth = 0;
  for (const Term &term : expr.terms()) {
    if (term.op() == program::Expr::CONST) {
      stack[depth++] = term.value();
    } else if (term.op() == program::Expr::SYMBOL) {
      stack[depth++] = symbols[static_cast<size_t>(term.value())];
    } else {
      int64_t value;
      if (!apply(term.op(), stack[depth - 2], stack[depth - 1], value))
        return Status(Code::LimitExceeded, "a size does not fit in 64 bits");
      stack[--depth - 1] = value;
    }
  }
  return stack[0];
}

std::string printExpr(const program::Expr &expr, const std::vector<std::string> &names) {
  // Binding strength: 0 sum, 1 product, 2 atom.
  std::vector<std::pair<std::string, int>> stack;
  auto wrap = [](const std::pair<std::string, int> &operand, int level) {
    return operand.second < level ? "(" + operand.first + ")" : operand.first;
  };
  for (const Term &term : expr.terms()) {
    if (term.op() == program::Expr::CONST) {
      stack.push_back({std::to_string(term.value()), term.value() < 0 ? 0 : 2});
      continue;
    }
    if (term.op() == program::Expr::SYMBOL) {
      stack.push_back({names[static_cast<size_t>(term.value())], 2});
      continue;
    }
    auto right = std::move(stack.back());
    stack.pop_back();
    auto left = std::move(stack.back());
    stack.pop_back();
    switch (term.op()) {
    case program::Expr::ADD:
      stack.push_back({left.first + " + " + wrap(right, 1), 0});
      break;
    case program::Expr::MUL:
      stack.push_back({wrap(left, 1) + " * " + wrap(right, 2), 1});
      break;
    case program::Expr::FLOORDIV:
      stack.push_back({wrap(left, 1) + " floordiv " + wrap(right, 2), 1});
      break;
    case program::Expr::MOD:
      stack.push_back({wrap(left, 1) + " mod " + wrap(right, 2), 1});
      break;
    default:
      stack.push_back(
          {std::string(term.op() == program::Expr::MIN ? "min(" : "max(") + left.first + ", " + right.first + ")", 2});
    }
  }
  return stack.empty() ? "" : stack.back().first;
}

int64_t plainSymbol(const program::Expr &expr) {
  return expr.terms_size() == 1 && expr.terms(0).op() == program::Expr::SYMBOL ? expr.terms(0).value() : -1;
}

bool isConstant(const program::Expr &expr) {
  return std::none_of(expr.terms().begin(), expr.terms().end(),
                      [](const Term &term) { return term.op() == program::Expr::SYMBOL; });
}

} // namespace transept
