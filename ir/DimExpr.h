//===- DimExpr.h - symbolic sizes in normal form ---------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A size is a polynomial with integer coefficients over atoms: symbols, floordiv, mod, min and max. The functions below
// are the only way to build one; they normalise, so that equal polynomials are the same attribute.

#ifndef TRANSEPT_IR_DIMEXPR_H
#define TRANSEPT_IR_DIMEXPR_H

#include "ir/TranseptAttrs.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace mlir::transept {

/// The node kinds of a DimAttr. Sums hold products (or atoms, or a constant, which comes last); products hold a
/// coefficient in `value` and factors; powers are repeated factors.
enum class DimKind : uint32_t { Constant, Symbol, Sum, Product, FloorDiv, Mod, Min, Max };

DimAttr dimConstant(MLIRContext *context, int64_t value);
DimAttr dimSymbol(MLIRContext *context, StringRef name);
DimAttr dimAdd(DimAttr lhs, DimAttr rhs);
DimAttr dimSub(DimAttr lhs, DimAttr rhs);
DimAttr dimMul(DimAttr lhs, DimAttr rhs);
/// Rounds towards minus infinity; folds exact polynomial quotients such as floordiv(4 * a, 2) and floordiv(a * b, a)
/// (sizes are non-negative and divisors of live code positive).
DimAttr dimFloorDiv(DimAttr lhs, DimAttr rhs);
DimAttr dimMod(DimAttr lhs, DimAttr rhs);
/// Drops operands that another one provably bounds (symbols are non-negative).
DimAttr dimMin(DimAttr lhs, DimAttr rhs);
DimAttr dimMax(DimAttr lhs, DimAttr rhs);
DimAttr dimProduct(MLIRContext *context, ArrayRef<DimAttr> factors);

/// The exact quotient of polynomials where one exists: dimExactDiv(batch * source * 512, source) = batch * 512.
std::optional<DimAttr> dimExactDiv(DimAttr lhs, DimAttr rhs);

std::optional<int64_t> constantValue(DimAttr dim);
/// The symbol's name if the expression is just one symbol, else an empty string.
StringRef symbolName(DimAttr dim);
bool dependsOn(DimAttr dim, StringRef symbol);
/// Appends the names of all symbols in first-use order, each once.
void collectSymbols(DimAttr dim, SmallVectorImpl<StringRef> &symbols);
DimAttr substitute(DimAttr dim, StringRef symbol, DimAttr replacement);
/// Provable for all non-negative values of the symbols. False means "not proved".
bool provablyNonNegative(DimAttr dim);
bool provablyLessOrEqual(DimAttr lhs, DimAttr rhs);
/// Value for given symbol values; nullopt on overflow, division by zero or an unknown symbol.
std::optional<int64_t> evaluate(DimAttr dim, const llvm::StringMap<int64_t> &symbols);

/// A ranked type whose static axes follow from the expressions. All constant: no encoding is attached.
RankedTensorType makeType(ArrayRef<DimAttr> dims, Type elementType);
/// One expression per axis; for a dynamic axis without encoding (parsed from outside) a null DimAttr.
SmallVector<DimAttr> dimsOf(RankedTensorType type);

/// Textual form without the attribute's mnemonic, as printed inside #transept.dim<…>.
std::string toString(DimAttr dim);

} // namespace mlir::transept

#endif // TRANSEPT_IR_DIMEXPR_H
