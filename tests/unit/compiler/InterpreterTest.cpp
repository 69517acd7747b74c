// The interpreter: inputs, guards, run-time sizes, branches, and sessions. Cached steps are compared with one causal
// attention over the whole sequence.

#include "ir/Interpreter.h"
#include "ir/Transept.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::transept;

namespace {

class InterpreterTest : public ::testing::Test {
protected:
  InterpreterTest() : context(MLIRContext::Threading::DISABLED), builder(&context) {
    context.loadDialect<TranseptDialect, func::FuncDialect>();
  }

  /// Steps over a cache give what the attention of all positions gives.
  void expectEqualSteps(const char *stepText, const char *wholeText);

  func::FuncOp parse(const std::string &text, StringRef name = "main") {
    modules.push_back(parseSourceString<ModuleOp>(text, &context));
    EXPECT_TRUE(modules.back());
    return modules.back() ? modules.back()->lookupSymbol<func::FuncOp>(name) : func::FuncOp();
  }
  HostTensor tensor(ArrayRef<int64_t> shape, Type element, ArrayRef<double> values) {
    HostTensor result = HostTensor::make(RankedTensorType::get(shape, element));
    for (auto [index, value] : llvm::enumerate(values))
      result.setDouble(index, value);
    return result;
  }
  HostTensor floats(ArrayRef<int64_t> shape, ArrayRef<double> values) {
    return tensor(shape, builder.getF32Type(), values);
  }
  HostTensor ints(ArrayRef<int64_t> shape, ArrayRef<double> values) {
    return tensor(shape, builder.getI64Type(), values);
  }
  /// Numbers without a pattern between -1 and 1.
  HostTensor noise(ArrayRef<int64_t> shape, unsigned seed) {
    HostTensor result = HostTensor::make(RankedTensorType::get(shape, builder.getF32Type()));
    for (int64_t i = 0; i < result.numElements(); ++i) {
      seed = seed * 1664525 + 1013904223;
      result.setDouble(i, static_cast<double>(seed >> 8) / (1 << 23) - 1);
    }
    return result;
  }
  std::string failureOf(func::FuncOp function, ArrayRef<HostTensor> inputs) {
    Outcome<std::vector<HostTensor>> outputs = interpret(function, inputs);
    EXPECT_FALSE(outputs);
    return outputs ? "" : std::to_string(outputs.failure().exitCode) + ": " + outputs.failure().message;
  }

  MLIRContext context;
  Builder builder;
  std::vector<OwningOpRef<ModuleOp>> modules;
};

TEST_F(InterpreterTest, InputsAreCheckedByName) {
  func::FuncOp function = parse(R"mlir(
    func.func @main(%a: tensor<?x2xf32, #transept.dims<[n, 2]>> {transept.name = "a"},
                    %b: tensor<?xi64, #transept.dims<[n]>> {transept.name = "b", transept.default = dense<[7, 8]> : tensor<2xi64>})
        -> tensor<?xi64, #transept.dims<[n]>> {
      return %b : tensor<?xi64, #transept.dims<[n]>>
    })mlir");
  const HostTensor a = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(failureOf(function, {a}), "8: the graph has 2 inputs, but 1 were given");
  EXPECT_EQ(failureOf(function, {HostTensor(), ints({2}, {1, 2})}), "8: input 'a' is missing");
  EXPECT_EQ(failureOf(function, {ints({2, 2}, {}), ints({2}, {})}),
            "8: input 'a' has elements of type i64, the graph wants f32");
  EXPECT_EQ(failureOf(function, {floats({2}, {}), ints({2}, {})}), "8: input 'a' has 1 axes, the graph wants 2");
  EXPECT_EQ(failureOf(function, {floats({2, 3}, {}), ints({2}, {})}),
            "8: input 'a' has size 3 along axis 1, the graph wants 2");
  EXPECT_EQ(failureOf(function, {a, ints({3}, {})}), "8: input 'b' has size 3 along axis 0, the graph wants n = 2");
  Outcome<std::vector<HostTensor>> outputs = interpret(function, {a, HostTensor()});
  ASSERT_TRUE(outputs);
  EXPECT_EQ(outputs->front().getInt(1), 8);
}

TEST_F(InterpreterTest, GuardsAreChecked) {
  func::FuncOp function = parse(R"mlir(
    func.func @main(%a: tensor<?xf32, #transept.dims<[n]>> {transept.name = "a"}) -> tensor<?xf32, #transept.dims<[n]>>
        attributes {transept.guards = [{lhs = #transept.dim<n>, relation = "le", rhs = #transept.dim<3>, message = "the table is too short"}]} {
      return %a : tensor<?xf32, #transept.dims<[n]>>
    })mlir");
  EXPECT_TRUE(interpret(function, {floats({3}, {})}));
  EXPECT_EQ(failureOf(function, {floats({4}, {})}), "8: the table is too short (4 and 3)");
}

TEST_F(InterpreterTest, ExpressionsInAttributesGetTheirValues) {
  func::FuncOp function = parse(R"mlir(
    func.func @main(%a: tensor<?xi64, #transept.dims<[n]>>) -> (tensor<2xi64>, tensor<?xi64, #transept.dims<[2 * n]>>) {
      %0 = transept.dim_value [#transept.dim<n>, #transept.dim<2 * n>] : tensor<2xi64>
      %1 = "transept.range"() <{operandSegmentSizes = array<i32: 0, 0, 0>, startDim = #transept.dim<n>, stepValue = 1 : i64}>
        : () -> tensor<?xi64, #transept.dims<[2 * n]>>
      return %0, %1 : tensor<2xi64>, tensor<?xi64, #transept.dims<[2 * n]>>
    })mlir");
  Outcome<std::vector<HostTensor>> outputs = interpret(function, {ints({3}, {})});
  ASSERT_TRUE(outputs) << outputs.failure().message;
  EXPECT_EQ((*outputs)[0].getInt(1), 6);
  ASSERT_EQ((*outputs)[1].numElements(), 6);
  EXPECT_EQ((*outputs)[1].getInt(5), 8);
}

TEST_F(InterpreterTest, UnknownShapesAreInferredFromValues) {
  func::FuncOp function = parse(R"mlir(
    func.func @main(%a: tensor<*xf32>, %shape: tensor<?xi64>) -> tensor<*xf32> {
      %0 = "transept.reshape"(%a, %shape) <{allowZero = false}> : (tensor<*xf32>, tensor<?xi64>) -> tensor<*xf32>
      %1 = transept.neg %0 : (tensor<*xf32>) -> tensor<*xf32>
      return %1 : tensor<*xf32>
    })mlir");
  Outcome<std::vector<HostTensor>> outputs = interpret(function, {floats({6}, {1, 2, 3, 4, 5, 6}), ints({2}, {2, -1})});
  ASSERT_TRUE(outputs) << outputs.failure().message;
  EXPECT_EQ(outputs->front().shape().vec(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(outputs->front().getDouble(5), -6);
}

TEST_F(InterpreterTest, OnlyTheBranchThatIsTakenRuns) {
  func::FuncOp function = parse(R"mlir(
    func.func @main(%c: tensor<i1>, %a: tensor<2xi64>) -> tensor<*xi64> {
      %zero = transept.constant dense<0> : tensor<2xi64>
      %0 = transept.if %c {
        %1 = transept.div %a, %zero : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
        transept.yield %1 : tensor<2xi64>
      } else {
        %2 = transept.concat %a, %zero {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
        transept.yield %2 : tensor<4xi64>
      } : (tensor<i1>) -> tensor<*xi64>
      return %0 : tensor<*xi64>
    })mlir");
  const HostTensor yes = tensor({}, builder.getI1Type(), {1}), no = tensor({}, builder.getI1Type(), {0});
  EXPECT_NE(failureOf(function, {yes, ints({2}, {5, 6})}).find("divides an integer by zero"), std::string::npos);
  Outcome<std::vector<HostTensor>> outputs = interpret(function, {no, ints({2}, {5, 6})});
  ASSERT_TRUE(outputs) << outputs.failure().message;
  EXPECT_EQ(outputs->front().numElements(), 4);
}

TEST_F(InterpreterTest, LargeTensorsAreRefused) {
  func::FuncOp function = parse(R"mlir(
    func.func @main() -> tensor<4611686018427387904xf32> {
      %0 = transept.fill dense<0.0> : tensor<f32> : () -> tensor<4611686018427387904xf32>
      return %0 : tensor<4611686018427387904xf32>
    })mlir");
  EXPECT_EQ(failureOf(function, {}).substr(0, 3), "5: ");
}

//===- Sessions
//-----------------------------------------------------------------------------------------------------===//

constexpr int64_t heads = 2, size = 4;
constexpr const char *step = R"mlir(
  func.func @step(%q: tensor<3x1x2x4xf32>, %k: tensor<3x1x2x4xf32>, %v: tensor<3x1x2x4xf32>) -> tensor<3x1x2x4xf32> {
    transept.cache_append %k, %v {layer = 0 : i64} : tensor<3x1x2x4xf32>, tensor<3x1x2x4xf32>
    %0 = transept.cache_attention %q {layer = 0 : i64, scale = 5.0e-01 : f32, kvHeads = 2 : i64, valueSize = 4 : i64}
      : (tensor<3x1x2x4xf32>) -> tensor<3x1x2x4xf32>
    return %0 : tensor<3x1x2x4xf32>
  })mlir";
constexpr const char *stepWithDistances = R"mlir(
  func.func @step(%q: tensor<3x1x2x4xf32>, %k: tensor<3x1x2x4xf32>, %v: tensor<3x1x2x4xf32>) -> tensor<3x1x2x4xf32> {
    %t = transept.constant dense<[[0.5, 1.0, -2.0], [1.5, 0.25, 3.0]]> : tensor<2x3xf32>
    transept.cache_append %k, %v {layer = 0 : i64} : tensor<3x1x2x4xf32>, tensor<3x1x2x4xf32>
    %0 = transept.cache_attention %q relative(%t) {layer = 0 : i64, scale = 5.0e-01 : f32, kvHeads = 2 : i64, valueSize = 4 : i64,
      relativeOrigin = -2 : i64} : (tensor<3x1x2x4xf32>, tensor<2x3xf32>) -> tensor<3x1x2x4xf32>
    return %0 : tensor<3x1x2x4xf32>
  })mlir";

TEST_F(InterpreterTest, CachedStepsEqualOneCausalAttention) {
  expectEqualSteps(step, R"mlir(
    func.func @main(%q: tensor<3x20x2x4xf32>, %k: tensor<3x20x2x4xf32>, %v: tensor<3x20x2x4xf32>) -> tensor<3x20x2x4xf32> {
      %0 = transept.attention %q, %k, %v empty_row zero {scale = 5.0e-01 : f32, causal, causalOffset = #transept.dim<0>}
        : (tensor<3x20x2x4xf32>, tensor<3x20x2x4xf32>, tensor<3x20x2x4xf32>) -> tensor<3x20x2x4xf32>
      return %0 : tensor<3x20x2x4xf32>
    })mlir");
  expectEqualSteps(stepWithDistances, R"mlir(
    func.func @main(%q: tensor<3x20x2x4xf32>, %k: tensor<3x20x2x4xf32>, %v: tensor<3x20x2x4xf32>) -> tensor<3x20x2x4xf32> {
      %t = transept.constant dense<[[0.5, 1.0, -2.0], [1.5, 0.25, 3.0]]> : tensor<2x3xf32>
      %0 = transept.attention %q, %k, %v relative(%t) empty_row zero {scale = 5.0e-01 : f32, causal, causalOffset = #transept.dim<0>,
        relativeOrigin = #transept.dim<-2>}
        : (tensor<3x20x2x4xf32>, tensor<3x20x2x4xf32>, tensor<3x20x2x4xf32>, tensor<2x3xf32>) -> tensor<3x20x2x4xf32>
      return %0 : tensor<3x20x2x4xf32>
    })mlir");
}

void InterpreterTest::expectEqualSteps(const char *stepText, const char *wholeText) {
  func::FuncOp stepFunction = parse(stepText, "step"), whole = parse(wholeText);
  const int64_t rows = 3, length = 20, capacity = 32, width = heads * size;
  const HostTensor q = noise({rows, length, heads, size}, 1), k = noise({rows, length, heads, size}, 2),
                   v = noise({rows, length, heads, size}, 3);
  Outcome<std::vector<HostTensor>> expected = interpret(whole, {q, k, v});
  ASSERT_TRUE(expected) << expected.failure().message;

  InterpreterSession session;
  HostTensor blocks = HostTensor::make(RankedTensorType::get({rows, capacity}, builder.getI32Type()));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t p = 0; p < capacity; ++p)
      blocks.setInt(row * capacity + p, row + rows * (p / 16));
  session.states["step.block"] = blocks;
  for (int64_t p = 0; p < length; ++p) {
    session.states["step.position"] = ints({rows}, {double(p), double(p), double(p)});
    std::vector<HostTensor> inputs;
    for (const HostTensor &all : {q, k, v}) {
      HostTensor one = HostTensor::make(RankedTensorType::get({rows, 1, heads, size}, builder.getF32Type()));
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t d = 0; d < width; ++d)
          one.setDouble(row * width + d, all.getDouble((row * length + p) * width + d));
      inputs.push_back(one);
    }
    Outcome<std::vector<HostTensor>> outputs = interpret(stepFunction, inputs, &session);
    ASSERT_TRUE(outputs) << outputs.failure().message;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t d = 0; d < width; ++d)
        ASSERT_EQ(outputs->front().getDouble(row * width + d),
                  expected->front().getDouble((row * length + p) * width + d))
            << row << " " << p;
  }
}

TEST_F(InterpreterTest, SiblingsShareTheirParentsBlocks) {
  // One value per position; the keys are zero, so attention is the mean of the values a row can see.
  func::FuncOp function = parse(step, "step");
  InterpreterSession session;
  auto run = [&](ArrayRef<double> positions, ArrayRef<double> blocks, ArrayRef<double> values, double live) {
    session.states["step.live"] = tensor({1}, builder.getI32Type(), {live});
    session.states["step.position"] = ints({3}, positions);
    session.states["step.block"] = tensor({3, 4}, builder.getI32Type(), blocks);
    HostTensor zero = floats({3, 1, heads, size}, {}), value = floats({3, 1, heads, size}, {});
    for (int64_t i = 0; i < value.numElements(); ++i)
      value.setDouble(i, values[i / (heads * size)]);
    Outcome<std::vector<HostTensor>> outputs = interpret(function, {zero, zero, value}, &session);
    EXPECT_TRUE(outputs) << (outputs ? "" : outputs.failure().message);
    std::vector<double> means;
    for (int64_t row = 0; outputs && row < 3; ++row)
      means.push_back(outputs->front().getDouble(row * heads * size));
    return means;
  };
  EXPECT_EQ(run({0, 0, 0}, {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, {10, 20, 30}, 3), (std::vector<double>{10, 20, 30}));
  // Rows 0 and 1 continue row 0 (row 1 in a fresh block from position 1 on), row 2 continues row 1.
  EXPECT_EQ(run({1, 1, 1}, {0, 0, 0, 0, 0, 3, 3, 3, 1, 1, 1, 1}, {1, 2, 4}, 3), (std::vector<double>{5.5, 6, 12}));
  // Rows that are not live are left alone.
  EXPECT_EQ(run({2, 2, 2}, {0, 0, 0, 0, 0, 3, 3, 3, 9, 9, 9, 9}, {1, 3, 4}, 2), (std::vector<double>{4, 5, 0}));
}

TEST_F(InterpreterTest, CrossAttentionReadsTheSourceSlot) {
  func::FuncOp function = parse(R"mlir(
    func.func @main(%q: tensor<3x1x1x1xf32>) -> tensor<3x1x1x1xf32> {
      %k = transept.state "cross.0" : tensor<2x3x1x1xf32>
      %m = transept.state "cross.mask" : tensor<2x3xi64>
      %0 = "transept.cross_attention"(%q, %k, %k, %m) <{scale = 0.0 : f32, emptyRow = #transept<empty_row uniform>}>
        : (tensor<3x1x1x1xf32>, tensor<2x3x1x1xf32>, tensor<2x3x1x1xf32>, tensor<2x3xi64>) -> tensor<3x1x1x1xf32>
      transept.export "seen", %0 : tensor<3x1x1x1xf32>
      return %0 : tensor<3x1x1x1xf32>
    })mlir");
  InterpreterSession session;
  session.states["cross.0"] = floats({2, 3, 1, 1}, {1, 2, 6, 10, 20, 60});
  session.states["cross.mask"] = ints({2, 3}, {1, 1, 0, 0, 0, 0});
  session.states["step.source"] = tensor({3}, builder.getI32Type(), {0, 1, 0});
  Outcome<std::vector<HostTensor>> outputs = interpret(function, {floats({3, 1, 1, 1}, {1, 1, 1})}, &session);
  ASSERT_TRUE(outputs) << outputs.failure().message;
  EXPECT_EQ(outputs->front().getDouble(0), 1.5);
  EXPECT_EQ(outputs->front().getDouble(1), 30); // no key is visible: the mean of all
  EXPECT_EQ(session.states["seen"].getDouble(2), 1.5);
  session.states["step.source"] = tensor({3}, builder.getI32Type(), {0, 2, 0});
  outputs = interpret(function, {floats({3, 1, 1, 1}, {1, 1, 1})}, &session);
  ASSERT_FALSE(outputs);
  EXPECT_NE(outputs.failure().message.find("reads source slot 2 of 2"), std::string::npos);
}

TEST_F(InterpreterTest, SearchHeadGivesBlocksCandidatesAndSpecials) {
  func::FuncOp function = parse(R"mlir(
    func.func @main(%l: tensor<2x1x2050xf32>) {
      transept.search_head %l : tensor<2x1x2050xf32>
      return
    })mlir");
  HostTensor logits = HostTensor::make(RankedTensorType::get({2, 1, 2050}, builder.getF32Type()));
  for (int64_t i = 0; i < 2050; ++i)
    logits.setDouble(i, -INFINITY);
  logits.setDouble(3, 1);
  logits.setDouble(5, 2);
  logits.setDouble(7, 2);
  logits.setDouble(2049, 0.5);
  InterpreterSession session;
  session.symbols["topk"] = 2;
  session.states["step.live"] = tensor({1}, builder.getI32Type(), {1});
  session.states["step.special"] = tensor({2, 2}, builder.getI32Type(), {5, -1, -1, -1});
  Outcome<std::vector<HostTensor>> outputs = interpret(function, {logits}, &session);
  ASSERT_TRUE(outputs) << outputs.failure().message;
  auto state = [&](const char *name, int64_t index) { return session.states[name].getDouble(index); };
  // Two vocabulary blocks: 0 to 2047, and the last two tokens.
  EXPECT_EQ(session.states["search.max"].shape().vec(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(state("search.max", 0), 2);
  EXPECT_EQ(state("search.max", 1), 0.5);
  EXPECT_FLOAT_EQ(state("search.sum", 0), 2 + std::exp(-1.0)); // the special token counts
  EXPECT_EQ(state("search.sum", 1), 1);
  EXPECT_EQ(state("search.token", 0), 7);
  EXPECT_EQ(state("search.value", 0), 2);
  EXPECT_EQ(state("search.token", 1), 3);
  EXPECT_EQ(state("search.token", 2), 2049);
  EXPECT_EQ(state("search.value", 3), -INFINITY);
  EXPECT_EQ(state("search.special", 0), 2);
  EXPECT_EQ(state("logits", 3), 1);
  EXPECT_EQ(state("search.max", 2), 0); // the second row is not live
}

} // namespace
