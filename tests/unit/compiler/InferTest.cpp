//===- InferTest.cpp - inference of types, sizes and contents -----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expected shapes are those of the ONNX operator descriptions, worked out by hand. A test of a constraint carries its
// number.

#include "mlir/Parser/Parser.h"
#include "passes/Shapes.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::transept;

namespace {

/// What is known of the last op's first result, as text.
struct Inferred {
  std::string dims, content, error;
  std::vector<std::string> guards;
};

class InferTest : public ::testing::Test {
protected:
  InferTest() {
    context.loadDialect<TranseptDialect, func::FuncDialect>();
    context.printOpOnDiagnostic(false);
  }

  /// `arguments` as in a function's signature.
  Inferred infer(const std::string &arguments, const std::string &ops) {
    Inferred result;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      result.error += diagnostic.str();
      return success();
    });
    module = parseSourceString<ModuleOp>("func.func @f(" + arguments + ") {\n" + ops + "\nreturn\n}", &context);
    if (!module)
      return result;
    auto function = *module->getOps<func::FuncOp>().begin();
    ShapePropagation propagation(function);
    if (failed(propagation.run()))
      return result;
    last = function.front().getTerminator()->getPrevNode();
    const Fact &fact = propagation.facts[last->getResult(0)];
    result.dims = fact.ranked() ? toString(dimsOf(fact.ranked())) : "*";
    if (fact.content)
      result.content = toString(*fact.content);
    for (const Guard &guard : propagation.guards[&function.front()])
      result.guards.push_back(toString(guard.lhs) + " " + std::string("=<>!").substr(unsigned(guard.relation), 1) +
                              " " + toString(guard.rhs));
    return result;
  }
  Inferred inferShape(const std::string &x, const std::string &ops) { return infer("%x: " + x, ops); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Operation *last = nullptr;
};

#define BT "tensor<?x?x64xf32, #transept.dims<[batch, T, 64]>>"

//===- Reshape
//------------------------------------------------------------------------------------------------------===//

TEST_F(InferTest, ReshapeInfersTheOpenSizeExactly) {
  Inferred r = inferShape(BT, R"(%s = transept.constant dense<[0, -1, 4, 16]> : tensor<4xi64>
    %r = transept.reshape %x, %s {allowZero = false} : ()" BT R"(, tensor<4xi64>) -> tensor<*xf32>)");
  EXPECT_EQ(r.dims, "[batch, T, 4, 16]");
  EXPECT_TRUE(r.guards.empty());
}

TEST_F(InferTest, ReshapeWithRemainderIsGuarded) {
  Inferred r = inferShape("tensor<?xf32, #transept.dims<[n]>>", R"(%s = transept.constant dense<[-1, 4]> : tensor<2xi64>
    %r = transept.reshape %x, %s {allowZero = false} : (tensor<?xf32, #transept.dims<[n]>>, tensor<2xi64>) -> tensor<*xf32>)");
  EXPECT_EQ(r.dims, "[floordiv(n, 4), 4]");
  EXPECT_EQ(r.guards, std::vector<std::string>{"n = 4 * floordiv(n, 4)"});
}

TEST_F(InferTest, ReshapeC1TwoOpenSizes) {
  Inferred r = inferShape(BT, R"(%s = transept.constant dense<[-1, -1]> : tensor<2xi64>
    %r = transept.reshape %x, %s {allowZero = false} : ()" BT R"(, tensor<2xi64>) -> tensor<*xf32>)");
  EXPECT_NE(r.error.find("leaves two sizes open: [-1, -1]"), std::string::npos) << r.error;
}

TEST_F(InferTest, ReshapeC2CopiesWhatIsNotThere) {
  Inferred r = inferShape("tensor<6xf32>", R"(%s = transept.constant dense<[6, 0]> : tensor<2xi64>
    %r = transept.reshape %x, %s {allowZero = false} : (tensor<6xf32>, tensor<2xi64>) -> tensor<*xf32>)");
  EXPECT_NE(r.error.find("copies axis 1 of [6]"), std::string::npos) << r.error;
}

TEST_F(InferTest, ReshapeAllowZeroKeepsZero) {
  Inferred r = inferShape("tensor<0x3xf32>", R"(%s = transept.constant dense<[3, 0]> : tensor<2xi64>
    %r = transept.reshape %x, %s {allowZero = true} : (tensor<0x3xf32>, tensor<2xi64>) -> tensor<*xf32>)");
  EXPECT_EQ(r.dims, "[3, 0]");
}

TEST_F(InferTest, ReshapeC4CountContradicts) {
  Inferred r = inferShape("tensor<6xf32>", R"(%s = transept.constant dense<[4, 2]> : tensor<2xi64>
    %r = transept.reshape %x, %s {allowZero = false} : (tensor<6xf32>, tensor<2xi64>) -> tensor<*xf32>)");
  EXPECT_NE(r.error.find("cannot make [4, 2] of [6]"), std::string::npos) << r.error;
}

TEST_F(InferTest, ReshapeC4BakedLengthIsGuardedWithoutCommonFactors) {
  Inferred r = inferShape(BT, R"(%s = transept.shape %x {start = 0, end = 1} : ()" BT R"() -> tensor<1xi64>
    %c = transept.constant dense<[10, 64]> : tensor<2xi64>
    %t = transept.concat %s, %c {axis = 0} : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
    %r = transept.reshape %x, %t {allowZero = false} : ()" BT R"(, tensor<3xi64>) -> tensor<*xf32>)");
  EXPECT_EQ(r.dims, "[batch, 10, 64]");
  EXPECT_EQ(r.guards, std::vector<std::string>{"T = 10"});
}

TEST_F(InferTest, ReshapeToUnknownSizesHasRunTimeSymbols) {
  Inferred r = infer("%x: " BT ", %s: tensor<2xi64>",
                     "%r = transept.reshape %x, %s {allowZero = false} : (" BT ", tensor<2xi64>) -> tensor<*xf32>");
  EXPECT_EQ(r.dims, "[reshaped.0, reshaped.1]");
}

//===- Broadcasting
//-------------------------------------------------------------------------------------------------===//

TEST_F(InferTest, BroadcastsOnes) {
  Inferred r = infer("%x: tensor<?x1x?xf32, #transept.dims<[a, 1, c]>>, %y: tensor<5x1xf32>",
                     "%r = transept.add %x, %y : (tensor<?x1x?xf32, #transept.dims<[a, 1, c]>>, tensor<5x1xf32>) -> "
                     "tensor<*xf32>");
  EXPECT_EQ(r.dims, "[a, 5, c]");
  EXPECT_TRUE(r.guards.empty());
}

TEST_F(InferTest, BroadcastOfDynamicSizesIsGuarded) {
  Inferred r = infer("%x: tensor<?x?xf32, #transept.dims<[a, b]>>, %y: tensor<?x5xf32, #transept.dims<[c, 5]>>",
                     "%r = transept.add %x, %y : (tensor<?x?xf32, #transept.dims<[a, b]>>, "
                     "tensor<?x5xf32, #transept.dims<[c, 5]>>) -> tensor<*xf32>");
  EXPECT_EQ(r.dims, "[min(1, a, c) * max(a, c), 5]");
  // (a - 1) * (c - 1) * (a - c)
  EXPECT_EQ(r.guards,
            (std::vector<std::string>{"b = 5", "a * a * c + -1 * a * c * c + -1 * a * a + c * c + a + -1 * c = 0"}));
}

TEST_F(InferTest, BroadcastOfAComputedSizeIsGuardedToBeEqual) {
  Inferred r =
      infer("%x: tensor<?xf32, #transept.dims<[a]>>, %y: tensor<2xf32>, %z: tensor<?xf32, #transept.dims<[c]>>",
            "%t = transept.concat %x, %y {axis = 0} : (tensor<?xf32, #transept.dims<[a]>>, tensor<2xf32>) -> "
            "tensor<*xf32>\n%r = transept.add %t, %z : (tensor<*xf32>, tensor<?xf32, #transept.dims<[c]>>) -> "
            "tensor<*xf32>");
  EXPECT_EQ(r.dims, "[c]");
  EXPECT_EQ(r.guards, std::vector<std::string>{"a + 2 = c"});
}

TEST_F(InferTest, BroadcastToAShapeRepeatsWhatMayBeOne) {
  Inferred r = infer("%x: tensor<?xf32, #transept.dims<[a]>>",
                     "%r = transept.broadcast %x : (tensor<?xf32, #transept.dims<[a]>>) -> tensor<?xf32, "
                     "#transept.dims<[n]>>");
  EXPECT_EQ(r.dims, "[n]");
  EXPECT_EQ(r.guards, std::vector<std::string>{"a * a + -1 * a * n + -1 * a + n = 0"}); // (a - 1) * (a - n)
}

TEST_F(InferTest, BroadcastToDataKeepsSizesAboveOne) {
  Inferred r = infer("%x: tensor<3x1xf32>, %s: tensor<3xi64>",
                     "%r = transept.broadcast %x, %s : (tensor<3x1xf32>, tensor<3xi64>) -> tensor<*xf32>");
  EXPECT_EQ(r.dims, "[broadcast.0, 3, broadcast.2]");
}

TEST_F(InferTest, BinaryC1ElementTypes) {
  Inferred r = infer("%x: tensor<2xf32>, %y: tensor<2xi64>",
                     "%r = transept.add %x, %y : (tensor<2xf32>, tensor<2xi64>) -> tensor<*xf32>");
  EXPECT_NE(r.error.find("combines elements of 'f32' and 'i64'"), std::string::npos) << r.error;
}

TEST_F(InferTest, BinaryC2ShapesContradict) {
  Inferred r = infer("%x: tensor<2xf32>, %y: tensor<3xf32>",
                     "%r = transept.add %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<*xf32>");
  EXPECT_NE(r.error.find("broadcasts 2 against 3 on axis 0"), std::string::npos) << r.error;
}

//===- Shape arithmetic
//---------------------------------------------------------------------------------------------===//

TEST_F(InferTest, ExpandIdiomResolves) {
  Inferred r = inferShape("tensor<?x1xf32, #transept.dims<[batch, 1]>>", R"(
    %s = transept.shape %x : (tensor<?x1xf32, #transept.dims<[batch, 1]>>) -> tensor<*xi64>
    %b = transept.constant dense<0> : tensor<1xi64>
    %g = transept.gather %s, %b {axis = 0} : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
    %m = transept.constant dense<-1> : tensor<1xi64>
    %c = transept.constant dense<7> : tensor<1xi64>
    %t = transept.concat %g, %m, %c {axis = 0} : (tensor<*xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xi64>
    %n = transept.shape %t : (tensor<*xi64>) -> tensor<*xi64>
    %o = transept.fill dense<1> : tensor<1xi64>, %n : (tensor<*xi64>) -> tensor<*xi64>
    %k = transept.mul %o, %m : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
    %e = transept.equal %t, %k : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi1>
    %w = transept.where %e, %o, %t : (tensor<*xi1>, tensor<*xi64>, tensor<*xi64>) -> tensor<*xi64>
    %y = transept.broadcast %x, %w : (tensor<?x1xf32, #transept.dims<[batch, 1]>>, tensor<*xi64>) -> tensor<*xf32>)");
  // [batch, 1] against [batch, 1, 7]: the ranks align at the end, so batch meets 1.
  EXPECT_EQ(r.dims, "[batch, batch, 7]");
  EXPECT_TRUE(r.guards.empty());
}

TEST_F(InferTest, ChunkArithmetic) {
  Inferred r = inferShape(BT, R"(%i = transept.constant dense<2> : tensor<i64>
    %s = transept.shape %x : ()" BT R"() -> tensor<*xi64>
    %d = transept.gather %s, %i {axis = 0} : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
    %two = transept.constant dense<2> : tensor<i64>
    %three = transept.constant dense<3> : tensor<i64>
    %a = transept.add %d, %two : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
    %q = transept.div %a, %three : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>)");
  EXPECT_EQ(r.content, "[22]");
}

TEST_F(InferTest, DivisionOfSymbolsRoundsDown) {
  Inferred r = inferShape("tensor<?xf32, #transept.dims<[n]>>", R"(
    %s = transept.size %x : (tensor<?xf32, #transept.dims<[n]>>) -> tensor<i64>
    %two = transept.constant dense<2> : tensor<i64>
    %q = transept.div %s, %two : (tensor<i64>, tensor<i64>) -> tensor<i64>)");
  EXPECT_EQ(r.content, "[floordiv(n, 2)]");
}

TEST_F(InferTest, DivisionThatMayTruncateUpwardsIsUnknown) {
  Inferred r = inferShape("tensor<?xf32, #transept.dims<[n]>>", R"(
    %s = transept.size %x : (tensor<?xf32, #transept.dims<[n]>>) -> tensor<i64>
    %two = transept.constant dense<2> : tensor<i64>
    %d = transept.sub %s, %two : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %q = transept.div %d, %two : (tensor<i64>, tensor<i64>) -> tensor<i64>)");
  EXPECT_EQ(r.content, "");
}

TEST_F(InferTest, ConstantDivisionTruncates) {
  Inferred r = infer("", R"(%a = transept.constant dense<[-7, 7]> : tensor<2xi64>
    %b = transept.constant dense<2> : tensor<i64>
    %q = transept.div %a, %b : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>)");
  EXPECT_EQ(r.content, "[-3, 3]");
}

TEST_F(InferTest, ModFollowsTheDivisorAndFmodTheDividend) {
  for (int fmod : {0, 1}) {
    Inferred r = infer("", R"(%a = transept.constant dense<[-7, 7, -7]> : tensor<3xi64>
      %b = transept.constant dense<[3, -3, -3]> : tensor<3xi64>
      %q = transept.mod %a, %b {fmod = )" +
                               std::to_string(fmod) + R"( : i64} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>)");
    EXPECT_EQ(r.content, fmod ? "[-1, 1, -1]" : "[2, -2, -1]") << r.error;
  }
}

TEST_F(InferTest, UndecidedComparisonIsUnknown) {
  Inferred r = inferShape("tensor<?xf32, #transept.dims<[n]>>", R"(
    %s = transept.size %x : (tensor<?xf32, #transept.dims<[n]>>) -> tensor<i64>
    %two = transept.constant dense<2> : tensor<i64>
    %q = transept.less %s, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>)");
  EXPECT_EQ(r.content, "");
}

TEST_F(InferTest, SentinelsDoNotOverflow) {
  Inferred r = inferShape("tensor<?xf32, #transept.dims<[n]>>", R"(
    %s = transept.size %x : (tensor<?xf32, #transept.dims<[n]>>) -> tensor<i64>
    %big = transept.constant dense<9223372036854775807> : tensor<i64>
    %q = transept.add %s, %big : (tensor<i64>, tensor<i64>) -> tensor<i64>)");
  EXPECT_EQ(r.content, "");
  r = infer("", R"(%a = transept.constant dense<-9223372036854775808> : tensor<i64>
    %b = transept.constant dense<-1> : tensor<i64>
    %q = transept.div %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i64>)");
  EXPECT_EQ(r.dims, "[]");
}

TEST_F(InferTest, ReductionsOfSizes) {
  for (auto [kind, expected] : {std::pair("prod", "[64 * T * batch]"), std::pair("sum", "[T + batch + 64]")}) {
    Inferred r =
        inferShape(BT, "%s = transept.shape %x : (" BT ") -> tensor<*xi64>\n%q = transept.reduce " + std::string(kind) +
                           " %s {keepdims = false, noopWithEmptyAxes = false} : (tensor<*xi64>) -> "
                           "tensor<*xi64>");
    EXPECT_EQ(r.content, expected) << r.error;
    EXPECT_EQ(r.dims, "[]");
  }
}

//===- Slice
//--------------------------------------------------------------------------------------------------------===//

std::string slice(const std::string &type, const std::string &start, const std::string &end, const std::string &step) {
  return "%s = transept.constant dense<" + start + "> : tensor<1xi64>\n%e = transept.constant dense<" + end +
         "> : tensor<1xi64>\n%p = transept.constant dense<" + step +
         "> : tensor<1xi64>\n%a = transept.constant dense<0> : tensor<1xi64>\n%r = transept.slice %x from(%s) to(%e) "
         "axes(%a) by(%p) : (" +
         type + ", tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>";
}

TEST_F(InferTest, SliceOfConstantSizesClamps) {
  struct {
    const char *start, *end, *step, *dims;
  } cases[] = {{"1", "9223372036854775807", "1", "[9]"},
               {"-3", "-1", "1", "[2]"},
               {"8", "3", "1", "[0]"},
               {"-100", "4", "1", "[4]"},
               {"12", "20", "1", "[0]"},
               {"0", "10", "3", "[4]"},
               {"-1", "-9223372036854775808", "-1", "[10]"},
               {"8", "2", "-2", "[3]"},
               {"-100", "-100", "-1", "[1]"},
               {"100", "4", "-1", "[5]"}};
  for (auto &c : cases) {
    Inferred r = inferShape("tensor<10xf32>", slice("tensor<10xf32>", c.start, c.end, c.step));
    EXPECT_EQ(r.dims, c.dims) << c.start << ":" << c.end << ":" << c.step << " " << r.error;
  }
}

TEST_F(InferTest, SliceFromTheEndNeedsElements) {
  std::string type = "tensor<?xf32, #transept.dims<[n]>>";
  Inferred r = inferShape(type, slice(type, "-1", "9223372036854775807", "1"));
  EXPECT_EQ(r.dims, "[1]");
  EXPECT_EQ(r.guards, std::vector<std::string>{"n + -1 > 0"});
  r = inferShape(type, slice(type, "0", "-1", "1"));
  EXPECT_EQ(r.dims, "[n + -1]");
}

TEST_F(InferTest, SliceThatMayBeClampedSaysSo) {
  std::string type = "tensor<?xf32, #transept.dims<[n]>>";
  Inferred r = inferShape(type, slice(type, "0", "8", "1"));
  EXPECT_EQ(r.dims, "[min(8, n)]");
  EXPECT_TRUE(r.guards.empty());
}

TEST_F(InferTest, SliceOfATableIsGuarded) {
  Inferred r = inferShape("tensor<?x?xi64, #transept.dims<[batch, T]>>", R"(
    %w = transept.weight "none" : tensor<64x8xf32>
    %z = transept.constant dense<0> : tensor<1xi64>
    %e = transept.shape %x {start = 1} : (tensor<?x?xi64, #transept.dims<[batch, T]>>) -> tensor<1xi64>
    %r = transept.slice %w from(%z) to(%e) axes(%z) : (tensor<64x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>)");
  EXPECT_EQ(r.dims, "[T, 8]");
  EXPECT_EQ(r.guards, std::vector<std::string>{"T < 64"});
}

TEST_F(InferTest, SliceC4StepZero) {
  Inferred r = inferShape("tensor<10xf32>", slice("tensor<10xf32>", "0", "5", "0"));
  EXPECT_NE(r.error.find("steps by 0 on axis 0"), std::string::npos) << r.error;
}

TEST_F(InferTest, SliceAtRunTime) {
  Inferred r = infer("%x: tensor<10x3xf32>, %s: tensor<1xi64>", R"(%a = transept.constant dense<0> : tensor<1xi64>
    %r = transept.slice %x from(%s) to(%s) axes(%a) : (tensor<10x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>)");
  EXPECT_EQ(r.dims, "[sliced.0, 3]");
}

//===- Products
//-----------------------------------------------------------------------------------------------------===//

TEST_F(InferTest, MatMulShapes) {
  struct {
    const char *lhs, *rhs, *dims;
  } cases[] = {{"2x3xf32", "3x4xf32", "[2, 4]"},
               {"3xf32", "3x4xf32", "[4]"},
               {"2x3xf32", "3xf32", "[2]"},
               {"3xf32", "3xf32", "[]"},
               {"5x1x2x3xf32", "6x3x4xf32", "[5, 6, 2, 4]"},
               {"7x2x3xf32", "3xf32", "[7, 2]"}};
  for (auto &c : cases) {
    std::string a = std::string("tensor<") + c.lhs + ">", b = std::string("tensor<") + c.rhs + ">";
    Inferred r =
        infer("%x: " + a + ", %y: " + b, "%r = transept.matmul %x, %y : (" + a + ", " + b + ") -> tensor<*xf32>");
    EXPECT_EQ(r.dims, c.dims) << r.error;
  }
}

TEST_F(InferTest, MatMulIntegerC5ZeroPointsFitTheirFactors) {
  auto product = [&](const std::string &rows, const std::string &points) {
    std::string lhs = "tensor<" + rows + ">", zero = "tensor<" + points + ">";
    return infer("%a: " + lhs + ", %b: tensor<4x5xi8>, %z: " + zero,
                 "%r = transept.matmul_integer %a, %b lhs_zero_point(%z) : (" + lhs + ", tensor<4x5xi8>, " + zero +
                     ") -> tensor<*xi32>");
  };
  EXPECT_EQ(product("3x4xui8", "3xui8").error, "");
  EXPECT_EQ(product("3x4xui8", "1xui8").error, "");
  EXPECT_NE(product("3x4xui8", "2xui8").error.find("subtracts a zero point: 2 and 3 differ"), std::string::npos);
  Inferred r = product("?x4xui8, #transept.dims<[rows, 4]>", "?xui8, #transept.dims<[points]>");
  EXPECT_EQ(r.dims, "[rows, 5]");
  // 1 or as many as rows: (points - 1) * (points - rows) = 0
  ASSERT_EQ(r.guards.size(), 1u);
  EXPECT_NE(r.guards[0].find(" = 0"), std::string::npos) << r.guards[0];
}

TEST_F(InferTest, MatMulC3Contracts) {
  Inferred r = infer("%x: tensor<2x5xf32>, %y: tensor<7x4xf32>",
                     "%r = transept.matmul %x, %y : (tensor<2x5xf32>, tensor<7x4xf32>) -> tensor<*xf32>");
  EXPECT_NE(r.error.find("contracts: 5 and 7 differ"), std::string::npos) << r.error;
}

TEST_F(InferTest, ConvSizes) {
  // 2 x Conv1d of Whisper: (n + 2 - 3) / stride + 1.
  for (auto [stride, dims] : {std::pair(1, "[batch, 8, n]"), std::pair(2, "[batch, 8, floordiv(n + -1, 2) + 1]")}) {
    Inferred r = infer("%x: tensor<?x4x?xf32, #transept.dims<[batch, 4, n]>>, %w: tensor<8x4x3xf32>",
                       "%r = transept.conv %x, %w {strides = array<i64: " + std::to_string(stride) +
                           ">, pads = array<i64: 1, 1>, dilations = array<i64: 1>, group = 1 : i64} : "
                           "(tensor<?x4x?xf32, #transept.dims<[batch, 4, n]>>, tensor<8x4x3xf32>) -> tensor<*xf32>");
    EXPECT_EQ(r.dims, dims) << r.error;
  }
}

TEST_F(InferTest, ConvC3Channels) {
  Inferred r = infer("%x: tensor<1x5x9xf32>, %w: tensor<8x4x3xf32>",
                     "%r = transept.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 1, 1>, dilations = "
                     "array<i64: 1>, group = 1 : i64} : (tensor<1x5x9xf32>, tensor<8x4x3xf32>) -> tensor<*xf32>");
  EXPECT_NE(r.error.find("reads channels: 5 and 4 differ"), std::string::npos) << r.error;
}

TEST_F(InferTest, ConvC4KernelFits) {
  Inferred r = infer("%x: tensor<1x4x2xf32>, %w: tensor<8x4x3xf32>",
                     "%r = transept.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = "
                     "array<i64: 1>, group = 1 : i64} : (tensor<1x4x2xf32>, tensor<8x4x3xf32>) -> tensor<*xf32>");
  EXPECT_NE(r.error.find("slides a kernel: 3 exceeds 2"), std::string::npos) << r.error;
}

//===- Others
//-------------------------------------------------------------------------------------------------------===//

TEST_F(InferTest, GatherShapesAndContents) {
  Inferred r = infer("%i: tensor<?x?xi64, #transept.dims<[batch, T]>>, %w: tensor<70x8x9xf32>",
                     "%r = transept.gather %w, %i {axis = 1} : (tensor<70x8x9xf32>, tensor<?x?xi64, "
                     "#transept.dims<[batch, T]>>) -> tensor<*xf32>");
  EXPECT_EQ(r.dims, "[70, batch, T, 9]");
  r = infer("", R"(%a = transept.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
    %i = transept.constant dense<[-1, 0]> : tensor<2xi64>
    %r = transept.gather %a, %i {axis = 1} : (tensor<2x3xi64>, tensor<2xi64>) -> tensor<*xi64>)");
  EXPECT_EQ(r.content, "[3, 1, 6, 4]");
}

TEST_F(InferTest, GatherC3OutOfRange) {
  Inferred r = infer("", R"(%a = transept.constant dense<[1, 2, 3]> : tensor<3xi64>
    %i = transept.constant dense<3> : tensor<i64>
    %r = transept.gather %a, %i {axis = 0} : (tensor<3xi64>, tensor<i64>) -> tensor<*xi64>)");
  EXPECT_NE(r.error.find("picks element 3 of an axis of size 3"), std::string::npos) << r.error;
}

TEST_F(InferTest, RangeLengths) {
  struct {
    const char *start, *limit, *step, *dims;
  } cases[] = {{"0", "10", "3", "[4]"}, {"5", "0", "-2", "[3]"}, {"4", "2", "1", "[0]"}, {"0", "0", "5", "[0]"}};
  for (auto &c : cases) {
    Inferred r = infer("", "%s = transept.constant dense<" + std::string(c.start) +
                               "> : tensor<i64>\n%l = transept.constant dense<" + c.limit +
                               "> : tensor<i64>\n%d = transept.constant dense<" + c.step +
                               "> : tensor<i64>\n%r = transept.range from(%s) to(%l) by(%d) : (tensor<i64>, "
                               "tensor<i64>, tensor<i64>) -> tensor<*xi64>");
    EXPECT_EQ(r.dims, c.dims) << r.error;
  }
  // arange(past, past + T) has T elements whatever past is.
  Inferred r = infer("%x: tensor<?x?xf32, #transept.dims<[past, T]>>", R"(
    %s = transept.shape %x {end = 1} : (tensor<?x?xf32, #transept.dims<[past, T]>>) -> tensor<1xi64>
    %t = transept.shape %x {start = 1} : (tensor<?x?xf32, #transept.dims<[past, T]>>) -> tensor<1xi64>
    %a = transept.add %s, %t : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
    %z = transept.constant dense<> : tensor<0xi64>
    %b = transept.squeeze %s : (tensor<1xi64>) -> tensor<*xi64>
    %e = transept.squeeze %a : (tensor<1xi64>) -> tensor<*xi64>
    %d = transept.constant dense<1> : tensor<i64>
    %r = transept.range from(%b) to(%e) by(%d) : (tensor<*xi64>, tensor<*xi64>, tensor<i64>) -> tensor<*xi64>)");
  EXPECT_EQ(r.dims, "[T]") << r.error;
}

TEST_F(InferTest, RangeC3StepZero) {
  Inferred r = infer("", R"(%s = transept.constant dense<0> : tensor<i64>
    %r = transept.range from(%s) to(%s) by(%s) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<*xi64>)");
  EXPECT_NE(r.error.find("steps by zero"), std::string::npos) << r.error;
}

TEST_F(InferTest, PadShapes) {
  Inferred r = inferShape("tensor<?x3xf32, #transept.dims<[n, 3]>>",
                          R"(%p = transept.constant dense<[1, 0, 2, -1]> : tensor<4xi64>
    %r = transept.pad constant %x pads(%p) : (tensor<?x3xf32, #transept.dims<[n, 3]>>, tensor<4xi64>) -> tensor<*xf32>)");
  EXPECT_EQ(r.dims, "[n + 3, 2]") << r.error;
}

TEST_F(InferTest, SqueezeOfUnnamedAxesFixesTheRank) {
  Inferred r = inferShape("tensor<?x1x3xf32, #transept.dims<[n, 1, 3]>>",
                          "%r = transept.squeeze %x : (tensor<?x1x3xf32, #transept.dims<[n, 1, 3]>>) -> tensor<*xf32>");
  EXPECT_EQ(r.dims, "[n, 3]");
  EXPECT_EQ(r.guards, std::vector<std::string>{"n ! 1"});
}

TEST_F(InferTest, SqueezeC2SizeIsNotOne) {
  Inferred r = inferShape("tensor<2x3xf32>",
                          "%r = transept.squeeze %x {axes = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<*xf32>");
  EXPECT_NE(r.error.find("drops an axis: 2 and 1 differ"), std::string::npos) << r.error;
}

TEST_F(InferTest, AxisOutsideTheRank) {
  Inferred r =
      inferShape("tensor<2x3xf32>", "%r = transept.softmax %x {axis = 2} : (tensor<2x3xf32>) -> tensor<*xf32>");
  EXPECT_NE(r.error.find("axis 2 is outside a tensor with 2 axes"), std::string::npos) << r.error;
}

TEST_F(InferTest, HugeShapesAreRefused) {
  Inferred r = infer("", R"(%s = transept.constant dense<[4294967296, 4294967296]> : tensor<2xi64>
    %r = transept.fill dense<1.0> : tensor<1xf32>, %s : (tensor<2xi64>) -> tensor<*xf32>)");
  EXPECT_NE(r.error.find("[4294967296, 4294967296], which is too large"), std::string::npos) << r.error;
}

TEST_F(InferTest, IfJoinsBranches) {
  Inferred r =
      infer("%c: tensor<i1>, %x: tensor<?x3xf32, #transept.dims<[a, 3]>>, %y: tensor<?x3xf32, #transept.dims<[b, 3]>>",
            R"(%r = transept.if %c { transept.yield %x : tensor<?x3xf32, #transept.dims<[a, 3]>> }
    else { transept.yield %y : tensor<?x3xf32, #transept.dims<[b, 3]>> } : (tensor<i1>) -> tensor<*xf32>)");
  EXPECT_EQ(r.dims, "[either.0, 3]") << r.error;
}

TEST_F(InferTest, AttentionShapes) {
  std::string q = "tensor<?x?x8x16xf32, #transept.dims<[batch, T, 8, 16]>>",
              k = "tensor<?x?x2x16xf32, #transept.dims<[batch, S, 2, 16]>>",
              v = "tensor<?x?x2x24xf32, #transept.dims<[batch, S, 2, 24]>>";
  std::string attention = "%r, %p = transept.attention %q, %k, %v empty_row uniform {scale = 0.25 : f32} : (" + q +
                          ", " + k + ", " + v + ") -> (tensor<*xf32>, tensor<*xf32>)";
  Inferred r = infer("%q: " + q + ", %k: " + k + ", %v: " + v, attention);
  EXPECT_EQ(r.dims, "[batch, T, 8, 24]") << r.error;
  EXPECT_EQ(toString(dimsOf(cast<RankedTensorType>(last->getResult(1).getType()))), "[batch, 8, T, S]");
}

TEST_F(InferTest, AttentionC3Heads) {
  Inferred r = infer("%q: tensor<1x2x8x4xf32>, %k: tensor<1x5x3x4xf32>",
                     "%r = transept.attention %q, %k, %k empty_row uniform {scale = 1.0 : f32} : (tensor<1x2x8x4xf32>, "
                     "tensor<1x5x3x4xf32>, tensor<1x5x3x4xf32>) -> tensor<*xf32>");
  EXPECT_NE(r.error.find("shares 3 key heads among 8 query heads"), std::string::npos) << r.error;
}

//===- Behaviour along an axis
//--------------------------------------------------------------------------------------===//

TEST_F(InferTest, AxisBehaviours) {
  auto behaviour = [&](const std::string &arguments, const std::string &ops, unsigned operand, int64_t axis) {
    Inferred r = infer(arguments, ops);
    EXPECT_TRUE(r.error.empty()) << r.error;
    int64_t resultAxis = -2;
    AxisBehaviour answer = cast<GraphOp>(last).axisBehaviour(operand, axis, resultAxis);
    return std::pair(answer, resultAxis);
  };
  using B = AxisBehaviour;
  auto pointwise = [](int64_t axis) { return std::pair(B::Pointwise, axis); };
  std::string x = "%x: " BT, xw = x + ", %w: tensor<64x32xf32>";
  std::string matmul = "%r = transept.matmul %x, %w : (" BT ", tensor<64x32xf32>) -> tensor<*xf32>";
  EXPECT_EQ(behaviour(xw, matmul, 0, 0), pointwise(0));
  EXPECT_EQ(behaviour(xw, matmul, 0, 1), pointwise(1));
  EXPECT_EQ(behaviour(xw, matmul, 0, 2).first, B::Mixing);
  EXPECT_EQ(behaviour(xw, matmul, 1, 1), pointwise(2));
  std::string softmax = "%r = transept.softmax %x {axis = -1} : (" BT ") -> tensor<*xf32>";
  EXPECT_EQ(behaviour(x, softmax, 0, 1), pointwise(1));
  EXPECT_EQ(behaviour(x, softmax, 0, 2).first, B::Mixing);
  std::string cumsum =
      "%r = transept.cumsum %x {axis = 1, exclusive = false, reverse = false} : (" BT ") -> tensor<*xf32>";
  EXPECT_EQ(behaviour(x, cumsum, 0, 1), std::pair(B::CausalScan, int64_t(1)));
  EXPECT_EQ(behaviour(x, cumsum, 0, 0), pointwise(0));
  std::string heads = "%s = transept.constant dense<[0, 0, 4, 16]> : tensor<4xi64>\n%r = transept.reshape %x, %s "
                      "{allowZero = false} : (" BT ", tensor<4xi64>) -> tensor<*xf32>";
  EXPECT_EQ(behaviour(x, heads, 0, 1), pointwise(1));
  EXPECT_EQ(behaviour(x, heads, 0, 2).first, B::Mixing);
  std::string merge = "%s = transept.constant dense<[-1, 64]> : tensor<2xi64>\n%r = transept.reshape %x, %s {allowZero "
                      "= false} : (" BT ", tensor<2xi64>) -> tensor<*xf32>";
  EXPECT_EQ(behaviour(x, merge, 0, 1).first, B::Mixing);
  EXPECT_EQ(behaviour(x, merge, 0, 2), pointwise(1));
  std::string gather =
      "%i = transept.constant dense<[0, 2]> : tensor<2xi64>\n%r = transept.gather %x, %i {axis = 2} : (" BT
      ", tensor<2xi64>) -> tensor<*xf32>";
  EXPECT_EQ(behaviour(x, gather, 0, 1), pointwise(1));
  EXPECT_EQ(behaviour(x, gather, 1, 0), pointwise(2));
  std::string shift =
      "%r = transept.pad constant %x {low = [#transept.dim<0>, #transept.dim<1>, #transept.dim<0>]} : (" BT
      ") -> tensor<?x?x64xf32, #transept.dims<[batch, T + 1, 64]>>";
  EXPECT_EQ(behaviour(x, shift, 0, 1), std::pair(B::FiniteHistory, int64_t(1)));
  std::string triangle = "%r = transept.trilu %x {k = 1, upper = true} : (" BT ") -> tensor<*xf32>";
  EXPECT_EQ(behaviour(x, triangle, 0, 1), std::pair(B::Positions, int64_t(1)));
  EXPECT_EQ(behaviour(x, triangle, 0, 0), pointwise(0));
}

//===- Sorting, scattering, windows, recurrences ------------------------------------------------------------------===//

TEST_F(InferTest, TopK) {
  const std::string x = "tensor<?x5xf32, #transept.dims<[batch, 5]>>";
  auto topK = [&](const std::string &attributes) {
    return inferShape(x, "%v, %i = transept.top_k %x {largest = true, " + attributes + "} : (" + x +
                             ") -> (tensor<*xf32>, tensor<*xi64>)");
  };
  EXPECT_EQ(topK("axis = -1 : i64, k = #transept.dim<3>").dims, "[batch, 3]");
  EXPECT_EQ(topK("axis = 0 : i64, k = #transept.dim<3>").guards.size(), 1u);
  EXPECT_NE(topK("axis = 2 : i64, k = #transept.dim<3>").error, ""); // C1
  Inferred counts = infer("%x: " + x, "%k = transept.constant dense<[1, 2]> : tensor<2xi64>\n"
                                      "%v, %i = transept.top_k %x, %k {largest = true, axis = 1 : i64} : (" +
                                          x + ", tensor<2xi64>) -> (tensor<*xf32>, tensor<*xi64>)");
  EXPECT_NE(counts.error.find("has 2 counts"), std::string::npos) << counts.error; // C2
  EXPECT_NE(topK("axis = 1 : i64, k = #transept.dim<6>").error, "");               // C3
}

TEST_F(InferTest, ScatterElements) {
  auto scatter = [&](const std::string &indices, const std::string &updates, const std::string &axis) {
    return infer("%x: tensor<3x4xf32>, %i: " + indices + ", %u: " + updates,
                 "%y = transept.scatter_elements add %x, %i, %u {axis = " + axis + " : i64} : (tensor<3x4xf32>, " +
                     indices + ", " + updates + ") -> tensor<*xf32>");
  };
  EXPECT_EQ(scatter("tensor<2x7xi64>", "tensor<2x7xf32>", "1").dims, "[3, 4]");
  EXPECT_NE(scatter("tensor<2x7xf32>", "tensor<2x7xf32>", "1").error, ""); // C1
  EXPECT_NE(scatter("tensor<2x7xi64>", "tensor<2x7xi32>", "1").error, ""); // C2
  EXPECT_NE(scatter("tensor<2xi64>", "tensor<2xf32>", "1").error, "");     // C3
  EXPECT_NE(scatter("tensor<2x7xi64>", "tensor<2x6xf32>", "1").error, ""); // C4
  EXPECT_NE(scatter("tensor<4x2xi64>", "tensor<4x2xf32>", "1").error, ""); // C5
}

TEST_F(InferTest, Windows) {
  const std::string x = "tensor<2x?x9xf32, #transept.dims<[2, source, 9]>>";
  auto windows = [&](const std::string &kernel, const std::string &strides, const std::string &dilations) {
    return inferShape(x, "%y = transept.windows %x {kernel = array<i64: " + kernel + ">, strides = array<i64: " +
                             strides + ">, dilations = array<i64: " + dilations + ">} : (" + x + ") -> tensor<*xf32>");
  };
  Inferred two = windows("3, 2", "2, 3", "1, 4");
  EXPECT_EQ(two.dims, "[2, floordiv(source + -3, 2) + 1, 2, 3, 2]");
  EXPECT_EQ(two.guards.size(), 1u);
  EXPECT_NE(windows("3", "0", "1").error, "");                            // C1
  EXPECT_NE(windows("1, 1, 1, 1", "1, 1, 1, 1", "1, 1, 1, 1").error, ""); // C2
  EXPECT_NE(windows("10", "1", "1").error, "");                           // C3
}

TEST_F(InferTest, Det) {
  auto det = [&](const std::string &type, const std::string &element) {
    return inferShape(type, "%y = transept.det %x : (" + type + ") -> tensor<*x" + element + ">");
  };
  EXPECT_EQ(det("tensor<5x2x2xf32>", "f32").dims, "[5]");
  EXPECT_NE(det("tensor<2x2xi32>", "i32").error, ""); // C1
  EXPECT_NE(det("tensor<2x3xf32>", "f32").error, ""); // C2
}

TEST_F(InferTest, Recurrent) {
  auto layer = [&](const std::string &kind, const std::string &operands, const std::string &types,
                   const std::string &arguments, const std::string &options, int functions, int results) {
    std::string names, zeros, head, list;
    for (int i = 0; i < functions; ++i) {
      names += std::string(i ? ", " : "") + "\"Tanh\"";
      zeros += std::string(i ? ", " : "") + "0.0";
    }
    for (int i = 0; i < results; ++i) {
      head += std::string(i ? ", " : "") + "%y" + std::to_string(i);
      list += std::string(i ? ", " : "") + "tensor<*xf32>";
    }
    return infer(arguments, head + " = transept.recurrent " + kind + " " + operands + " {alpha = array<f32: " + zeros +
                                "> , beta = array<f32: " + zeros + ">, activations = [" + names +
                                "], clip = 0.0 : f32" + options + "} : (" + types + ") -> (" + list + ")");
  };
  const std::string x = "tensor<?x2x12xf32, #transept.dims<[source, 2, 12]>>", w = "tensor<3x12xf32>";
  const std::string arguments =
      "%x: " + x + ", %w: " + w + ", %l: tensor<3xi32>, %h: tensor<2x3xf32>, %d: tensor<2x3xf64>";
  EXPECT_EQ(layer("lstm", "%x, %w", x + ", " + w, arguments, "", 3, 3).dims, "[source, 2, 3]");
  EXPECT_NE(layer("lstm", "%x, %w", x + ", " + w, arguments, "", 3, 2).error, "");                    // C1
  EXPECT_NE(layer("lstm", "%x, %w", x + ", " + w, arguments, ", linearBeforeReset", 3, 3).error, ""); // C2
  EXPECT_NE(layer("lstm", "%x, %w", x + ", " + w, arguments, "", 2, 3).error, "");                    // C3
  EXPECT_NE(layer("lstm", "%x, %w hidden(%d)", x + ", " + w + ", tensor<2x3xf64>", arguments, "", 3, 3).error,
            "");                                                                                                   // C4
  EXPECT_NE(layer("gru", "%x, %w", x + ", " + w, arguments, "", 2, 2).error, "");                                  // C5
  EXPECT_NE(layer("lstm", "%x, %w lengths(%l)", x + ", " + w + ", tensor<3xi32>", arguments, "", 3, 3).error, ""); // C6
}

} // namespace
