#include "ParseValue.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace transept::tool {

namespace {

using nlohmann::json;

/// The bits of `value` in 16 bits with `fractionBits` of fraction, rounded to nearest even.
uint16_t narrow(double value, int fractionBits, int bias) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int allOnes = 2 * bias + 1;
  auto join = [&](int exponent, double fraction) {
    return static_cast<uint16_t>(sign | (exponent << fractionBits) + static_cast<int>(fraction));
  };
  double size = std::fabs(value);
  if (std::isnan(value))
    return join(allOnes, std::ldexp(1, fractionBits - 1));
  if (size == 0)
    return sign;
  int exponent = std::max(std::isinf(size) ? bias + 1 : std::ilogb(size), 1 - bias);
  // The units of the last place; a carry runs into the exponent by itself.
  double units = std::isinf(size) ? 0 : std::nearbyint(std::ldexp(size, fractionBits - exponent));
  bool subnormal = units < std::ldexp(1, fractionBits);
  double fraction = subnormal ? units : units - std::ldexp(1, fractionBits);
  uint16_t bits = join(subnormal ? 0 : exponent + bias, fraction);
  uint16_t infinity = join(allOnes, 0);
  return std::isinf(size) || (bits & 0x7FFF) > (infinity & 0x7FFF) ? infinity : bits;
}

template <typename T> bool appendInteger(std::vector<uint8_t> &data, const json &value) {
  T element;
  if (value.is_boolean())
    element = static_cast<T>(value.get<bool>());
  else if (value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<T>::max()))
    element = static_cast<T>(value.get<uint64_t>());
  else if (value.is_number_integer() && !value.is_number_unsigned() && std::is_signed_v<T> &&
           value.get<int64_t>() >= static_cast<int64_t>(std::numeric_limits<T>::min()))
    element = static_cast<T>(value.get<int64_t>());
  else
    return false;
  const auto *bytes = reinterpret_cast<const uint8_t *>(&element);
  data.insert(data.end(), bytes, bytes + sizeof element);
  return true;
}

template <typename T> bool append(std::vector<uint8_t> &data, T element) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(&element);
  data.insert(data.end(), bytes, bytes + sizeof element);
  return true;
}

bool inRange(const json &value, int64_t low, int64_t high) {
  return value.is_number_integer() && value.get<double>() >= static_cast<double>(low) &&
         value.get<double>() <= static_cast<double>(high);
}

bool appendElement(std::vector<uint8_t> &data, const json &value, DType dtype) {
  switch (dtype) {
  case program::I8:
    return appendInteger<int8_t>(data, value);
  case program::I4:
    return inRange(value, -8, 7) && appendInteger<int8_t>(data, value);
  case program::U4:
    return inRange(value, 0, 15) && appendInteger<uint8_t>(data, value);
  case program::I2:
    return inRange(value, -2, 1) && appendInteger<int8_t>(data, value);
  case program::U2:
    return inRange(value, 0, 3) && appendInteger<uint8_t>(data, value);
  case program::I16:
    return appendInteger<int16_t>(data, value);
  case program::I32:
    return appendInteger<int32_t>(data, value);
  case program::I64:
    return appendInteger<int64_t>(data, value);
  case program::U8:
    return appendInteger<uint8_t>(data, value);
  case program::U16:
    return appendInteger<uint16_t>(data, value);
  case program::U32:
    return appendInteger<uint32_t>(data, value);
  case program::U64:
    return appendInteger<uint64_t>(data, value);
  case program::BOOL:
    return value.is_boolean() && append<uint8_t>(data, value.get<bool>());
  default:
    break;
  }
  if (!value.is_number())
    return false;
  double number = value.get<double>();
  switch (dtype) {
  case program::F32:
    return append(data, static_cast<float>(number));
  case program::F64:
    return append(data, number);
  case program::F16:
    return append(data, narrow(number, 10, 15));
  case program::BF16:
    return append(data, narrow(number, 7, 127));
  default:
    return false;
  }
}

Status appendNested(Array &array, const json &value, size_t axis) {
  const std::string who = "--input " + printable(array.name) + ": ";
  if (!value.is_array()) {
    if (axis != array.dims.size())
      return {Code::Usage, who + "its lists are not of one depth"};
    if (!appendElement(array.data, value, array.dtype))
      return {Code::Usage, who + printable(value.dump(), 40) + " is no " + dtypeName(array.dtype)};
    return {};
  }
  if (axis >= array.dims.size() || static_cast<int64_t>(value.size()) != array.dims[axis])
    return {Code::Usage, who + "its lists are not of one length"};
  for (const json &item : value)
    TRANSEPT_TRY(appendNested(array, item, axis + 1));
  return {};
}

} // namespace

Result<Array> parseValue(const std::string &name, const std::string &text, DType dtype, int rank) {
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded())
    return Status(Code::Usage,
                  "--input " + printable(name) + ": '" + printable(text, 40) + "' is not a number or list");
  Array array;
  array.name = name;
  array.dtype = dtype;
  if (!value.is_array())
    array.dims.assign(static_cast<size_t>(rank), 1);
  for (const json *level = &value; level->is_array(); level = &level->front()) {
    array.dims.push_back(static_cast<int64_t>(level->size()));
    if (level->empty() || array.dims.size() > 16)
      break;
  }
  Status status = value.is_array() ? appendNested(array, value, 0) : appendNested(array, value, array.dims.size());
  if (!status.ok())
    return status;
  return array;
}

} // namespace transept::tool
