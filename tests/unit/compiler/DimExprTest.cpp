//===- DimExprTest.cpp - size expressions ------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/DimExpr.h"
#include "ir/Transept.h"
#include "mlir/AsmParser/AsmParser.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace mlir::transept;

namespace {

class DimExprTest : public ::testing::Test {
protected:
  DimExprTest() {
    context.loadDialect<TranseptDialect>();
    a = dimSymbol(&context, "a");
    b = dimSymbol(&context, "b");
  }
  DimAttr constant(int64_t value) { return dimConstant(&context, value); }
  DimAttr parse(std::string text) {
    return dyn_cast_or_null<DimAttr>(parseAttribute("#transept.dim<" + text + ">", &context));
  }
  /// lhs and rhs, both as text, are one expression.
  void same(const std::string &lhs, const std::string &rhs) {
    ASSERT_TRUE(parse(lhs) && parse(rhs)) << lhs << ", " << rhs;
    EXPECT_EQ(parse(lhs), parse(rhs)) << lhs << " is " << toString(parse(lhs)) << ", " << rhs << " is "
                                      << toString(parse(rhs));
  }

  MLIRContext context;
  DimAttr a, b;
};

TEST_F(DimExprTest, EqualPolynomialsAreOneAttribute) {
  same("a + b", "b + a");
  same("(a + b) * (a + b)", "a * a + 2 * a * b + b * b");
  same("a + -1 * a", "0");
  same("3 * (a + 2) + -6", "3 * a");
}

TEST_F(DimExprTest, QuotientsOfPolynomials) {
  same("floordiv(6 * a * b, 3 * b)", "2 * a");
  same("floordiv(a * a + 2 * a * b + b * b, a + b)", "a + b");
  same("floordiv(4 * a + 6, 4)", "a + floordiv(6, 4)");
  same("mod(4 * a + 3, 4)", "3");
  EXPECT_FALSE(dimExactDiv(a, b));
  EXPECT_FALSE(dimExactDiv(a, constant(0)));
}

TEST_F(DimExprTest, MinimaAndMaxima) {
  same("min(a, a + b)", "a");
  same("max(a, a + b)", "a + b");
  same("max(a, 0)", "a");
  EXPECT_NE(parse("min(a, 4)"), a);
}

TEST_F(DimExprTest, Bounds) {
  EXPECT_TRUE(provablyNonNegative(parse("a * b + 3")));
  EXPECT_FALSE(provablyNonNegative(parse("a + -1")));
  EXPECT_TRUE(provablyLessOrEqual(parse("min(a, 7)"), constant(7)));
  EXPECT_FALSE(provablyLessOrEqual(a, b));
}

TEST_F(DimExprTest, TextReadsBack) {
  for (const char *text : {"a", "2 * a * b + 3", "floordiv(a, 2)", "mod(a + b, 8)", "min(a, b)", "max(a + -3, b)"}) {
    DimAttr dim = parse(text);
    ASSERT_TRUE(dim) << text;
    EXPECT_EQ(parse(toString(dim)), dim) << text;
  }
  DimAttr odd = dimSymbol(&context, "past + \"1\"");
  EXPECT_EQ(parse(toString(odd)), odd);
}

/// A random tree, built as an attribute and computed directly in parallel.
struct Sample {
  DimAttr dim;
  int64_t value;
};

TEST_F(DimExprTest, NormalFormKeepsTheValue) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    llvm::StringMap<int64_t> symbols;
    symbols["a"] = random() % 9;
    symbols["b"] = random() % 9;
    std::function<Sample(int)> build = [&](int depth) -> Sample {
      unsigned kind = random() % (depth == 0 ? 3 : 9);
      if (kind == 0)
        return {a, symbols["a"]};
      if (kind == 1)
        return {b, symbols["b"]};
      if (kind == 2) {
        int64_t value = static_cast<int64_t>(random() % 9) - 2;
        return {constant(value), value};
      }
      Sample lhs = build(depth - 1), rhs = build(depth - 1);
      switch (kind) {
      case 3:
        return {dimAdd(lhs.dim, rhs.dim), lhs.value + rhs.value};
      case 4:
        return {dimSub(lhs.dim, rhs.dim), lhs.value - rhs.value};
      case 5:
        return {dimMul(lhs.dim, rhs.dim), lhs.value * rhs.value};
      case 6: {
        int64_t divisor = 1 + random() % 5;
        int64_t quotient = lhs.value / divisor - (lhs.value % divisor < 0);
        bool remainder = random() % 2;
        return remainder ? Sample{dimMod(lhs.dim, constant(divisor)), lhs.value - quotient * divisor}
                         : Sample{dimFloorDiv(lhs.dim, constant(divisor)), quotient};
      }
      case 7:
        return {dimMin(lhs.dim, rhs.dim), std::min(lhs.value, rhs.value)};
      default:
        return {dimMax(lhs.dim, rhs.dim), std::max(lhs.value, rhs.value)};
      }
    };
    Sample sample = build(4);
    ASSERT_EQ(evaluate(sample.dim, symbols), sample.value)
        << toString(sample.dim) << " with a = " << symbols["a"] << ", b = " << symbols["b"];
    // Replacing a symbol by its value gives the same.
    DimAttr replaced = substitute(sample.dim, "a", constant(symbols["a"]));
    ASSERT_EQ(evaluate(replaced, symbols), sample.value) << toString(sample.dim);
    if (provablyNonNegative(sample.dim))
      ASSERT_GE(sample.value, 0) << toString(sample.dim);
  }
}

TEST_F(DimExprTest, WhatOverflowsIsNoSize) {
  const DimAttr large = constant(int64_t(1) << 32), most = constant(INT64_MAX);
  for (DimAttr dim : {dimMul(large, large), dimAdd(most, constant(1)), dimSub(constant(INT64_MIN), constant(1)),
                      dimMul(dimMul(a, large), dimMul(b, large)), dimAdd(dimMul(a, most), a)})
    EXPECT_EQ(constantValue(dim), INT64_MIN) << toString(dim);
  EXPECT_EQ(dimMul(large, constant(2)), constant(int64_t(1) << 33));
}

} // namespace
