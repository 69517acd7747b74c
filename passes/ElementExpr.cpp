//===- ElementExpr.cpp - what one element of a tensor is ----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/ElementExpr.h"
#include "ir/InferSupport.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <utility>

using namespace mlir;
using namespace mlir::transept;

using Elems = SmallVector<const Elem *>;

DimAttr ElementExprs::indexSymbol(StringRef name, DimAttr extent) {
  std::string unique = ("$" + name).str();
  if (extents.count(unique))
    unique += "." + std::to_string(fresh++);
  extents[unique] = extent;
  return dimSymbol(context, unique);
}

const Elem *ElementExprs::unique(Elem elem) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << static_cast<int>(elem.kind) << '|';
  switch (elem.kind) {
  case Elem::Kind::Number:
    os << llvm::bit_cast<uint64_t>(elem.number);
    break;
  case Elem::Kind::Index:
    os << elem.index.getAsOpaquePointer();
    break;
  case Elem::Kind::Load:
    os << elem.tensor.getAsOpaquePointer();
    break;
  case Elem::Kind::Apply:
    os << elem.function << '|';
    if (elem.op)
      os << getElementTypeOrSelf(elem.op->getResult(0).getType()).getAsOpaquePointer();
    break;
  }
  for (const Elem *operand : elem.operands)
    os << ',' << static_cast<const void *>(operand);
  const Elem *&slot = byKey[key];
  if (!slot) {
    nodes.push_back(std::move(elem));
    slot = &nodes.back();
  }
  return slot;
}

const Elem *ElementExprs::number(double value) {
  Elem elem{Elem::Kind::Number};
  elem.number = value;
  return unique(std::move(elem));
}

const Elem *ElementExprs::index(DimAttr value) {
  if (std::optional<int64_t> constant = constantValue(value))
    return number(static_cast<double>(*constant));
  Elem elem{Elem::Kind::Index};
  elem.index = value;
  return unique(std::move(elem));
}

const Elem *ElementExprs::load(Value tensor, ArrayRef<const Elem *> indices) {
  Elem elem{Elem::Kind::Load};
  elem.tensor = tensor;
  elem.operands.assign(indices.begin(), indices.end());
  return unique(std::move(elem));
}

/// Integers that are exact as doubles, and index polynomials, as one polynomial.
static DimAttr asIndex(MLIRContext *context, const Elem *elem) {
  if (elem->kind == Elem::Kind::Index)
    return elem->index;
  if (elem->kind == Elem::Kind::Number && std::trunc(elem->number) == elem->number && std::abs(elem->number) < 1e15)
    return dimConstant(context, static_cast<int64_t>(elem->number));
  return {};
}

std::optional<double> transept::foldNumbers(StringRef f, ArrayRef<double> x) {
  auto truth = [](bool value) { return std::optional<double>(value ? 1.0 : 0.0); };
  if (f == "add")
    return x[0] + x[1];
  if (f == "sub")
    return x[0] - x[1];
  if (f == "mul")
    return x[0] * x[1];
  if (f == "div")
    return x[0] / x[1];
  if (f == "min")
    return std::min(x[0], x[1]);
  if (f == "max")
    return std::max(x[0], x[1]);
  if (f == "neg")
    return -x[0];
  if (f == "abs")
    return std::abs(x[0]);
  if (f == "trunc")
    return std::trunc(x[0]);
  if (f == "le0")
    return truth(x[0] <= 0);
  if (f == "eq0")
    return truth(x[0] == 0);
  if (f == "less")
    return truth(x[0] < x[1]);
  if (f == "less_or_equal")
    return truth(x[0] <= x[1]);
  if (f == "equal")
    return truth(x[0] == x[1]);
  if (f == "not")
    return truth(x[0] == 0);
  if (f == "and")
    return truth(x[0] != 0 && x[1] != 0);
  if (f == "or")
    return truth(x[0] != 0 || x[1] != 0);
  if (f == "xor")
    return truth((x[0] != 0) != (x[1] != 0));
  if (f == "where")
    return x[0] != 0 ? x[1] : x[2];
  if (f == "is_nan")
    return truth(std::isnan(x[0]));
  return std::nullopt;
}

const Elem *ElementExprs::apply(StringRef function, ArrayRef<const Elem *> operands, Operation *op) {
  // Comparisons with the larger side first become their mirror image.
  if (function == "greater")
    return apply("less", {operands[1], operands[0]});
  if (function == "greater_or_equal")
    return apply("less_or_equal", {operands[1], operands[0]});

  if (llvm::all_of(operands, [](const Elem *e) { return e->kind == Elem::Kind::Number; })) {
    SmallVector<double> values;
    for (const Elem *operand : operands)
      values.push_back(operand->number);
    if (std::optional<double> folded = foldNumbers(function, values))
      return number(*folded);
  }
  if (function == "equal" && counting && operands[0]->kind == Elem::Kind::Load && operands[0]->tensor == counted &&
      operands[1]->kind == Elem::Kind::Number) {
    padding = operands[1]->number;
    return number(0);
  }
  if (function == "where") {
    if (operands[0]->kind == Elem::Kind::Number)
      return operands[0]->number != 0 ? operands[1] : operands[2];
    if (operands[1] == operands[2])
      return operands[1];
  }
  // Arithmetic and comparisons of index polynomials stay polynomials.
  SmallVector<DimAttr> dims;
  for (const Elem *operand : operands)
    dims.push_back(asIndex(context, operand));
  if (llvm::all_of(dims, [](DimAttr dim) { return static_cast<bool>(dim); })) {
    if (function == "add")
      return index(dimAdd(dims[0], dims[1]));
    if (function == "sub")
      return index(dimSub(dims[0], dims[1]));
    if (function == "mul")
      return index(dimMul(dims[0], dims[1]));
    if (function == "neg")
      return index(dimSub(dimConstant(context, 0), dims[0]));
    if (function == "trunc")
      return operands[0];
    if (function == "less" || function == "less_or_equal") {
      DimAttr difference = dimSub(dims[0], dims[1]); // <= 0, or < 0
      if (function == "less")
        difference = dimAdd(difference, dimConstant(context, 1));
      return apply("le0", {index(difference)});
    }
    if (function == "equal")
      return apply("eq0", {index(dimSub(dims[0], dims[1]))});
    if (function == "le0") {
      if (provablyLessOrEqual(upperBound(dims[0]), dimConstant(context, 0)))
        return number(1);
      DimAttr one = dimConstant(context, 1), mirrored = dimSub(one, dims[0]);
      if (provablyLessOrEqual(upperBound(mirrored), dimConstant(context, 0)))
        return number(0);
      // One of d <= 0 and its negation 1 - d <= 0 is the canonical atom.
      if (toString(mirrored) < toString(dims[0]))
        return apply("not", {unique([&] {
                       Elem elem{Elem::Kind::Apply};
                       elem.function = "le0";
                       elem.operands = {index(mirrored)};
                       return elem;
                     }())});
    }
  }
  if (function == "not" && operands[0]->kind == Elem::Kind::Apply && operands[0]->function == "not")
    return operands[0]->operands[0];
  Elem elem{Elem::Kind::Apply};
  elem.function = function.str();
  elem.operands.assign(operands.begin(), operands.end());
  bool isExact = foldNumbers(function, SmallVector<double>(operands.size(), 1)).has_value();
  if (op && (!isExact || isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()))))
    elem.op = op;
  return unique(std::move(elem));
}

DimAttr ElementExprs::upperBound(DimAttr value) const {
  // Index symbols with a positive factor take extent - 1, those with a negative one take 0.
  SmallVector<StringRef> symbols;
  collectSymbols(value, symbols);
  DimAttr bound = value;
  for (StringRef symbol : symbols) {
    auto extent = extents.find(symbol);
    if (extent == extents.end())
      continue;
    DimAttr one = dimConstant(context, 1), zero = dimConstant(context, 0);
    DimAttr slope = dimSub(substitute(bound, symbol, one), substitute(bound, symbol, zero));
    bool rises = provablyNonNegative(slope);
    bound = substitute(bound, symbol, rises ? dimSub(extent->second, one) : zero);
  }
  return bound;
}

std::optional<std::pair<DimAttr, DimAttr>> ElementExprs::split(DimAttr value, DimAttr extent) const {
  DimAttr zero = dimConstant(context, 0);
  if (constantValue(extent) == 1)
    return std::make_pair(value, zero);
  DimAttr quotient = zero, rest = zero;
  auto termsOf = [](DimAttr sum) {
    SmallVector<DimAttr> terms{sum};
    if (static_cast<DimKind>(sum.getKind()) == DimKind::Sum) {
      terms.clear();
      for (Attribute term : sum.getOperands())
        terms.push_back(cast<DimAttr>(term));
    }
    return terms;
  };
  // Multiples of an extent that is a sum, b * (past + new), have several terms.
  DimAttr lead = termsOf(extent).front();
  for (bool found = lead != extent; found;) {
    found = false;
    for (DimAttr term : termsOf(value)) {
      std::optional<DimAttr> factor = dimExactDiv(term, lead);
      DimAttr left = factor ? dimSub(value, dimMul(*factor, extent)) : value;
      if (termsOf(left).size() >= termsOf(value).size() && left != zero)
        continue;
      quotient = dimAdd(quotient, *factor);
      value = left;
      found = value != zero;
      break;
    }
  }
  // Terms divisible by the extent go to the quotient, the rest must stay below it.
  for (DimAttr term : termsOf(value)) {
    if (std::optional<DimAttr> exact = dimExactDiv(term, extent)) {
      quotient = dimAdd(quotient, *exact);
      continue;
    }
    std::optional<int64_t> constant = constantValue(term), size = constantValue(extent);
    if (constant && size && *size > 0) { // a constant offset is split by value
      int64_t q = *constant / *size - (*constant % *size < 0);
      quotient = dimAdd(quotient, dimConstant(context, q));
      rest = dimAdd(rest, dimConstant(context, *constant - q * *size));
    } else {
      rest = dimAdd(rest, term);
    }
  }
  if (!provablyLessOrEqual(upperBound(rest), dimSub(extent, dimConstant(context, 1))))
    return std::nullopt;
  return std::make_pair(quotient, rest);
}

/// Rewrites indices of the reshaped tensor `to` into indices of its source `from`, group by group of axes with equal
/// products: inside a group, the position is the row-major sum over the `to` axes, split again over the `from` axes.
bool ElementExprs::throughReshape(RankedTensorType from, RankedTensorType to, SmallVectorImpl<const Elem *> &indices) {
  SmallVector<DimAttr> source = dimsOf(from), target = dimsOf(to);
  DimAttr one = dimConstant(context, 1), zero = dimConstant(context, 0);
  Elems result;
  unsigned s = 0, t = 0;
  while (s < source.size() || t < target.size()) {
    unsigned s0 = s, t0 = t;
    DimAttr sourceProduct = one, targetProduct = one;
    auto takeSource = [&] { sourceProduct = dimMul(sourceProduct, source[s++]); };
    auto takeTarget = [&] { targetProduct = dimMul(targetProduct, target[t++]); };
    if (s < source.size())
      takeSource();
    if (t < target.size() && !(sourceProduct == one && target[t] != one && s < source.size()))
      takeTarget();
    while (sourceProduct != targetProduct) {
      if (s < source.size() && (t == target.size() || dimExactDiv(targetProduct, sourceProduct)))
        takeSource();
      else if (t < target.size())
        takeTarget();
      else
        return false;
    }
    // One `to` axis against one `from` axis passes anything, also loaded indices.
    if (s - s0 == 1 && t - t0 == 1) {
      result.push_back(indices[t0]);
      continue;
    }
    DimAttr flat = zero;
    for (unsigned axis = t0; axis < t; ++axis) {
      DimAttr index = asIndex(context, indices[axis]);
      if (!index)
        return false;
      flat = dimAdd(dimMul(flat, target[axis]), index);
    }
    SmallVector<DimAttr> group(s - s0, zero);
    for (unsigned axis = s; axis > s0 + 1; --axis) {
      auto parts = split(flat, source[axis - 1]);
      if (!parts)
        return false;
      flat = parts->first;
      group[axis - 1 - s0] = parts->second;
    }
    if (!group.empty())
      group[0] = flat;
    for (auto [k, value] : llvm::enumerate(group))
      result.push_back(index(constantValue(source[s0 + k]) == 1 ? zero : value));
  }
  indices.assign(result.begin(), result.end());
  return true;
}

/// The number at `indices` of a constant, where both are known.
static std::optional<double> constantAt(Value value, ArrayRef<const Elem *> indices) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant)
    return std::nullopt;
  HostTensor tensor = HostTensor::fromElements(constant.getValue());
  if (!tensor || tensor.numElements() == 0)
    return std::nullopt;
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (elements && elements.isSplat())
    return tensor.getDouble(0);
  int64_t flat = 0;
  for (auto [axis, index] : llvm::enumerate(indices)) {
    if (index->kind != Elem::Kind::Number)
      return std::nullopt;
    int64_t size = tensor.shape()[axis], position = static_cast<int64_t>(index->number);
    if (position < 0 || position >= size)
      return std::nullopt;
    flat = flat * size + position;
  }
  return tensor.getDouble(flat);
}

/// Whether each axis of the operand has the result's position, or the one position 0, whatever the sizes are in a run.
static bool isAligned(Operation *op, Value operand, Value result) {
  auto from = dyn_cast<RankedTensorType>(operand.getType()), to = dyn_cast<RankedTensorType>(result.getType());
  if (!from || !to || from.getRank() > to.getRank())
    return false;
  SmallVector<DimAttr> sizes = dimsOf(from), whole = dimsOf(to);
  return llvm::none_of(llvm::zip(sizes, ArrayRef(whole).take_back(sizes.size())),
                       [&](auto pair) { return mayRepeat(op, std::get<0>(pair), std::get<1>(pair)); });
}

/// Indices of a broadcast operand: right-aligned, 0 along axes of size 1.
static Elems operandIndices(ElementExprs &exprs, Value operand, ArrayRef<const Elem *> indices) {
  SmallVector<DimAttr> dims = dimsOf(cast<RankedTensorType>(operand.getType()));
  Elems result;
  for (auto [axis, dim] : llvm::enumerate(dims)) {
    const Elem *index = indices[indices.size() - dims.size() + axis];
    result.push_back(constantValue(dim) == 1 ? exprs.number(0) : index);
  }
  return result;
}

bool ElementExprs::step(Value &value, SmallVectorImpl<const Elem *> &indices) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    auto from = dyn_cast<RankedTensorType>(reshape.getInput().getType());
    auto to = dyn_cast<RankedTensorType>(value.getType());
    if (!from || !to || !throughReshape(from, to, indices))
      return false;
    value = reshape.getInput();
    return true;
  }
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    Elems result(indices.size());
    for (auto [axis, from] : llvm::enumerate(transpose.getPermutation()))
      result[from] = indices[axis];
    indices.assign(result.begin(), result.end());
    value = transpose.getInput();
    return true;
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op); broadcast && isAligned(op, broadcast.getInput(), value)) {
    Elems result = operandIndices(*this, broadcast.getInput(), indices);
    indices.assign(result.begin(), result.end());
    value = broadcast.getInput();
    return true;
  }
  if (auto tile = dyn_cast<TileOp>(op)) { // along axes of size 1, or not at all
    auto from = dyn_cast<RankedTensorType>(tile.getInput().getType()), to = dyn_cast<RankedTensorType>(value.getType());
    if (!from || !to || from.getRank() != to.getRank())
      return false;
    Elems result(indices.begin(), indices.end());
    for (auto [axis, size, repeated] : llvm::enumerate(dimsOf(from), dimsOf(to))) {
      if (constantValue(size) == 1)
        result[axis] = number(0);
      else if (size != repeated)
        return false;
    }
    indices.assign(result.begin(), result.end());
    value = tile.getInput();
    return true;
  }
  if (auto slice = dyn_cast<SliceOp>(op)) {
    if (!slice.getStarts() || !slice.getSteps())
      return false;
    for (auto [axis, start, stride] : llvm::enumerate(*slice.getStarts(), *slice.getSteps()))
      indices[axis] = apply("add", {apply("mul", {indices[axis], number(stride)}), index(cast<DimAttr>(start))});
    value = slice.getInput();
    return true;
  }
  if (auto gather = dyn_cast<GatherOp>(op)) {
    auto indexType = cast<RankedTensorType>(gather.getIndices().getType());
    auto dataType = cast<RankedTensorType>(gather.getData().getType());
    int64_t axis = gather.getAxis(), inner = indexType.getRank();
    Elems position(indices.begin() + axis, indices.begin() + axis + inner);
    const Elem *selected = at(gather.getIndices(), position);
    DimAttr known = asIndex(context, selected);
    if (!known)
      return false;
    if (std::optional<int64_t> constant = constantValue(known); constant && *constant < 0)
      known = dimAdd(known, dimsOf(dataType)[axis]);
    Elems result(indices.begin(), indices.begin() + axis);
    result.push_back(index(known));
    result.append(indices.begin() + axis + inner, indices.end());
    indices.assign(result.begin(), result.end());
    value = gather.getData();
    return true;
  }
  return false;
}

ElementExprs::Moved ElementExprs::moved(Value value, ArrayRef<const Elem *> indices) {
  Moved result{value, Elems(indices.begin(), indices.end())};
  while (step(result.root, result.indices)) {
  }
  return result;
}

const Elem *ElementExprs::elementwise(Operation *op, ArrayRef<const Elem *> indices) {
  Elems operands;
  for (Value operand : op->getOperands())
    operands.push_back(at(operand, operandIndices(*this, operand, indices)));
  if (auto cast = dyn_cast<CastOp>(op)) {
    Type from = getElementTypeOrSelf(cast.getInput().getType()), to = cast.getTo();
    if (to.isInteger(1))
      return from.isInteger(1) ? operands[0] : apply("not", {apply("equal", {operands[0], number(0)})});
    return isa<FloatType>(from) && isa<IntegerType>(to) ? apply("trunc", operands) : operands[0];
  }
  if (isa<DivOp>(op) && isa<IntegerType>(getElementTypeOrSelf(op->getResult(0).getType())))
    return apply("trunc", {apply("div", operands)});
  return apply(op->getName().stripDialect(), operands, op);
}

/// ScatterND whose index tensor names exactly the updates' own positions overwrites a leading box of the data.
const Elem *ElementExprs::scatter(ScatterNDOp op, ArrayRef<const Elem *> indices) {
  auto indexType = dyn_cast<RankedTensorType>(op.getIndices().getType());
  auto updateType = dyn_cast<RankedTensorType>(op.getUpdates().getType());
  auto dataType = dyn_cast<RankedTensorType>(op.getData().getType());
  if (!indexType || !updateType || !dataType || op.getReduction() != ScatterKind::Replace ||
      indexType.isDynamicDim(indexType.getRank() - 1) ||
      indexType.getDimSize(indexType.getRank() - 1) != dataType.getRank() || updateType.getRank() != dataType.getRank())
    return nullptr;
  SmallVector<DimAttr> box = dimsOf(updateType), whole = dimsOf(dataType);
  Elems position;
  for (DimAttr extent : box)
    position.push_back(index(indexSymbol("u", extent)));
  for (int64_t axis = 0; axis < dataType.getRank(); ++axis) {
    Elems at = position;
    at.push_back(number(axis));
    // Axes of size 1 hold position 0, whatever the symbol.
    const Elem *expected = constantValue(box[axis]) == 1 ? number(0) : position[axis];
    if (this->at(op.getIndices(), at) != expected)
      return nullptr;
  }
  const Elem *inside = number(1);
  for (auto [axis, extent] : llvm::enumerate(box))
    if (extent != whole[axis])
      inside = apply("and", {inside, apply("less", {indices[axis], index(extent)})});
  return apply("where", {inside, at(op.getUpdates(), indices), at(op.getData(), indices)});
}

/// Running sums of one number.
const Elem *ElementExprs::runningSum(CumSumOp op, ArrayRef<const Elem *> indices) {
  auto type = dyn_cast<RankedTensorType>(op.getInput().getType());
  if (!type || !op.getAxis() || op.getReverse() || op.getProduct())
    return nullptr;
  int64_t axis = static_cast<int64_t>(*op.getAxis());
  axis += axis < 0 ? type.getRank() : 0;
  Elems inner(indices.begin(), indices.end());
  inner[axis] = index(indexSymbol("k", dimsOf(type)[axis]));
  bool outer = std::exchange(counting, true);
  const Elem *each = at(op.getInput(), inner);
  counting = outer;
  if (each->kind != Elem::Kind::Number)
    return nullptr;
  const Elem *count = op.getExclusive() ? indices[axis] : apply("add", {indices[axis], number(1)});
  return apply("mul", {count, each});
}

const Elem *ElementExprs::at(Value value, ArrayRef<const Elem *> indices) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (!op || !type)
    return load(value, indices);
  Value moved = value;
  Elems movedIndices(indices.begin(), indices.end());
  if (step(moved, movedIndices))
    return at(moved, movedIndices);
  if (std::optional<double> constant = constantAt(value, indices))
    return number(*constant);
  if (isa<ConstantOp, WeightOp>(op))
    if (const Elem *masked = triangleAt(value, indices))
      return masked;
  if (op->hasTrait<Elementwise>() &&
      llvm::all_of(op->getOperands(), [&](Value operand) { return isAligned(op, operand, value); }))
    return elementwise(op, indices);
  if (auto fill = dyn_cast<FillOp>(op)) {
    HostTensor content = HostTensor::fromElements(fill.getValue());
    return number(content.getDouble(0));
  }
  if (auto range = dyn_cast<RangeOp>(op))
    if (range.getStartDim() && range.getStepValue())
      return apply("add", {index(*range.getStartDim()), apply("mul", {number(*range.getStepValue()), indices[0]})});
  if (auto dims = dyn_cast<DimValueOp>(op)) {
    if (indices.empty())
      return index(cast<DimAttr>(dims.getDims()[0]));
    if (indices[0]->kind == Elem::Kind::Number && indices[0]->number < dims.getDims().size())
      return index(cast<DimAttr>(dims.getDims()[static_cast<size_t>(indices[0]->number)]));
  }
  if (auto trilu = dyn_cast<TriluOp>(op); trilu && trilu.getK()) {
    const Elem *row = indices[indices.size() - 2], *column = indices.back();
    const Elem *diagonal = apply("add", {row, number(*trilu.getK())});
    const Elem *kept = apply(trilu.getUpper() ? "greater_or_equal" : "less_or_equal", {column, diagonal});
    return apply("where", {kept, at(trilu.getInput(), indices), number(0)});
  }
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    DimAttr offset = dimConstant(context, 0), wanted = asIndex(context, indices[concat.getAxis()]);
    for (Value input : concat.getInputs()) {
      DimAttr size = dimsOf(cast<RankedTensorType>(input.getType()))[concat.getAxis()];
      if (!wanted)
        break;
      DimAttr local = dimSub(wanted, offset);
      if (provablyLessOrEqual(upperBound(local), dimSub(size, dimConstant(context, 1)))) {
        Elems inner(indices.begin(), indices.end());
        inner[concat.getAxis()] = index(local);
        return at(input, inner);
      }
      if (!constantValue(local))
        break; // the position may lie in a later input
      offset = dimAdd(offset, size);
    }
  }
  if (auto gather = dyn_cast<GatherNDOp>(op); gather && gather.getBatchDims() == 0) {
    auto indexType = cast<RankedTensorType>(gather.getIndices().getType());
    int64_t depth = indexType.getDimSize(indexType.getRank() - 1), outer = indexType.getRank() - 1;
    if (depth > 0) {
      Elems inner;
      for (int64_t k = 0; k < depth; ++k) {
        Elems position(indices.begin(), indices.begin() + outer);
        position.push_back(number(k));
        inner.push_back(at(gather.getIndices(), position));
      }
      inner.append(indices.begin() + outer, indices.end());
      return at(gather.getData(), inner);
    }
  }
  if (auto gather = dyn_cast<GatherOp>(op)) { // at indices that are data
    int64_t axis = gather.getAxis(), inner = cast<RankedTensorType>(gather.getIndices().getType()).getRank();
    Elems position(indices.begin() + axis, indices.begin() + axis + inner);
    Elems result(indices.begin(), indices.begin() + axis);
    result.push_back(at(gather.getIndices(), position));
    result.append(indices.begin() + axis + inner, indices.end());
    return at(gather.getData(), result);
  }
  if (auto sum = dyn_cast<CumSumOp>(op))
    if (const Elem *result = runningSum(sum, indices))
      return result;
  if (auto scatterOp = dyn_cast<ScatterNDOp>(op))
    if (const Elem *result = scatter(scatterOp, indices))
      return result;
  return load(value, indices);
}
