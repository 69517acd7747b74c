//===- NodeTest.cpp - a folder of the ONNX node tests ---------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tests/conformance/NodeTest.h"
#include "frontend/TensorData.h"
#include "ir/Transept.h"
#include "mlir/IR/MLIRContext.h"
#include "onnx/onnx_pb.h"
#include <fstream>

using namespace mlir;
using namespace mlir::transept;
namespace fs = std::filesystem;
namespace program = ::transept::program;

namespace {

template <typename Message> Outcome<Message> readMessage(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  Message message;
  if (!file || !message.ParseFromIstream(&file))
    return Failure{ExitFile, path.string() + ": cannot be read", {}};
  return message;
}

Outcome<Array> readArray(const fs::path &path, const std::string &name) {
  Outcome<onnx::TensorProto> tensor = readMessage<onnx::TensorProto>(path);
  if (!tensor)
    return std::move(tensor.failure());
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<TranseptDialect>();
  OnnxFile file;
  file.path = path.string();
  Outcome<TensorData> data = decodeTensor(*tensor, file, &context, name);
  if (!data)
    return std::move(data.failure());
  Array array;
  array.name = name;
  array.dtype = dtypeOf(tensor->data_type());
  array.dims.assign(tensor->dims().begin(), tensor->dims().end());
  array.data.assign(data->bytes.begin(), data->bytes.end());
  return array;
}

/// The files PREFIX_0.pb, PREFIX_1.pb … that belong to `values`.
template <typename Values>
std::optional<Failure> readArrays(const fs::path &folder, const std::string &prefix, const Values &values,
                                  std::vector<Array> &arrays) {
  for (int index = 0; index < values.size(); ++index) {
    fs::path path = folder / (prefix + "_" + std::to_string(index) + ".pb");
    if (!fs::exists(path))
      continue;
    Outcome<Array> array = readArray(path, values[index].name());
    if (!array)
      return std::move(array.failure());
    arrays.push_back(std::move(*array));
  }
  return std::nullopt;
}

} // namespace

program::DType mlir::transept::dtypeOf(int32_t dataType) {
  switch (dataType) {
  case onnx::TensorProto::FLOAT:
    return program::F32;
  case onnx::TensorProto::DOUBLE:
    return program::F64;
  case onnx::TensorProto::FLOAT16:
    return program::F16;
  case onnx::TensorProto::BFLOAT16:
    return program::BF16;
  case onnx::TensorProto::INT8:
    return program::I8;
  case onnx::TensorProto::INT16:
    return program::I16;
  case onnx::TensorProto::INT32:
    return program::I32;
  case onnx::TensorProto::INT64:
    return program::I64;
  case onnx::TensorProto::UINT8:
    return program::U8;
  case onnx::TensorProto::UINT16:
    return program::U16;
  case onnx::TensorProto::UINT32:
    return program::U32;
  case onnx::TensorProto::UINT64:
    return program::U64;
  case onnx::TensorProto::BOOL:
    return program::BOOL;
  case onnx::TensorProto::FLOAT8E4M3FN:
    return program::F8E4M3FN;
  case onnx::TensorProto::FLOAT8E4M3FNUZ:
    return program::F8E4M3FNUZ;
  case onnx::TensorProto::FLOAT8E5M2:
    return program::F8E5M2;
  case onnx::TensorProto::FLOAT8E5M2FNUZ:
    return program::F8E5M2FNUZ;
  case onnx::TensorProto::FLOAT8E8M0:
    return program::F8E8M0;
  case onnx::TensorProto::FLOAT4E2M1:
    return program::F4E2M1;
  case onnx::TensorProto::INT4:
    return program::I4;
  case onnx::TensorProto::UINT4:
    return program::U4;
  case onnx::TensorProto::INT2:
    return program::I2;
  case onnx::TensorProto::UINT2:
    return program::U2;
  default:
    return program::DTYPE_NONE;
  }
}

std::optional<::transept::tool::Tolerance> mlir::transept::readTolerance(const fs::path &folder) {
  std::ifstream file(folder / "tolerance");
  ::transept::tool::Tolerance tolerance;
  if (file >> tolerance.relative >> tolerance.absolute)
    return tolerance;
  return std::nullopt;
}

Outcome<onnx::ModelProto> mlir::transept::readModel(const fs::path &file) {
  return readMessage<onnx::ModelProto>(file);
}

Outcome<std::vector<DataSet>> mlir::transept::readDataSets(const fs::path &folder, const onnx::ModelProto &model) {
  std::vector<DataSet> sets;
  for (int index = 0;; ++index) {
    fs::path data = folder / ("test_data_set_" + std::to_string(index));
    if (!fs::is_directory(data))
      break;
    DataSet set;
    if (std::optional<Failure> failure = readArrays(data, "input", model.graph().input(), set.inputs))
      return std::move(*failure);
    if (std::optional<Failure> failure = readArrays(data, "output", model.graph().output(), set.outputs))
      return std::move(*failure);
    sets.push_back(std::move(set));
  }
  if (sets.empty())
    return Failure{ExitFile, folder.string() + ": holds no test_data_set_0", {}};
  return sets;
}

fs::path mlir::transept::originalOf(const fs::path &folder) {
  std::string name = folder.filename().string();
  fs::path original = folder.parent_path() / name.substr(0, name.find("_expanded"));
  return fs::exists(original / "model.onnx") ? original : folder;
}

std::vector<std::string> mlir::transept::operatorsOf(const onnx::ModelProto &model) {
  static const std::set<std::string> preparation = {"Constant", "Identity", "Cast", "Reshape", "Shape"};
  std::vector<std::string> all, telling;
  for (const onnx::NodeProto &node : model.graph().node()) {
    std::string title = node.domain().empty() ? node.op_type() : node.domain() + "::" + node.op_type();
    if (llvm::is_contained(all, title))
      continue;
    all.push_back(title);
    if (!preparation.count(title))
      telling.push_back(title);
  }
  return telling.empty() ? all : telling;
}

int64_t mlir::transept::opsetOf(const onnx::ModelProto &model) {
  int64_t version = 0;
  for (const onnx::OperatorSetIdProto &opset : model.opset_import())
    if (opset.domain().empty() || version == 0)
      version = opset.version();
  return version;
}
