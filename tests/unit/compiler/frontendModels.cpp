//===- frontendModels.cpp - models for import tests, written in ONNX's text form -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontendModels.h"
#include "mlir/IR/Diagnostics.h"
#include "onnx/defs/parser.h"
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

namespace mlir::transept::testing {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "transept-test-XXXXXX").string();
  path = ::mkdtemp(name.data()) ? name : std::string();
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}
std::string TemporaryFolder::write(const std::string &name, const std::string &bytes) const {
  std::filesystem::path file = path / name;
  std::ofstream(file, std::ios::binary) << bytes;
  return file.string();
}

std::filesystem::path testsFolder() { return std::filesystem::path(TRANSEPT_TEST_CASES).parent_path(); }

onnx::ModelProto parseModel(const std::string &text) {
  onnx::ModelProto model;
  onnx::Common::Status status = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << "\n" << text;
  return model;
}

onnx::ModelProto makeModel(int opset, const std::string &signature, const std::string &body) {
  return parseModel("<ir_version: 8, opset_import: [\"\": " + std::to_string(opset) + "]> g " + signature + " {" +
                    body + "}");
}

std::unique_ptr<MLIRContext> makeQuietContext() {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  context->getDiagEngine().registerHandler([](Diagnostic &) { return success(); });
  return context;
}

Outcome<ImportResult> importBytes(const std::string &bytes, MLIRContext *context) {
  TemporaryFolder folder;
  return importModel(folder.write("model.onnx", bytes), context);
}

static void expectFailure(const Outcome<ImportResult> &result, int exitCode, std::initializer_list<std::string> texts) {
  ASSERT_FALSE(static_cast<bool>(result)) << "the import succeeded";
  const Failure &failure = result.failure();
  EXPECT_EQ(failure.exitCode, exitCode) << failure.message;
  EXPECT_EQ(failure.message.find('\n'), std::string::npos) << failure.message;
  for (const std::string &text : texts)
    EXPECT_NE(failure.message.find(text), std::string::npos) << "no '" << text << "' in: " << failure.message;
}

void expectFailure(const std::string &bytes, int exitCode, std::initializer_list<std::string> texts) {
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  expectFailure(importBytes(bytes, context.get()), exitCode, texts);
}

void expectFailure(const onnx::ModelProto &model, int exitCode, std::initializer_list<std::string> texts) {
  expectFailure(model.SerializeAsString(), exitCode, texts);
}

void expectPathFailure(const std::string &path, int exitCode, std::initializer_list<std::string> texts,
                       const ImportRequest &request) {
  std::unique_ptr<MLIRContext> context = makeQuietContext();
  expectFailure(importModel(path, context.get(), request), exitCode, texts);
}

} // namespace mlir::transept::testing
