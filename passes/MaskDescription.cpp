//===- MaskDescription.cpp - which keys a query sees
//----------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mask is a function of a few conditions (position comparisons, elements of mask inputs). All assignments of truth
// values to them are tried: under each, the score must come out as scale * score (visible) or as something so low that
// the key does not count. If the visible assignments are exactly a conjunction of conditions, the mask is that
// conjunction.

#include "passes/MaskDescription.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace mlir::transept;

namespace {

/// factor * score + offset + elements of constant tables, each times a factor.
struct Affine {
  double factor = 0, offset = 0;
  SmallVector<std::pair<double, const Elem *>> bias = {};

  bool isNumber() const { return factor == 0 && bias.empty(); }
};

/// x + sign * y; equal elements are collected.
Affine sum(const Affine &x, const Affine &y, double sign) {
  Affine result{x.factor + sign * y.factor, x.offset + sign * y.offset, x.bias};
  for (auto [factor, elem] : y.bias) {
    auto *known = llvm::find_if(result.bias, [elem = elem](const auto &part) { return part.second == elem; });
    if (known == result.bias.end())
      result.bias.push_back({sign * factor, elem});
    else if ((known->first += sign * factor) == 0)
      result.bias.erase(known);
  }
  return result;
}

Affine scaled(const Affine &x, double by) {
  Affine result{x.factor * by, x.offset * by, {}};
  for (auto [factor, elem] : x.bias)
    if (by != 0)
      result.bias.push_back({factor * by, elem});
  return result;
}

/// An element of a table that the model stores, not one of zeros and ones.
bool isTableElement(const Elem *elem) {
  return elem->kind == Elem::Kind::Load && isa_and_nonnull<ConstantOp, WeightOp>(elem->tensor.getDefiningOp()) &&
         isa<FloatType>(getElementTypeOrSelf(elem->tensor.getType()));
}

class Describer {
public:
  Describer(const Elem *score) : score(score) {}

  /// Collects the conditions `elem` depends on, in order of first appearance.
  void collect(const Elem *elem) {
    if (!visited.insert(elem).second || elem == score || isTableElement(elem))
      return;
    if (isCondition(elem)) {
      conditions.push_back(elem);
      return;
    }
    for (const Elem *operand : elem->operands)
      collect(operand);
    if (elem->kind == Elem::Kind::Index)
      opaque = true; // a position used as a number: no mask
  }

  std::optional<Affine> evaluate(const Elem *elem, const std::map<const Elem *, bool> &truth) const {
    if (elem == score)
      return Affine{1, 0};
    if (auto it = truth.find(elem); it != truth.end())
      return Affine{0, it->second ? 1.0 : 0.0};
    if (elem->kind == Elem::Kind::Number)
      return Affine{0, elem->number};
    if (isTableElement(elem))
      return Affine{0, 0, {{1.0, elem}}};
    if (elem->kind != Elem::Kind::Apply)
      return std::nullopt;
    SmallVector<Affine> x;
    for (const Elem *operand : elem->operands) {
      std::optional<Affine> value = evaluate(operand, truth);
      if (!value)
        return std::nullopt;
      x.push_back(*value);
    }
    StringRef f = elem->function;
    if (f == "add" || f == "sub")
      return sum(x[0], x[1], f == "add" ? 1 : -1);
    if (f == "neg")
      return scaled(x[0], -1);
    if (f == "mul" && x[0].isNumber())
      return scaled(x[1], x[0].offset);
    if (f == "mul" && x[1].isNumber())
      return scaled(x[0], x[1].offset);
    if (f == "div" && x[1].isNumber())
      return scaled(x[0], 1 / x[1].offset);
    if (f == "where" && x[0].isNumber())
      return x[0].offset != 0 ? x[1] : x[2];
    if (!llvm::all_of(x, [](const Affine &value) { return value.isNumber(); }))
      return std::nullopt;
    if (f == "not")
      return Affine{0, x[0].offset == 0 ? 1.0 : 0.0};
    if (f == "and")
      return Affine{0, x[0].offset != 0 && x[1].offset != 0 ? 1.0 : 0.0};
    if (f == "or")
      return Affine{0, x[0].offset != 0 || x[1].offset != 0 ? 1.0 : 0.0};
    if (f == "xor")
      return Affine{0, (x[0].offset != 0) != (x[1].offset != 0) ? 1.0 : 0.0};
    if (f == "equal")
      return Affine{0, x[0].offset == x[1].offset ? 1.0 : 0.0};
    if (f == "less")
      return Affine{0, x[0].offset < x[1].offset ? 1.0 : 0.0};
    if (f == "less_or_equal")
      return Affine{0, x[0].offset <= x[1].offset ? 1.0 : 0.0};
    if (f == "min")
      return Affine{0, std::min(x[0].offset, x[1].offset)};
    if (f == "max")
      return Affine{0, std::max(x[0].offset, x[1].offset)};
    if (f == "trunc")
      return Affine{0, std::trunc(x[0].offset)};
    return std::nullopt;
  }

  SmallVector<const Elem *> conditions;
  bool opaque = false;

private:
  /// Position comparisons, comparisons of a loaded integer with a number, and loaded 0/1 elements.
  static bool isCondition(const Elem *elem) {
    if (elem->kind == Elem::Kind::Load)
      return true;
    if (elem->kind != Elem::Kind::Apply)
      return false;
    if (elem->function == "le0" || elem->function == "eq0")
      return true;
    return elem->function == "equal" && elem->operands[0]->kind == Elem::Kind::Load &&
           elem->operands[1]->kind == Elem::Kind::Number &&
           !getElementTypeOrSelf(elem->operands[0]->tensor.getType()).isInteger(1);
  }

  const Elem *score;
  std::set<const Elem *> visited;
};

/// Additive masks of this value and below count as exclusion.
constexpr double exclusionBound = -1e4;

} // namespace

/// Reads `condition` as "key mask element [b, j]" and returns the tensor that is non-zero where a key is visible.
static Value keyMaskOf(OpBuilder &builder, Location loc, const Elem *condition, bool visibleIfTrue,
                       const ScoreIndices &indices, MaskDescription &description) {
  const Elem *load = condition->kind == Elem::Kind::Load ? condition : condition->operands[0];
  auto type = dyn_cast<RankedTensorType>(load->tensor.getType());
  if (load->kind != Elem::Kind::Load || !type || type.getRank() != 2)
    return {};
  auto isIndex = [](const Elem *elem, DimAttr index) {
    return elem->kind == Elem::Kind::Index && elem->index == index;
  };
  if (!isIndex(load->operands[0], indices.batch) || !isIndex(load->operands[1], indices.key))
    return {};
  auto boolType = RankedTensorType::get(type.getShape(), builder.getI1Type(), type.getEncoding());
  if (condition == load) {
    if (!type.getElementType().isInteger(1))
      description.assumptions.push_back("a mask input holds only 0 and 1");
    if (visibleIfTrue)
      return load->tensor;
    Value asBool = load->tensor;
    if (!type.getElementType().isInteger(1))
      asBool = builder.create<CastOp>(loc, boolType, asBool, builder.getI1Type());
    return builder.create<NotOp>(loc, boolType, asBool);
  }
  if (!visibleIfTrue && condition->operands[1]->number == 0)
    return load->tensor;
  auto scalar = RankedTensorType::get({}, type.getElementType());
  HostTensor number = HostTensor::make(scalar);
  number.setDouble(0, condition->operands[1]->number);
  Value constant = builder.create<ConstantOp>(loc, scalar, number.toElements());
  Value equal = builder.create<EqualOp>(loc, boolType, load->tensor, constant);
  return visibleIfTrue ? equal : builder.create<NotOp>(loc, boolType, equal).getResult();
}

FailureOr<MaskDescription> transept::describeMask(ElementExprs &exprs, OpBuilder &builder, Location loc,
                                                  const Elem *element, const Elem *score, const ScoreIndices &indices,
                                                  bool boolean, std::string &reason) {
  Describer describer(score);
  describer.collect(element);
  unsigned count = describer.conditions.size();
  if (describer.opaque || count > 8) {
    reason = "the mask is not made of position comparisons and mask inputs";
    return failure();
  }
  MaskDescription description;
  std::optional<Affine> visibleScore;
  bool infinite = false, finite = false;
  uint64_t visibleCount = 0;
  SmallVector<int8_t> literal(count, -1); // value a condition has in all visible assignments; 2: both
  std::vector<bool> visible(size_t(1) << count);
  for (size_t assignment = 0; assignment < visible.size(); ++assignment) {
    std::map<const Elem *, bool> truth;
    for (unsigned i = 0; i < count; ++i)
      truth[describer.conditions[i]] = assignment >> i & 1;
    std::optional<Affine> value = describer.evaluate(element, truth);
    if (!value) {
      reason = "the score is changed by something other than a scale and a mask";
      return failure();
    }
    bool excluded = boolean ? value->offset == 0 : value->offset <= exclusionBound || std::isnan(value->offset);
    if (excluded) {
      (std::isinf(value->offset) ? infinite : finite) = true;
      continue;
    }
    if (boolean ? !value->bias.empty() : value->offset != 0) {
      reason = "a value is added to visible scores";
      return failure();
    }
    if (visibleScore && ((score && visibleScore->factor != value->factor) || visibleScore->bias != value->bias)) {
      reason = "visible scores are changed in different ways";
      return failure();
    }
    visibleScore = value;
    visible[assignment] = true;
    ++visibleCount;
    for (unsigned i = 0; i < count; ++i) {
      int8_t bit = assignment >> i & 1;
      literal[i] = literal[i] == -1 || literal[i] == bit ? bit : 2;
    }
  }
  unsigned fixed = llvm::count_if(literal, [](int8_t value) { return value == 0 || value == 1; });
  if (visibleCount == 0 || visibleCount != uint64_t(1) << (count - fixed)) {
    reason = "visible keys are no conjunction of conditions";
    return failure();
  }
  description.scale = visibleScore->factor;
  description.bias = visibleScore->bias;
  description.emptyRow = infinite && !finite ? EmptyRow::NaN : EmptyRow::Uniform;
  MLIRContext *context = builder.getContext();
  for (unsigned i = 0; i < count; ++i) {
    if (literal[i] == 2)
      continue;
    const Elem *condition = describer.conditions[i];
    if (condition->kind == Elem::Kind::Apply && condition->function == "le0") {
      // visible iff d <= 0, or iff not: 1 - d <= 0. Causal: d = j - i - offset.
      DimAttr difference = condition->operands[0]->index;
      if (!literal[i])
        difference = dimSub(dimConstant(context, 1), difference);
      DimAttr rest = dimSub(difference, dimSub(indices.key, indices.query));
      SmallVector<StringRef> symbols;
      collectSymbols(rest, symbols);
      bool free = llvm::none_of(symbols, [](StringRef symbol) { return symbol.starts_with("$"); });
      if (!free || description.causalOffset) {
        reason = "a position comparison is not causal: " + toString(difference) + " <= 0";
        return failure();
      }
      description.causalOffset = dimSub(dimConstant(context, 0), rest);
      continue;
    }
    Value mask = condition->function == "eq0" && condition->kind == Elem::Kind::Apply
                     ? Value()
                     : keyMaskOf(builder, loc, condition, literal[i], indices, description);
    if (!mask || description.keyMask) {
      reason = mask ? "two key masks" : "a mask condition is not indexed by batch and key";
      return failure();
    }
    description.keyMask = mask;
  }
  return description;
}
