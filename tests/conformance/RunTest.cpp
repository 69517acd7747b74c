//===- RunTest.cpp - from a node test's model to a comparison of its outputs ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tests/conformance/RunTest.h"
#include "codegen/Codegen.h"
#include "frontend/Import.h"
#include "frontend/TensorData.h"
#include "ir/Interpreter.h"
#include "onnx/onnx_pb.h"
#include "runtime/CpuFeatures.h"
#include "runtime/Model.h"
#include "tests/conformance/NodeTest.h"
#include "tests/conformance/Symbolic.h"
#include "tools/driver/Compile.h"
#include "tools/driver/Dump.h"
#include "tools/driver/Phases.h"
#include <cstring>
#include <fstream>
#include <functional>
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
    if (!level.dotBf16 && !level.dotInt8 &&
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

/// SPIRV-Tools before 2023.4 know no matrices of subgroups: they can say nothing of a shader that has them.
bool validatorKnowsMatrices() {
  std::vector<uint32_t> words;
  return spvtools::SpirvTools(SPV_ENV_VULKAN_1_2).Assemble("OpCapability CooperativeMatrixKHR", &words);
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
      for (const program::Shader::Variant &variant : code.shaders(i).variants()) {
        if (variant.has_tile() && !validatorKnowsMatrices())
          continue;
        std::vector<uint32_t> words(variant.bytes() / sizeof(uint32_t));
        std::memcpy(words.data(), section.data() + variant.offset(), variant.bytes());
        if (!validator.Validate(words))
          return "shader of kernel '" + model.manifest().kernels(i).name() + "': " + complaint;
      }
    }
  }
  return {};
}

using Tolerances = std::function<Tolerance(::transept::DType)>;

::transept::Status runSet(const ::transept::Model &model, const DataSet &set, const Tolerances &tolerances) {
  ::transept::SessionOptions options;
  options.threads = 1;
  TRANSEPT_ASSIGN(std::unique_ptr<::transept::Session> session, model.createSession(options));
  ::transept::RunArguments arguments;
  for (const Array &input : set.inputs)
    arguments.inputs.push_back(input.view());
  TRANSEPT_TRY(session->run("main", arguments));
  for (const Array &output : set.outputs)
    TRANSEPT_TRY(compare(session->outputs(), output, tolerances(output.dtype)));
  return {};
}

//===- The interpreter -===//

/// One tensor per argument of `main`, by name; null where the set has none.
std::vector<HostTensor> argumentsOf(func::FuncOp main, const DataSet &set) {
  std::vector<HostTensor> arguments;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    arguments.emplace_back();
    auto name = main.getArgAttrOfType<StringAttr>(i, "transept.name");
    for (const Array &input : set.inputs)
      if (name && input.name == name.getValue()) {
        auto type = RankedTensorType::get(input.dims, cast<TensorType>(main.getArgumentTypes()[i]).getElementType());
        arguments.back() =
            HostTensor::fromBytes(type, ArrayRef(reinterpret_cast<const char *>(input.data.data()), input.data.size()));
      }
  }
  return arguments;
}

std::optional<std::string> evaluateSet(func::FuncOp main, const DataSet &set, const Tolerances &tolerances) {
  Outcome<std::vector<HostTensor>> results = interpret(main, argumentsOf(main, set));
  if (!results)
    return results.failure().message;
  std::vector<::transept::TensorView> outputs;
  for (auto [i, result] : llvm::enumerate(*results))
    outputs.push_back({main.getResultAttrOfType<StringAttr>(i, "transept.name").getValue(), // kept by the context
                       dtypeOf(dataTypeOf(result.elementType())),
                       {result.shape().data(), result.shape().size()},
                       result.data(),
                       static_cast<int64_t>(result.bytes().size())});
  for (const Array &output : set.outputs)
    if (::transept::Status status = compare(outputs, output, tolerances(output.dtype)); !status.ok())
      return status.message();
  return std::nullopt;
}

/// The graph as it is imported, and as it is after the phases that know no target.
std::optional<std::string> evaluateModel(const fs::path &source, const std::vector<DataSet> &sets,
                                         const Tolerances &tolerances) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadPhaseDialects(context);
  ImportRequest request;
  request.kind = ImportRequest::AsGraph;
  Outcome<ImportResult> imported = importModel(source.string(), &context, request);
  if (!imported)
    return "import: " + imported.failure().message;
  ModuleOp module = *imported->module;
  module->setAttr(optionsAttrName, optionsToAttr(&context, defaultTarget()));
  auto evaluate = [&](StringRef phase) -> std::optional<std::string> {
    for (const DataSet &set : sets)
      if (auto why = evaluateSet(module.lookupSymbol<func::FuncOp>("main"), set, tolerances))
        return ("evaluated after " + phase + ": " + *why).str();
    return std::nullopt;
  };
  if (auto why = evaluate("import"))
    return why;
  std::vector<std::string> warnings;
  for (const char *name : {"shapes", "fold", "fuse"}) {
    const Phase &phase = *findPhase(name);
    PassList passes;
    phase.passes(passes, defaultTarget());
    for (std::unique_ptr<Pass> &pass : passes)
      if (std::optional<Failure> failure = runPass(module, std::move(pass), phase.failure, &warnings))
        return name + (": " + failure->message);
  }
  return evaluate("fuse");
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
    makeSymbolic(*model, source, *original);
    source = scratch / "model.onnx";
    std::ofstream file(source, std::ios::binary | std::ios::trunc);
    if (!model->SerializeToOstream(&file))
      return source.string() + ": cannot be written";
  }
  Outcome<std::vector<DataSet>> sets = readDataSets(folder, *model);
  if (!sets)
    return say(sets.failure());
  std::optional<Tolerance> stated = readTolerance(folder);
  auto tolerances = [&](::transept::DType dtype) {
    const Tolerance standard = toleranceOf(dtype);
    return stated && standard.relative > 0 ? *stated : standard;
  };
  if (mode == Mode::Evaluated)
    return evaluateModel(source, *sets, tolerances);
  if (std::optional<Failure> failure = compileModel(source, mode, artifact))
    return say(*failure);
  ::transept::ModelOptions options;
  options.device = mode == Mode::Vulkan ? "vulkan:0" : "cpu";
  options.vulkan.validate = mode == Mode::Vulkan;
  auto loaded = ::transept::Model::load(artifact.string(), options);
  if (!loaded.ok())
    return "loading: " + loaded.status().message();
  if (std::string complaint = invalidShader(**loaded); !complaint.empty())
    return complaint;
  for (const DataSet &set : *sets)
    if (::transept::Status status = runSet(**loaded, set, tolerances); !status.ok())
      return "running: " + status.message();
  return std::nullopt;
}
