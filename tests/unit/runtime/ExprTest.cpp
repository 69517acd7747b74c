#include "runtime/Expr.h"

#include "TinyModel.h"

#include <gtest/gtest.h>

#include <limits>

using namespace transept;
using transept::tests::postfix;

namespace {

Result<int64_t> evaluate(const std::string &words, std::vector<int64_t> values = {}) {
  program::Expr expr = postfix(words, {"a", "b"});
  EXPECT_TRUE(verifyExpr(expr, 2).ok()) << words;
  values.resize(2);
  return evaluateExpr(expr, values);
}

TEST(Expr, ArithmeticOverSymbols) {
  EXPECT_EQ(*evaluate("7"), 7);
  EXPECT_EQ(*evaluate("a 4 * b +", {3, 5}), 17);
  EXPECT_EQ(*evaluate("a b min", {3, 5}), 3);
  EXPECT_EQ(*evaluate("a b max", {3, 5}), 5);
}

TEST(Expr, DivisionRoundsTowardsMinusInfinity) {
  EXPECT_EQ(*evaluate("7 2 /"), 3);
  EXPECT_EQ(*evaluate("-7 2 /"), -4);
  EXPECT_EQ(*evaluate("7 -2 /"), -4);
  EXPECT_EQ(*evaluate("-7 -2 /"), 3);
  EXPECT_EQ(*evaluate("-7 2 %"), 1);
  EXPECT_EQ(*evaluate("7 -2 %"), -1);
  EXPECT_EQ(*evaluate("-8 2 %"), 0);
}

TEST(Expr, OverflowAndDivisionByZeroAreErrors) {
  const int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(evaluate("a b *", {most, 2}).status().code(), Code::LimitExceeded);
  EXPECT_EQ(evaluate("a b +", {most, 1}).status().code(), Code::LimitExceeded);
  EXPECT_EQ(evaluate("a b /", {1, 0}).status().code(), Code::LimitExceeded);
  EXPECT_EQ(evaluate("a b %", {1, 0}).status().code(), Code::LimitExceeded);
  EXPECT_EQ(evaluate("a b /", {least, -1}).status().code(), Code::LimitExceeded);
  EXPECT_EQ(evaluate("a b %", {least, -1}).status().code(), Code::LimitExceeded);
}

TEST(Expr, MalformedExpressionsAreRefused) {
  EXPECT_FALSE(verifyExpr(postfix(""), 0).ok());
  EXPECT_FALSE(verifyExpr(postfix("+"), 0).ok());
  EXPECT_FALSE(verifyExpr(postfix("1 +"), 0).ok());
  EXPECT_FALSE(verifyExpr(postfix("1 2"), 0).ok());
  EXPECT_FALSE(verifyExpr(postfix("a", {"a"}), 0).ok());
  program::Expr negative = postfix("a", {"a"});
  negative.mutable_terms(0)->set_value(-1);
  EXPECT_FALSE(verifyExpr(negative, 1).ok());
  program::Expr unknown = postfix("1 2 +");
  unknown.mutable_terms(2)->set_op(static_cast<program::Expr::Op>(99));
  EXPECT_FALSE(verifyExpr(unknown, 0).ok());
}

TEST(Expr, StackIsBounded) {
  std::string deep, sum;
  for (int i = 0; i < exprStackLimit; ++i)
    deep += "1 ";
  for (int i = 1; i < exprStackLimit; ++i)
    sum += "+ ";
  EXPECT_TRUE(verifyExpr(postfix(deep + sum), 0).ok());
  EXPECT_EQ(*evaluate(deep + sum), exprStackLimit);
  EXPECT_FALSE(verifyExpr(postfix("1 " + deep + sum + "+"), 0).ok());
}

TEST(Expr, PrintsInfix) {
  EXPECT_EQ(printExpr(postfix("a 16 b * 4 + *", {"a", "b"}), {"batch", "blocks"}), "batch * (16 * blocks + 4)");
  EXPECT_EQ(printExpr(postfix("a 15 + 16 /", {"a"}), {"target"}), "(target + 15) floordiv 16");
  EXPECT_EQ(printExpr(postfix("a 3 max 5 min", {"a"}), {"n"}), "min(max(n, 3), 5)");
}

} // namespace
