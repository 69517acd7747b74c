// Which variant of a shader runs, and in workgroups of what size.

#include "ShaderText.h"
#include "VulkanModel.h"

#include "runtime/Session.h"

#include <cstring>

using namespace transept;
using namespace transept::tests;

namespace {

/// sum = number, in every row.
std::vector<uint32_t> constantShader(int64_t number, bool declaresDot) {
  ShaderBody body;
  body.store("f32", 2, body.item(), body.add("f32", "OpConvertSToF " + body.constant(number)));
  std::vector<uint32_t> module = assembleShader(body, 4, 4);
  if (!declaresDot)
    return module;
  // Behind the three capabilities, a fourth one, and the extension that it belongs to.
  const char extension[28] = "SPV_KHR_integer_dot_product";
  std::vector<uint32_t> words = {2u << 16 | 17, 6016 /* DotProductInputAll */, 8u << 16 | 10 /* OpExtension */};
  words.resize(3 + sizeof extension / sizeof(uint32_t));
  std::memcpy(words.data() + 3, extension, sizeof extension);
  module.insert(module.begin() + 11, words.begin(), words.end());
  return module;
}

class VulkanVariants : public VulkanFixture {
protected:
  /// The kernel of @step says which of its variants runs: 1, the plain one, or 2, which needs integer dot products.
  static VulkanProgram twoVariants() {
    VulkanProgram program;
    program.modules[3] = constantShader(1, /*declaresDot=*/false);
    return program;
  }

  Result<std::shared_ptr<const Model>> loadTwo(const ModelOptions &options) {
    VulkanProgram program = twoVariants();
    std::vector<ArtifactSection> sections = program.sections();
    // The better one lies behind all others.
    const program::Shader &first = program.code().shaders(3);
    std::vector<uint32_t> better = constantShader(2, /*declaresDot=*/true);
    const uint64_t end = first.variants(0).offset() + first.variants(0).bytes();
    program::Shader *shader = program.code().mutable_shaders(3);
    program::Shader::Variant plain = shader->variants(0);
    program::Shader::Variant *variant = shader->mutable_variants(0);
    variant->set_offset(end);
    variant->set_bytes(better.size() * sizeof(uint32_t));
    variant->add_features("shaderIntegerDotProduct");
    *shader->add_variants() = plain;
    std::string bytes;
    for (size_t i = 0; i < program.modules.size(); ++i)
      bytes.append(reinterpret_cast<const char *>(program.modules[i].data()), program.modules[i].size() * 4);
    bytes.append(reinterpret_cast<const char *>(better.data()), better.size() * 4);
    sections[0] = ArtifactSection::fromBytes("manifest", SectionKind::Manifest, program.manifest.SerializeAsString());
    sections[1] = ArtifactSection::fromBytes("code/vulkan", SectionKind::Spirv, bytes);
    std::string path = folder.path("two.tsp");
    Status written = writeArtifact(path, sections);
    return written.ok() ? Model::load(path, options) : Result<std::shared_ptr<const Model>>(written);
  }

  float variantThatRuns(const ModelOptions &options) {
    Result<std::shared_ptr<const Model>> model = loadTwo(options);
    if (!model.ok())
      throw std::runtime_error(model.status().message());
    auto session = (*model)->createSession({1, {{"batch", 2}, {"source", 5}, {"rows", 6}}}).take();
    if (Status status = session->run("step"); !status.ok())
      throw std::runtime_error(status.message());
    return session->state("sum").as<float>()[5];
  }

  /// main of tinyManifest() with the first kernel's workgroups chosen by the runtime; how many of them it takes.
  int groupsOfMain(int64_t n) {
    VulkanProgram program;
    program::Shader *shader = program.code().mutable_shaders(0);
    shader->set_group_step(step);
    shader->set_items_per_group(0);
    shader->set_group_size(8);
    ShaderBody body;
    std::string x = body.load("f32", 0, body.item()), factor = body.load("f32", 1, body.constant(0));
    body.store("f32", 2, body.item(), body.add("f32", "OpFMul " + x + " " + factor));
    program.modules[0] = assembleShader(body, 8, /*itemsPerGroup=*/0);
    program.code().mutable_shaders(0)->add_variants()->set_shared_bytes_per_invocation(sharedEach);
    faults.maxGroups = 1; // every workgroup is a dispatch
    Result<std::shared_ptr<const Model>> loaded = load(program);
    status = loaded.status();
    if (!loaded.ok())
      return -1;
    auto session = (*loaded)->createSession({1, {{"batch", 2}, {"source", 5}, {"rows", 6}}}).take();
    std::vector<float> values(static_cast<size_t>(4 * n), 3);
    std::vector<int64_t> ids(static_cast<size_t>(n), 1), xDims = {n, 4}, idDims = {n};
    int before = faults.dispatches;
    status = session->run("main", {{view("x", xDims, values), view("ids", idDims, ids)}, {}});
    TensorView y = session->output("y");
    for (int64_t i = 0; status.ok() && i < 4 * n; ++i)
      EXPECT_EQ(y.as<float>()[i], 6 + 10 + static_cast<float>(i % 4));
    return faults.dispatches - before - static_cast<int>((4 * n + 15) / 16); // those of the second kernel
  }

  uint32_t step = 1, sharedEach = 0;
  Status status;
};

TEST_F(VulkanVariants, TheFirstThatTheDeviceCanRun) {
  EXPECT_EQ(variantThatRuns(options()), 2);
  faults.noIntegerDot = true;
  EXPECT_EQ(variantThatRuns(options()), 1);
}

TEST_F(VulkanVariants, AreChosenByNameForTests) {
  ModelOptions chosen = options();
  chosen.vulkan.features.emplace();
  EXPECT_EQ(variantThatRuns(chosen), 1);
  *chosen.vulkan.features = {"shaderIntegerDotProduct"};
  EXPECT_EQ(variantThatRuns(chosen), 2);
  faults.noIntegerDot = true;
  Result<std::shared_ptr<const Model>> refused = loadTwo(chosen);
  EXPECT_EQ(refused.status().exitCode(), 10);
  EXPECT_NE(refused.status().message().find("lacks shaderIntegerDotProduct"), std::string::npos)
      << refused.status().message();
  *chosen.vulkan.features = {"shaderInt16"};
  refused = loadTwo(chosen);
  EXPECT_EQ(refused.status().exitCode(), 2);
  EXPECT_NE(refused.status().message().find("no shader has a variant for 'shaderInt16'"), std::string::npos)
      << refused.status().message();
}

TEST_F(VulkanVariants, WorkgroupsHaveSeveralSubgroups) {
  // 1024 elements; eight subgroups, between 64 and 256 invocations
  for (auto [subgroup, groups] : {std::pair(2u, 16), {8u, 16}, {16u, 8}, {32u, 4}, {64u, 4}}) {
    faults.subgroupSize = subgroup;
    EXPECT_EQ(groupsOfMain(256), groups) << subgroup << ": " << status.message();
  }
}

TEST_F(VulkanVariants, WorkgroupsKeepTheLimitsOfTheDevice) {
  faults.subgroupSize = 32;
  faults.maxGroupSize = 128;
  EXPECT_EQ(groupsOfMain(256), 8) << status.message();
  sharedEach = 256;
  faults.maxSharedBytes = 16384;
  EXPECT_EQ(groupsOfMain(256), 16) << status.message();
  step = 48; // 96 would be too many
  EXPECT_EQ(groupsOfMain(96), 8) << status.message();
  faults.maxSharedBytes = 8192;
  EXPECT_EQ(groupsOfMain(96), -1);
  EXPECT_EQ(status.exitCode(), 10);
  EXPECT_NE(status.message().find("workgroups of 48 that share 12288 bytes"), std::string::npos) << status.message();
}

} // namespace
