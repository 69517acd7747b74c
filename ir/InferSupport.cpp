//===- InferSupport.cpp - what the inference functions of the ops share ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/InferSupport.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

//===- Facts ----------------------------------------------------------------------------------------------------===//

Fact transept::unrankedFact(Type elementType) {
  Fact fact;
  fact.type = UnrankedTensorType::get(elementType);
  return fact;
}

Fact transept::rankedFact(ArrayRef<DimAttr> dims, Type elementType) {
  Dims sizes(dims);
  for (DimAttr &size : sizes)
    if (std::optional<int64_t> value = constantValue(size); value && *value < 0)
      size = dimConstant(elementType.getContext(), int64_t(1) << 62);
  Fact fact;
  fact.type = makeType(sizes, elementType);
  return fact;
}

Fact transept::constantFact(HostTensor tensor) {
  Fact fact;
  fact.type = tensor.getType();
  int64_t count = tensor.numElements();
  if (isa<IntegerType>(tensor.elementType()) && count <= maxContentElements) {
    fact.content.emplace();
    for (int64_t i = 0; i < count; ++i)
      fact.content->push_back(dimConstant(tensor.getType().getContext(), tensor.getInt(i)));
  }
  if (count <= maxConstantElements)
    fact.constant = std::move(tensor);
  return fact;
}

Type transept::elementTypeOf(const Fact &fact) { return fact.type.getElementType(); }

const Fact &transept::factOf(Operation *op, ArrayRef<Fact> operands, Value value) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (operand == value)
      return operands[index];
  llvm_unreachable("the value is no operand");
}

std::optional<Dims> transept::dimsOf(InferContext &context, Operation *op, const Fact &fact) {
  RankedTensorType type = fact.ranked();
  if (!type)
    return std::nullopt;
  Dims dims = dimsOf(type);
  for (DimAttr &dim : dims)
    if (!dim)
      dim = context.runtimeSymbol(op, "size");
  return dims;
}

std::optional<SmallVector<int64_t>> transept::constantInts(const Fact &fact) {
  if (!fact.content) {
    // What has no elements is known, wherever it comes from.
    RankedTensorType type = fact.ranked();
    bool isEmpty = type && type.hasStaticShape() && type.getNumElements() == 0;
    return isEmpty ? std::optional(SmallVector<int64_t>()) : std::nullopt;
  }
  SmallVector<int64_t> values;
  for (DimAttr dim : *fact.content) {
    std::optional<int64_t> value = constantValue(dim);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::optional<Content> transept::integralContent(const Fact &fact) {
  if (fact.content)
    return *fact.content;
  if (!fact.constant || fact.constant.numElements() > maxContentElements)
    return std::nullopt;
  Content content;
  for (int64_t i = 0, e = fact.constant.numElements(); i < e; ++i) {
    double value = fact.constant.getDouble(i);
    if (std::nearbyint(value) != value || std::fabs(value) > 9e15)
      return std::nullopt;
    content.push_back(dimConstant(fact.type.getContext(), static_cast<int64_t>(value)));
  }
  return content;
}

std::optional<int64_t> transept::staticLength(const Fact &fact) {
  RankedTensorType type = fact.ranked();
  if (!type || !type.hasStaticShape() || type.getRank() > 1)
    return std::nullopt;
  return type.getNumElements();
}

std::optional<SmallVector<int64_t>> transept::smallShape(const Fact &fact) {
  RankedTensorType type = fact.ranked();
  if (!type || !type.hasStaticShape())
    return std::nullopt;
  int64_t count = 1;
  for (int64_t size : type.getShape())
    if (size == 0)
      count = 0;
    else if (size > maxContentElements || (count *= size) > maxContentElements)
      return std::nullopt;
  return SmallVector<int64_t>(type.getShape());
}

//===- Names and messages
//-------------------------------------------------------------------------------------------===//

std::string transept::nodeName(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location inner : fused.getLocations())
      if (std::string name = nodeName(inner); !name.empty())
        return name;
  return {};
}

std::string transept::nodeLabel(Operation *op) {
  std::string kind = llvm::convertToCamelFromSnakeCase(op->getName().stripDialect(), /*capitalizeFirst=*/true);
  std::string name = nodeName(op->getLoc());
  return name.empty() ? kind + " node" : kind + " node '" + name + "'";
}

std::string transept::toString(ArrayRef<DimAttr> dims) {
  std::string text = "[";
  for (auto [i, dim] : llvm::enumerate(dims))
    text += (i ? ", " : "") + toString(dim);
  return text + "]";
}

//===- Constraints
//--------------------------------------------------------------------------------------------------===//

FailureOr<int64_t> transept::normalizeAxis(Operation *op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return op->emitOpError() << "axis " << axis << " is outside a tensor with " << rank << " axes";
  return axis < 0 ? axis + rank : axis;
}

FailureOr<SmallVector<int64_t>> transept::normalizeAxes(Operation *op, ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t axis : axes) {
    FailureOr<int64_t> normal = normalizeAxis(op, axis, rank);
    if (failed(normal))
      return failure();
    if (llvm::is_contained(result, *normal))
      return op->emitOpError() << "names axis " << *normal << " twice";
    result.push_back(*normal);
  }
  return result;
}

/// Constants before symbols before other expressions.
static DimAttr simpler(DimAttr lhs, DimAttr rhs) {
  auto weight = [](DimAttr dim) { return constantValue(dim) ? 0 : symbolName(dim).empty() ? 2 : 1; };
  return weight(rhs) < weight(lhs) ? rhs : lhs;
}

FailureOr<DimAttr> transept::requireEqual(InferContext &context, Operation *op, DimAttr lhs, DimAttr rhs,
                                          StringRef what) {
  if (lhs == rhs)
    return lhs;
  if (decideEqual(lhs, rhs) == false)
    return op->emitOpError() << what << ": " << toString(lhs) << " and " << toString(rhs) << " differ";
  context.guard(op, lhs, GuardRelation::Equal, rhs,
                nodeLabel(op) + " " + what.str() + ": " + toString(lhs) + " and " + toString(rhs) + " must be equal");
  return simpler(lhs, rhs);
}

LogicalResult transept::requireLessOrEqual(InferContext &context, Operation *op, DimAttr lhs, DimAttr rhs,
                                           StringRef what) {
  std::optional<bool> decided = decideLessOrEqual(lhs, rhs);
  if (decided == true)
    return success();
  if (decided == false)
    return op->emitOpError() << what << ": " << toString(lhs) << " exceeds " << toString(rhs);
  context.guard(op, lhs, GuardRelation::LessOrEqual, rhs,
                nodeLabel(op) + " " + what.str() + ": " + toString(lhs) + " must not exceed " + toString(rhs));
  return success();
}

LogicalResult transept::requireSameElementType(Operation *op, const Fact &lhs, const Fact &rhs) {
  if (elementTypeOf(lhs) == elementTypeOf(rhs))
    return success();
  return op->emitOpError() << "combines elements of " << elementTypeOf(lhs) << " and " << elementTypeOf(rhs);
}

static DimAttr axisFromEnd(ArrayRef<DimAttr> dims, size_t fromEnd) {
  return fromEnd < dims.size() ? dims[dims.size() - 1 - fromEnd] : DimAttr();
}

static size_t largestRank(ArrayRef<Dims> shapes) {
  size_t rank = 0;
  for (const Dims &shape : shapes)
    rank = std::max(rank, shape.size());
  return rank;
}

/// max(a, b) * min(a, b, 1): the one that is not 1, or 0.
static DimAttr selectSize(DimAttr lhs, DimAttr rhs) {
  DimAttr least = dimMin(dimMin(lhs, rhs), dimConstant(lhs.getContext(), 1));
  return dimMul(dimMax(lhs, rhs), least);
}

static bool isSelectedSize(DimAttr dim) {
  auto kindOf = [](Attribute attr) { return static_cast<DimKind>(cast<DimAttr>(attr).getKind()); };
  return kindOf(dim) == DimKind::Product && dim.getValue() == 1 && dim.getOperands().size() == 2 &&
         llvm::any_of(dim.getOperands(), [&](Attribute factor) { return kindOf(factor) == DimKind::Max; }) &&
         llvm::any_of(dim.getOperands(), [&](Attribute factor) { return kindOf(factor) == DimKind::Min; });
}

/// Whether the symbol is a size of an input of the function around `op`.
static bool isInputSize(Operation *op, StringRef symbol) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  return function && llvm::any_of(function.getArgumentTypes(), [&](Type type) {
           auto ranked = dyn_cast<RankedTensorType>(type);
           return ranked && llvm::any_of(dimsOf(ranked), [&](DimAttr dim) { return dim && symbolName(dim) == symbol; });
         });
}

/// Whether only a run says that the size is 1: of an input, or of a broadcast of such. A size that the graph computes
/// is taken to be the one it is combined with, since it is 1 by chance only.
static bool mayBeRepeated(Operation *op, DimAttr dim) {
  return isSelectedSize(dim) || (!symbolName(dim).empty() && isInputSize(op, symbolName(dim)));
}

bool transept::mayRepeat(Operation *op, DimAttr size, DimAttr whole) {
  if (size == whole || constantValue(size) == 1)
    return false;
  return isSelectedSize(whole) || (isa<BroadcastOp>(op) && mayBeRepeated(op, size));
}

/// The size that two different ones broadcast to; null where they cannot.
static DimAttr broadcastSize(InferContext &context, Operation *op, size_t axis, DimAttr lhs, DimAttr rhs) {
  // Two constants that differ contradict each other; any other pair may still agree in a run.
  if (constantValue(lhs) && constantValue(rhs)) {
    op->emitOpError() << "broadcasts " << toString(lhs) << " against " << toString(rhs) << " on axis " << axis;
    return {};
  }
  std::string what = nodeLabel(op) + " broadcasts axis " + std::to_string(axis) + ": " + toString(lhs) + " and " +
                     toString(rhs) + " must be equal";
  if (!mayBeRepeated(op, lhs) || !mayBeRepeated(op, rhs)) {
    context.guard(op, lhs, GuardRelation::Equal, rhs, what);
    return simpler(lhs, rhs);
  }
  DimAttr zero = dimConstant(lhs.getContext(), 0), minusOne = dimConstant(lhs.getContext(), -1);
  DimAttr wrong = dimMul(dimMul(dimAdd(lhs, minusOne), dimAdd(rhs, minusOne)), dimSub(lhs, rhs));
  context.guard(op, wrong, GuardRelation::Equal, zero, what + ", or one of them 1");
  return selectSize(lhs, rhs);
}

FailureOr<Dims> transept::broadcastDims(InferContext &context, Operation *op, ArrayRef<Dims> shapes) {
  size_t rank = largestRank(shapes);
  Dims result(rank);
  for (size_t fromEnd = 0; fromEnd < rank; ++fromEnd) {
    DimAttr size;
    for (const Dims &shape : shapes) {
      DimAttr dim = axisFromEnd(shape, fromEnd);
      if (!dim || constantValue(dim) == 1)
        continue;
      size = !size || size == dim ? dim : broadcastSize(context, op, rank - 1 - fromEnd, size, dim);
      if (!size)
        return failure();
    }
    result[rank - 1 - fromEnd] = size ? size : dimConstant(op->getContext(), 1);
  }
  return result;
}

LogicalResult transept::requireBroadcastTo(InferContext &context, Operation *op, ArrayRef<DimAttr> from,
                                           ArrayRef<DimAttr> to, StringRef what) {
  if (from.size() > to.size())
    return op->emitOpError() << what << ": " << toString(from) << " has more axes than " << toString(to);
  for (auto [dim, size] : llvm::zip(from, to.drop_front(to.size() - from.size()))) {
    if (dim == size || constantValue(dim) == 1)
      continue;
    if (!mayBeRepeated(op, dim)) {
      if (failed(requireEqual(context, op, dim, size, what)))
        return failure();
      continue;
    }
    DimAttr zero = dimConstant(dim.getContext(), 0), minusOne = dimConstant(dim.getContext(), -1);
    context.guard(op, dimMul(dimAdd(dim, minusOne), dimSub(dim, size)), GuardRelation::Equal, zero,
                  nodeLabel(op) + " " + what.str() + ": " + toString(dim) + " must be 1 or equal to " + toString(size));
  }
  return success();
}

std::optional<Dims> transept::provablyBroadcast(ArrayRef<Dims> shapes) {
  size_t rank = largestRank(shapes);
  Dims result(rank);
  for (size_t fromEnd = 0; fromEnd < rank; ++fromEnd) {
    DimAttr size, one;
    for (const Dims &shape : shapes) {
      DimAttr dim = axisFromEnd(shape, fromEnd);
      if (!dim)
        continue;
      if (constantValue(dim) == 1)
        one = dim;
      else if (size && size != dim)
        return std::nullopt;
      else
        size = dim;
    }
    result[rank - 1 - fromEnd] = size ? size : one;
  }
  return result;
}

//===- Contents
//-----------------------------------------------------------------------------------------------------===//

SmallVector<int64_t> transept::coordinates(int64_t index, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    result[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return result;
}

int64_t transept::linearIndex(ArrayRef<int64_t> coordinates, ArrayRef<int64_t> shape) {
  int64_t index = 0;
  for (auto [coordinate, size] : llvm::zip(coordinates, shape))
    index = index * size + coordinate;
  return index;
}

SmallVector<int64_t> transept::broadcastIndices(ArrayRef<int64_t> shape, ArrayRef<int64_t> resultShape) {
  SmallVector<int64_t> indices;
  int64_t count = ShapedType::getNumElements(resultShape);
  size_t skipped = resultShape.size() - shape.size();
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<int64_t> position = coordinates(i, resultShape);
    position.erase(position.begin(), position.begin() + skipped);
    for (auto [coordinate, size] : llvm::zip(position, shape))
      if (size == 1)
        coordinate = 0;
    indices.push_back(linearIndex(position, shape));
  }
  return indices;
}

std::optional<bool> transept::decideLessOrEqual(DimAttr lhs, DimAttr rhs) {
  if (std::optional<int64_t> a = constantValue(lhs), b = constantValue(rhs); a && b)
    return *a <= *b;
  if (provablyLessOrEqual(lhs, rhs))
    return true;
  if (provablyLessOrEqual(dimAdd(rhs, dimConstant(lhs.getContext(), 1)), lhs))
    return false;
  return std::nullopt;
}

std::optional<bool> transept::decideLess(DimAttr lhs, DimAttr rhs) {
  std::optional<bool> reverse = decideLessOrEqual(rhs, lhs);
  return reverse ? std::optional<bool>(!*reverse) : std::nullopt;
}

std::optional<bool> transept::decideEqual(DimAttr lhs, DimAttr rhs) {
  if (lhs == rhs)
    return true;
  if (decideLess(lhs, rhs) == true || decideLess(rhs, lhs) == true)
    return false;
  return std::nullopt;
}

static bool isConstantData(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > 8)
    return false;
  if (isa<ConstantOp, WeightOp>(op))
    return true;
  return isa<GraphOp>(op) && isPure(op) && op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isConstantData(operand, depth + 1); });
}

bool transept::isConstantData(Value value) { return ::isConstantData(value, 0); }
