//===- frontendModels.h - models for import tests, written in ONNX's text form ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TESTS_FRONTENDMODELS_H
#define TRANSEPT_TESTS_FRONTENDMODELS_H

#include "frontend/Import.h"
#include "mlir/IR/MLIRContext.h"
#include "onnx/onnx_pb.h"
#include <filesystem>
#include <string>

namespace mlir::transept::testing {

/// A folder that goes away with the object.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::filesystem::path path;
  /// Writes a file and returns its path.
  std::string write(const std::string &name, const std::string &bytes) const;
};

/// tests/ of the source tree.
std::filesystem::path testsFolder();

/// Parses ONNX's text form; a test failure and an empty model if that fails.
onnx::ModelProto parseModel(const std::string &text);
/// "<ir_version: 8, opset_import: ["": OPSET]> g (INPUTS) => (OUTPUTS) { BODY }"
onnx::ModelProto makeModel(int opset, const std::string &signature, const std::string &body);

/// A context whose diagnostics stay out of the test's output.
std::unique_ptr<MLIRContext> makeQuietContext();

/// Imports the bytes of a model from a temporary file named model.onnx.
Outcome<ImportResult> importBytes(const std::string &bytes, MLIRContext *context);
/// Imports and expects a failure with this exit code, whose one line contains all the texts.
void expectFailure(const std::string &bytes, int exitCode, std::initializer_list<std::string> texts);
void expectFailure(const onnx::ModelProto &model, int exitCode, std::initializer_list<std::string> texts);
void expectPathFailure(const std::string &path, int exitCode, std::initializer_list<std::string> texts,
                       const ImportRequest &request = {});

} // namespace mlir::transept::testing

#endif // TRANSEPT_TESTS_FRONTENDMODELS_H
