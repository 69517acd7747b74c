//===- RelativeBias.cpp - a bias of scores that depends on distances ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The expressions that select elements of bias tables are evaluated for every distance up to some limit, with the
// rounding of the ops they came from. What happens behind the limit is not tried but concluded: distances grow, so do
// logarithms of them, and a minimum with a number that is reached stays that number.

#include "passes/RelativeBias.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {

/// Distances that are tried, on either side; the second one only if the first does not do.
constexpr int64_t limits[] = {256, 8192};

/// What an expression does from the last distance on.
enum class Tail { Unknown, Constant, Rises, Falls };

class Tabulation {
public:
  Tabulation(const ScoreIndices &indices, bool single) : indices(indices), single(single) {}

  /// Checks that all positions in `elem` are distances from one origin.
  bool collect(const Elem *elem);
  DimAttr origin(MLIRContext *context) const { return shift ? *shift : dimConstant(context, 0); }

  void begin(int64_t newLimit) {
    limit = newLimit;
    values.clear();
  }
  /// The values for the distances -limit … limit; NaN where a table is read outside, empty where an op is not
  /// understood.
  const std::vector<double> &evaluate(const Elem *elem, int64_t head);
  Tail tail(const Elem *elem, int64_t head, bool positive);

private:
  /// The index polynomial as slope * distance + offset.
  struct Line {
    int64_t slope = 0, offset = 0;
  };
  std::vector<double> compute(const Elem *elem, int64_t head);
  std::vector<double> evaluateLoad(const Elem *elem, int64_t head);
  std::vector<double> evaluateApply(const Elem *elem, int64_t head);
  Tail applyTail(const Elem *elem, int64_t head, bool positive);

  ScoreIndices indices;
  bool single;
  int64_t limit = 0;
  std::optional<DimAttr> shift; ///< distance = j - i - shift
  std::map<const Elem *, Line> lines;
  std::map<const Elem *, bool> seen; ///< whether it depends on the head
  std::map<std::pair<const Elem *, int64_t>, std::vector<double>> values;
};

std::optional<int64_t> valueAtZero(DimAttr dim) {
  SmallVector<StringRef> symbols;
  collectSymbols(dim, symbols);
  llvm::StringMap<int64_t> zeros;
  for (StringRef symbol : symbols)
    zeros[symbol] = 0;
  return evaluate(dim, zeros);
}

} // namespace

bool Tabulation::collect(const Elem *elem) {
  auto [place, isNew] = seen.try_emplace(elem, false);
  if (!isNew)
    return true;
  if (elem->kind != Elem::Kind::Index) {
    bool ofHead = false;
    for (const Elem *operand : elem->operands) {
      if (!collect(operand))
        return false;
      ofHead |= seen[operand];
    }
    seen[elem] = ofHead;
    return elem->kind != Elem::Kind::Load || constantContent(elem->tensor);
  }
  DimAttr head = indices.head, index = elem->index;
  if (index == head)
    return seen[elem] = true;
  MLIRContext *context = index.getContext();
  auto slope = [&](DimAttr symbol) {
    return constantValue(dimSub(substitute(index, symbolName(symbol), dimConstant(context, 1)),
                                substitute(index, symbolName(symbol), dimConstant(context, 0))));
  };
  std::optional<int64_t> ofKey = slope(indices.key), ofQuery = slope(indices.query);
  if (!ofKey || !ofQuery || *ofKey == 0 || (!single && *ofQuery != -*ofKey))
    return false;
  DimAttr distance = single ? indices.key : dimSub(indices.key, indices.query);
  DimAttr factor = dimConstant(context, *ofKey), rest = dimSub(index, dimMul(factor, distance));
  std::optional<int64_t> offset = valueAtZero(rest);
  SmallVector<StringRef> symbols;
  collectSymbols(rest, symbols);
  if (!offset || llvm::any_of(symbols, [](StringRef symbol) { return symbol.starts_with("$"); }))
    return false;
  std::optional<DimAttr> own = dimExactDiv(dimSub(dimConstant(context, *offset), rest), factor);
  if (!own || (shift && *shift != *own))
    return false;
  shift = own;
  lines[elem] = {*ofKey, *offset};
  return true;
}

const std::vector<double> &Tabulation::evaluate(const Elem *elem, int64_t head) {
  std::pair<const Elem *, int64_t> key(elem, seen.at(elem) ? head : -1);
  auto known = values.find(key);
  if (known == values.end())
    known = values.emplace(key, compute(elem, head)).first;
  return known->second;
}

std::vector<double> Tabulation::compute(const Elem *elem, int64_t head) {
  std::vector<double> result(2 * limit + 1, elem->number);
  switch (elem->kind) {
  case Elem::Kind::Number:
    return result;
  case Elem::Kind::Index:
    for (int64_t distance = -limit; distance <= limit; ++distance) {
      auto line = lines.find(elem);
      result[distance + limit] =
          static_cast<double>(line == lines.end() ? head : line->second.slope * distance + line->second.offset);
    }
    return result;
  case Elem::Kind::Load:
    return evaluateLoad(elem, head);
  case Elem::Kind::Apply:
    return evaluateApply(elem, head);
  }
  return {};
}

std::vector<double> Tabulation::evaluateLoad(const Elem *elem, int64_t head) {
  HostTensor table = constantContent(elem->tensor);
  std::vector<double> result(2 * limit + 1, 0), flat(result);
  for (auto [size, index] : llvm::zip(table.shape(), elem->operands)) {
    const std::vector<double> &positions = evaluate(index, head);
    if (positions.empty())
      return {};
    for (auto [place, position] : llvm::zip(flat, positions)) {
      double inside = position < 0 ? position + static_cast<double>(size) : position;
      bool valid = inside >= 0 && inside < static_cast<double>(size) && std::trunc(inside) == inside;
      place = valid ? place * static_cast<double>(size) + inside : std::nan("");
    }
  }
  for (auto [value, place] : llvm::zip(result, flat))
    value = std::isnan(place) ? place : table.getDouble(static_cast<int64_t>(place));
  return result;
}

std::vector<double> Tabulation::evaluateApply(const Elem *elem, int64_t head) {
  const int64_t count = 2 * limit + 1;
  SmallVector<const std::vector<double> *> operands;
  for (const Elem *operand : elem->operands) {
    operands.push_back(&evaluate(operand, head));
    if (operands.back()->empty())
      return {};
  }
  std::vector<double> result(count);
  if (!elem->op) {
    for (int64_t i = 0; i < count; ++i) {
      SmallVector<double> x;
      for (const std::vector<double> *operand : operands)
        x.push_back((*operand)[i]);
      std::optional<double> value = foldNumbers(elem->function, x);
      if (!value)
        return {};
      result[i] = *value;
    }
    return result;
  }
  auto graphOp = dyn_cast<GraphOp>(elem->op);
  if (!graphOp || elem->op->getNumOperands() != operands.size() || elem->op->getNumResults() != 1)
    return {};
  SmallVector<HostTensor> inputs;
  for (auto [values, operand] : llvm::zip(operands, elem->op->getOperands())) {
    inputs.push_back(HostTensor::make(RankedTensorType::get({count}, getElementTypeOrSelf(operand.getType()))));
    for (int64_t i = 0; i < count; ++i)
      inputs.back().setDouble(i, (*values)[i]);
  }
  SmallVector<HostTensor> results = {
      HostTensor::make(RankedTensorType::get({count}, getElementTypeOrSelf(elem->op->getResult(0).getType())))};
  if (failed(graphOp.evaluate(inputs, results)))
    return {};
  for (int64_t i = 0; i < count; ++i)
    result[i] = results[0].getDouble(i);
  return result;
}

/// What happens to the numbers from the last distance on, towards plus or minus infinity.
Tail Tabulation::tail(const Elem *elem, int64_t head, bool positive) {
  switch (elem->kind) {
  case Elem::Kind::Number:
    return Tail::Constant;
  case Elem::Kind::Index: {
    auto line = lines.find(elem);
    if (line == lines.end())
      return Tail::Constant;
    return (line->second.slope > 0) == positive ? Tail::Rises : Tail::Falls;
  }
  case Elem::Kind::Load:
    return llvm::all_of(elem->operands, [&](const Elem *e) { return tail(e, head, positive) == Tail::Constant; })
               ? Tail::Constant
               : Tail::Unknown;
  case Elem::Kind::Apply:
    return applyTail(elem, head, positive);
  }
  return Tail::Unknown;
}

Tail Tabulation::applyTail(const Elem *elem, int64_t head, bool positive) {
  StringRef f = elem->function;
  SmallVector<Tail> tails;
  SmallVector<double> last;
  for (const Elem *operand : elem->operands) {
    const std::vector<double> &operandValues = evaluate(operand, head);
    if (operandValues.empty())
      return Tail::Unknown;
    tails.push_back(tail(operand, head, positive));
    last.push_back(positive ? operandValues.back() : operandValues.front());
  }
  auto mirrored = [](Tail tail) {
    return tail == Tail::Rises ? Tail::Falls : tail == Tail::Falls ? Tail::Rises : tail;
  };
  if (f == "where" && tails[0] == Tail::Constant)
    return last[0] != 0 ? tails[1] : tails[2];
  if (llvm::all_of(tails, [](Tail tail) { return tail == Tail::Constant; }))
    return Tail::Constant;
  if (llvm::is_contained(tails, Tail::Unknown))
    return Tail::Unknown;
  if (f == "neg")
    return mirrored(tails[0]);
  if (f == "abs")
    return last[0] == 0 ? Tail::Unknown : (last[0] > 0) == (tails[0] == Tail::Rises) ? Tail::Rises : Tail::Unknown;
  if (f == "log" || f == "sqrt")
    return tails[0] == Tail::Rises && last[0] > 0 ? Tail::Rises : Tail::Unknown;
  if (f == "trunc" || f == "floor" || f == "ceil" || f == "round")
    return tails[0];
  if (f == "le0") // rising past 0 it stays false, falling below it stays true
    return (tails[0] == Tail::Rises) == (last[0] > 0) ? Tail::Constant : Tail::Unknown;
  if (f == "eq0")
    return last[0] != 0 && (tails[0] == Tail::Rises) == (last[0] > 0) ? Tail::Constant : Tail::Unknown;
  if (f == "add" || f == "sub") {
    Tail second = f == "sub" ? mirrored(tails[1]) : tails[1];
    return tails[0] == Tail::Constant                       ? second
           : second == Tail::Constant || second == tails[0] ? tails[0]
                                                            : Tail::Unknown;
  }
  // One operand changes, the other one is a number.
  if (elem->operands.size() != 2 || (tails[0] != Tail::Constant && tails[1] != Tail::Constant))
    return Tail::Unknown;
  bool firstMoves = tails[1] == Tail::Constant;
  Tail moves = firstMoves ? tails[0] : tails[1];
  double moving = firstMoves ? last[0] : last[1], fixed = firstMoves ? last[1] : last[0];
  if (f == "mul" || (f == "div" && firstMoves))
    return fixed > 0 ? moves : fixed < 0 ? mirrored(moves) : Tail::Unknown;
  bool passed = moves == Tail::Rises ? moving > fixed : moving < fixed;
  if (f == "min" || f == "max")
    return !passed ? Tail::Unknown : (f == "min") == (moves == Tail::Rises) ? Tail::Constant : moves;
  if (f == "less" || f == "less_or_equal" || f == "equal")
    return passed ? Tail::Constant : Tail::Unknown;
  return Tail::Unknown;
}

FailureOr<RelativeBias> transept::tabulateBias(ArrayRef<std::pair<double, const Elem *>> bias,
                                               const ScoreIndices &indices, int64_t heads, bool single,
                                               std::string &reason) {
  Tabulation tabulation(indices, single);
  for (auto [factor, elem] : bias)
    if (!tabulation.collect(elem)) {
      reason = "a bias is added to visible scores that is no function of head and distance";
      return failure();
    }
  for (int64_t limit : limits) {
    tabulation.begin(limit);
    const int64_t count = 2 * limit + 1;
    std::vector<std::vector<double>> rows(heads, std::vector<double>(count, 0));
    bool known = true, bounded = true;
    for (int64_t head = 0; head < heads; ++head)
      for (auto [factor, elem] : bias) {
        const std::vector<double> &values = tabulation.evaluate(elem, head);
        known &= !values.empty() && llvm::all_of(values, [](double value) { return std::isfinite(value); });
        if (!known)
          break;
        for (bool positive : {false, true})
          bounded &= tabulation.tail(elem, head, positive) == Tail::Constant;
        for (auto [sum, value] : llvm::zip(rows[head], values))
          sum = static_cast<float>(sum + factor * value);
      }
    if (!known) {
      reason = "a bias by distance is computed in a way that is not understood, or for few distances only";
      return failure();
    }
    if (!bounded)
      continue;
    int64_t first = 0, last = count - 1;
    auto equalColumns = [&](int64_t a, int64_t b) {
      return llvm::all_of(rows, [&](const std::vector<double> &row) { return row[a] == row[b]; });
    };
    while (first < last && equalColumns(first, first + 1))
      ++first;
    while (first < last && equalColumns(last, last - 1))
      --last;
    MLIRContext *context = indices.key.getContext();
    RelativeBias result;
    result.table = HostTensor::make(RankedTensorType::get({heads, last - first + 1}, Float32Type::get(context)));
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t column = first; column <= last; ++column)
        result.table.setDouble(head * (last - first + 1) + column - first, rows[head][column]);
    result.origin = dimAdd(tabulation.origin(context), dimConstant(context, first - limit));
    return result;
  }
  reason = "a bias by distance differs for ever larger distances";
  return failure();
}
