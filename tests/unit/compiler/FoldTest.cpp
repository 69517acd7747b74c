// The fold phase: what is folded, what is not, and which weights become one.

#include "passes/Fold.h"
#include "ir/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::transept;

namespace {

class FoldTest : public ::testing::Test {
protected:
  FoldTest() : context(MLIRContext::Threading::DISABLED) { context.loadDialect<TranseptDialect, func::FuncDialect>(); }

  /// A matrix whose element (i, j) is `start` + i * 1000 + j, or that of (j, i).
  std::string addMatrix(int64_t rows, int64_t columns, float start, bool transposed = false) {
    Builder builder(&context);
    auto type = RankedTensorType::get({rows, columns}, builder.getF32Type());
    HostTensor tensor = HostTensor::make(type);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        tensor.data<float>()[i * columns + j] = start + static_cast<float>(transposed ? j * 1000 + i : i * 1000 + j);
    return WeightStore::of(&context).add(type, tensor.bytes());
  }

  OwningOpRef<ModuleOp> fold(const std::string &text, const FoldOptions &options = {}) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    if (!module)
      return {};
    PassManager passes(&context);
    passes.addPass(createFoldPass(options));
    EXPECT_TRUE(succeeded(passes.run(*module)));
    EXPECT_TRUE(succeeded(verify(*module)));
    return module;
  }

  template <typename Op> static int64_t count(ModuleOp module) {
    int64_t ops = 0;
    module.walk([&](Op) { ++ops; });
    return ops;
  }

  HostTensor input(ArrayRef<int64_t> shape) {
    Builder builder(&context);
    HostTensor tensor = HostTensor::make(RankedTensorType::get(shape, builder.getF32Type()));
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      tensor.data<float>()[i] = static_cast<float>(i % 7) - 2;
    return tensor;
  }
  HostTensor run(ModuleOp module, StringRef name, ArrayRef<HostTensor> inputs) {
    Outcome<std::vector<HostTensor>> outputs = interpret(module.lookupSymbol<func::FuncOp>(name), inputs);
    EXPECT_TRUE(outputs) << (outputs ? "" : outputs.failure().message);
    return outputs ? outputs->front() : HostTensor();
  }

  MLIRContext context;
};

TEST_F(FoldTest, SmallResultsAreWrittenOut) {
  auto module = fold(R"mlir(
    func.func @main() -> tensor<2xf32> {
      %0 = transept.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %1 = transept.constant dense<3.0> : tensor<f32>
      %2 = transept.mul %0, %1 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      %3 = transept.sqrt %2 : (tensor<2xf32>) -> tensor<2xf32>
      return %3 : tensor<2xf32>
    })mlir");
  EXPECT_EQ(count<ConstantOp>(*module), 1);
  EXPECT_EQ(count<MulOp>(*module) + count<SqrtOp>(*module), 0);
  EXPECT_EQ(foldReport(*module).foldedOps, 2);
  EXPECT_FLOAT_EQ(run(*module, "main", {}).getDouble(1), 2.4494898f);
}

TEST_F(FoldTest, LargeResultsAreWeightsWithTheNameOfTheirOrigin) {
  const std::string key = addMatrix(9, 8, 0);
  auto module = fold(R"mlir(
    func.func @main(%x: tensor<72xf32>) -> tensor<72xf32> {
      %0 = transept.weight ")mlir" +
                     key + R"mlir(" {name = "table"} : tensor<9x8xf32>
      %1 = "transept.reshape"(%0) <{allowZero = false}> : (tensor<9x8xf32>) -> tensor<72xf32>
      %2 = transept.add %1, %x : (tensor<72xf32>, tensor<72xf32>) -> tensor<72xf32>
      return %2 : tensor<72xf32>
    })mlir");
  ASSERT_EQ(count<WeightOp>(*module), 1);
  module->walk([](WeightOp op) { EXPECT_EQ(op.getName(), "table"); });
  EXPECT_EQ(foldReport(*module).weights, 1);
  EXPECT_EQ(foldReport(*module).weightBytes, 72 * 4);
}

TEST_F(FoldTest, NothingGrowsBeyondTheBudget) {
  const std::string text = R"mlir(
    func.func @main() -> tensor<1024x512xf32> {
      %0 = transept.constant dense<1.0> : tensor<512xf32>
      %1 = transept.broadcast %0 : (tensor<512xf32>) -> tensor<1024x512xf32>
      return %1 : tensor<1024x512xf32>
    })mlir";
  EXPECT_EQ(count<BroadcastOp>(*fold(text)), 1); // 2 MiB from 2 KiB
  FoldOptions generous;
  generous.maxGrowthBytes = 2 << 20;
  EXPECT_EQ(count<BroadcastOp>(*fold(text, generous)), 0);
}

TEST_F(FoldTest, AbsurdSizesAreLeftAlone) {
  auto module = fold(R"mlir(
    func.func @main() -> (tensor<4611686018427387904x4xf32>, tensor<f32>, tensor<0x4611686018427387904x8xf32>) {
      %0 = transept.fill dense<0.0> : tensor<f32> : () -> tensor<4611686018427387904x4xf32>
      %1 = transept.constant dense<1.0> : tensor<4611686018427387904xf32>
      %2 = "transept.reduce"(%1) <{axes = array<i64: 0>, keepdims = false, kind = #transept<reduce sum>, noopWithEmptyAxes = false}>
        : (tensor<4611686018427387904xf32>) -> tensor<f32>
      %3 = transept.fill dense<0.0> : tensor<f32> : () -> tensor<0x4611686018427387904x8xf32>
      return %0, %2, %3 : tensor<4611686018427387904x4xf32>, tensor<f32>, tensor<0x4611686018427387904x8xf32>
    })mlir");
  EXPECT_EQ(foldReport(*module).foldedOps, 0);
}

TEST_F(FoldTest, WhatWouldFailIsLeftForTheRun) {
  auto module = fold(R"mlir(
    func.func @main() -> tensor<1xi64> {
      %0 = transept.constant dense<1> : tensor<1xi64>
      %1 = transept.constant dense<0> : tensor<1xi64>
      %2 = transept.div %0, %1 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
      return %2 : tensor<1xi64>
    })mlir");
  EXPECT_EQ(count<DivOp>(*module), 1);
}

TEST_F(FoldTest, SymbolsAndInputsAreNotConstant) {
  auto module = fold(R"mlir(
    func.func @main(%x: tensor<2xi64>) -> (tensor<i64>, tensor<2xi64>) {
      %0 = transept.dim_value [#transept.dim<batch>] : tensor<i64>
      %1 = transept.constant dense<1> : tensor<2xi64>
      %2 = transept.add %x, %1 : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
      return %0, %2 : tensor<i64>, tensor<2xi64>
    })mlir");
  EXPECT_EQ(count<DimValueOp>(*module), 1);
  EXPECT_EQ(count<AddOp>(*module), 1);
}

TEST_F(FoldTest, TransposesOfLargeFactorsStay) {
  const std::string large = addMatrix(40, 32, 0), small = addMatrix(10, 32, 0.5), result = addMatrix(40, 32, 3);
  auto module = fold(R"mlir(
    func.func @main(%x: tensor<2x32xf32>) -> (tensor<2x40xf32>, tensor<2x10xf32>, tensor<32x40xf32>) {
      %0 = transept.weight ")mlir" +
                     large + R"mlir(" : tensor<40x32xf32>
      %1 = "transept.transpose"(%0) <{permutation = array<i64: 1, 0>}> : (tensor<40x32xf32>) -> tensor<32x40xf32>
      %2 = transept.matmul %x, %1 : (tensor<2x32xf32>, tensor<32x40xf32>) -> tensor<2x40xf32>
      %3 = transept.weight ")mlir" +
                     small + R"mlir(" : tensor<10x32xf32>
      %4 = "transept.transpose"(%3) <{permutation = array<i64: 1, 0>}> : (tensor<10x32xf32>) -> tensor<32x10xf32>
      %5 = transept.matmul %x, %4 : (tensor<2x32xf32>, tensor<32x10xf32>) -> tensor<2x10xf32>
      %7 = transept.weight ")mlir" +
                     result + R"mlir(" : tensor<40x32xf32>
      %6 = "transept.transpose"(%7) <{permutation = array<i64: 1, 0>}> : (tensor<40x32xf32>) -> tensor<32x40xf32>
      return %2, %5, %6 : tensor<2x40xf32>, tensor<2x10xf32>, tensor<32x40xf32>
    })mlir");
  // The first feeds a product; the second is small; the third is a result.
  EXPECT_EQ(count<TransposeOp>(*module), 1);
  EXPECT_EQ(foldReport(*module).foldedOps, 2);
}

TEST_F(FoldTest, TransposedEqualWeightsAreOneAcrossFunctions) {
  const std::string table = addMatrix(64, 32, 0), head = addMatrix(32, 64, 0, true), other = addMatrix(32, 64, 7);
  auto module = fold(R"mlir(
    func.func @encoder(%i: tensor<3xi64>) -> tensor<3x32xf32> {
      %0 = transept.weight ")mlir" +
                     table + R"mlir(" {name = "table"} : tensor<64x32xf32>
      %1 = transept.gather %0, %i {axis = 0 : i64} : (tensor<64x32xf32>, tensor<3xi64>) -> tensor<3x32xf32>
      return %1 : tensor<3x32xf32>
    }
    func.func @decoder(%x: tensor<2x32xf32>) -> tensor<2x64xf32> {
      %0 = transept.weight ")mlir" +
                     head + R"mlir(" {name = "head"} : tensor<32x64xf32>
      %1 = transept.matmul %x, %0 : (tensor<2x32xf32>, tensor<32x64xf32>) -> tensor<2x64xf32>
      %2 = transept.weight ")mlir" +
                     other + R"mlir(" : tensor<32x64xf32>
      %3 = transept.matmul %x, %2 : (tensor<2x32xf32>, tensor<32x64xf32>) -> tensor<2x64xf32>
      %4 = transept.sub %1, %3 : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
      return %4 : tensor<2x64xf32>
    }
    func.func @decoder_with_past(%x: tensor<1x32xf32>) -> tensor<1x64xf32> {
      %0 = transept.weight ")mlir" +
                     head + R"mlir(" {name = "head"} : tensor<32x64xf32>
      %1 = transept.linear %x, %0 : (tensor<1x32xf32>, tensor<32x64xf32>) -> tensor<1x64xf32>
      return %1 : tensor<1x64xf32>
    })mlir");
  const FoldReport report = foldReport(*module);
  EXPECT_EQ(report.sharedTransposed, 1);
  EXPECT_EQ(report.sharedTransposedBytes, 64 * 32 * 4);
  EXPECT_EQ(report.weights, 2);
  EXPECT_EQ(report.weightBytes, 2 * 64 * 32 * 4);
  EXPECT_EQ(report.sharedEqual, 1);
  EXPECT_EQ(count<TransposeOp>(*module), 1);
  module->walk([](LinearOp op) { EXPECT_TRUE(op.getTransposed()); });
  module->walk([&](WeightOp op) { EXPECT_NE(op.getKey(), head); });
  // What they compute is what it was: the head's columns are the table's rows.
  const HostTensor x = input({1, 32}), y = run(*module, "decoder_with_past", {x});
  double expected = 0;
  for (int64_t k = 0; k < 32; ++k)
    expected += x.getDouble(k) * static_cast<double>(5 * 1000 + k);
  EXPECT_EQ(y.getDouble(5), static_cast<float>(expected));
  EXPECT_EQ(run(*module, "decoder", {input({2, 32})}).getType().getShape().vec(), (std::vector<int64_t>{2, 64}));
}

TEST_F(FoldTest, MatricesThatSomethingElseReadsAreNotShared) {
  // Both are looked up by row: neither may become the other's transpose.
  const std::string a = addMatrix(64, 32, 0), b = addMatrix(32, 64, 0, true);
  auto module = fold(R"mlir(
    func.func @main(%i: tensor<3xi64>) -> (tensor<3x32xf32>, tensor<3x64xf32>) {
      %0 = transept.weight ")mlir" +
                     a + R"mlir(" : tensor<64x32xf32>
      %1 = transept.gather %0, %i {axis = 0 : i64} : (tensor<64x32xf32>, tensor<3xi64>) -> tensor<3x32xf32>
      %2 = transept.weight ")mlir" +
                     b + R"mlir(" : tensor<32x64xf32>
      %3 = transept.gather %2, %i {axis = 0 : i64} : (tensor<32x64xf32>, tensor<3xi64>) -> tensor<3x64xf32>
      return %1, %3 : tensor<3x32xf32>, tensor<3x64xf32>
    })mlir");
  EXPECT_EQ(foldReport(*module).sharedTransposed, 0);
  EXPECT_EQ(count<TransposeOp>(*module), 0);
  EXPECT_EQ(foldReport(*module).weights, 2);
}

TEST_F(FoldTest, WeightFilesComeBack) {
  const std::string a = addMatrix(3, 1, 0), b = addMatrix(2, 2, 9);
  SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("weights", "bin", path));
  std::string error;
  ASSERT_TRUE(succeeded(WeightStore::of(&context).save(path, {a, b}, error))) << error;
  MLIRContext other;
  other.loadDialect<TranseptDialect>();
  WeightStore &store = WeightStore::of(&other);
  ASSERT_TRUE(succeeded(store.load(path, error))) << error;
  ASSERT_TRUE(store.lookup(a).type);
  EXPECT_EQ(store.lookup(b).bytes.vec(), WeightStore::of(&context).lookup(b).bytes.vec());
  EXPECT_FALSE(store.lookup("0").type);
  EXPECT_TRUE(failed(WeightStore::of(&context).save(path, {"0"}, error)));

  // Every truncation and every flipped byte is refused.
  ASSERT_TRUE(succeeded(WeightStore::of(&context).save(path, {a, b}, error)));
  auto file = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(file);
  const std::string bytes = (*file)->getBuffer().str();
  auto refused = [&](const std::string &content) {
    std::error_code code;
    llvm::raw_fd_ostream(path, code) << content;
    MLIRContext fresh;
    fresh.loadDialect<TranseptDialect>();
    return failed(WeightStore::of(&fresh).load(path, error));
  };
  for (size_t length = 0; length < bytes.size(); length += 5)
    EXPECT_TRUE(refused(bytes.substr(0, length))) << length;
  EXPECT_TRUE(refused(bytes + '\0'));
  for (size_t at = 0; at < bytes.size(); at += 3) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    EXPECT_TRUE(refused(changed)) << at;
  }
  llvm::sys::fs::remove(path);
}

} // namespace
