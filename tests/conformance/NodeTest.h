//===- NodeTest.h - a folder of the ONNX node tests -------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_TESTS_CONFORMANCE_NODETEST_H
#define TRANSEPT_TESTS_CONFORMANCE_NODETEST_H

#include "ir/Diagnostic.h"
#include "tools/transept/Array.h"
#include "tools/transept/Compare.h"
#include <filesystem>
#include <optional>

namespace onnx {
class ModelProto;
}

namespace mlir::transept {

using ::transept::tool::Array;

/// Inputs and expected outputs, named as in the model.
struct DataSet {
  std::vector<Array> inputs, outputs;
};

/// The model without any of the checks that the compiler makes.
Outcome<onnx::ModelProto> readModel(const std::filesystem::path &file);

/// The folders test_data_set_* of a test, in order. Inputs that the folder leaves out are absent.
Outcome<std::vector<DataSet>> readDataSets(const std::filesystem::path &folder, const onnx::ModelProto &model);

/// How far floats may be from what is expected: what the file `tolerance` of the folder says, nullopt without one.
std::optional<::transept::tool::Tolerance> readTolerance(const std::filesystem::path &folder);

/// DTYPE_NONE for an element type that no artifact has. `dataType` is ONNX's.
::transept::DType dtypeOf(int32_t dataType);

/// The folder whose operator this one expands through its function body; itself where there is none.
std::filesystem::path originalOf(const std::filesystem::path &folder);

/// Operators that a test is about: those of the graph, without what only prepares their operands.
std::vector<std::string> operatorsOf(const onnx::ModelProto &model);

/// Version of the operator set that the model uses.
int64_t opsetOf(const onnx::ModelProto &model);

} // namespace mlir::transept

#endif // TRANSEPT_TESTS_CONFORMANCE_NODETEST_H
