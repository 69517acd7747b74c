//===- HostTensor.cpp - a dense tensor in host memory ---------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/HostTensor.h"
#include "ir/NarrowTypes.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace mlir::transept;

namespace {
/// Rounds to a 16-bit float with `mantissaBits` stored mantissa bits: nearest, ties to even, one rounding only.
uint16_t narrow(double value, int mantissaBits) {
  const int bias = (1 << (14 - mantissaBits)) - 1;
  const uint32_t infinity = ((2u * bias + 1) << mantissaBits);
  const uint32_t sign = std::signbit(value) ? 0x8000u : 0;
  if (std::isnan(value))
    return static_cast<uint16_t>(sign | infinity | (1u << (mantissaBits - 1)));
  if (std::isinf(value))
    return static_cast<uint16_t>(sign | infinity);
  if (value == 0)
    return static_cast<uint16_t>(sign);
  int exponent;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);
  if (exponent > bias)
    return static_cast<uint16_t>(sign | infinity);
  // Units in the last place of the result; a carry out of the mantissa increments the exponent field by itself.
  auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(std::fabs(value), mantissaBits - exponent)));
  uint32_t bits = units + (static_cast<uint32_t>(exponent + bias - 1) << mantissaBits);
  return static_cast<uint16_t>(sign | std::min(bits, infinity));
}

double widen(uint16_t bits, int mantissaBits) {
  const int bias = (1 << (14 - mantissaBits)) - 1;
  const int field = (bits & 0x7fff) >> mantissaBits;
  const int mantissa = bits & ((1 << mantissaBits) - 1);
  double value;
  if (field == 2 * bias + 1)
    value = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (field == 0)
    value = std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissaBits);
  else
    value = std::ldexp(static_cast<double>(mantissa + (1 << mantissaBits)), field - bias - mantissaBits);
  return bits & 0x8000 ? -value : value;
}

constexpr int halfMantissa = 10, bfloatMantissa = 7;

/// Truncates; NaN gives 0, values outside the 64-bit range saturate.
template <typename Int> Int saturate(double value) {
  if (std::isnan(value))
    return 0;
  if (value <= static_cast<double>(std::numeric_limits<Int>::min()))
    return std::numeric_limits<Int>::min();
  if (value >= static_cast<double>(std::numeric_limits<Int>::max()))
    return std::numeric_limits<Int>::max();
  return static_cast<Int>(value);
}

template <typename T> T load(const char *data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}
template <typename T> void store(char *data, int64_t index, T value) {
  std::memcpy(data + index * sizeof(T), &value, sizeof(T));
}
} // namespace

unsigned mlir::transept::byteWidth(Type elementType) {
  if (isNarrow(elementType))
    return 1;
  if (isa<Float32Type>(elementType))
    return 4;
  if (isa<Float64Type>(elementType))
    return 8;
  if (isa<Float16Type, BFloat16Type>(elementType))
    return 2;
  if (isa<IndexType>(elementType))
    return 8;
  if (auto integer = dyn_cast_or_null<IntegerType>(elementType))
    switch (integer.getWidth()) {
    case 1:
    case 8:
      return 1;
    case 16:
      return 2;
    case 32:
      return 4;
    case 64:
      return 8;
    default:
      return 0;
    }
  return 0;
}

HostTensor HostTensor::make(RankedTensorType type) {
  assert(type.hasStaticShape() && "a host tensor has a static shape");
  HostTensor tensor;
  tensor.type = type;
  tensor.storage = std::make_shared<std::vector<char>>(type.getNumElements() * byteWidth(type.getElementType()));
  return tensor;
}

HostTensor HostTensor::fromBytes(RankedTensorType type, ArrayRef<char> bytes) {
  if (!type || !type.hasStaticShape() ||
      static_cast<uint64_t>(type.getNumElements()) * byteWidth(type.getElementType()) != bytes.size())
    return {};
  HostTensor tensor;
  tensor.type = type;
  tensor.storage = std::make_shared<std::vector<char>>(bytes.begin(), bytes.end());
  return tensor;
}

HostTensor HostTensor::fromElements(ElementsAttr elements) {
  auto type = dyn_cast_or_null<RankedTensorType>(elements ? elements.getShapedType() : ShapedType());
  if (!type || !type.hasStaticShape() || byteWidth(type.getElementType()) == 0)
    return {};
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    return blob ? fromBytes(type, blob->getData()) : HostTensor();
  }
  HostTensor tensor = make(type);
  char *data = tensor.data();
  const unsigned width = byteWidth(type.getElementType());
  const bool extendsSign = isNarrow(type.getElementType()) && type.getElementType().isSignlessInteger();
  int64_t index = 0;
  auto put = [&](const llvm::APInt &bits) {
    uint64_t word = extendsSign ? static_cast<uint64_t>(bits.getSExtValue()) : bits.getZExtValue();
    std::memcpy(data + width * index++, &word, width);
  };
  if (isa<FloatType>(type.getElementType())) {
    auto values = elements.tryGetValues<llvm::APFloat>();
    if (!values)
      return {};
    for (const llvm::APFloat &value : *values)
      put(value.bitcastToAPInt());
    return tensor;
  }
  auto values = elements.tryGetValues<llvm::APInt>();
  if (!values)
    return {};
  for (const llvm::APInt &value : *values)
    put(value);
  return tensor;
}

double HostTensor::getDouble(int64_t index) const {
  const char *data = storage->data();
  Type element = elementType();
  if (isa<Float32Type>(element))
    return load<float>(data, index);
  if (isa<Float64Type>(element))
    return load<double>(data, index);
  if (isa<Float16Type>(element))
    return widen(load<uint16_t>(data, index), halfMantissa);
  if (isa<BFloat16Type>(element))
    return widen(load<uint16_t>(data, index), bfloatMantissa);
  if (std::optional<NarrowFormat> format = narrowFormat(element))
    return decodeNarrow(*format, load<uint8_t>(data, index));
  int64_t value = getInt(index);
  return element.isUnsignedInteger() ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value);
}

int64_t HostTensor::getInt(int64_t index) const {
  const char *data = storage->data();
  Type element = elementType();
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer && !isa<IndexType>(element))
    return saturate<int64_t>(getDouble(index));
  const bool isUnsigned = integer && integer.isUnsigned();
  switch (integer ? integer.getWidth() : 64) {
  case 1:
    return load<uint8_t>(data, index) != 0;
  case 2: // a byte holds one
  case 4:
  case 8:
    return isUnsigned ? load<uint8_t>(data, index) : load<int8_t>(data, index);
  case 16:
    return isUnsigned ? load<uint16_t>(data, index) : load<int16_t>(data, index);
  case 32:
    return isUnsigned ? static_cast<int64_t>(load<uint32_t>(data, index)) : load<int32_t>(data, index);
  default:
    return load<int64_t>(data, index);
  }
}

void HostTensor::setDouble(int64_t index, double value) {
  char *data = storage->data();
  Type element = elementType();
  if (isa<Float32Type>(element))
    return store(data, index, static_cast<float>(value));
  if (isa<Float64Type>(element))
    return store(data, index, value);
  if (isa<Float16Type>(element))
    return store(data, index, narrow(value, halfMantissa));
  if (isa<BFloat16Type>(element))
    return store(data, index, narrow(value, bfloatMantissa));
  if (std::optional<NarrowFormat> format = narrowFormat(element))
    return store(data, index, static_cast<uint8_t>(encodeNarrow(*format, value)));
  if (element.isInteger(1))
    return store<uint8_t>(data, index, value != 0);
  if (element.isUnsignedInteger(64))
    // Negative values wrap, as the conversion over a signed word does.
    return setInt(index, value < 0 ? saturate<int64_t>(value) : static_cast<int64_t>(saturate<uint64_t>(value)));
  setInt(index, saturate<int64_t>(value));
}

void HostTensor::setInt(int64_t index, int64_t value) {
  char *data = storage->data();
  Type element = elementType();
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer && !isa<IndexType>(element))
    return setDouble(index, static_cast<double>(value));
  switch (integer ? integer.getWidth() : 64) {
  case 1:
    return store<uint8_t>(data, index, value != 0);
  case 2:
  case 4: {
    const llvm::APInt bits(integer.getWidth(), static_cast<uint64_t>(value), /*isSigned=*/true);
    return store(data, index, static_cast<int8_t>(integer.isUnsigned() ? bits.getZExtValue() : bits.getSExtValue()));
  }
  case 8:
    return store(data, index, static_cast<int8_t>(value));
  case 16:
    return store(data, index, static_cast<int16_t>(value));
  case 32:
    return store(data, index, static_cast<int32_t>(value));
  default:
    return store(data, index, value);
  }
}

DenseElementsAttr HostTensor::toElements() const {
  // Attributes carry no dims encoding: all sizes are static.
  auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
  if (!elementType().isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(plain, bytes());
  SmallVector<bool> values;
  for (char byte : bytes())
    values.push_back(byte != 0);
  return DenseElementsAttr::get(plain, values);
}
