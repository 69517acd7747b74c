// tests/cases of kind "run": imported, and after each phase of the graph level, a graph computes what the case says.

#include "frontend/Import.h"
#include "ir/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Fold.h"
#include "passes/Fuse.h"
#include "passes/Passes.h"
#include "tools/transept/Npz.h"
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace mlir::transept;
using json = nlohmann::json;
namespace tool = ::transept::tool;
namespace fs = std::filesystem;

namespace {

Type elementType(MLIRContext *context, ::transept::DType dtype) {
  Builder builder(context);
  using namespace ::transept::program;
  switch (dtype) {
  case F32:
    return builder.getF32Type();
  case F64:
    return builder.getF64Type();
  case F16:
    return builder.getF16Type();
  case BF16:
    return builder.getBF16Type();
  case BOOL:
    return builder.getI1Type();
  case I8:
    return builder.getI8Type();
  case I16:
    return builder.getI16Type();
  case I32:
    return builder.getI32Type();
  case I64:
    return builder.getI64Type();
  case U8:
    return builder.getIntegerType(8, false);
  case U16:
    return builder.getIntegerType(16, false);
  case U32:
    return builder.getIntegerType(32, false);
  case U64:
    return builder.getIntegerType(64, false);
  default:
    return {};
  }
}

using Tensors = std::map<std::string, HostTensor>;

Tensors readTensors(MLIRContext *context, const fs::path &path) {
  Tensors tensors;
  auto arrays = tool::readArrays(path.string());
  EXPECT_TRUE(arrays.ok()) << path;
  if (!arrays.ok())
    return tensors;
  for (const tool::Array &array : *arrays) {
    auto type = RankedTensorType::get(array.dims, elementType(context, array.dtype));
    tensors[array.name] = HostTensor::fromBytes(
        type, ArrayRef<char>(reinterpret_cast<const char *>(array.data.data()), array.data.size()));
    EXPECT_TRUE(tensors[array.name]) << path << ": " << array.name;
  }
  return tensors;
}

/// Feeds by name; absent inputs take their defaults.
Outcome<std::vector<HostTensor>> run(func::FuncOp function, const Tensors &inputs) {
  std::vector<HostTensor> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto found = inputs.find(function.getArgAttrOfType<StringAttr>(i, "transept.name").str());
    arguments.push_back(found == inputs.end() ? HostTensor() : found->second);
  }
  return interpret(function, arguments);
}

void expectClose(const HostTensor &actual, const HostTensor &expected, double relative, double absolute) {
  ASSERT_EQ(actual.shape().vec(), expected.shape().vec());
  ASSERT_TRUE(actual.elementType() == expected.elementType());
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    const double a = actual.getDouble(i), e = expected.getDouble(i);
    if (a == e || (std::isnan(a) && std::isnan(e)))
      continue;
    ASSERT_LE(std::fabs(a - e), absolute + relative * std::fabs(e)) << "element " << i << ": " << a << ", not " << e;
  }
}

struct Stage {
  const char *name;
  std::unique_ptr<Pass> (*make)();
};
const Stage stages[] = {
    {"import", nullptr},
    {"shapes", [] { return createShapesPass(); }},
    {"fold", [] { return createFoldPass(); }},
    {"fuse", [] { return createFusePass(); }},
};

const std::map<std::string, int> exitCodes = {
    {"shape_mismatch", ExitInputs},      {"index_out_of_range", ExitInputs},
    {"input_type_mismatch", ExitInputs}, {"external_data_invalid", ExitInvalidModel},
    {"unsupported_op", ExitUnsupported},
};

std::vector<std::string> runCases() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto &entry : fs::directory_iterator(TRANSEPT_TEST_CASES, none)) {
    std::ifstream file(entry.path() / "case.json");
    if (file && json::parse(file)["kind"] == "run")
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class CasesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CasesTest, EveryPhaseComputesWhatTheCaseSays) {
  const fs::path folder = fs::path(TRANSEPT_TEST_CASES) / GetParam();
  std::ifstream file(folder / "case.json");
  const json description = json::parse(file);
  const bool fails = description["expect"] != "ok";
  const int exitCode = fails ? exitCodes.at(description["error_kind"].get<std::string>()) : 0;

  MLIRContext context(MLIRContext::Threading::DISABLED);
  ImportRequest request;
  request.kind = ImportRequest::AsGraph;
  Outcome<ImportResult> imported =
      importModel((folder / description["models"][0].get<std::string>()).string(), &context, request);
  if (!imported) {
    ASSERT_TRUE(fails) << imported.failure().message;
    EXPECT_EQ(imported.failure().exitCode, exitCode) << imported.failure().message;
    return;
  }
  ModuleOp module = *imported->module;
  for (const Stage &stage : stages) {
    SCOPED_TRACE(stage.name);
    if (stage.make) {
      PassManager passes(&context);
      passes.addPass(stage.make());
      ASSERT_TRUE(succeeded(passes.run(module)));
      ASSERT_TRUE(succeeded(verify(module)));
    }
    for (size_t i = 0; i < description["inputs"].size(); ++i) {
      SCOPED_TRACE(description["inputs"][i]);
      const Tensors inputs = readTensors(&context, folder / description["inputs"][i].get<std::string>());
      auto function = module.lookupSymbol<func::FuncOp>("main");
      ASSERT_TRUE(function);
      Outcome<std::vector<HostTensor>> outputs = run(function, inputs);
      if (fails) {
        ASSERT_FALSE(outputs);
        EXPECT_EQ(outputs.failure().exitCode, exitCode) << outputs.failure().message;
        continue;
      }
      ASSERT_TRUE(outputs) << outputs.failure().message;
      Tensors expected = readTensors(&context, folder / description["expected"][i].get<std::string>());
      for (unsigned j = 0; j < function.getNumResults(); ++j) {
        auto found = expected.find(function.getResultAttrOfType<StringAttr>(j, "transept.name").str());
        if (found == expected.end())
          continue;
        SCOPED_TRACE(found->first);
        expectClose((*outputs)[j], found->second, description.value("rtol", 1e-5), description.value("atol", 1e-6));
        expected.erase(found);
      }
      EXPECT_TRUE(expected.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CasesTest, ::testing::ValuesIn(runCases()),
                         [](const auto &info) { return info.param; });

} // namespace
