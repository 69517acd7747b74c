//===- frontendOperatorTest.cpp - every operator means what ONNX Runtime does with it ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/TensorData.h"
#include "frontendModels.h"
#include "ir/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace mlir::transept;
using nlohmann::json;

namespace {
const json &fixture() {
  static const json value = json::parse(
#include "importFixture.json.inc"
  );
  return value;
}

HostTensor tensorOf(const json &value, MLIRContext *context) {
  std::string bytes = llvm::fromHex(value["data"].get<std::string>());
  auto type = RankedTensorType::get(value["shape"].get<std::vector<int64_t>>(),
                                    elementTypeOf(context, value["type"].get<int32_t>()));
  return HostTensor::fromBytes(type, ArrayRef(bytes.data(), bytes.size()));
}

void expectEqual(const HostTensor &got, const HostTensor &want, double absolute) {
  ASSERT_TRUE(static_cast<bool>(got));
  ASSERT_EQ(got.getType(), want.getType());
  bool exact = isa<IntegerType>(want.elementType());
  for (int64_t index = 0; index < want.numElements(); ++index) {
    double a = got.getDouble(index), b = want.getDouble(index);
    if (std::isnan(a) && std::isnan(b))
      continue;
    ASSERT_LE(std::abs(a - b), exact ? 0.0 : absolute + 1e-5 * std::abs(b))
        << "element " << index << ": " << a << " instead of " << b;
  }
}

class FrontendOperator : public ::testing::TestWithParam<size_t> {};

TEST_P(FrontendOperator, MatchesOnnxRuntime) {
  const json &test = fixture()["cases"][GetParam()];
  SCOPED_TRACE(test["title"].get<std::string>() + "\n" + test["model"].get<std::string>());
  std::unique_ptr<MLIRContext> context = transept::testing::makeQuietContext();
  onnx::ModelProto model = transept::testing::parseModel(test["model"].get<std::string>());
  Outcome<ImportResult> imported = transept::testing::importBytes(model.SerializeAsString(), context.get());
  ASSERT_TRUE(static_cast<bool>(imported)) << imported.failure().message;
  ASSERT_TRUE(succeeded(verify(*imported->module)));

  auto function = imported->module->lookupSymbol<func::FuncOp>("main");
  ASSERT_TRUE(function);
  SmallVector<HostTensor> inputs;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    for (const json &input : test["inputs"])
      if (function.getArgAttrOfType<StringAttr>(index, "transept.name") == input["name"].get<std::string>())
        inputs.push_back(tensorOf(input, context.get()));
  ASSERT_EQ(inputs.size(), function.getNumArguments());
  Outcome<std::vector<HostTensor>> results = interpret(function, inputs);
  ASSERT_TRUE(static_cast<bool>(results)) << results.failure().message;
  ASSERT_EQ(results->size(), test["outputs"].size());
  for (auto [index, output] : llvm::enumerate(test["outputs"]))
    expectEqual((*results)[index], tensorOf(output, context.get()), test["absolute"].get<double>());
}

std::string caseName(const ::testing::TestParamInfo<size_t> &info) {
  std::string name = std::to_string(info.param) + "_" + fixture()["cases"][info.param]["title"].get<std::string>();
  std::replace_if(name.begin(), name.end(), [](char c) { return !llvm::isAlnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, FrontendOperator, ::testing::Range<size_t>(0, fixture()["cases"].size()), caseName);
} // namespace
