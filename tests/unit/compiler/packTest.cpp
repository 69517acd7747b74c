// The weights section and the manifest of hand-written programs.
#include "codegen/Pack.h"
#include "ir/Transept.h"
#include "ir/WeightStore.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "runtime/Expr.h"
#include "runtime/VerifyManifest.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;
namespace runtime = ::transept;
namespace program = ::transept::program;

namespace {

class Pack : public testing::Test {
protected:
  Pack() { context.loadDialect<mlir::transept::TranseptDialect, kernel::KernelDialect, arith::ArithDialect>(); }

  /// A matrix whose element (i, j) is base + 100 * i + j.
  std::string add(int64_t rows, int64_t columns, float base) {
    std::vector<char> bytes(rows * columns * sizeof(float));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        float value = base + 100 * i + j;
        std::memcpy(bytes.data() + (i * columns + j) * sizeof(float), &value, sizeof(float));
      }
    auto type = RankedTensorType::get({rows, columns}, Float32Type::get(&context));
    return mlir::transept::WeightStore::of(&context).add(type, bytes);
  }

  static std::string constant(const std::string &name, const std::string &shape, const std::string &keys,
                              const std::string &transposed, const std::string &layout) {
    return name + " = kernel.buffer \"constant\" \"\" <" + shape + "> {keys = [" + keys +
           "], transposed = array<i1: " + transposed + ">, layout = \"" + layout + "\"} : <f32>\n";
  }

  ModuleOp parse(const std::string &body) {
    module = parseSourceString<ModuleOp>("kernel.program @main symbols [\"n\"] "
                                         "attributes {guards = [{lhs = #transept.dim<n>, relation = \"le\", rhs = "
                                         "#transept.dim<7>, message = \"short\"}]} {\n" +
                                             body + "}\n" + functions,
                                         &context);
    EXPECT_TRUE(module);
    return *module;
  }

  std::string write(const kernel::PackedWeights &weights) {
    std::string bytes;
    EXPECT_TRUE(weights.write([&](const void *data, uint64_t count) {
      bytes.append(static_cast<const char *>(data), count);
      return true;
    }));
    EXPECT_EQ(bytes.size(), weights.bytes());
    return bytes;
  }

  kernel::BufferOp buffer(int index) {
    std::vector<kernel::BufferOp> buffers;
    module->walk([&](kernel::BufferOp op) { buffers.push_back(op); });
    return buffers.at(index);
  }

  static float at(const std::string &bytes, uint64_t offset, uint64_t element) {
    float value;
    std::memcpy(&value, bytes.data() + offset + element * sizeof(float), sizeof(float));
    return value;
  }

  std::string functions;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

std::string inQuotes(const std::string &text) { return "\"" + text + "\""; }

TEST_F(Pack, PanelsHold64ColumnsAndAreFilledWithZeros) {
  std::string key = add(3, 70, 0), turned = add(70, 3, 1000);
  parse(constant("%0", "[2, 3, 64]", inQuotes(key), "false", "panels") +
        constant("%1", "[2, 3, 64]", inQuotes(turned), "true", "panels"));
  auto weights = kernel::PackedWeights::of(*module);
  ASSERT_TRUE(weights);
  std::string bytes = write(*weights);
  uint64_t first = weights->offsetOf(buffer(0)), second = weights->offsetOf(buffer(1));
  EXPECT_EQ(weights->bytesOf(buffer(0)), 2u * 3 * 64 * 4);
  for (int64_t k = 0; k < 3; ++k)
    for (int64_t n = 0; n < 128; ++n) {
      uint64_t element = (n / 64 * 3 + k) * 64 + n % 64;
      EXPECT_EQ(at(bytes, first, element), n < 70 ? 100 * k + n : 0);
      EXPECT_EQ(at(bytes, second, element), n < 70 ? 1000 + 100 * n + k : 0);
    }
  EXPECT_EQ(first % 256, 0u);
  EXPECT_EQ(second % 256, 0u);
  EXPECT_EQ(weights->bytes(), second + weights->bytesOf(buffer(1)) + 256);
}

TEST_F(Pack, EqualConstantsAndRunsOfPartsAreStoredOnce) {
  std::string a = add(4, 64, 0), b = add(4, 100, 1), c = add(4, 10, 2);
  std::string all = inQuotes(a) + ", " + inQuotes(b) + ", " + inQuotes(c);
  parse(constant("%0", "[2, 4, 64]", inQuotes(b), "false", "panels") +
        constant("%1", "[4, 4, 64]", all, "false, false, false", "panels") +
        constant("%2", "[3, 4, 64]", inQuotes(b) + ", " + inQuotes(c), "false, false", "panels") +
        constant("%3", "[4, 4, 64]", all, "false, false, false", "panels") +
        constant("%4", "[2, 4, 64]", inQuotes(a) + ", " + inQuotes(c), "false, false", "panels"));
  auto weights = kernel::PackedWeights::of(*module);
  ASSERT_TRUE(weights);
  uint64_t whole = weights->offsetOf(buffer(1)), partBytes = 4 * 64 * 4;
  EXPECT_EQ(weights->offsetOf(buffer(0)), whole + partBytes);
  EXPECT_EQ(weights->offsetOf(buffer(2)), whole + partBytes);
  EXPECT_EQ(weights->offsetOf(buffer(3)), whole);
  // Not adjacent in any other.
  EXPECT_EQ(weights->uniqueBytes(), (4 + 2) * partBytes);
  std::string bytes = write(*weights);
  EXPECT_EQ(at(bytes, weights->offsetOf(buffer(0)), 0), 1);
  EXPECT_EQ(at(bytes, weights->offsetOf(buffer(4)), 4 * 64), 2);
}

TEST_F(Pack, AMissingWeightIsAnInternalError) {
  parse(constant("%0", "[4, 64]", "\"no such key\"", "false", "rows"));
  auto weights = kernel::PackedWeights::of(*module);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.failure().exitCode, 70);
  EXPECT_EQ(weights.failure().message, "internal error: phase pack: there is no weight with key no such key");
}

TEST_F(Pack, TheManifestPassesTheRuntimesChecks) {
  std::string key = add(2, 3, 0);
  functions = R"(
kernel.func @map_0 symbols ["n"] from "a, b" attributes {items = #transept.dim<floordiv(n + 15, 16)>, scratch = #transept.dim<64 * n>} {
^bb0(%x: !kernel.buffer<f32>):
}
)";
  parse("%x = kernel.buffer \"input\" \"x\" <[n]> {defaultValue = dense<[1.0, 2.0]> : tensor<2xf32>} : <f32>\n" +
        std::string("%a = kernel.buffer \"arena\" \"\" <[n, 3]> at <256 * n> : <f32>\n") +
        "%s = kernel.buffer \"state\" \"cache.self\" <[n, 16]> {role = \"self-cache\"} : <i32>\n" +
        constant("%c", "[2, 3]", inQuotes(key), "false", "rows") +
        "kernel.segment arena 0 <256 * floordiv(n + 255, 256)> next 1 {\n"
        "kernel.dispatch @map_0(%x) : !kernel.buffer<f32>\n"
        "kernel.dispatch @map_0(%a) {barrier} : !kernel.buffer<f32>\n}\n");
  buffer(0).setShapeAttr(mlir::transept::DimsAttr::get(&context, {mlir::transept::dimConstant(&context, 2)}));
  (*module)->setAttr("kernel.checks", Builder(&context).getStrArrayAttr({"Gather node 'g' reads index {}"}));
  auto weights = kernel::PackedWeights::of(*module);
  ASSERT_TRUE(weights);
  kernel::ManifestInputs inputs;
  inputs.producer = "test";
  inputs.weightsSection = "weights";
  auto manifest = kernel::makeManifest(*module, *weights, inputs);
  ASSERT_TRUE(manifest) << manifest.failure().message;

  runtime::SectionInfo section;
  section.name = "weights";
  section.kind = runtime::SectionKind::Weights;
  section.bytes = weights->bytes();
  EXPECT_EQ(runtime::verifyManifest(*manifest, {section}).message(), "");
  const program::Entry &entry = manifest->entries(0);
  ASSERT_EQ(entry.dispatches_size(), 2);
  EXPECT_FALSE(entry.dispatches(0).barrier());
  EXPECT_TRUE(entry.dispatches(1).barrier());
  std::vector<int64_t> values = {100};
  runtime::Span<const int64_t> symbols(values.data(), values.size());
  EXPECT_EQ(*runtime::evaluateExpr(entry.dispatches(0).items(), symbols), 7);
  EXPECT_EQ(*runtime::evaluateExpr(entry.dispatches(0).sizes(0), symbols), 100);
  EXPECT_EQ(*runtime::evaluateExpr(entry.segments(0).arena_bytes(), symbols), 256);
  EXPECT_EQ(*runtime::evaluateExpr(entry.buffers(1).bytes(), symbols), 1200);
  EXPECT_EQ(*runtime::evaluateExpr(manifest->kernels(0).scratch_bytes(), symbols), 6400);
  EXPECT_EQ(entry.buffers(0).default_value().size(), 8u);
  EXPECT_EQ(entry.guards(0).relation(), program::Guard::LE);
  EXPECT_EQ(entry.guards(0).message(), "short");
  EXPECT_EQ(manifest->states(0).role(), "self-cache");
  EXPECT_EQ(manifest->states(0).dtype(), program::I32);
  EXPECT_EQ(manifest->generation_symbols(0).name(), "n");
  EXPECT_EQ(manifest->checks(0).message(), "Gather node 'g' reads index {}");
  EXPECT_EQ(manifest->unique_weight_bytes(), 24u);
}

TEST_F(Pack, ExpressionsKeepTheirValue) {
  using namespace mlir::transept;
  for (const char *text :
       {"n", "3 * n * m + 2", "floordiv(n + -7, 4) * mod(m, 5)", "min(n, m, 9)", "max(n, 2 * m) + n"}) {
    auto dim = cast<DimAttr>(parseAttribute("#transept.dim<" + std::string(text) + ">", &context));
    llvm::StringMap<int64_t> values;
    values["m"] = 13;
    values["n"] = 4;
    std::vector<int64_t> list = {13, 4};
    program::Expr expr = kernel::makeExpr(dim, {"m", "n"});
    ASSERT_TRUE(runtime::verifyExpr(expr, 2).ok()) << text;
    EXPECT_EQ(*runtime::evaluateExpr(expr, {list.data(), list.size()}), *evaluate(dim, values)) << text;
  }
}

} // namespace
