//===- InferElementwise.cpp - element-wise ops -----------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes broadcast; contents combine element by element where the result can be said for all values of the symbols.

#include "ir/Elementwise.h"
#include "ir/InferSupport.h"
#include "ir/NarrowTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::transept;
using mlir::transept::elementwise::Combine;
using mlir::transept::elementwise::inferUnary;

namespace {

DimAttr truth(MLIRContext *context, bool value) { return dimConstant(context, value); }

/// Beyond this, constants are no sizes but sentinels; they take part in checked constant arithmetic only.
constexpr int64_t largestModest = int64_t(1) << 40;

bool isModest(DimAttr dim) {
  std::optional<int64_t> value = constantValue(dim);
  return !value || (*value <= largestModest && *value >= -largestModest);
}

template <typename Checked, typename Symbolic>
std::optional<DimAttr> arithmetic(DimAttr lhs, DimAttr rhs, Checked checked, Symbolic symbolic) {
  std::optional<int64_t> a = constantValue(lhs), b = constantValue(rhs);
  if (a && b) {
    int64_t value;
    if (checked(*a, *b, value))
      return std::nullopt;
    return dimConstant(lhs.getContext(), value);
  }
  if (!isModest(lhs) || !isModest(rhs))
    return std::nullopt;
  return symbolic(lhs, rhs);
}

std::optional<DimAttr> addDims(ArrayRef<DimAttr> d) {
  return arithmetic(d[0], d[1], llvm::AddOverflow<int64_t>, dimAdd);
}
std::optional<DimAttr> subDims(ArrayRef<DimAttr> d) {
  return arithmetic(d[0], d[1], llvm::SubOverflow<int64_t>, dimSub);
}
std::optional<DimAttr> mulDims(ArrayRef<DimAttr> d) {
  return arithmetic(d[0], d[1], llvm::MulOverflow<int64_t>, dimMul);
}

/// ONNX truncates; that is floordiv where both sides are known not to be negative.
std::optional<DimAttr> divDims(ArrayRef<DimAttr> d) {
  std::optional<int64_t> a = constantValue(d[0]), b = constantValue(d[1]);
  if (b == 0 || (a == INT64_MIN && b == -1))
    return std::nullopt;
  if (a && b)
    return dimConstant(d[0].getContext(), *a / *b);
  if (!isModest(d[0]) || !isModest(d[1]))
    return std::nullopt;
  if (std::optional<DimAttr> exact = dimExactDiv(d[0], d[1]))
    return exact;
  if (!provablyNonNegative(d[0]) || !provablyNonNegative(d[1]))
    return std::nullopt;
  return dimFloorDiv(d[0], d[1]);
}

std::optional<DimAttr> modDims(ArrayRef<DimAttr> d, bool fmod) {
  std::optional<int64_t> a = constantValue(d[0]), b = constantValue(d[1]);
  if (b == 0 || b == -1)
    return b == 0 ? std::nullopt : std::optional<DimAttr>(dimConstant(d[0].getContext(), 0));
  if (a && b) {
    int64_t rest = *a % *b;
    if (!fmod && rest != 0 && (rest < 0) != (*b < 0))
      rest += *b;
    return dimConstant(d[0].getContext(), rest);
  }
  if (!isModest(d[0]) || !provablyNonNegative(d[1]) || (fmod && !provablyNonNegative(d[0])))
    return std::nullopt;
  return dimMod(d[0], d[1]);
}

std::optional<DimAttr> negDim(ArrayRef<DimAttr> d) { return subDims({dimConstant(d[0].getContext(), 0), d[0]}); }

std::optional<DimAttr> absDim(ArrayRef<DimAttr> d) {
  if (provablyNonNegative(d[0]))
    return d[0];
  std::optional<DimAttr> negated = negDim(d);
  return negated && provablyNonNegative(*negated) ? negated : std::nullopt;
}

std::optional<DimAttr> signDim(ArrayRef<DimAttr> d) {
  MLIRContext *context = d[0].getContext();
  if (std::optional<int64_t> value = constantValue(d[0]))
    return dimConstant(context, (*value > 0) - (*value < 0));
  if (provablyLessOrEqual(dimConstant(context, 1), d[0]))
    return dimConstant(context, 1);
  return std::nullopt;
}

/// Truth values: constants, and sizes that are certainly not zero.
std::optional<bool> truthOf(DimAttr dim) {
  if (std::optional<int64_t> value = constantValue(dim))
    return *value != 0;
  if (provablyLessOrEqual(dimConstant(dim.getContext(), 1), dim))
    return true;
  return std::nullopt;
}

std::optional<DimAttr> decided(MLIRContext *context, std::optional<bool> value) {
  return value ? std::optional<DimAttr>(truth(context, *value)) : std::nullopt;
}

std::optional<DimAttr> andDims(ArrayRef<DimAttr> d) {
  std::optional<bool> a = truthOf(d[0]), b = truthOf(d[1]);
  if (a == false || b == false)
    return truth(d[0].getContext(), false);
  return a && b ? std::optional<DimAttr>(truth(d[0].getContext(), true)) : std::nullopt;
}
std::optional<DimAttr> orDims(ArrayRef<DimAttr> d) {
  std::optional<bool> a = truthOf(d[0]), b = truthOf(d[1]);
  if (a == true || b == true)
    return truth(d[0].getContext(), true);
  return a && b ? std::optional<DimAttr>(truth(d[0].getContext(), false)) : std::nullopt;
}
std::optional<DimAttr> xorDims(ArrayRef<DimAttr> d) {
  std::optional<bool> a = truthOf(d[0]), b = truthOf(d[1]);
  return a && b ? std::optional<DimAttr>(truth(d[0].getContext(), *a != *b)) : std::nullopt;
}

std::optional<DimAttr> chooseDim(ArrayRef<DimAttr> d) {
  if (std::optional<bool> condition = truthOf(d[0]))
    return *condition ? d[1] : d[2];
  return d[1] == d[2] ? std::optional<DimAttr>(d[1]) : std::nullopt;
}

std::optional<Content> combineContents(const Fact &result, ArrayRef<Fact> operands, Combine combine) {
  std::optional<SmallVector<int64_t>> shape = smallShape(result);
  if (!shape || llvm::any_of(operands, [](const Fact &operand) { return !operand.content; }))
    return std::nullopt;
  SmallVector<SmallVector<int64_t>> indices;
  for (const Fact &operand : operands)
    indices.push_back(broadcastIndices(operand.ranked().getShape(), *shape));
  Content content;
  for (int64_t i = 0, e = ShapedType::getNumElements(*shape); i < e; ++i) {
    SmallVector<DimAttr, 3> elements;
    for (auto [operand, index] : llvm::zip(operands, indices))
      elements.push_back((*operand.content)[index[i]]);
    std::optional<DimAttr> element = combine(elements);
    if (!element)
      return std::nullopt;
    content.push_back(*element);
  }
  return content;
}

/// The shapes of all operands broadcast. `combine` may be null: contents are then unknown.
LogicalResult inferElementwise(InferContext &context, Operation *op, ArrayRef<Fact> operands, Type resultElement,
                               SmallVectorImpl<Fact> &results, Combine combine = nullptr) {
  SmallVector<Dims> shapes;
  for (const Fact &operand : operands) {
    std::optional<Dims> dims = dimsOf(context, op, operand);
    if (!dims) {
      results.push_back(unrankedFact(resultElement));
      return success();
    }
    shapes.push_back(std::move(*dims));
  }
  FailureOr<Dims> dims = broadcastDims(context, op, shapes);
  if (failed(dims))
    return failure();
  Fact result = rankedFact(*dims, resultElement);
  if (combine)
    result.content = combineContents(result, operands, combine);
  results.push_back(std::move(result));
  return success();
}

/// C1: operands have one element type. C2: shapes broadcast.
LogicalResult inferBinary(InferContext &context, Operation *op, ArrayRef<Fact> operands, Type resultElement,
                          SmallVectorImpl<Fact> &results, Combine combine = nullptr) {
  if (failed(requireSameElementType(op, operands[0], operands[1])))
    return failure();
  bool integers = isa<IntegerType>(elementTypeOf(operands[0]));
  return inferElementwise(context, op, operands, resultElement, results, integers ? combine : nullptr);
}

/// C3: operands are boolean.
LogicalResult requireBoolean(Operation *op, ArrayRef<Fact> operands) {
  for (const Fact &operand : operands)
    if (!elementTypeOf(operand).isInteger(1))
      return op->emitOpError() << "needs booleans, not " << elementTypeOf(operand);
  return success();
}

/// C4: operands are integers, and no booleans.
LogicalResult requireInteger(Operation *op, ArrayRef<Fact> operands) {
  for (const Fact &operand : operands)
    if (!isa<IntegerType>(elementTypeOf(operand)) || elementTypeOf(operand).isInteger(1))
      return op->emitOpError() << "needs integers, not " << elementTypeOf(operand);
  return success();
}

/// Element of a conversion: sizes stay what they are; truth values must be decided.
std::optional<DimAttr> castDim(DimAttr dim, Type from, Type to) {
  if (narrowFormat(from) || narrowFormat(to))
    return std::nullopt;
  if (to.isInteger(1) && !from.isInteger(1))
    return decided(dim.getContext(), truthOf(dim));
  if (auto integer = dyn_cast<IntegerType>(to); integer && integer.getWidth() < 64) {
    std::optional<int64_t> value = constantValue(dim);
    if (!value)
      return integer.getWidth() == 32 ? std::optional<DimAttr>(dim) : std::nullopt;
    bool fits = integer.isUnsigned() ? llvm::isUIntN(integer.getWidth(), *value) && *value >= 0
                                     : llvm::isIntN(integer.getWidth(), *value);
    return integer.getWidth() == 1 || fits ? std::optional<DimAttr>(dim) : std::nullopt;
  }
  // Floats hold integers exactly up to the width of their mantissa; sizes stay below that of f32.
  if (isa<FloatType>(to) && !to.isF64() && !to.isF32())
    return std::nullopt;
  return dim;
}

} // namespace

LogicalResult elementwise::inferUnary(InferContext &context, Operation *op, ArrayRef<Fact> operands,
                                      SmallVectorImpl<Fact> &results, Combine combine) {
  return inferElementwise(context, op, operands, elementTypeOf(operands[0]), results, combine);
}

//===- Unary
//--------------------------------------------------------------------------------------------------------===//

#define UNARY(OP, COMBINE)                                                                                             \
  LogicalResult OP::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {            \
    return inferUnary(context, *this, operands, results, COMBINE);                                                     \
  }
UNARY(NegOp, negDim)
UNARY(AbsOp, absDim)
UNARY(SignOp, signDim)
UNARY(ReluOp, nullptr)
UNARY(GeluOp, nullptr)
// A float content is a vector of whole numbers.
UNARY(FloorOp, [](ArrayRef<DimAttr> d) { return std::optional<DimAttr>(d[0]); })
UNARY(CeilOp, [](ArrayRef<DimAttr> d) { return std::optional<DimAttr>(d[0]); })
UNARY(RoundOp, [](ArrayRef<DimAttr> d) { return std::optional<DimAttr>(d[0]); })
#undef UNARY

LogicalResult NotOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  if (failed(requireBoolean(*this, operands)))
    return failure();
  return inferUnary(context, *this, operands, results, [](ArrayRef<DimAttr> d) {
    std::optional<bool> value = truthOf(d[0]);
    return decided(d[0].getContext(), value ? std::optional<bool>(!*value) : std::nullopt);
  });
}

LogicalResult BitwiseNotOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  return failed(requireInteger(*this, operands)) ? failure() : inferUnary(context, *this, operands, results);
}

LogicalResult IsNaNOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  return inferElementwise(context, *this, operands, IntegerType::get(getContext(), 1), results);
}

LogicalResult CastOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Type from = elementTypeOf(operands[0]), to = getTo();
  // C1: both element types are numbers.
  if (byteWidth(to) == 0 || isa<IndexType>(to))
    return emitOpError() << "cannot convert to " << to;
  // C2: there is such a rounding.
  if (getRound() != "nearest" && getRound() != "up" && getRound() != "down")
    return emitOpError() << "knows no rounding '" << getRound() << "'";
  return inferElementwise(context, *this, operands, to, results,
                          [&](ArrayRef<DimAttr> d) { return castDim(d[0], from, to); });
}

LogicalResult BitCastOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  Type from = elementTypeOf(operands[0]), to = getTo();
  // C1: both element types take as many bytes, and none of them keeps fewer bits.
  if (byteWidth(from) == 0 || byteWidth(from) != byteWidth(to) || isNarrow(from) != isNarrow(to))
    return emitOpError() << "cannot take the bits of " << from << " for " << to;
  return inferElementwise(context, *this, operands, to, results);
}

//===- Binary
//-------------------------------------------------------------------------------------------------------===//

#define BINARY(OP, COMBINE)                                                                                            \
  LogicalResult OP::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {            \
    return inferBinary(context, *this, operands, elementTypeOf(operands[0]), results, COMBINE);                        \
  }
BINARY(AddOp, addDims)
BINARY(SubOp, subDims)
BINARY(MulOp, mulDims)
BINARY(DivOp, divDims)
BINARY(MinOp, [](ArrayRef<DimAttr> d) { return std::optional<DimAttr>(dimMin(d[0], d[1])); })
BINARY(MaxOp, [](ArrayRef<DimAttr> d) { return std::optional<DimAttr>(dimMax(d[0], d[1])); })
BINARY(ModOp, [&](ArrayRef<DimAttr> d) { return modDims(d, getFmod() != 0); })
#undef BINARY

LogicalResult PowOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  // The exponent may have another element type.
  return inferElementwise(context, *this, operands, elementTypeOf(operands[0]), results);
}

#define BITWISE(OP)                                                                                                    \
  LogicalResult OP::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {            \
    if (failed(requireInteger(*this, operands)))                                                                       \
      return failure();                                                                                                \
    return inferBinary(context, *this, operands, elementTypeOf(operands[0]), results);                                 \
  }
BITWISE(BitwiseAndOp)
BITWISE(BitwiseOrOp)
BITWISE(BitwiseXorOp)
BITWISE(BitShiftOp)
#undef BITWISE

#define LOGICAL(OP, COMBINE)                                                                                           \
  LogicalResult OP::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {            \
    if (failed(requireBoolean(*this, operands)))                                                                       \
      return failure();                                                                                                \
    return inferBinary(context, *this, operands, elementTypeOf(operands[0]), results, COMBINE);                        \
  }
LOGICAL(AndOp, andDims)
LOGICAL(OrOp, orDims)
LOGICAL(XorOp, xorDims)
#undef LOGICAL

#define COMPARE(OP, DECIDE)                                                                                            \
  LogicalResult OP::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {            \
    return inferBinary(context, *this, operands, IntegerType::get(getContext(), 1), results,                           \
                       [](ArrayRef<DimAttr> d) { return decided(d[0].getContext(), DECIDE); });                        \
  }
COMPARE(EqualOp, decideEqual(d[0], d[1]))
COMPARE(LessOp, decideLess(d[0], d[1]))
COMPARE(LessOrEqualOp, decideLessOrEqual(d[0], d[1]))
COMPARE(GreaterOp, decideLess(d[1], d[0]))
COMPARE(GreaterOrEqualOp, decideLessOrEqual(d[1], d[0]))
#undef COMPARE

LogicalResult WhereOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  if (failed(requireBoolean(*this, operands[0])))
    return failure();
  // C1: both choices have one element type.
  if (failed(requireSameElementType(*this, operands[1], operands[2])))
    return failure();
  return inferElementwise(context, *this, operands, elementTypeOf(operands[1]), results, chooseDim);
}
