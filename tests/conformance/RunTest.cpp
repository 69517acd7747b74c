//===- RunTest.cpp - from a node test's model to a comparison of its outputs ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tests/conformance/RunTest.h"
#include "codegen/Codegen.h"
#include "onnx/onnx_pb.h"
#include "runtime/CpuFeatures.h"
#include "runtime/Model.h"
#include "tests/conformance/NodeTest.h"
#include "tools/driver/Compile.h"
#include "tools/transept/Compare.h"
#include <cstring>
#include <fstream>
#include <spirv-tools/libspirv.hpp>

using namespace mlir;
using namespace mlir::transept;
namespace fs = std::filesystem;
namespace program = ::transept::program;
using ::transept::tool::Tolerance;

namespace {

/// The first level whose instructions this machine has.
std::string bestLevel() {
  std::vector<std::string> usable = ::transept::cpuFeatures();
  for (const kernel::CpuLevel &level : kernel::cpuLevels()) {
    SmallVector<StringRef> needed;
    level.features.split(needed, ',', -1, /*KeepEmpty=*/false);
    if (level.precision.empty() &&
        llvm::all_of(needed, [&](StringRef feature) { return llvm::is_contained(usable, feature); }))
      return level.name.str();
  }
  return kernel::cpuLevels().back().name.str();
}

/// Those of the ONNX backend runner; for 16-bit floats two units in the last place, which is more than its relative
/// one.
Tolerance toleranceOf(::transept::DType dtype) {
  switch (dtype) {
  case program::F32:
  case program::F64:
    return {1e-3, 1e-7};
  case program::F16:
    return {0x1p-9, 1e-7};
  case program::BF16:
    return {0x1p-6, 1e-7};
  default:
    return {0, 0};
  }
}

std::optional<Failure> compileModel(const fs::path &source, Mode mode, const fs::path &output) {
  CompileOptions options;
  options.source = source.string();
  options.output = output.string();
  options.kind = CompileOptions::AsGraph;
  if (mode == Mode::Vulkan)
    options.target.target = "vulkan";
  else
    options.target.cpuLevels = {bestLevel()};
  if (mode == Mode::Unoptimized)
    options.skip = {"fold", "fuse", "stage"}; // staging a plain graph does nothing but fold it again
  CompileReport report;
  return compile(options, nullptr, report);
}

/// What the validator says of the first shader that is not valid SPIR-V for Vulkan 1.2; empty where all are.
std::string invalidShader(const ::transept::Model &model) {
  std::string complaint;
  spvtools::SpirvTools validator(SPV_ENV_VULKAN_1_2);
  validator.SetMessageConsumer(
      [&](spv_message_level_t, const char *, const spv_position_t &, const char *message) { complaint = message; });
  for (const program::CodeObject &code : model.manifest().code()) {
    auto section = model.artifact().section(code.section());
    for (int i = 0; i < code.shaders_size(); ++i) {
      std::vector<uint32_t> words(code.shaders(i).bytes() / sizeof(uint32_t));
      std::memcpy(words.data(), section.data() + code.shaders(i).offset(), code.shaders(i).bytes());
      if (!validator.Validate(words))
        return "shader of kernel '" + model.manifest().kernels(i).name() + "': " + complaint;
    }
  }
  return {};
}

::transept::Status runSet(const ::transept::Model &model, const DataSet &set) {
  ::transept::SessionOptions options;
  options.threads = 1;
  TRANSEPT_ASSIGN(std::unique_ptr<::transept::Session> session, model.createSession(options));
  ::transept::RunArguments arguments;
  for (const Array &input : set.inputs)
    arguments.inputs.push_back(input.view());
  TRANSEPT_TRY(session->run("main", arguments));
  for (const Array &output : set.outputs)
    TRANSEPT_TRY(compare(session->outputs(), output, toleranceOf(output.dtype)));
  return {};
}

} // namespace

std::optional<std::string> mlir::transept::runNodeTest(const fs::path &folder, Mode mode, const fs::path &scratch) {
  auto say = [&](const Failure &failure) {
    return "exit code " + std::to_string(failure.exitCode) + ": " + failure.message;
  };
  Outcome<onnx::ModelProto> model = readModel(folder / "model.onnx");
  if (!model)
    return say(model.failure());
  fs::path source = folder / "model.onnx", artifact = scratch / "model.tsp";
  if (mode == Mode::Symbolic) {
    Outcome<onnx::ModelProto> original = readModel(originalOf(folder) / "model.onnx");
    if (!original)
      return say(original.failure());
    makeSymbolic(*model, *original);
    source = scratch / "model.onnx";
    std::ofstream file(source, std::ios::binary | std::ios::trunc);
    if (!model->SerializeToOstream(&file))
      return source.string() + ": cannot be written";
  }
  if (std::optional<Failure> failure = compileModel(source, mode, artifact))
    return say(*failure);
  Outcome<std::vector<DataSet>> sets = readDataSets(folder, *model);
  if (!sets)
    return say(sets.failure());
  ::transept::ModelOptions options;
  options.device = mode == Mode::Vulkan ? "vulkan:0" : "cpu";
  options.vulkan.validate = mode == Mode::Vulkan;
  auto loaded = ::transept::Model::load(artifact.string(), options);
  if (!loaded.ok())
    return "loading: " + loaded.status().message();
  if (std::string complaint = invalidShader(**loaded); !complaint.empty())
    return complaint;
  for (const DataSet &set : *sets)
    if (::transept::Status status = runSet(**loaded, set); !status.ok())
      return "running: " + status.message();
  return std::nullopt;
}
