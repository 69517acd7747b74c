// The tool as a user sees it: what it prints, where, and its exit code.

#include "TinyModel.h"
#include "TwiceModel.h"
#include "VulkanModel.h"
#include "tools/transept/Npz.h"

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

using namespace transept;
using namespace transept::tests;

namespace {

struct Outcome {
  int exitCode = -1;
  std::string out, err;
};

class Cli : public testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(writeArtifact(model(), twiceSections()).ok()); }

  std::string model() const { return folder.path("twice.tsp"); }

  Outcome transept(const std::string &arguments) {
    std::string command = std::string(TRANSEPT_TEST_TOOL) + " " + arguments + " >" + folder.path("stdout") + " 2>" +
                          folder.path("stderr") + " </dev/null";
    int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, readFile(folder.path("stdout")),
            readFile(folder.path("stderr"))};
  }

  /// Runs and expects exactly one error line with `words` in it.
  void refused(const std::string &arguments, int exitCode, const std::string &words) {
    Outcome outcome = transept(arguments);
    EXPECT_EQ(outcome.exitCode, exitCode) << arguments << "\n" << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.err.compare(0, 17, "transept: error: "), 0) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
  }

  TemporaryFolder folder;
};

TEST_F(Cli, HelpAndVersion) {
  EXPECT_EQ(transept("--version").out.rfind("transept 0.1.0 (artifact format 1, ABI 1, ", 0), 0u)
      << transept("--version").out;
  for (const char *arguments : {"--help", "run --help", "inspect --help"}) {
    Outcome outcome = transept(arguments);
    EXPECT_EQ(outcome.exitCode, 0);
    EXPECT_NE(outcome.out.find("Examples:"), std::string::npos) << arguments;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(Cli, WrongUsageIsExitCode2) {
  refused("", 2, "see 'transept --help'");
  refused("walk", 2, "see 'transept --help'");
  refused("run", 2, "see 'transept run --help'");
  refused("run " + model() + " --no-such-flag", 2, "--no-such-flag");
  refused("run " + model() + " --input x", 2, "NAME=VALUE");
  refused("run " + model() + " --input x=1 --set n", 2, "NAME=NUMBER");
  refused("run " + model() + " --input x='[1, zwei]'", 2, "not a number or list");
  refused("run " + model() + " --input x=1 --cpu avx3", 2, "unknown CPU level 'avx3'");
}

TEST_F(Cli, RunPrintsWritesAndChecks) {
  EXPECT_EQ(transept("run " + model() + " --input x=[1,2,3.5]").out, "y: f32 [3] = 2 4 7\n");
  std::string y = folder.path("y.npz"), x = folder.path("x.npz");
  Outcome written = transept("run " + model() + " --input x=[1,2] --outputs " + y);
  EXPECT_EQ(written.exitCode, 0);
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(transept("run " + model() + " --input x=[1,2] --check " + y).exitCode, 0);
  refused("run " + model() + " --input x=[1,3] --check " + y, 1,
          "output 'y' differs in 1 of 2 elements, most at [1]: got 6, expected 4");
  EXPECT_EQ(transept("run " + model() + " --input x=[1,3] --check " + y + " --atol 2").exitCode, 0);
  std::vector<int64_t> dims = {2};
  std::vector<float> values = {5, 6};
  TensorView view{"x", program::F32, dims, values.data(), 8};
  ASSERT_TRUE(tool::writeNpz(x, {&view, 1}).ok());
  Outcome json = transept("run " + model() + " --json --inputs " + x);
  EXPECT_NE(json.out.find("\"outputs\":[{\"name\":\"y\",\"dtype\":\"f32\",\"dims\":[2],\"data\":[10.0,12.0]}]"),
            std::string::npos)
      << json.out;
}

TEST_F(Cli, RunReadsAndWritesSingleTensors) {
  std::string pb = folder.path("y.pb"), raw = folder.path("y.raw"), npy = folder.path("y.npy");
  std::string outputs = " --output y=" + pb + " --output y=" + raw + " --output y=" + npy;
  Outcome written = transept("run " + model() + " --input x=[1,2]" + outputs);
  EXPECT_EQ(written.exitCode, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(readFile(raw), std::string("\0\0\0\x40\0\0\x80\x40", 8));
  for (const std::string &path : {pb, raw, npy})
    EXPECT_EQ(transept("run " + model() + " --input x=@" + path).out, "y: f32 [2] = 4 8\n") << path;
  EXPECT_EQ(transept("run " + model() + " --input x=@" + raw + " --set n=2").out, "y: f32 [2] = 4 8\n");
  EXPECT_EQ(transept("run " + model() + " --input x=[1,2] --check " + pb).exitCode, 0);
  refused("run " + model() + " --input x=[1,3] --check " + pb, 1, "most at [1]: got 6, expected 4");
  refused("run " + model() + " --input x=@" + raw + " --set n=3", 8, "y.raw: holds 8 bytes, input 'x' takes 12");
  writeFile(folder.path("odd.raw"), "12345");
  refused("run " + model() + " --input x=@" + folder.path("odd.raw"), 8,
          "odd.raw: holds 5 bytes, no multiple of the 4 that input 'x' takes for each n");
  writeFile(folder.path("bad.pb"), "12345");
  refused("run " + model() + " --input x=@" + folder.path("bad.pb"), 8, "bad.pb: not a TensorProto, or cut");
  refused("run " + model() + " --input x=1 --output y=y.txt", 2, ".npy, .pb, .raw or .bin");
  refused("run " + model() + " --input x=1 --output z=z.pb", 8, "there is no output 'z'");
}

TEST_F(Cli, BenchCountsCalls) {
  Outcome json = transept("bench " + model() + " --input x=[1,2] --repeat 3 --json --threads 1");
  EXPECT_EQ(json.exitCode, 0) << json.err;
  for (const char *words : {"\"level\":\"x86-64\"", "\"threads\":1", "\"entry\":\"main\"", "\"p99\":"})
    EXPECT_NE(json.out.find(words), std::string::npos) << json.out;
  refused("bench " + model() + " --repeat 0", 2, "--repeat");
  refused("bench " + model(), 8, "input 'x' is missing");
}

TEST_F(Cli, DevicesAreListed) {
  std::string text = transept("devices").out;
  EXPECT_EQ(text.compare(0, 5, "cpu: "), 0) << text;
  for (const char *words : {"levels", "x86-64;", "\nvulkan:0: ", ", Vulkan 1.", "GiB of device memory", " workgroups ",
                            "features: shaderInt64"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  std::string json = transept("devices --json").out;
  for (const char *words : {"\"device\": \"vulkan:0\"", "\"usable\": true", "\"allocation_bytes\": "})
    EXPECT_NE(json.find(words), std::string::npos) << words << "\n" << json;
  setenv("VK_ICD_FILENAMES", "/nowhere", 1);
  text = transept("devices").out;
  unsetenv("VK_ICD_FILENAMES");
  EXPECT_NE(text.find("\nvulkan: none; there is no Vulkan driver"), std::string::npos) << text;
}

TEST_F(Cli, ADeviceIsChosen) {
  EXPECT_EQ(transept("run " + model() + " --input x=[1] --device cpu").out, "y: f32 [1] = 2\n");
  refused("run " + model() + " --input x=1 --device vulkan:0", 7, "holds no Vulkan code, only for: cpu x86-64");
  refused("run " + model() + " --input x=1 --device gpu", 2, "unknown device 'gpu'");
  EXPECT_NE(transept("run " + model() + " --input x=1 -v").err.find("device cpu, level x86-64"), std::string::npos);
  EXPECT_NE(transept("bench " + model() + " --input x=1 --repeat 1 --json").out.find("{\"device\":\"cpu\","),
            std::string::npos);
}

TEST_F(Cli, AVulkanModelRunsAndItsPipelinesAreKept) {
  std::string path = folder.path("vulkan.tsp"), cache = folder.path("cache");
  ASSERT_TRUE(writeArtifact(path, VulkanProgram().sections()).ok());
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  Outcome outcome = transept("run " + path + " --vulkan-validation --input x=[[1,2,3,4]] --input ids=[2]");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "y: f32 [1, 4] = 22 25 28 31\n");
  EXPECT_FALSE(std::filesystem::is_empty(cache + "/transept"));
  std::string text = transept("inspect " + path + " --kernels").out;
  for (const char *words :
       {"code: vulkan fp32 shaderInt64 bufferDeviceAddress\n  scale_rows: ", "size0 * size1 items, 5 in a group\n"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
}

TEST_F(Cli, InspectDescribesTheArtifact) {
  std::string text = transept("inspect " + model() + " --plan --kernels --set n=1000").out;
  for (const char *words : {"code: cpu x86-64 (used on this machine)", "entry main", "symbol n: 0 or more",
                            "input x: f32 [n]", "output y: f32 [n]", "twice x n = 1000: x y", "twice, 1 dispatches"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  std::string json = transept("inspect " + model() + " --json").out;
  EXPECT_NE(json.find("\"entries\""), std::string::npos);
  refused("inspect " + folder.folder(), 6, "is a directory");
}

TEST_F(Cli, WrongInputsAndFiles) {
  refused("run " + model(), 8, "input 'x' is missing");
  refused("run " + model() + " --input z=1", 8, "no input 'z'");
  refused("run " + model() + " --input x=1 --entry encode", 8, "no entry 'encode'; the model has 'main'");
  refused("run " + model() + " --inputs " + folder.path("absent.npz"), 6, "absent.npz: cannot open");
  refused("run " + folder.path("absent.tsp"), 6, "absent.tsp: cannot open");
  refused("run " + folder.folder(), 6, "is a directory");
  refused("run " + model() + " --input x=1 --outputs /no/such/folder/y.npz", 6, "/no/such/folder/y.npz");
  std::string bytes = readFile(model());
  bytes[bytes.size() - 1] ^= 1;
  writeFile(folder.path("bad.tsp"), bytes);
  refused("run " + folder.path("bad.tsp") + " --input x=1", 7, "bad.tsp: is damaged");
  refused("run " + model() + " --input x=1 --cpu avx2", 7, "no code for CPU level 'avx2', only for: x86-64");
}

TEST_F(Cli, CompileNeedsTheCompilerBesideIt) {
  std::filesystem::copy_file(TRANSEPT_TEST_TOOL, folder.path("transept"));
  std::string command = folder.path("transept") + " compile x.onnx -o y.tsp 2>" + folder.path("stderr");
  int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 6);
  EXPECT_NE(readFile(folder.path("stderr")).find("cannot start the compiler"), std::string::npos);
  writeFile(folder.path("transept-compile"), "#!/bin/sh\necho \"$@\"; exit 4\n");
  std::filesystem::permissions(folder.path("transept-compile"), std::filesystem::perms::owner_all);
  command = folder.path("transept") + " compile x.onnx -o y.tsp --help -v >" + folder.path("stdout");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 4);
  EXPECT_EQ(readFile(folder.path("stdout")), "x.onnx -o y.tsp --help -v\n");
}

TEST_F(Cli, AFullDiskForStandardOutputIsAnError) {
  std::string command =
      std::string(TRANSEPT_TEST_TOOL) + " run " + model() + " --input x=1 >/dev/full 2>" + folder.path("stderr");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 6);
}

} // namespace
