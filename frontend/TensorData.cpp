//===- TensorData.cpp - the contents of ONNX tensors -----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/TensorData.h"
#include "frontend/FileBytes.h"
#include "frontend/WireFormat.h"
#include "ir/HostTensor.h"
#include "ir/NarrowTypes.h"
#include "ir/Transept.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir;
using namespace mlir::transept;

static_assert(llvm::endianness::native == llvm::endianness::little, "tensor contents are used as they are stored");

Type mlir::transept::elementTypeOf(MLIRContext *context, int32_t dataType) {
  auto integer = [&](unsigned width, IntegerType::SignednessSemantics sign = IntegerType::Signless) {
    return IntegerType::get(context, width, sign);
  };
  switch (dataType) {
  case onnx::TensorProto::FLOAT:
    return Float32Type::get(context);
  case onnx::TensorProto::DOUBLE:
    return Float64Type::get(context);
  case onnx::TensorProto::FLOAT16:
    return Float16Type::get(context);
  case onnx::TensorProto::BFLOAT16:
    return BFloat16Type::get(context);
  case onnx::TensorProto::BOOL:
    return integer(1);
  case onnx::TensorProto::INT8:
    return integer(8);
  case onnx::TensorProto::INT16:
    return integer(16);
  case onnx::TensorProto::INT32:
    return integer(32);
  case onnx::TensorProto::INT64:
    return integer(64);
  case onnx::TensorProto::UINT8:
    return integer(8, IntegerType::Unsigned);
  case onnx::TensorProto::UINT16:
    return integer(16, IntegerType::Unsigned);
  case onnx::TensorProto::UINT32:
    return integer(32, IntegerType::Unsigned);
  case onnx::TensorProto::UINT64:
    return integer(64, IntegerType::Unsigned);
  case onnx::TensorProto::INT4:
    return integer(4);
  case onnx::TensorProto::INT2:
    return integer(2);
  case onnx::TensorProto::UINT4:
    return integer(4, IntegerType::Unsigned);
  case onnx::TensorProto::UINT2:
    return integer(2, IntegerType::Unsigned);
  case onnx::TensorProto::FLOAT8E4M3FN:
    return Float8E4M3FNType::get(context);
  case onnx::TensorProto::FLOAT8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case onnx::TensorProto::FLOAT8E5M2:
    return Float8E5M2Type::get(context);
  case onnx::TensorProto::FLOAT8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case onnx::TensorProto::FLOAT8E8M0:
    return F8E8M0Type::get(context);
  case onnx::TensorProto::FLOAT4E2M1:
    return F4E2M1Type::get(context);
  default:
    return {};
  }
}

int32_t mlir::transept::dataTypeOf(Type elementType) {
  if (elementType)
    for (int32_t dataType = 1; dataType <= onnx::TensorProto::DataType_MAX; ++dataType)
      if (elementTypeOf(elementType.getContext(), dataType) == elementType)
        return dataType;
  return onnx::TensorProto::UNDEFINED;
}

std::string mlir::transept::dataTypeName(int32_t dataType) {
  return onnx::TensorProto::DataType_IsValid(dataType)
             ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(dataType))
             : "type " + std::to_string(dataType);
}

namespace {
std::string tensorTitle(const OnnxFile &file, StringRef name) {
  return printable(file.path) + ": tensor " + quoted(name);
}
Failure invalid(const OnnxFile &file, StringRef name, const Twine &what) {
  return {ExitInvalidModel, tensorTitle(file, name) + " " + what.str(), {}};
}

/// Copies values of a typed field into elements of `To`; values that do not fit give nullopt.
template <typename To, typename Values> std::optional<std::vector<char>> narrow(const Values &values) {
  std::vector<char> bytes(static_cast<size_t>(values.size()) * sizeof(To));
  size_t at = 0;
  for (auto value : values) {
    To element = static_cast<To>(value);
    if constexpr (std::is_integral_v<To>)
      if (static_cast<decltype(value)>(element) != value)
        return std::nullopt;
    std::memcpy(bytes.data() + at, &element, sizeof(To));
    at += sizeof(To);
  }
  return bytes;
}

/// Bits of an element in the file, where several share a byte (the first one in the low bits); else 0.
unsigned packedBits(Type element) {
  if (isa<F4E2M1Type>(element))
    return 4;
  auto integer = dyn_cast<IntegerType>(element);
  return integer && isNarrow(integer) ? integer.getWidth() : 0;
}

uint64_t packedBytes(uint64_t count, unsigned bits) { return (count * bits + 7) / 8; }

/// One byte per element; signed integers are extended.
std::vector<char> unpack(ArrayRef<char> packed, uint64_t count, Type element) {
  const unsigned bits = packedBits(element);
  const bool isSigned = element.isSignlessInteger();
  std::vector<char> bytes(count);
  for (uint64_t i = 0; i < count; ++i) {
    const unsigned code = static_cast<uint8_t>(packed[i * bits / 8]) >> (i * bits % 8) & ((1u << bits) - 1);
    bytes[i] = static_cast<char>(isSigned && code >> (bits - 1) ? code - (1u << bits) : code);
  }
  return bytes;
}

/// The elements that are stored in the typed fields; nullopt where a value is out of range.
std::optional<std::vector<char>> typedFields(const onnx::TensorProto &tensor) {
  switch (tensor.data_type()) {
  case onnx::TensorProto::FLOAT:
    return narrow<float>(tensor.float_data());
  case onnx::TensorProto::DOUBLE:
    return narrow<double>(tensor.double_data());
  case onnx::TensorProto::INT64:
    return narrow<int64_t>(tensor.int64_data());
  case onnx::TensorProto::UINT64:
    return narrow<uint64_t>(tensor.uint64_data());
  case onnx::TensorProto::UINT32:
    return narrow<uint32_t>(tensor.uint64_data());
  case onnx::TensorProto::INT32:
    return narrow<int32_t>(tensor.int32_data());
  case onnx::TensorProto::INT16:
    return narrow<int16_t>(tensor.int32_data());
  case onnx::TensorProto::INT8:
    return narrow<int8_t>(tensor.int32_data());
  case onnx::TensorProto::UINT8:
  case onnx::TensorProto::BOOL:
  case onnx::TensorProto::FLOAT8E4M3FN:
  case onnx::TensorProto::FLOAT8E4M3FNUZ:
  case onnx::TensorProto::FLOAT8E5M2:
  case onnx::TensorProto::FLOAT8E5M2FNUZ:
  case onnx::TensorProto::FLOAT8E8M0:
  case onnx::TensorProto::INT4: // several in a byte
  case onnx::TensorProto::INT2:
  case onnx::TensorProto::UINT4:
  case onnx::TensorProto::UINT2:
  case onnx::TensorProto::FLOAT4E2M1:
    return narrow<uint8_t>(tensor.int32_data());
  case onnx::TensorProto::UINT16:
  case onnx::TensorProto::FLOAT16:
  case onnx::TensorProto::BFLOAT16:
    return narrow<uint16_t>(tensor.int32_data());
  default:
    return std::nullopt;
  }
}
} // namespace

std::optional<Failure> mlir::transept::checkTensorHeader(onnx::TensorProto &tensor, const OnnxFile &file) {
  StringRef name = tensor.name();
  if (!onnx::TensorProto::DataType_IsValid(tensor.data_type()) || tensor.data_type() == onnx::TensorProto::UNDEFINED)
    return invalid(file, name, "has no valid element type (" + Twine(tensor.data_type()) + ")");
  if (static_cast<unsigned>(tensor.dims_size()) > file.limits.rank)
    return Failure{ExitLimit,
                   tensorTitle(file, name) + " has " + std::to_string(tensor.dims_size()) +
                       " axes, more than the limit of " + std::to_string(file.limits.rank),
                   {}};
  uint64_t elements = 1;
  for (int64_t size : tensor.dims()) {
    if (size < 0)
      return invalid(file, name, "has the negative size " + Twine(size));
    bool overflow = false;
    elements = llvm::SaturatingMultiply(elements, static_cast<uint64_t>(size), &overflow);
    if (overflow || elements > file.limits.weightBytes)
      return invalid(file, name, "is too large: its sizes multiply to more than " + Twine(file.limits.weightBytes));
  }
  if (tensor.has_segment())
    return Failure{ExitUnsupported, tensorTitle(file, name) + " is stored in segments, which is not supported", {}};
  bool external = tensor.data_location() == onnx::TensorProto::EXTERNAL;
  if (external && tensor.external_data_size() == 0)
    return invalid(file, name, "is stored externally but does not say where");
  if (external && (tensor.has_raw_data() || tensor.float_data_size() || tensor.int32_data_size() ||
                   tensor.int64_data_size() || tensor.double_data_size() || tensor.uint64_data_size()))
    return invalid(file, name, "has data in the model and in an external file");
  if (!external)
    tensor.clear_external_data();
  return std::nullopt;
}

Outcome<std::vector<char>> mlir::transept::readRawData(const onnx::TensorProto &tensor, const OnnxFile &file) {
  std::optional<ContentRange> range = referredRange(tensor.raw_data(), file.sha256);
  if (!range || !file.contents)
    return std::vector<char>(tensor.raw_data().begin(), tensor.raw_data().end());
  std::vector<char> bytes(range->bytes);
  if (std::optional<Failure> failure = file.contents->read(range->offset, bytes))
    return std::move(*failure);
  return bytes;
}

Outcome<TensorData> mlir::transept::decodeTensor(const onnx::TensorProto &tensor, const OnnxFile &file,
                                                 MLIRContext *context, StringRef name) {
  Type element = elementTypeOf(context, tensor.data_type());
  if (!element)
    return Failure{ExitUnsupported,
                   tensorTitle(file, name) + " holds " + dataTypeName(tensor.data_type()) +
                       " elements, which are not supported",
                   {}};
  TensorData data;
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  data.type = RankedTensorType::get(shape, element);
  const auto count = static_cast<uint64_t>(data.type.getNumElements());
  const unsigned packed = packedBits(element);
  const uint64_t needed = packed ? packedBytes(count, packed) : count * byteWidth(element);
  if (needed > file.limits.weightBytes)
    return Failure{ExitLimit,
                   tensorTitle(file, name) + " needs " + std::to_string(needed) + " bytes, more than the limit of " +
                       std::to_string(file.limits.weightBytes),
                   {}};
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    Outcome<std::vector<char>> bytes = readExternalData(tensor, file, needed, name);
    if (!bytes)
      return std::move(bytes.failure());
    data.bytes = std::move(*bytes);
  } else if (tensor.has_raw_data()) {
    Outcome<std::vector<char>> bytes = readRawData(tensor, file);
    if (!bytes)
      return std::move(bytes.failure());
    data.bytes = std::move(*bytes);
  } else {
    std::optional<std::vector<char>> bytes = typedFields(tensor);
    if (!bytes)
      return invalid(file, name, "holds a value that does not fit its type " + dataTypeName(tensor.data_type()));
    data.bytes = std::move(*bytes);
  }
  if (data.bytes.size() != needed)
    return invalid(file, name, "needs " + Twine(needed) + " bytes for its shape, but has " + Twine(data.bytes.size()));
  if (packed)
    data.bytes = unpack(data.bytes, count, element);
  if (element.isInteger(1))
    for (char &byte : data.bytes)
      byte = byte != 0;
  return data;
}
