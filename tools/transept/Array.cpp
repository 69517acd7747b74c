#include "Array.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace transept::tool {

namespace {

template <typename T> T load(const void *data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const uint8_t *>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

double halfToDouble(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31  ? (fraction ? std::numeric_limits<double>::quiet_NaN() : HUGE_VAL)
                 : exponent == 0 ? std::ldexp(fraction, -24)
                                 : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

float bfloatToFloat(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// A float of at most 8 bits: sign, exponent, mantissa. `top` is the first code that is no finite number.
double narrowToDouble(unsigned code, int exponentBits, int mantissaBits, int bias, unsigned top) {
  const unsigned sign = 1u << (exponentBits + mantissaBits), magnitude = code & (sign - 1);
  const int exponent = static_cast<int>(magnitude >> mantissaBits);
  const unsigned fraction = magnitude & ((1u << mantissaBits) - 1);
  const unsigned units = exponent ? fraction + (1u << mantissaBits) : fraction;
  double value = std::ldexp(units, std::max(exponent, 1) - bias - mantissaBits);
  if (magnitude >= top) // f8e5m2 has infinities
    value = mantissaBits == 2 && fraction == 0 ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  return code & sign ? -value : value;
}

/// FNUZ types have one NaN, in the place of -0.
double unsignedZeroToDouble(unsigned code, int exponentBits, int mantissaBits, int bias) {
  return code == 0x80 ? std::numeric_limits<double>::quiet_NaN()
                      : narrowToDouble(code, exponentBits, mantissaBits, bias, 0x80);
}

template <typename T> std::string numberText(T value) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

} // namespace

int64_t elementCount(const Array &array) {
  return static_cast<int64_t>(array.data.size()) / std::max<int64_t>(dtypeSize(array.dtype), 1);
}

double elementAsDouble(DType dtype, const void *data, int64_t index) {
  switch (dtype) {
  case program::F32:
    return load<float>(data, index);
  case program::F64:
    return load<double>(data, index);
  case program::F16:
    return halfToDouble(load<uint16_t>(data, index));
  case program::BF16:
    return bfloatToFloat(load<uint16_t>(data, index));
  case program::F8E4M3FN:
    return narrowToDouble(load<uint8_t>(data, index), 4, 3, 7, 0x7f);
  case program::F8E5M2:
    return narrowToDouble(load<uint8_t>(data, index), 5, 2, 15, 0x7c);
  case program::F8E4M3FNUZ:
    return unsignedZeroToDouble(load<uint8_t>(data, index), 4, 3, 8);
  case program::F8E5M2FNUZ:
    return unsignedZeroToDouble(load<uint8_t>(data, index), 5, 2, 16);
  case program::F4E2M1:
    return narrowToDouble(load<uint8_t>(data, index), 2, 1, 1, 8);
  case program::F8E8M0: {
    const int code = load<uint8_t>(data, index);
    return code == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
  }
  case program::I8:
  case program::I4:
  case program::I2:
    return load<int8_t>(data, index);
  case program::I16:
    return load<int16_t>(data, index);
  case program::I32:
    return load<int32_t>(data, index);
  case program::I64:
    return static_cast<double>(load<int64_t>(data, index));
  case program::U8:
  case program::U4:
  case program::U2:
  case program::BOOL:
    return load<uint8_t>(data, index);
  case program::U16:
    return load<uint16_t>(data, index);
  case program::U32:
    return load<uint32_t>(data, index);
  case program::U64:
    return static_cast<double>(load<uint64_t>(data, index));
  default:
    return 0;
  }
}

std::string elementText(DType dtype, const void *data, int64_t index) {
  switch (dtype) {
  case program::I64:
    return numberText(load<int64_t>(data, index));
  case program::U64:
    return numberText(load<uint64_t>(data, index));
  case program::F64:
    return numberText(load<double>(data, index));
  case program::F32:
  case program::F16:
  case program::BF16:
  case program::F8E4M3FN:
  case program::F8E4M3FNUZ:
  case program::F8E5M2:
  case program::F8E5M2FNUZ:
  case program::F8E8M0:
  case program::F4E2M1:
    return numberText(static_cast<float>(elementAsDouble(dtype, data, index)));
  case program::BOOL:
    return load<uint8_t>(data, index) ? "true" : "false";
  default:
    return numberText(static_cast<int64_t>(elementAsDouble(dtype, data, index)));
  }
}

} // namespace transept::tool
