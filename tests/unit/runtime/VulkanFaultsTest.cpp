// What a user sees where Vulkan, its device or the artifact's shaders are not what they should be.

#include "ShaderText.h"
#include "TwiceModel.h"
#include "VulkanModel.h"

#include "runtime/Session.h"

#include <filesystem>

using namespace transept;
using namespace transept::tests;

namespace {

const SymbolValues generation = {{"batch", 2}, {"source", 5}, {"rows", 6}};

class VulkanErrors : public VulkanFixture {
protected:
  /// Expects that loading fails with this code and all these words.
  void refused(const Result<std::shared_ptr<const Model>> &model, int exitCode, const std::vector<std::string> &words) {
    EXPECT_EQ(model.status().exitCode(), exitCode) << model.status().message();
    for (const std::string &word : words)
      EXPECT_NE(model.status().message().find(word), std::string::npos) << word << ": " << model.status().message();
  }

  Status runStep(const Model &model) {
    Result<std::unique_ptr<Session>> session = model.createSession({1, generation});
    return session.ok() ? (*session)->run("step") : session.status();
  }
};

TEST_F(VulkanErrors, WithoutALoaderOrDriver) {
  ModelOptions absent = options();
  absent.vulkan.loader = folder.path("libvulkan.so.1");
  refused(load({}, absent), 10, {"cannot load the Vulkan library", "libvulkan.so.1", "--device cpu"});
  absent.vulkan.loader = TRANSEPT_TEST_KERNELS;
  refused(load({}, absent), 10, {"is no Vulkan library"});
  EXPECT_EQ(listVulkanDevices(absent.vulkan).status().exitCode(), 10);
}

TEST_F(VulkanErrors, UnknownDevicesAreNamedWithThoseThatThereAre) {
  ModelOptions other = options();
  other.device = "vulkan:99";
  refused(load({}, other), 10, {"there is no device vulkan:99; there are: 0: "});
  faults.noDevices = true;
  refused(load(), 10, {"there is no device vulkan:0; there are: none"});
  for (const char *name : {"gpu", "vulkan", "vulkan:", "vulkan:x", "vulkan:-1", "vulkan:0 ", "cpu:0"}) {
    other.device = name;
    refused(load({}, other), 2, {"unknown device", "cpu, vulkan:0"});
  }
  other.device = "vulkan:0";
  other.cpu = "avx2";
  refused(load({}, other), 2, {"a CPU level was asked for"});
}

TEST_F(VulkanErrors, DevicesThatAreTooOldOrLackWhatIsNeeded) {
  faults.apiVersion = 1u << 22 | 1u << 12; // 1.1
  refused(load(), 10, {"vulkan:0", "it has Vulkan 1.1.0, 1.2 is needed"});
  EXPECT_NE(listVulkanDevices(options().vulkan)->front().problem, "");
  faults.apiVersion = 0;
  faults.noAddresses = true;
  refused(load(), 10, {"it lacks bufferDeviceAddress"});
  faults.noAddresses = false;
  EXPECT_EQ(listVulkanDevices(options().vulkan)->front().problem, "");
  VulkanProgram wide;
  wide.code().add_features("shaderFloat64");
  EXPECT_TRUE(load(wide).ok());
  faults.noFloat64 = true;
  refused(load(wide), 10, {"level 'fp32' needs shaderFloat64, which it lacks; it has shaderInt64, "});
  faults.noFloat64 = false;
  wide.code().add_features("shaderTelepathy");
  refused(load(wide), 10, {"needs shaderTelepathy, which it lacks"});
}

TEST_F(VulkanErrors, TheProcessorIsNeverEnteredSilently) {
  std::string path = folder.path("cpu.tsp");
  ASSERT_TRUE(writeArtifact(path, twiceSections()).ok());
  refused(Model::load(path, options()), 7, {"holds no Vulkan code, only for: cpu x86-64"});
  ModelOptions choice = options();
  choice.device = "";
  EXPECT_EQ((*Model::load(path, choice))->device().name(), "cpu");
  EXPECT_EQ((*load({}, choice))->level(), "fp32"); // all that it has
  choice.device = "cpu";
  refused(load({}, choice), 7, {"holds no CPU code, only for: vulkan fp32"});
}

TEST_F(VulkanErrors, RefusedMemoryIsExitCode9WhereverItHappens) {
  ASSERT_TRUE(runStep(*model()).ok());
  int needed = faults.allocations, refusals = 0;
  for (int allowed = 0; allowed < needed; ++allowed) {
    faults.failAllocationAfter = allowed;
    Result<std::shared_ptr<const Model>> loaded = load();
    Status status = loaded.ok() ? runStep(**loaded) : loaded.status();
    EXPECT_EQ(status.exitCode(), 9) << allowed << ": " << status.message();
    EXPECT_NE(status.message().find("cannot allocate"), std::string::npos) << status.message();
    refusals += !status.ok();
  }
  EXPECT_EQ(refusals, needed);
  EXPECT_GE(needed, 7); // weights, states, arena, error word, tables
  faults.failAllocationAfter = -1;
  EXPECT_TRUE(runStep(*model()).ok());
}

TEST_F(VulkanErrors, AfterARefusalASessionStaysAsItWas) {
  auto session = model()->createSession({1, generation}).take();
  *session->state("live").as<int32_t>() = 1;
  *session->state("token").as<int64_t>() = 5;
  faults.failAllocationAfter = 0;
  EXPECT_EQ(session->resize({{"batch", 64}, {"source", 64}, {"rows", 64}}).exitCode(), 9);
  faults.failAllocationAfter = -1;
  ASSERT_TRUE(session->run("step").ok());
  EXPECT_EQ(*session->state("sum").as<float>(), 5);
}

TEST_F(VulkanErrors, ALostDeviceEndsTheModelAndNothingElse) {
  for (std::atomic<bool> *fault : {&faults.loseOnSubmit, &faults.loseOnWait}) {
    auto loaded = model();
    auto session = loaded->createSession({1, generation}).take();
    ASSERT_TRUE(session->run("step").ok());
    *fault = true;
    Status status = session->run("step");
    EXPECT_EQ(status.exitCode(), 10);
    EXPECT_NE(status.message().find("was lost"), std::string::npos) << status.message();
    *fault = false;
    EXPECT_EQ(session->run("step").exitCode(), 10);
    EXPECT_EQ(runStep(*loaded).exitCode(), 10); // a new session of the same model
    EXPECT_TRUE(runStep(*model()).ok());        // the model anew
  }
}

TEST_F(VulkanErrors, AlteredShadersAreRefused) {
  struct Case {
    const char *words;
    std::function<void(std::vector<uint32_t> &)> alter;
  };
  auto find = [](std::vector<uint32_t> &module, uint32_t opcode) {
    size_t at = 5;
    while ((module[at] & 0xffff) != opcode)
      at += module[at] >> 16;
    return module.begin() + static_cast<std::ptrdiff_t>(at);
  };
  const Case cases[] = {
      {"is no SPIR-V module", [](auto &module) { module[0] ^= 1; }},
      {"is no SPIR-V module", [](auto &module) { module.resize(3); }},
      {"unknown version", [](auto &module) { module[1] = 0x00010600; }},
      {"malformed", [](auto &module) { module[3] = 0xffffffff; }},
      {"ends inside an instruction",
       [](auto &module) {
         module.pop_back();
         module.back() = 3 << 16;
       }},
      {"ends inside an instruction", [](auto &module) { module.push_back(0); }},
      {"entry point", [&](auto &module) { find(module, 15)[3] ^= 1; }},
      {"entry point", [&](auto &module) { find(module, 15)[1] = 4; }},
      {"another size than 4", [&](auto &module) { find(module, 16)[3] = 5; }},
      {"memory model", [&](auto &module) { find(module, 14)[1] = 0; }},
      {"memory model", [&](auto &module) { find(module, 14)[2] = 3; }}, // Vulkan's, without its feature
      {"uses cooperativeMatrixInt8, which its code object does not name",
       [&](auto &module) { find(module, 17)[1] = 6022; }},
      {"uses shaderFloat64, which its code object does not name", [&](auto &module) { find(module, 17)[1] = 10; }},
      {"capability 4444444", [&](auto &module) { find(module, 17)[1] = 4444444; }},
      {"not one compute shader", [&](auto &module) { module.resize(5); }},
  };
  for (const Case &row : cases) {
    VulkanProgram program;
    row.alter(program.modules[3]);
    refused(load(program), 7, {"shader 3", row.words});
  }
  VulkanProgram wide;
  wide.code().mutable_shaders(3)->set_group_size(1024);
  wide.modules[3] = assembleShader(ShaderBody(), 1024, 4);
  EXPECT_TRUE(load(wide).ok());
}

TEST_F(VulkanErrors, ShadersInTheManifestAreVerified) {
  struct Case {
    const char *words;
    std::function<void(program::CodeObject &)> alter;
  };
  auto variant = [](program::CodeObject &code, int shader) -> program::Shader::Variant & {
    return *code.mutable_shaders(shader)->mutable_variants(0);
  };
  auto tile = [&](program::CodeObject &code, uint32_t depth, uint32_t perGroup) -> program::Shader::Tile & {
    code.mutable_shaders(1)->set_items_per_group(perGroup);
    program::Shader::Tile *made = variant(code, 1).mutable_tile();
    made->set_rows(32);
    made->set_columns(64);
    made->set_depth(depth);
    made->set_matrices(4);
    *made->mutable_items() = code.shaders(1).items();
    return *made;
  };
  const Case cases[] = {
      {"3 shaders for 4 kernels", [](auto &code) { code.mutable_shaders()->RemoveLast(); }},
      {"lies at 2", [&](auto &code) { variant(code, 0).set_offset(2); }},
      {"with 6 bytes", [&](auto &code) { variant(code, 0).set_bytes(6); }},
      {"with 0 bytes", [&](auto &code) { variant(code, 0).set_bytes(0); }},
      {"bytes in a section of", [&](auto &code) { variant(code, 3).set_offset(uint64_t(1) << 40); }},
      {"bytes in a section of", [&](auto &code) { variant(code, 3).set_bytes(~uint64_t(3)); }},
      {"shares 2097152 bytes", [&](auto &code) { variant(code, 1).set_shared_bytes(2 << 20); }},
      {"and 2097152 per", [&](auto &code) { variant(code, 1).set_shared_bytes_per_invocation(2 << 20); }},
      {"no variant for every device", [&](auto &code) { variant(code, 1).add_features("shaderInt8"); }},
      {"no variant for every device", [](auto &code) { code.mutable_shaders(2)->clear_variants(); }},
      {"groups of 0", [](auto &code) { code.mutable_shaders(1)->set_group_size(0); }},
      {"groups of 1025", [](auto &code) { code.mutable_shaders(1)->set_group_size(1025); }},
      {"in steps of 1025", [](auto &code) { code.mutable_shaders(1)->set_group_step(1025); }},
      {"tiles of 32 x 64 x 0", [&](auto &code) { tile(code, 0, 1); }},
      {"tiles of 32 x 64 x 1025", [&](auto &code) { tile(code, 1025, 1); }},
      {"4 matrices for a subgroup and 16 for a workgroup", [&](auto &code) { tile(code, 128, 16); }},
      {"code for vulkan", [&](auto &code) { tile(code, 128, 1).clear_items(); }},
      {"code for vulkan", [](auto &code) { code.mutable_shaders(1)->clear_items(); }},
      {"code for vulkan", [](auto &code) { *code.mutable_shaders(3)->mutable_items() = postfix("b", {"a", "b"}); }},
      {"no code in section", [](auto &code) { code.set_section("weights"); }},
      {"no code in section", [](auto &code) { code.set_target("cpu"); }},
  };
  for (const Case &row : cases) {
    VulkanProgram program;
    std::vector<ArtifactSection> sections = program.sections(); // fills in places
    row.alter(program.code());
    sections[0] = ArtifactSection::fromBytes("manifest", SectionKind::Manifest, program.manifest.SerializeAsString());
    std::string path = folder.path("altered.tsp");
    ASSERT_TRUE(writeArtifact(path, sections).ok());
    refused(Model::load(path, options()), 7, {row.words});
  }
}

TEST_F(VulkanErrors, NegativeItemsAreRefused) {
  VulkanProgram program;
  *program.code().mutable_shaders(3)->mutable_items() = postfix("size0 -100 +", {"size0"});
  EXPECT_EQ(runStep(*model(program)).exitCode(), 7);
}

TEST_F(VulkanErrors, TheValidationLayerIsHeard) {
  // A load without its alignment: spirv-val objects, the runtime's own check does not look.
  ShaderBody body;
  std::string place = body.add("pointer_f32", "OpConvertUToPtr %buffers");
  body.add("f32", "OpLoad " + place);
  VulkanProgram program;
  program.modules[3] = assembleShader(body, 4, 4, false);
  Status status = runStep(*model(program));
  EXPECT_EQ(status.exitCode(), 10);
  EXPECT_NE(status.message().find("the validation layer says"), std::string::npos) << status.message();
}

class VulkanPipelines : public VulkanErrors {
protected:
  /// Runs a step of a model with a cache in `cache()`; returns how many bytes the driver was given.
  uint64_t runWithCache() {
    ModelOptions cached = options();
    cached.vulkan.cacheFolder = cache();
    Result<std::shared_ptr<const Model>> loaded = load({}, cached);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    uint64_t given = faults.cacheDataBytes;
    Status status = runStep(**loaded);
    EXPECT_TRUE(status.ok()) << status.message();
    return given;
  }

  std::string cache() const { return folder.path("cache/transept"); }

  std::string file() const {
    std::filesystem::directory_iterator files(cache()), end;
    EXPECT_EQ(std::distance(files, end), 1);
    return std::filesystem::directory_iterator(cache())->path().string();
  }
};

TEST_F(VulkanPipelines, AreMadeWhenTheyAreUsedAndKept) {
  EXPECT_EQ(runWithCache(), 0u);
  EXPECT_EQ(faults.pipelines, 1); // of four kernels
  std::string first = readFile(file());
  EXPECT_EQ(runWithCache(), first.size() - 72);
}

TEST_F(VulkanPipelines, ADamagedOrForeignCacheIsIgnored) {
  runWithCache();
  const std::string path = file(), good = readFile(path);
  for (size_t at : {size_t(0), size_t(20), size_t(50), good.size() - 1}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    writeFile(path, bad);
    EXPECT_EQ(runWithCache(), 0u) << at;
    EXPECT_EQ(readFile(path), good) << at; // written anew
  }
  for (const std::string &bad : {std::string(), good.substr(0, 71), good.substr(0, 72), good + "x"}) {
    writeFile(path, bad);
    EXPECT_EQ(runWithCache(), 0u) << bad.size();
  }
  faults.refuseCacheData = true; // the driver has the last word
  EXPECT_EQ(runWithCache(), 0u);
}

TEST_F(VulkanPipelines, AFolderThatCannotBeWrittenIsNoError) {
  writeFile(folder.path("cache"), "a file where a folder should be");
  EXPECT_EQ(runWithCache(), 0u);
  EXPECT_EQ(readFile(folder.path("cache")), "a file where a folder should be");
}

} // namespace
