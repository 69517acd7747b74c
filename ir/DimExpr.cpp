//===- DimExpr.cpp - symbolic sizes in normal form -------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/DimExpr.h"
#include "ir/Transept.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <map>

using namespace mlir;
using namespace mlir::transept;

namespace {

DimKind kindOf(DimAttr dim) { return static_cast<DimKind>(dim.getKind()); }
DimAttr operand(DimAttr dim, unsigned i) { return cast<DimAttr>(dim.getOperands()[i]); }

/// Structural order: independent of addresses, so that normal forms are the same in every process.
int compare(DimAttr a, DimAttr b) {
  if (a == b)
    return 0;
  if (a.getKind() != b.getKind())
    return a.getKind() < b.getKind() ? -1 : 1;
  if (int order = a.getName().compare(b.getName()))
    return order;
  size_t common = std::min(a.getOperands().size(), b.getOperands().size());
  for (size_t i = 0; i < common; ++i)
    if (int order = compare(operand(a, i), operand(b, i)))
      return order;
  if (a.getOperands().size() != b.getOperands().size())
    return a.getOperands().size() < b.getOperands().size() ? -1 : 1;
  return a.getValue() < b.getValue() ? -1 : 1;
}

/// A product of atoms in structural order; powers are repetitions.
using Monomial = SmallVector<DimAttr, 4>;
struct MonomialLess {
  /// Higher degree first, then structural order; the constant (degree 0) comes last.
  bool operator()(const Monomial &a, const Monomial &b) const {
    if (a.size() != b.size())
      return a.size() > b.size();
    for (auto [x, y] : llvm::zip(a, b))
      if (int order = compare(x, y))
        return order < 0;
    return false;
  }
};

/// Coefficients by monomial; no zero coefficients. `overflow` is sticky: what has overflowed is no size, but the least
/// number, which is refused where sizes are made.
struct Polynomial {
  MLIRContext *context;
  std::map<Monomial, int64_t, MonomialLess> terms;
  bool overflow = false;

  void add(const Monomial &monomial, int64_t coefficient) {
    int64_t &slot = terms[monomial];
    overflow |= llvm::AddOverflow(slot, coefficient, slot);
    if (slot == 0)
      terms.erase(monomial);
  }
  void add(const Polynomial &other) {
    overflow |= other.overflow;
    for (auto &[monomial, coefficient] : other.terms)
      add(monomial, coefficient);
  }
};

DimAttr make(MLIRContext *context, DimKind kind, StringRef name, int64_t value, ArrayRef<Attribute> operands) {
  return DimAttr::get(context, static_cast<uint32_t>(kind), name, value, operands);
}

Polynomial expand(DimAttr dim, int64_t factor = 1) {
  Polynomial result{dim.getContext(), {}, false};
  auto scaled = [&](int64_t coefficient) {
    result.overflow |= llvm::MulOverflow(coefficient, factor, coefficient);
    return coefficient;
  };
  auto addTerm = [&](DimAttr term) {
    switch (kindOf(term)) {
    case DimKind::Constant:
      return result.add({}, scaled(term.getValue()));
    case DimKind::Product: {
      Monomial monomial;
      for (Attribute atom : term.getOperands())
        monomial.push_back(cast<DimAttr>(atom));
      return result.add(monomial, scaled(term.getValue()));
    }
    default:
      return result.add({term}, factor);
    }
  };
  if (kindOf(dim) == DimKind::Sum)
    for (Attribute term : dim.getOperands())
      addTerm(cast<DimAttr>(term));
  else
    addTerm(dim);
  return result;
}

DimAttr collapse(const Polynomial &polynomial) {
  MLIRContext *context = polynomial.context;
  if (polynomial.overflow)
    return dimConstant(context, std::numeric_limits<int64_t>::min());
  SmallVector<Attribute> terms;
  for (auto &[monomial, coefficient] : polynomial.terms) {
    if (monomial.empty())
      terms.push_back(dimConstant(context, coefficient));
    else if (monomial.size() == 1 && coefficient == 1)
      terms.push_back(monomial.front());
    else
      terms.push_back(
          make(context, DimKind::Product, "", coefficient, SmallVector<Attribute>(monomial.begin(), monomial.end())));
  }
  if (terms.empty())
    return dimConstant(context, 0);
  if (terms.size() == 1)
    return cast<DimAttr>(terms.front());
  return make(context, DimKind::Sum, "", 0, terms);
}

/// lhs / rhs for a single-term divisor, where every term divides.
std::optional<Polynomial> divideByTerm(const Polynomial &lhs, const Monomial &divisor, int64_t coefficient) {
  Polynomial quotient{lhs.context, {}, false};
  for (auto &[monomial, value] : lhs.terms) {
    if (value % coefficient)
      return std::nullopt;
    Monomial rest(monomial);
    for (DimAttr atom : divisor) {
      auto it = llvm::find(rest, atom);
      if (it == rest.end())
        return std::nullopt;
      rest.erase(it);
    }
    quotient.add(rest, value / coefficient);
  }
  return quotient;
}

DimAttr makeMinMax(DimKind kind, DimAttr lhs, DimAttr rhs) {
  bool isMin = kind == DimKind::Min;
  if (provablyLessOrEqual(lhs, rhs))
    return isMin ? lhs : rhs;
  if (provablyLessOrEqual(rhs, lhs))
    return isMin ? rhs : lhs;
  SmallVector<DimAttr> flat;
  for (DimAttr side : {lhs, rhs}) {
    if (kindOf(side) != kind) {
      flat.push_back(side);
      continue;
    }
    for (Attribute inner : side.getOperands())
      flat.push_back(cast<DimAttr>(inner));
  }
  llvm::sort(flat, [](DimAttr a, DimAttr b) { return compare(a, b) < 0; });
  SmallVector<Attribute> kept;
  for (DimAttr dim : flat) {
    bool redundant = llvm::any_of(flat, [&](DimAttr other) {
      return other != dim && (isMin ? provablyLessOrEqual(other, dim) : provablyLessOrEqual(dim, other));
    });
    if (!redundant && !llvm::is_contained(kept, Attribute(dim)))
      kept.push_back(dim);
  }
  if (kept.size() == 1)
    return cast<DimAttr>(kept.front());
  return make(lhs.getContext(), kind, "", 0, kept);
}

int64_t floorDivide(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

} // namespace

DimAttr transept::dimConstant(MLIRContext *context, int64_t value) {
  return make(context, DimKind::Constant, "", value, {});
}

DimAttr transept::dimSymbol(MLIRContext *context, StringRef name) {
  return make(context, DimKind::Symbol, name, 0, {});
}

DimAttr transept::dimAdd(DimAttr lhs, DimAttr rhs) {
  Polynomial sum = expand(lhs);
  sum.add(expand(rhs));
  return collapse(sum);
}

DimAttr transept::dimSub(DimAttr lhs, DimAttr rhs) {
  Polynomial difference = expand(lhs);
  difference.add(expand(rhs, -1));
  return collapse(difference);
}

DimAttr transept::dimMul(DimAttr lhs, DimAttr rhs) {
  Polynomial left = expand(lhs), right = expand(rhs), product{lhs.getContext(), {}, false};
  for (auto &[a, x] : left.terms)
    for (auto &[b, y] : right.terms) {
      Monomial monomial(a);
      monomial.append(b.begin(), b.end());
      llvm::sort(monomial, [](DimAttr p, DimAttr q) { return compare(p, q) < 0; });
      int64_t coefficient;
      product.overflow |= llvm::MulOverflow(x, y, coefficient);
      product.add(monomial, coefficient);
    }
  return collapse(product);
}

std::optional<DimAttr> transept::dimExactDiv(DimAttr lhs, DimAttr rhs) {
  if (constantValue(rhs) == 0)
    return std::nullopt;
  if (lhs == rhs)
    return dimConstant(lhs.getContext(), 1);
  Polynomial dividend = expand(lhs), divisor = expand(rhs), quotient{lhs.getContext(), {}, false};
  // Polynomial long division by the leading term; the remainder must vanish. Bounded, as every round removes a term.
  const auto &[leading, coefficient] = *divisor.terms.begin();
  for (unsigned round = 0; !dividend.terms.empty(); ++round) {
    if (round > 64)
      return std::nullopt;
    Polynomial first{lhs.getContext(), {}, false};
    first.add(dividend.terms.begin()->first, dividend.terms.begin()->second);
    std::optional<Polynomial> term = divideByTerm(first, leading, coefficient);
    if (!term)
      return std::nullopt;
    DimAttr partial = collapse(*term);
    for (auto &[monomial, value] : term->terms)
      quotient.add(monomial, value);
    DimAttr rest = dimSub(collapse(dividend), dimMul(partial, rhs));
    dividend = expand(rest);
  }
  return collapse(quotient);
}

DimAttr transept::dimFloorDiv(DimAttr lhs, DimAttr rhs) {
  std::optional<int64_t> a = constantValue(lhs), b = constantValue(rhs);
  if (b == 1)
    return lhs;
  if (a && b && *b != 0 && !(*a == INT64_MIN && *b == -1))
    return dimConstant(lhs.getContext(), floorDivide(*a, *b));
  if (std::optional<DimAttr> exact = dimExactDiv(lhs, rhs))
    return *exact;
  if (b && *b > 0) {
    // floordiv(b * x + r, b) = x + floordiv(r, b): the divisible terms leave the atom.
    Polynomial whole{lhs.getContext(), {}, false}, rest{lhs.getContext(), {}, false};
    for (auto &[monomial, coefficient] : expand(lhs).terms)
      if (coefficient % *b == 0)
        whole.add(monomial, coefficient / *b);
      else
        rest.add(monomial, coefficient);
    if (!whole.terms.empty())
      return dimAdd(collapse(whole), dimFloorDiv(collapse(rest), rhs));
    // floordiv(floordiv(x, a), b) = floordiv(x, a * b) for positive constants.
    if (kindOf(lhs) == DimKind::FloorDiv)
      if (std::optional<int64_t> inner = constantValue(operand(lhs, 1)); inner && *inner > 0)
        return dimFloorDiv(operand(lhs, 0), dimMul(operand(lhs, 1), rhs));
  }
  return make(lhs.getContext(), DimKind::FloorDiv, "", 0, {lhs, rhs});
}

DimAttr transept::dimMod(DimAttr lhs, DimAttr rhs) {
  std::optional<int64_t> a = constantValue(lhs), b = constantValue(rhs);
  if (b == 1)
    return dimConstant(lhs.getContext(), 0);
  if (a && b && *b > 0)
    return dimConstant(lhs.getContext(), *a - floorDivide(*a, *b) * *b);
  if (dimExactDiv(lhs, rhs))
    return dimConstant(lhs.getContext(), 0);
  if (b && *b > 0) {
    Polynomial rest{lhs.getContext(), {}, false};
    bool dropped = false;
    for (auto &[monomial, coefficient] : expand(lhs).terms)
      if (coefficient % *b == 0)
        dropped = true;
      else
        rest.add(monomial, coefficient);
    if (dropped)
      return dimMod(collapse(rest), rhs);
  }
  return make(lhs.getContext(), DimKind::Mod, "", 0, {lhs, rhs});
}

DimAttr transept::dimMin(DimAttr lhs, DimAttr rhs) { return makeMinMax(DimKind::Min, lhs, rhs); }
DimAttr transept::dimMax(DimAttr lhs, DimAttr rhs) { return makeMinMax(DimKind::Max, lhs, rhs); }

DimAttr transept::dimProduct(MLIRContext *context, ArrayRef<DimAttr> factors) {
  DimAttr product = dimConstant(context, 1);
  for (DimAttr factor : factors)
    product = dimMul(product, factor);
  return product;
}

std::optional<int64_t> transept::constantValue(DimAttr dim) {
  if (kindOf(dim) == DimKind::Constant)
    return dim.getValue();
  return std::nullopt;
}

StringRef transept::symbolName(DimAttr dim) { return kindOf(dim) == DimKind::Symbol ? dim.getName() : StringRef(); }

bool transept::dependsOn(DimAttr dim, StringRef symbol) {
  if (kindOf(dim) == DimKind::Symbol)
    return dim.getName() == symbol;
  return llvm::any_of(dim.getOperands(), [&](Attribute inner) { return dependsOn(cast<DimAttr>(inner), symbol); });
}

void transept::collectSymbols(DimAttr dim, SmallVectorImpl<StringRef> &symbols) {
  if (kindOf(dim) == DimKind::Symbol && !llvm::is_contained(symbols, dim.getName()))
    symbols.push_back(dim.getName());
  for (Attribute inner : dim.getOperands())
    collectSymbols(cast<DimAttr>(inner), symbols);
}

DimAttr transept::substitute(DimAttr dim, StringRef symbol, DimAttr replacement) {
  if (!dependsOn(dim, symbol))
    return dim;
  SmallVector<DimAttr> parts;
  for (Attribute inner : dim.getOperands())
    parts.push_back(substitute(cast<DimAttr>(inner), symbol, replacement));
  switch (kindOf(dim)) {
  case DimKind::Constant:
    return dim;
  case DimKind::Symbol:
    return replacement;
  case DimKind::Sum: {
    DimAttr sum = dimConstant(dim.getContext(), 0);
    for (DimAttr part : parts)
      sum = dimAdd(sum, part);
    return sum;
  }
  case DimKind::Product:
    return dimMul(dimConstant(dim.getContext(), dim.getValue()), dimProduct(dim.getContext(), parts));
  case DimKind::FloorDiv:
    return dimFloorDiv(parts[0], parts[1]);
  case DimKind::Mod:
    return dimMod(parts[0], parts[1]);
  case DimKind::Min:
  case DimKind::Max: {
    DimAttr result = parts.front();
    for (DimAttr part : ArrayRef(parts).drop_front())
      result = makeMinMax(kindOf(dim), result, part);
    return result;
  }
  }
  return dim;
}

/// Every term of a polynomial over non-negative atoms has a non-negative coefficient. Negative atoms do not occur
/// but for sums inside min/floordiv, which are checked in turn.
bool transept::provablyNonNegative(DimAttr dim) {
  switch (kindOf(dim)) {
  case DimKind::Constant:
    return dim.getValue() >= 0;
  case DimKind::Symbol:
    return true;
  case DimKind::Sum:
    return llvm::all_of(dim.getOperands(), [](Attribute term) { return provablyNonNegative(cast<DimAttr>(term)); });
  case DimKind::Product:
    return dim.getValue() >= 0 &&
           llvm::all_of(dim.getOperands(), [](Attribute atom) { return provablyNonNegative(cast<DimAttr>(atom)); });
  case DimKind::FloorDiv:
    return provablyNonNegative(operand(dim, 0)) && provablyNonNegative(operand(dim, 1));
  case DimKind::Mod:
    return provablyNonNegative(operand(dim, 1));
  case DimKind::Min:
    return llvm::all_of(dim.getOperands(), [](Attribute part) { return provablyNonNegative(cast<DimAttr>(part)); });
  case DimKind::Max:
    return llvm::any_of(dim.getOperands(), [](Attribute part) { return provablyNonNegative(cast<DimAttr>(part)); });
  }
  return false;
}

bool transept::provablyLessOrEqual(DimAttr lhs, DimAttr rhs) {
  if (lhs == rhs)
    return true;
  if (kindOf(lhs) == DimKind::Min &&
      llvm::any_of(lhs.getOperands(), [&](Attribute part) { return provablyLessOrEqual(cast<DimAttr>(part), rhs); }))
    return true;
  if (kindOf(rhs) == DimKind::Max &&
      llvm::any_of(rhs.getOperands(), [&](Attribute part) { return provablyLessOrEqual(lhs, cast<DimAttr>(part)); }))
    return true;
  return provablyNonNegative(dimSub(rhs, lhs));
}

std::optional<int64_t> transept::evaluate(DimAttr dim, const llvm::StringMap<int64_t> &symbols) {
  SmallVector<int64_t> parts;
  for (Attribute inner : dim.getOperands()) {
    std::optional<int64_t> part = evaluate(cast<DimAttr>(inner), symbols);
    if (!part)
      return std::nullopt;
    parts.push_back(*part);
  }
  int64_t result = 0;
  switch (kindOf(dim)) {
  case DimKind::Constant:
    return dim.getValue();
  case DimKind::Symbol: {
    auto it = symbols.find(dim.getName());
    return it == symbols.end() ? std::nullopt : std::optional<int64_t>(it->second);
  }
  case DimKind::Sum:
    for (int64_t part : parts)
      if (llvm::AddOverflow(result, part, result))
        return std::nullopt;
    return result;
  case DimKind::Product:
    result = dim.getValue();
    for (int64_t part : parts)
      if (llvm::MulOverflow(result, part, result))
        return std::nullopt;
    return result;
  case DimKind::FloorDiv:
  case DimKind::Mod:
    if (parts[1] == 0 || (parts[0] == INT64_MIN && parts[1] == -1))
      return std::nullopt;
    result = floorDivide(parts[0], parts[1]);
    return kindOf(dim) == DimKind::FloorDiv ? result : parts[0] - result * parts[1];
  case DimKind::Min:
    return *llvm::min_element(parts);
  case DimKind::Max:
    return *llvm::max_element(parts);
  }
  return std::nullopt;
}

RankedTensorType transept::makeType(ArrayRef<DimAttr> dims, Type elementType) {
  SmallVector<int64_t> shape;
  for (DimAttr dim : dims) {
    std::optional<int64_t> value = constantValue(dim);
    shape.push_back(value && *value >= 0 ? *value : ShapedType::kDynamic);
  }
  if (!ShapedType::isDynamicShape(shape))
    return RankedTensorType::get(shape, elementType);
  return RankedTensorType::get(shape, elementType, DimsAttr::get(dims.front().getContext(), dims));
}

SmallVector<DimAttr> transept::dimsOf(RankedTensorType type) {
  SmallVector<DimAttr> dims;
  auto encoding = dyn_cast_or_null<DimsAttr>(type.getEncoding());
  for (auto [axis, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size))
      dims.push_back(dimConstant(type.getContext(), size));
    else
      dims.push_back(encoding ? encoding.getDims()[axis] : DimAttr());
  }
  return dims;
}
