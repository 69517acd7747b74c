#include "runtime/CodeObject.h"

#include "TinyModel.h"
#include "TwiceModel.h"
#include "runtime/CpuFeatures.h"

#include <gtest/gtest.h>

#include <elf.h>

using namespace transept;
using namespace transept::tests;

namespace {

program::Manifest threeLevels() {
  program::Manifest manifest;
  for (const char *level : {"x86-64", "avx2", "avx512"}) {
    program::CodeObject *code = manifest.add_code();
    code->set_target("cpu");
    code->set_level(level);
  }
  manifest.mutable_code(2)->add_features("avx512vnni");
  return manifest;
}

using Features = std::vector<std::string>;

Features with(Features features, const Features &more) {
  features.insert(features.end(), more.begin(), more.end());
  return features;
}

const Features haswell = {"sse2", "sse4.2", "popcnt", "fma", "avx", "f16c", "bmi", "avx2", "bmi2"},
               skylake = with(haswell, {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"}),
               cascadeLake = with(skylake, {"avx512vnni"}),
               excavator = {"sse2", "sse4.2", "popcnt", "fma", "avx", "f16c", "bmi", "avx2"};

std::string chosen(const std::string &wanted, const std::vector<std::string> &features) {
  program::Manifest manifest = threeLevels();
  Result<const program::CodeObject *> code = chooseCode(manifest, wanted, features);
  return code.ok() ? (*code)->level() : code.status().message();
}

TEST(CodeObject, TheBestLevelThatRunsIsChosen) {
  EXPECT_EQ(chosen("", {"sse2"}), "x86-64");
  EXPECT_EQ(chosen("", haswell), "avx2");
  EXPECT_EQ(chosen("", excavator), "x86-64"); // fused multiply-add, but not every instruction of the level
  EXPECT_EQ(chosen("", skylake), "avx2");     // this artifact's avx512 code wants more
  EXPECT_EQ(chosen("", cascadeLake), "avx512");
  EXPECT_EQ(chosen("avx2", cascadeLake), "avx2");
  EXPECT_EQ(chosen("x86-64", cascadeLake), "x86-64");
}

TEST(CodeObject, NoCodeForTheArchitectureIsAnErrorThatNamesBothSides) {
  std::string message = chosen("", {"neon"});
  for (const char *part : {"'avx512' needs avx512f", "'avx2' needs avx2", "'x86-64' needs sse2"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(CodeObject, MissingFeaturesAreNamed) {
  EXPECT_NE(chosen("avx512", skylake).find("needs avx512vnni"), std::string::npos) << chosen("avx512", skylake);
  EXPECT_NE(chosen("avx512", haswell).find("avx512f, avx512bw, avx512dq, avx512vl, avx512vnni"), std::string::npos);
  program::Manifest manifest = threeLevels();
  EXPECT_EQ(chooseCode(manifest, "avx512", haswell).status().exitCode(), 7);
  EXPECT_EQ(chooseCode(manifest, "avx3", haswell).status().exitCode(), 2);
  manifest.mutable_code()->RemoveLast();
  EXPECT_NE(chooseCode(manifest, "avx512", cascadeLake).status().message().find("only for: avx2, x86-64"),
            std::string::npos);
  manifest.clear_code();
  EXPECT_EQ(chooseCode(manifest, "", cascadeLake).status().exitCode(), 7);
}

Result<CodeObject> loadImage(const std::string &image, uint32_t kernels = 1) {
  return CodeObject::load(Span<const uint8_t>(reinterpret_cast<const uint8_t *>(image.data()), image.size()), kernels);
}

float callTwice(const CodeObject &code, float x) {
  float y = 0;
  void *buffers[] = {&x, &y};
  transept_dispatch dispatch = {buffers, nullptr, nullptr};
  code.kernels().kernels[0](&dispatch, 0, 1, nullptr);
  return y;
}

TEST(CodeObject, LoadsAndCalls) {
  std::string image = readFile(TRANSEPT_TEST_KERNELS);
  for (int i = 0; i < 100; ++i) { // nothing is left behind, and no stale library is found under an old name
    Result<CodeObject> first = loadImage(image), second = loadImage(image);
    ASSERT_TRUE(first.ok() && second.ok()) << first.status().message();
    EXPECT_NE(first->kernels().kernels[0], second->kernels().kernels[0]);
    EXPECT_EQ(callTwice(*first, 4), 8);
    CodeObject moved = second.take();
    EXPECT_EQ(callTwice(moved, -1.5f), -3);
  }
}

TEST(CodeObject, WrongImagesAreRefused) {
  std::string image = readFile(TRANSEPT_TEST_KERNELS);
  EXPECT_EQ(loadImage("").status().exitCode(), 7);
  EXPECT_EQ(loadImage("#!/bin/sh\nexit 0\n" + std::string(100, '\n')).status().exitCode(), 7);
  EXPECT_NE(loadImage(image, 2).status().message().find("1 kernels in its code and 2 in its manifest"),
            std::string::npos);
  std::string other = image;
  other[offsetof(Elf64_Ehdr, e_machine)] = EM_386;
  EXPECT_EQ(loadImage(other).status().exitCode(), 7);
  EXPECT_EQ(loadImage(image.substr(0, image.size() / 4)).status().exitCode(), 7); // a segment outside
  EXPECT_EQ(loadImage(readFile("/proc/self/exe")).status().exitCode(), 7);
}

TEST(Model, LoadsFromAFileAndRuns) {
  TemporaryFolder folder;
  std::string path = folder.path("twice.tsp");
  ASSERT_TRUE(writeArtifact(path, twiceSections()).ok());
  for (bool map : {false, true}) {
    ModelOptions options;
    options.mapWeights = map;
    Result<std::shared_ptr<const Model>> model = Model::load(path, options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ((*model)->level(), "x86-64");
    auto session = (*model)->createSession().take();
    model = Status(Code::Internal, "released"); // the session keeps it alive
    std::vector<int64_t> dims = {3};
    std::vector<float> x = {1, 2, 3};
    ASSERT_TRUE(session->run("main", {{view("x", dims, x)}, {}}).ok());
    EXPECT_EQ(session->output("y").as<float>()[2], 6);
  }
  Status absent = Model::load(folder.path("absent.tsp")).status();
  EXPECT_EQ(absent.exitCode(), 6);
  EXPECT_NE(absent.message().find("absent.tsp: cannot open"), std::string::npos);
}

} // namespace
