//===- TensorData.h - the contents of ONNX tensors --------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_TENSORDATA_H
#define TRANSEPT_FRONTEND_TENSORDATA_H

#include "frontend/OnnxFile.h"
#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace mlir::transept {

/// The element type of an ONNX data type, null for those that the IR does not have (strings, complex numbers). Unsigned
/// integers keep their sign in the type; bool is i1.
Type elementTypeOf(MLIRContext *context, int32_t dataType);
/// The reverse; UNDEFINED where there is none.
int32_t dataTypeOf(Type elementType);
/// "FLOAT16" and so on; a number for what ONNX does not know.
std::string dataTypeName(int32_t dataType);

/// Sizes are non-negative and their product is within the limits, the type is known, data is in one place.
std::optional<Failure> checkTensorHeader(onnx::TensorProto &tensor, const OnnxFile &file);

/// A dense tensor: row-major, little-endian, bool and elements below a byte one byte per element.
struct TensorData {
  RankedTensorType type;
  std::vector<char> bytes;
};

/// Decodes a tensor whose header was checked; reads external data. `name` is for messages.
Outcome<TensorData> decodeTensor(const onnx::TensorProto &tensor, const OnnxFile &file, MLIRContext *context,
                                 llvm::StringRef name);

/// The `raw_data` of a tensor, read from the model's file where that is left there.
Outcome<std::vector<char>> readRawData(const onnx::TensorProto &tensor, const OnnxFile &file);

/// Reads `length` bytes of the external file of `tensor` (ExternalData.cpp).
Outcome<std::vector<char>> readExternalData(const onnx::TensorProto &tensor, const OnnxFile &file, uint64_t length,
                                            llvm::StringRef name);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_TENSORDATA_H
