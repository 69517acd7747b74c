// Shaders as words: valid SPIR-V, and with matrices of subgroups whose sizes the pipeline says.
#include "codegen/Codegen.h"
#include "ir/Kernel.h"
#include "ir/Transept.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "transept/abi.h"
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <spirv-tools/libspirv.hpp>

using mlir::kernel::VulkanCode;

namespace {

// Rows of 100 with two parts; the epilogue of the first one looks into a table, and reports positions outside of it.
const char *product = R"(
kernel.func @product symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<X>, %w: !kernel.buffer<i8>, %b: !kernel.buffer<SUM>, %y: !kernel.buffer<SUM>, %z: !kernel.buffer<SUM>):
  kernel.contract rows #transept.dim<rows> k 100 parts [100, 64]
      shapes [#transept.dims<[rows, 100]>, #transept.dims<[3, 25, 64, 4]>, #transept.dims<[164]>, #transept.dims<[rows, 100]>,
              #transept.dims<[rows, 64]>] ins(%x, %w, %b) outs(%y, %z) ATTRIBUTES {
  ^bb1(%i: index, %j: index, %s: SUM, %ba: !kernel.buffer<SUM>):
    %size = arith.constant 164 : index
    %place = arith.addi %i, %j : index
    %inside = kernel.bounded %place below %size reports %place check "places" {id = 4 : i64}
    %0 = kernel.load %ba[%inside] : !kernel.buffer<SUM> -> SUM
    %1 = ADD %s, %0 : SUM
    kernel.yield %1 : SUM
  }, {
  ^bb1(%i: index, %j: index, %s: SUM, %ba: !kernel.buffer<SUM>):
    kernel.yield %s : SUM
  } : (!kernel.buffer<X>, !kernel.buffer<i8>, !kernel.buffer<SUM>, !kernel.buffer<SUM>, !kernel.buffer<SUM>) -> ()
}
)";

std::string replaced(std::string text, const std::string &word, const std::string &by) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
  return text;
}

/// `isQuantised`: rows of floats that are rounded; else rows of integers.
std::string productText(bool isQuantised) {
  std::string text = replaced(product, "SUM", isQuantised ? "f32" : "i32");
  text = replaced(text, "ADD", isQuantised ? "arith.addf" : "arith.addi");
  text = replaced(text, "<X>", isQuantised ? "<f32>" : "<i8>");
  return replaced(text, "ATTRIBUTES", isQuantised ? "attributes {quantised}" : "");
}

class Shaders : public testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    context.loadDialect<mlir::kernel::KernelDialect, mlir::transept::TranseptDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect, mlir::scf::SCFDialect>();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(productText(GetParam()), &context);
    ASSERT_TRUE(module && succeeded(mlir::kernel::scheduleVulkan(*module)));
    mlir::OwningOpRef<mlir::ModuleOp> lowered = mlir::kernel::lowerVulkan(*module);
    ASSERT_TRUE(bool(lowered));
    auto emitted = mlir::kernel::emitLoweredVulkan(*lowered);
    ASSERT_TRUE(succeeded(emitted) && emitted->shaders.size() == 1);
    code = std::move(*emitted);
  }

  std::vector<uint32_t> words(const VulkanCode::Variant &variant) const {
    std::vector<uint32_t> words(variant.bytes / sizeof(uint32_t));
    std::memcpy(words.data(), code.bytes.data() + variant.offset, variant.bytes);
    return words;
  }

  const std::vector<VulkanCode::Variant> &variants() const { return code.shaders.front(); }

  VulkanCode code;
};

using Instruction = std::vector<uint32_t>; // its operands
std::multimap<uint32_t, Instruction> instructionsOf(const std::vector<uint32_t> &words) {
  std::multimap<uint32_t, Instruction> all;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16)
    all.emplace(words[at] & 0xffff, Instruction(&words[at] + 1, &words[at] + (words[at] >> 16)));
  return all;
}

std::vector<Instruction> all(const std::multimap<uint32_t, Instruction> &instructions, uint32_t opcode) {
  std::vector<Instruction> found;
  for (auto [at, end] = instructions.equal_range(opcode); at != end; ++at)
    found.push_back(at->second);
  return found;
}

enum Opcode : uint32_t {
  OpMemoryModel = 14,
  OpCapability = 17,
  OpConstant = 43,
  OpSpecConstant = 50,
  OpDecorate = 71,
  OpTypeCooperativeMatrix = 4456,
  OpCooperativeMatrixMulAdd = 4459
};

TEST_P(Shaders, ComeWithTheBestFirst) {
  ASSERT_EQ(variants().size(), 3u);
  EXPECT_EQ(variants()[0].features, std::vector<std::string>{"cooperativeMatrixInt8"});
  EXPECT_EQ(variants()[1].features, std::vector<std::string>{"shaderIntegerDotProduct"});
  EXPECT_TRUE(variants()[2].features.empty());
  // 16384 bytes are the least that devices have, and a workgroup has at most 256 invocations.
  EXPECT_LE(variants()[0].sharedBytes + 256 * variants()[0].sharedBytesPerInvocation, 16384u);
}

TEST_P(Shaders, SizesOfMatricesAreConstantsOfThePipeline) {
  const std::multimap<uint32_t, Instruction> instructions = instructionsOf(words(variants()[0]));
  std::set<uint32_t> capabilities;
  for (const Instruction &capability : all(instructions, OpCapability))
    capabilities.insert(capability[0]);
  constexpr uint32_t vulkanMemoryModel = 5345, cooperativeMatrix = 6022;
  EXPECT_TRUE(capabilities.count(vulkanMemoryModel) && capabilities.count(cooperativeMatrix));
  EXPECT_EQ(all(instructions, OpMemoryModel), std::vector<Instruction>({{5348, 3}})); // 64-bit addresses, Vulkan

  std::map<uint32_t, uint32_t> identifiers, constants; // by id
  constexpr uint32_t specId = 1;
  for (const Instruction &decoration : all(instructions, OpDecorate))
    if (decoration[1] == specId)
      identifiers[decoration[0]] = decoration[2];
  for (const Instruction &constant : all(instructions, OpSpecConstant))
    EXPECT_NE(constant[2], 0u);
  for (const Instruction &constant : all(instructions, OpConstant))
    constants[constant[1]] = constant[2];
  // By use (0 A, 1 B, 2 sums): which constants of the pipeline are rows and columns.
  const std::pair<uint32_t, uint32_t> sizes[] = {{TRANSEPT_SHADER_MATRIX_ROWS, TRANSEPT_SHADER_MATRIX_DEPTH},
                                                 {TRANSEPT_SHADER_MATRIX_DEPTH, TRANSEPT_SHADER_MATRIX_COLUMNS},
                                                 {TRANSEPT_SHADER_MATRIX_ROWS, TRANSEPT_SHADER_MATRIX_COLUMNS}};
  const std::vector<Instruction> types = all(instructions, OpTypeCooperativeMatrix);
  ASSERT_EQ(types.size(), 3u);
  for (const Instruction &type : types) { // result, element, scope, rows, columns, use
    EXPECT_EQ(constants.at(type[2]), 3u); // subgroup
    const uint32_t use = constants.at(type[5]);
    ASSERT_LT(use, 3u);
    EXPECT_EQ(identifiers[type[3]], sizes[use].first) << use;
    EXPECT_EQ(identifiers[type[4]], sizes[use].second) << use;
  }
  for (const Instruction &product : all(instructions, OpCooperativeMatrixMulAdd))
    EXPECT_EQ(product.back(), 15u); // all signed, and sums wrap around
}

/// What spirv-val says; empty where it has no objection.
std::string objection(const std::vector<uint32_t> &words) {
  std::string said;
  spvtools::SpirvTools validator(SPV_ENV_VULKAN_1_2);
  validator.SetMessageConsumer(
      [&](spv_message_level_t, const char *, const spv_position_t &, const char *message) { said += message; });
  return validator.Validate(words) ? "" : "spirv-val: " + said;
}

// SPIRV-Tools that do not know SPV_KHR_cooperative_matrix, those of Debian 12, stop at its capability.
TEST_P(Shaders, AreValid) {
  std::vector<uint32_t> assembled;
  const bool known = spvtools::SpirvTools(SPV_ENV_VULKAN_1_2).Assemble("OpCapability CooperativeMatrixKHR", &assembled);
  for (const VulkanCode::Variant &variant : variants()) {
    const bool matrices = variant.features == std::vector<std::string>{"cooperativeMatrixInt8"};
    EXPECT_EQ(objection(words(variant)), known || !matrices ? "" : "spirv-val: Invalid capability operand: 6022");
  }
}

INSTANTIATE_TEST_SUITE_P(Products, Shaders, testing::Bool(),
                         [](const auto &info) { return info.param ? "Rounded" : "Integers"; });

} // namespace
