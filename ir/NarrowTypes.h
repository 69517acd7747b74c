//===- NarrowTypes.h - element types that only store -------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_NARROWTYPES_H
#define TRANSEPT_IR_NARROWTYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace mlir::transept {

/// Whether elements are converted before anything is computed with them: floats of 8 and 4 bits, integers of 4 and 2.
/// In memory an element takes one byte: the code of a float in its low bits, an integer extended by its sign.
bool isNarrow(Type elementType);

/// How a narrow float is coded: sign, exponent, mantissa, from the highest bit on.
struct NarrowFormat {
  /// What the code has beside finite numbers: infinities and NaN, one NaN per sign, one NaN in place of -0, or nothing.
  enum Specials { Infinities, NaNs, NaNForMinusZero, None };

  unsigned exponentBits, mantissaBits;
  int bias;
  Specials specials;
  /// Powers of two only: no sign, no zero.
  bool isScale = false;

  unsigned signBit() const { return exponentBits + mantissaBits; }
  /// Codes without sign.
  unsigned largestFinite() const;
  unsigned notANumber() const;
  /// What takes the place of numbers that are too large, where they are not clamped.
  unsigned overflow() const { return specials == Infinities ? largestFinite() + 1 : notANumber(); }
};

/// nullopt for all other types.
std::optional<NarrowFormat> narrowFormat(Type elementType);

enum class NarrowRounding { Nearest, Up, Down };

double decodeNarrow(const NarrowFormat &format, unsigned code);
/// Rounds to nearest, ties to even; `rounding` is for scales, whose ties go up.
unsigned encodeNarrow(const NarrowFormat &format, double value, bool saturate = true,
                      NarrowRounding rounding = NarrowRounding::Nearest);

} // namespace mlir::transept

#endif // TRANSEPT_IR_NARROWTYPES_H
