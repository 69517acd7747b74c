//===- ShapesTest.cpp - the shapes pass after symbols were replaced -----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/Shapes.h"
#include "ir/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::transept;

namespace {

class ShapesTest : public ::testing::Test {
protected:
  ShapesTest() { context.loadDialect<TranseptDialect, func::FuncDialect>(); }

  bool parse(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    return static_cast<bool>(module);
  }
  func::FuncOp function() { return *module->getOps<func::FuncOp>().begin(); }
  LogicalResult runShapes(ShapesOptions options = {}) {
    PassManager passes(&context);
    passes.addPass(createShapesPass(options));
    return passes.run(*module);
  }
  std::string text() {
    std::string printed;
    llvm::raw_string_ostream(printed) << *module;
    return printed;
  }
  template <typename Op> unsigned count() {
    unsigned ops = 0;
    module->walk([&](Op) { ++ops; });
    return ops;
  }
  DimAttr constant(int64_t value) { return dimConstant(&context, value); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// Embedding plus positions, a causal mask, heads: all that a decoder makes of its length.
const char *decoder = R"(
func.func @decoder(%ids: tensor<?x?xi64, #transept.dims<[batch, target]>>, %x: tensor<?x?x8xf32, #transept.dims<[batch, target, 8]>>,
                   %past: tensor<?x2x?x4xf32, #transept.dims<[batch, 2, past, 4]>>) -> (tensor<*xf32>, tensor<*xi1>) {
  %zero = transept.constant dense<0> : tensor<i64>
  %one = transept.constant dense<1> : tensor<i64>
  %two = transept.constant dense<2> : tensor<i64>
  %s = transept.shape %ids : (tensor<?x?xi64, #transept.dims<[batch, target]>>) -> tensor<*xi64>
  %t = transept.gather %s, %one {axis = 0} : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
  %ps = transept.shape %past : (tensor<?x2x?x4xf32, #transept.dims<[batch, 2, past, 4]>>) -> tensor<*xi64>
  %p = transept.gather %ps, %two {axis = 0} : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
  %end = transept.add %p, %t : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi64>
  %rows = transept.range from(%p) to(%end) by(%one) : (tensor<*xi64>, tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
  %columns = transept.range from(%zero) to(%end) by(%one) : (tensor<i64>, tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
  %column = transept.constant dense<[-1, 1]> : tensor<2xi64>
  %r = transept.reshape %rows, %column {allowZero = false} : (tensor<*xi64>, tensor<2xi64>) -> tensor<*xi64>
  %mask = transept.greater %columns, %r : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi1>
  %heads = transept.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
  %h = transept.reshape %x, %heads {allowZero = false} : (tensor<?x?x8xf32, #transept.dims<[batch, target, 8]>>, tensor<4xi64>) -> tensor<*xf32>
  %k = transept.transpose %h {permutation = array<i64: 0, 2, 1, 3>} : (tensor<*xf32>) -> tensor<*xf32>
  %keys = transept.concat %past, %k {axis = 2} : (tensor<?x2x?x4xf32, #transept.dims<[batch, 2, past, 4]>>, tensor<*xf32>) -> tensor<*xf32>
  return %keys, %mask : tensor<*xf32>, tensor<*xi1>
})";

TEST_F(ShapesTest, CountsWhatComputesSizes) {
  ASSERT_TRUE(parse(decoder));
  EXPECT_EQ(countShapeOps(*module), 5u); // two shapes, two gathers, one sum
  ASSERT_TRUE(succeeded(runShapes()));
  EXPECT_EQ(countShapeOps(*module), 0u);
}

TEST_F(ShapesTest, SecondRunChangesNothing) {
  ASSERT_TRUE(parse(decoder));
  ASSERT_TRUE(succeeded(runShapes()));
  std::string once = text();
  ASSERT_TRUE(succeeded(runShapes()));
  EXPECT_EQ(text(), once);
}

TEST_F(ShapesTest, OnePositionAfterSubstitution) {
  ASSERT_TRUE(parse(decoder));
  ASSERT_TRUE(succeeded(runShapes()));
  ASSERT_TRUE(succeeded(substituteSymbol(function(), "target", constant(1))));
  ASSERT_TRUE(succeeded(runShapes()));
  EXPECT_TRUE(succeeded(verify(*module)));
  FunctionType type = function().getFunctionType();
  EXPECT_EQ(toString(dimsOf(cast<RankedTensorType>(type.getInput(1)))), "[batch, 1, 8]");
  EXPECT_EQ(toString(dimsOf(cast<RankedTensorType>(type.getResult(0)))), "[batch, 2, past + 1, 4]");
  EXPECT_EQ(toString(dimsOf(cast<RankedTensorType>(type.getResult(1)))), "[1, past + 1]");
  // The row's position is a value now, and the transpose moves a single position.
  EXPECT_EQ(count<DimValueOp>(), 1u) << text();
  EXPECT_EQ(count<TransposeOp>(), 0u) << text();
}

TEST_F(ShapesTest, SubstitutionKeepsValues) {
  auto tensor = [&](ArrayRef<int64_t> shape, Type element) {
    HostTensor result = HostTensor::make(RankedTensorType::get(shape, element));
    for (int64_t i = 0; i < result.numElements(); ++i)
      result.setInt(i, i % 11);
    return result;
  };
  Type i64 = IntegerType::get(&context, 64), f32 = Float32Type::get(&context);
  std::vector<HostTensor> inputs = {tensor({3, 1}, i64), tensor({3, 1, 8}, f32), tensor({3, 2, 5, 4}, f32)};
  ASSERT_TRUE(parse(decoder));
  Outcome<std::vector<HostTensor>> expected = interpret(function(), inputs);
  ASSERT_TRUE(expected) << expected.failure().message;
  ASSERT_TRUE(succeeded(runShapes()));
  ASSERT_TRUE(succeeded(substituteSymbol(function(), "target", constant(1))));
  ASSERT_TRUE(succeeded(runShapes()));
  Outcome<std::vector<HostTensor>> actual = interpret(function(), inputs);
  ASSERT_TRUE(actual) << actual.failure().message;
  ASSERT_EQ(actual->size(), expected->size());
  for (auto [lhs, rhs] : llvm::zip(*actual, *expected)) {
    EXPECT_EQ(lhs.getType(), rhs.getType());
    EXPECT_TRUE(lhs.bytes() == rhs.bytes());
  }
}

TEST_F(ShapesTest, NegativeSizesAreRefused) {
  ASSERT_TRUE(parse("func.func @f(%x: tensor<?xf32, #transept.dims<[n + -3]>>) { return }"));
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  EXPECT_TRUE(failed(substituteSymbol(function(), "n", constant(2))));
  EXPECT_NE(error.find("gets negative with n = 2"), std::string::npos) << error;
  EXPECT_TRUE(succeeded(substituteSymbol(function(), "n", constant(4))));
  EXPECT_EQ(function().getArgument(0).getType(), RankedTensorType::get({1}, Float32Type::get(&context)));
}

TEST_F(ShapesTest, GuardsSurviveTheOpsThatNeededThem) {
  const char *table = R"(
func.func @f(%x: tensor<?xf32, #transept.dims<[n]>>) -> tensor<*xf32> {
  %table = transept.weight "none" : tensor<64xf32>
  %zero = transept.constant dense<0> : tensor<1xi64>
  %end = transept.shape %x : (tensor<?xf32, #transept.dims<[n]>>) -> tensor<*xi64>
  %r = transept.slice %table from(%zero) to(%end) : (tensor<64xf32>, tensor<1xi64>, tensor<*xi64>) -> tensor<*xf32>
  return %r : tensor<*xf32>
})";
  ASSERT_TRUE(parse(table));
  ASSERT_TRUE(succeeded(runShapes()));
  ASSERT_TRUE(succeeded(runShapes()));
  SmallVector<Guard> guards = guardsFromAttr(function()->getAttrOfType<ArrayAttr>(guardsAttrName));
  ASSERT_EQ(guards.size(), 1u);
  EXPECT_EQ(toString(guards[0].lhs), "n");
  EXPECT_EQ(guards[0].relation, GuardRelation::LessOrEqual);
  EXPECT_EQ(constantValue(guards[0].rhs), 64);
  // Decided by a substitution, it goes.
  ASSERT_TRUE(succeeded(substituteSymbol(function(), "n", constant(7))));
  ASSERT_TRUE(succeeded(runShapes()));
  EXPECT_FALSE(function()->hasAttr(guardsAttrName));
}

TEST_F(ShapesTest, SymbolsStayApartWhereAsked) {
  ASSERT_TRUE(parse("func.func @f(%x: tensor<?xf32, #transept.dims<[a]>>, %y: tensor<?xf32, #transept.dims<[b]>>) -> "
                    "tensor<*xf32> {\n%s = transept.add %x, %y : (tensor<?xf32, #transept.dims<[a]>>, tensor<?xf32, "
                    "#transept.dims<[b]>>) -> tensor<*xf32>\nreturn %s : tensor<*xf32>\n}"));
  ShapesOptions options;
  options.unifySymbols = false;
  ASSERT_TRUE(succeeded(runShapes(options)));
  EXPECT_EQ(guardsFromAttr(function()->getAttrOfType<ArrayAttr>(guardsAttrName)).size(), 1u);
}

} // namespace
