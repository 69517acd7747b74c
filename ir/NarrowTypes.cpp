//===- NarrowTypes.cpp - element types that only store -----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/NarrowTypes.h"
#include "ir/Transept.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::transept;

namespace {
constexpr double notANumberValue = std::numeric_limits<double>::quiet_NaN();

double decodeScale(const NarrowFormat &format, unsigned code) {
  return code == format.notANumber() ? notANumberValue : std::ldexp(1.0, static_cast<int>(code) - format.bias);
}

/// Zero is below the smallest power; negative numbers have no scale.
unsigned encodeScale(const NarrowFormat &format, double value, bool saturate, NarrowRounding rounding) {
  if (std::isnan(value) || value < 0)
    return format.notANumber();
  if (std::isinf(value))
    return saturate ? format.largestFinite() : format.overflow();
  const double least = std::ldexp(1.0, -format.bias);
  if (value <= least)
    return 0;
  int exponent;
  const double fraction = std::frexp(value, &exponent); // in [1/2, 1)
  const bool up =
      rounding == NarrowRounding::Up ? fraction > 0.5 : rounding == NarrowRounding::Nearest && fraction >= 0.75;
  const int code = exponent - 1 + up + format.bias;
  if (code > static_cast<int>(format.largestFinite()))
    return saturate ? format.largestFinite() : format.overflow();
  return static_cast<unsigned>(code);
}
} // namespace

bool mlir::transept::isNarrow(Type elementType) {
  if (auto integer = dyn_cast_or_null<IntegerType>(elementType))
    return integer.getWidth() == 4 || integer.getWidth() == 2;
  return narrowFormat(elementType).has_value();
}

std::optional<NarrowFormat> mlir::transept::narrowFormat(Type type) {
  if (!type)
    return std::nullopt;
  if (type.isFloat8E5M2())
    return NarrowFormat{5, 2, 15, NarrowFormat::Infinities};
  if (type.isFloat8E4M3FN())
    return NarrowFormat{4, 3, 7, NarrowFormat::NaNs};
  if (type.isFloat8E4M3FNUZ())
    return NarrowFormat{4, 3, 8, NarrowFormat::NaNForMinusZero};
  if (type.isFloat8E5M2FNUZ())
    return NarrowFormat{5, 2, 16, NarrowFormat::NaNForMinusZero};
  if (isa<F4E2M1Type>(type))
    return NarrowFormat{2, 1, 1, NarrowFormat::None};
  if (isa<F8E8M0Type>(type))
    return NarrowFormat{8, 0, 127, NarrowFormat::NaNs, /*isScale=*/true};
  return std::nullopt;
}

unsigned NarrowFormat::largestFinite() const {
  const unsigned all = (1u << signBit()) - 1;
  switch (specials) {
  case Infinities:
    return all - (1u << mantissaBits);
  case NaNs:
    return all - 1;
  default:
    return all;
  }
}

unsigned NarrowFormat::notANumber() const {
  switch (specials) {
  case Infinities:
    return (1u << signBit()) - (1u << (mantissaBits - 1));
  case NaNs:
    return (1u << signBit()) - 1;
  default: // what would be -0
    return 1u << signBit();
  }
}

double mlir::transept::decodeNarrow(const NarrowFormat &format, unsigned code) {
  if (format.isScale)
    return decodeScale(format, code);
  const unsigned magnitude = code & ((1u << format.signBit()) - 1);
  const bool negative = code >> format.signBit() & 1;
  if (format.specials == NarrowFormat::NaNForMinusZero && code == format.notANumber())
    return notANumberValue;
  double value;
  if (magnitude > format.largestFinite()) {
    const bool infinite = format.specials == NarrowFormat::Infinities && magnitude == format.overflow();
    value = infinite ? std::numeric_limits<double>::infinity() : notANumberValue;
  } else {
    const int field = static_cast<int>(magnitude >> format.mantissaBits);
    const unsigned implicit = field ? 1u << format.mantissaBits : 0;
    const unsigned units = implicit + (magnitude & ((1u << format.mantissaBits) - 1));
    value = std::ldexp(static_cast<double>(units),
                       std::max(field, 1) - format.bias - static_cast<int>(format.mantissaBits));
  }
  return negative ? -value : value;
}

unsigned mlir::transept::encodeNarrow(const NarrowFormat &format, double value, bool saturate,
                                      NarrowRounding rounding) {
  if (format.isScale)
    return encodeScale(format, value, saturate, rounding);
  if (std::isnan(value))
    return format.notANumber();
  const unsigned sign = std::signbit(value) ? 1u << format.signBit() : 0;
  const bool clamps = saturate || format.specials == NarrowFormat::None;
  const auto mantissaBits = static_cast<int>(format.mantissaBits);
  int exponent = -format.bias; // of zero: below all numbers
  if (std::isfinite(value) && value != 0)
    std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, 1 - format.bias);
  unsigned magnitude = format.largestFinite() + 1;
  if (std::isfinite(value) && exponent <= (1 << format.exponentBits) - format.bias) {
    // Units in the last place of the result; a carry out of the mantissa increments the exponent field by itself.
    auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(std::fabs(value), mantissaBits - exponent)));
    magnitude = units + (static_cast<unsigned>(exponent + format.bias - 1) << mantissaBits);
  }
  if (magnitude > format.largestFinite()) {
    if (!clamps && format.specials != NarrowFormat::Infinities)
      return format.notANumber();
    magnitude = clamps ? format.largestFinite() : format.overflow();
  }
  return magnitude == 0 && format.specials == NarrowFormat::NaNForMinusZero ? 0 : sign | magnitude;
}
