// Which variant of a shader a device takes, and with matrices of what size, from what it says of itself.

#include "runtime/vulkan/ChooseShaders.h"
#include "runtime/vulkan/Features.h"
#include "runtime/vulkan/Matrices.h"

#include <gtest/gtest.h>

using namespace transept;
using namespace transept::vulkan;

namespace {

/// A product with tiles of 32 rows and 64 columns in steps of 128, four matrices of sums for a subgroup; then for dot
/// products, then for all devices.
program::CodeObject product() {
  program::CodeObject code;
  program::Shader *shader = code.add_shaders();
  shader->set_group_size(128);
  shader->set_group_step(16);
  shader->set_items_per_group(1);
  program::Shader::Variant *variant = shader->add_variants();
  variant->add_features("cooperativeMatrixInt8");
  variant->set_shared_bytes(14000);
  variant->set_shared_bytes_per_invocation(4);
  program::Shader::Tile *tile = variant->mutable_tile();
  tile->set_rows(32);
  tile->set_columns(64);
  tile->set_depth(128);
  tile->set_matrices(4);
  shader->add_variants()->add_features("shaderIntegerDotProduct");
  shader->add_variants();
  return code;
}

VulkanDeviceInfo deviceWith(uint32_t subgroupSize, std::vector<MatrixSize> matrices) {
  VulkanDeviceInfo device;
  device.name = "made up";
  device.maxGroupSize = 1024;
  device.maxSharedBytes = 32768;
  device.subgroupSize = subgroupSize;
  device.matrices = std::move(matrices);
  device.features = {"shaderIntegerDotProduct", "cooperativeMatrixInt8"};
  return device;
}

ChosenShader choose(const program::CodeObject &code, const VulkanDeviceInfo &device,
                    std::optional<std::vector<std::string>> wanted = std::nullopt) {
  Result<std::vector<std::string>> usable = usableFeatures(device, wanted);
  Result<std::vector<ChosenShader>> chosen =
      usable.ok() ? chooseVariants(code, device, *usable) : Result<std::vector<ChosenShader>>(usable.status());
  if (!chosen.ok())
    throw std::runtime_error(chosen.status().message());
  return chosen->front();
}

/// "16x16x32 in 256", "dot", "plain"
std::string chosenText(const VulkanDeviceInfo &device, std::optional<std::vector<std::string>> wanted = std::nullopt) {
  program::CodeObject code = product();
  ChosenShader chosen = choose(code, device, std::move(wanted));
  if (chosen.variant->features_size() == 0)
    return "plain";
  if (!chosen.variant->has_tile())
    return "dot";
  const MatrixSize &size = chosen.matrices;
  return std::to_string(size.rows) + "x" + std::to_string(size.columns) + "x" + std::to_string(size.depth) + " in " +
         std::to_string(chosen.groupSize);
}

TEST(ChooseShaders, TakesTheLargestMatricesThatMakeTheTile) {
  // Software of Mesa, with subgroups of 8, 4 and 16; NVIDIA; AMD, with both sizes of subgroups; Intel.
  EXPECT_EQ(chosenText(deviceWith(8, {{8, 8, 8}})), "8x8x8 in 64");
  EXPECT_EQ(chosenText(deviceWith(4, {{8, 8, 8}})), "8x8x8 in 64");
  EXPECT_EQ(chosenText(deviceWith(16, {{8, 8, 8}})), "8x8x8 in 128");
  EXPECT_EQ(chosenText(deviceWith(32, {{16, 8, 32}, {16, 16, 32}})), "16x16x32 in 256");
  EXPECT_EQ(chosenText(deviceWith(32, {{16, 16, 16}})), "16x16x16 in 256");
  EXPECT_EQ(chosenText(deviceWith(64, {{16, 16, 16}})), "16x16x16 in 256");
  EXPECT_EQ(chosenText(deviceWith(32, {{8, 16, 32}})), "8x16x32 in 256");
  EXPECT_EQ(chosenText(deviceWith(16, {{8, 8, 32}})), "8x8x32 in 128");
}

TEST(ChooseShaders, LeavesMatricesThatDoNotMakeTheTile) {
  for (MatrixSize size : {MatrixSize{12, 8, 8}, {8, 24, 8}, {8, 8, 48}, {8, 8, 2}, {0, 8, 8}, {8, 0, 8}, {8, 8, 0}})
    EXPECT_EQ(chosenText(deviceWith(32, {size})), "dot") << size.rows << "x" << size.columns << "x" << size.depth;
  // Two subgroups have one column of four.
  EXPECT_EQ(chosenText(deviceWith(128, {{16, 16, 16}})), "dot");
  // Four columns, each of eight matrices: twice what a subgroup takes.
  EXPECT_EQ(chosenText(deviceWith(64, {{4, 16, 16}})), "dot");
  EXPECT_EQ(chosenText(deviceWith(0, {{16, 16, 16}})), "dot");
  EXPECT_EQ(chosenText(deviceWith(32, {})), "dot");
}

TEST(ChooseShaders, LeavesMatricesWhereAWorkgroupIsTooSmall) {
  VulkanDeviceInfo device = deviceWith(64, {{16, 16, 16}});
  device.maxGroupSize = 128; // two subgroups
  EXPECT_EQ(chosenText(device), "dot");
  device = deviceWith(64, {{16, 16, 16}});
  device.maxSharedBytes = 12000;
  EXPECT_EQ(chosenText(device), "dot");
}

TEST(ChooseShaders, MatricesAreForcedAndForbidden) {
  VulkanDeviceInfo device = deviceWith(32, {{16, 16, 32}});
  using Features = std::vector<std::string>;
  EXPECT_EQ(chosenText(device, Features{}), "plain");
  EXPECT_EQ(chosenText(device, Features{"shaderIntegerDotProduct"}), "dot");
  EXPECT_EQ(chosenText(device, Features{"cooperativeMatrixInt8"}), "16x16x32 in 256");
  device.features = {"shaderIntegerDotProduct"};
  EXPECT_EQ(chosenText(device), "dot");
  Result<Features> refused = usableFeatures(device, Features{"cooperativeMatrixInt8"});
  EXPECT_EQ(refused.status().exitCode(), 10);
  EXPECT_NE(refused.status().message().find("lacks cooperativeMatrixInt8"), std::string::npos);
}

TEST(ChooseShaders, MatricesAreThoseOfSignedBytesInASubgroup) {
  auto properties = [](uint32_t left, uint32_t right, uint32_t added, uint32_t result, uint32_t scope) {
    MatrixProperties one;
    one.rows = 16;
    one.columns = 8;
    one.depth = 32;
    one.left = left;
    one.right = right;
    one.added = added;
    one.result = result;
    one.scope = scope;
    return one;
  };
  constexpr uint32_t f16 = 0, f32 = 1, s8 = 3, s32 = 5, u8 = 7, u32 = 9, workgroup = 2, subgroup = 3;
  MatrixProperties saturates = properties(s8, s8, s32, s32, subgroup);
  saturates.saturates = VK_TRUE;
  std::vector<MatrixSize> found =
      integerMatrices({properties(f16, f16, f32, f32, subgroup), properties(u8, u8, u32, u32, subgroup),
                       properties(u8, s8, s32, s32, subgroup), properties(s8, s8, s32, s32, workgroup), saturates,
                       properties(s8, s8, s32, s32, subgroup)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rows, 16u);
  EXPECT_EQ(found[0].columns, 8u);
  EXPECT_EQ(found[0].depth, 32u);
}

TEST(ChooseShaders, MatricesStandForWhatTheirShadersNeed) {
  std::vector<std::string> all = withImplied({"cooperativeMatrixInt8", "shaderInt8"});
  for (const char *needed :
       {"vulkanMemoryModel", "vulkanMemoryModelDeviceScope", "subgroupSizeControl", "computeFullSubgroups"})
    EXPECT_EQ(std::count(all.begin(), all.end(), needed), 1) << needed;
  EXPECT_EQ(std::count(all.begin(), all.end(), "shaderInt8"), 1);
  EXPECT_EQ(withImplied({"shaderInt8"}).size(), 1u);
}

} // namespace
