//===- InferMovement.cpp - ops that rearrange, repeat or join elements -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/InferSupport.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::transept;

/// As many run-time symbols as a shape operand of known length has elements.
static Fact unknownShape(InferContext &context, Operation *op, const Fact &shape, Type element, StringRef hint) {
  std::optional<int64_t> length = staticLength(shape);
  if (!length || *length > 64)
    return unrankedFact(element);
  Dims dims;
  for (int64_t i = 0; i < *length; ++i)
    dims.push_back(context.runtimeSymbol(op, hint));
  return rankedFact(dims, element);
}

/// Whether every size can be one: constants must not be negative.
static LogicalResult requireSizes(Operation *op, ArrayRef<DimAttr> dims) {
  for (DimAttr dim : dims)
    if (std::optional<int64_t> value = constantValue(dim); value && *value < 0)
      return op->emitOpError() << "makes a tensor of shape " << toString(dims);
  return success();
}

//===- Reshape
//------------------------------------------------------------------------------------------------------===//

/// Sizes a `shape` operand asks for, -1 and 0 resolved.
static FailureOr<Dims> reshapedDims(InferContext &context, ReshapeOp op, ArrayRef<DimAttr> input,
                                    ArrayRef<DimAttr> wanted) {
  MLIRContext *mlir = op.getContext();
  Dims dims;
  std::optional<size_t> inferred;
  for (auto [axis, asked] : llvm::enumerate(wanted)) {
    DimAttr size = asked;
    std::optional<int64_t> value = constantValue(size);
    if (value == -1) {
      // C1: one size may be left open.
      if (inferred)
        return op.emitOpError() << "leaves two sizes open: " << toString(wanted);
      inferred = axis;
      dims.push_back(dimConstant(mlir, 1));
      continue;
    }
    if (value == 0 && !op.getAllowZero()) {
      // C2: a copied size exists.
      if (axis >= input.size())
        return op.emitOpError() << "copies axis " << axis << " of " << toString(input);
      size = input[axis];
    }
    dims.push_back(size);
  }
  // C3: sizes are not negative.
  if (failed(requireSizes(op, dims)))
    return failure();
  DimAttr total = dimProduct(mlir, input), named = dimProduct(mlir, dims);
  if (inferred) {
    if (constantValue(named) == 0)
      return op.emitOpError() << "cannot tell the open size of " << toString(wanted) << ": the others hold no element";
    std::optional<DimAttr> exact = dimExactDiv(total, named);
    dims[*inferred] = exact ? *exact : dimFloorDiv(total, named);
    named = dimMul(named, dims[*inferred]);
  }
  // C4: the number of elements stays.
  if (named == total)
    return dims;
  std::string shapes = "cannot make " + toString(dims) + " of " + toString(input);
  if (decideEqual(named, total) == false)
    return op.emitOpError() << shapes;
  context.guard(op, total, GuardRelation::Equal, named, nodeLabel(op) + " " + shapes);
  return dims;
}

LogicalResult ReshapeOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &input = operands[0];
  std::optional<Dims> inputDims = dimsOf(context, *this, input);
  Dims wanted;
  if (getShape()) {
    const Fact &shape = operands[1];
    // C5: the shape is a vector.
    if (RankedTensorType type = shape.ranked(); type && type.getRank() > 1)
      return emitOpError() << "takes a vector of sizes, not a tensor with " << type.getRank() << " axes";
    if (!inputDims || !shape.content) {
      results.push_back(unknownShape(context, *this, shape, elementTypeOf(input), "reshaped"));
      return success();
    }
    FailureOr<Dims> dims = reshapedDims(context, *this, *inputDims, *shape.content);
    if (failed(dims))
      return failure();
    wanted = *dims;
  } else {
    Fact declared;
    declared.type = cast<TensorType>(getResult().getType());
    std::optional<Dims> dims = dimsOf(context, *this, declared);
    if (!dims)
      return emitOpError() << "has neither a shape nor a ranked result";
    wanted = *dims;
    if (inputDims) {
      DimAttr total = dimProduct(getContext(), *inputDims), named = dimProduct(getContext(), wanted);
      std::string shapes = "cannot make " + toString(wanted) + " of " + toString(*inputDims);
      if (decideEqual(named, total) == false)
        return emitOpError() << shapes;
      if (named != total)
        context.guard(*this, total, GuardRelation::Equal, named, nodeLabel(*this) + " " + shapes);
    }
  }
  Fact result = rankedFact(wanted, elementTypeOf(input));
  result.content = input.content;
  results.push_back(std::move(result));
  return success();
}

//===- Transpose
//----------------------------------------------------------------------------------------------------===//

LogicalResult TransposeOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &input = operands[0];
  ArrayRef<int64_t> permutation = getPermutation();
  std::optional<Dims> dims = dimsOf(context, *this, input);
  if (!dims) {
    results.push_back(unrankedFact(elementTypeOf(input)));
    return success();
  }
  // C1: the permutation names each axis once.
  if (permutation.size() != dims->size() || !isPermutationVector(permutation))
    return emitOpError() << "does not permute the " << dims->size() << " axes of its operand";
  Dims permuted;
  for (int64_t axis : permutation)
    permuted.push_back((*dims)[axis]);
  Fact result = rankedFact(permuted, elementTypeOf(input));
  if (std::optional<SmallVector<int64_t>> shape = smallShape(result); shape && input.content) {
    result.content.emplace();
    for (int64_t i = 0, e = input.content->size(); i < e; ++i) {
      SmallVector<int64_t> position = coordinates(i, *shape), source(position.size());
      for (auto [to, from] : llvm::enumerate(permutation))
        source[from] = position[to];
      result.content->push_back((*input.content)[linearIndex(source, input.ranked().getShape())]);
    }
  }
  results.push_back(std::move(result));
  return success();
}

//===- Broadcast and tile
//-------------------------------------------------------------------------------------------===//

LogicalResult BroadcastOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &input = operands[0];
  Type element = elementTypeOf(input);
  std::optional<Dims> inputDims = dimsOf(context, *this, input);
  Dims dims;
  if (getShape()) {
    const Fact &shape = operands[1];
    if (!inputDims || !shape.content) {
      Fact result = unknownShape(context, *this, shape, element, "broadcast");
      // The result has the larger of both ranks, and the operand's sizes where these are not 1 for sure.
      if (RankedTensorType type = result.ranked(); type && inputDims) {
        Dims known = dimsOf(type);
        if (inputDims->size() > known.size())
          known.insert(known.begin(), inputDims->begin(), inputDims->end() - known.size());
        for (auto [size, own] : llvm::zip(llvm::reverse(known), llvm::reverse(*inputDims)))
          if (constantValue(own).value_or(1) != 1)
            size = own;
        result = rankedFact(known, element);
      }
      results.push_back(std::move(result));
      return success();
    }
    Dims wanted(*shape.content);
    // Some exporters write -1 for "as it is".
    for (DimAttr &size : wanted)
      if (constantValue(size) == -1)
        size = dimConstant(getContext(), 1);
    // C1: sizes are not negative.
    if (failed(requireSizes(*this, wanted)))
      return failure();
    // C2: the operand broadcasts against the shape.
    FailureOr<Dims> common = broadcastDims(context, *this, {*inputDims, wanted});
    if (failed(common))
      return failure();
    dims = *common;
  } else {
    Fact declared;
    declared.type = cast<TensorType>(getResult().getType());
    std::optional<Dims> wanted = dimsOf(context, *this, declared);
    if (!wanted)
      return emitOpError() << "has neither a shape nor a ranked result";
    dims = *wanted;
    // C3: the operand broadcasts to the result's shape.
    if (inputDims && failed(requireBroadcastTo(context, *this, *inputDims, dims, "repeats its input")))
      return failure();
  }
  Fact result = rankedFact(dims, element);
  if (std::optional<SmallVector<int64_t>> shape = smallShape(result); shape && input.content) {
    result.content.emplace();
    for (int64_t index : broadcastIndices(input.ranked().getShape(), *shape))
      result.content->push_back((*input.content)[index]);
  }
  results.push_back(std::move(result));
  return success();
}

LogicalResult TileOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &input = operands[0];
  Type element = elementTypeOf(input);
  if (!getRepeats()) {
    // C1: a resolved tile says its result's shape.
    if (!isa<RankedTensorType>(getResult().getType()))
      return emitOpError() << "has neither repeats nor a ranked result";
    Fact result;
    result.type = cast<TensorType>(getResult().getType());
    results.push_back(std::move(result));
    return success();
  }
  std::optional<Dims> dims = dimsOf(context, *this, input);
  const Fact &repeats = operands[1];
  if (!dims) {
    results.push_back(unrankedFact(element));
    return success();
  }
  if (!repeats.content) {
    for (DimAttr &dim : *dims)
      dim = context.runtimeSymbol(*this, "tiled");
    results.push_back(rankedFact(*dims, element));
    return success();
  }
  // C2: one count per axis, none negative.
  if (repeats.content->size() != dims->size() || failed(requireSizes(*this, *repeats.content)))
    return emitOpError() << "repeats " << repeats.content->size() << " axes of " << toString(*dims);
  for (auto [dim, count] : llvm::zip(*dims, *repeats.content))
    dim = dimMul(dim, count);
  Fact result = rankedFact(*dims, element);
  if (std::optional<SmallVector<int64_t>> shape = smallShape(result); shape && input.content) {
    ArrayRef<int64_t> inputShape = input.ranked().getShape();
    result.content.emplace();
    for (int64_t i = 0, e = ShapedType::getNumElements(*shape); i < e; ++i) {
      SmallVector<int64_t> position = coordinates(i, *shape);
      for (auto [coordinate, size] : llvm::zip(position, inputShape))
        coordinate %= size;
      result.content->push_back((*input.content)[linearIndex(position, inputShape)]);
    }
  }
  results.push_back(std::move(result));
  return success();
}

//===- Squeeze and unsqueeze
//----------------------------------------------------------------------------------------===//

/// Axes given as an attribute or a known operand: nullopt if neither says.
template <typename Op> static std::optional<SmallVector<int64_t>> namedAxes(Op op, ArrayRef<Fact> operands) {
  if (op.getAxes())
    return SmallVector<int64_t>(*op.getAxes());
  if (op.getAxesValue())
    return constantInts(operands[1]);
  return std::nullopt;
}

/// `more` axes than the operand has, which ones only data says.
static Fact unknownAxes(InferContext &context, Operation *op, const std::optional<Dims> &input,
                        std::optional<int64_t> more, Type element) {
  if (!input || !more || static_cast<int64_t>(input->size()) + *more < 0 || *more > 64)
    return unrankedFact(element);
  Dims dims;
  for (int64_t i = 0, e = static_cast<int64_t>(input->size()) + *more; i < e; ++i)
    dims.push_back(context.runtimeSymbol(op, "squeezed"));
  return rankedFact(dims, element);
}

LogicalResult SqueezeOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &input = operands[0];
  Type element = elementTypeOf(input);
  std::optional<Dims> dims = dimsOf(context, *this, input);
  std::optional<SmallVector<int64_t>> axes = namedAxes(*this, operands);
  if (!dims || (!axes && getAxesValue())) {
    std::optional<int64_t> count = getAxesValue() ? staticLength(operands[1]) : std::nullopt;
    results.push_back(unknownAxes(context, *this, dims, count ? -*count : count, element));
    return success();
  }
  Dims kept;
  if (axes) {
    // C1: axes exist and are named once.
    FailureOr<SmallVector<int64_t>> normal = normalizeAxes(*this, *axes, dims->size());
    if (failed(normal))
      return failure();
    for (auto [axis, dim] : llvm::enumerate(*dims))
      if (!llvm::is_contained(*normal, static_cast<int64_t>(axis)))
        kept.push_back(dim);
      // C2: a dropped axis has size 1.
      else if (failed(requireEqual(context, *this, dim, dimConstant(getContext(), 1), "drops an axis")))
        return failure();
  } else {
    // A dynamic axis is taken to be larger than 1: the rank must not depend on a size.
    for (DimAttr dim : *dims)
      if (constantValue(dim) != 1) {
        kept.push_back(dim);
        if (!constantValue(dim))
          context.guard(*this, dim, GuardRelation::NotEqual, dimConstant(getContext(), 1),
                        nodeLabel(*this) + " drops every axis of size 1, but the compiled program keeps " +
                            toString(dim));
      }
  }
  Fact result = rankedFact(kept, element);
  result.content = input.content;
  results.push_back(std::move(result));
  return success();
}

LogicalResult UnsqueezeOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &input = operands[0];
  std::optional<Dims> dims = dimsOf(context, *this, input);
  std::optional<SmallVector<int64_t>> axes = namedAxes(*this, operands);
  if (!dims || !axes) {
    std::optional<int64_t> count = getAxesValue() ? staticLength(operands[1]) : std::nullopt;
    results.push_back(unknownAxes(context, *this, dims, count, elementTypeOf(input)));
    return success();
  }
  // C1: axes lie in the result and are named once.
  FailureOr<SmallVector<int64_t>> normal = normalizeAxes(*this, *axes, dims->size() + axes->size());
  if (failed(normal))
    return failure();
  llvm::sort(*normal);
  for (int64_t axis : *normal)
    dims->insert(dims->begin() + axis, dimConstant(getContext(), 1));
  Fact result = rankedFact(*dims, elementTypeOf(input));
  result.content = input.content;
  results.push_back(std::move(result));
  return success();
}

//===- Concat
//-------------------------------------------------------------------------------------------------------===//

static std::optional<Content> concatContents(ArrayRef<Fact> operands, const Fact &result, int64_t axis) {
  std::optional<SmallVector<int64_t>> shape = smallShape(result);
  if (!shape || llvm::any_of(operands, [](const Fact &operand) { return !operand.content; }))
    return std::nullopt;
  Content content(ShapedType::getNumElements(*shape));
  int64_t offset = 0;
  for (const Fact &operand : operands) {
    ArrayRef<int64_t> operandShape = operand.ranked().getShape();
    for (auto [i, element] : llvm::enumerate(*operand.content)) {
      SmallVector<int64_t> position = coordinates(i, operandShape);
      position[axis] += offset;
      content[linearIndex(position, *shape)] = element;
    }
    offset += operandShape[axis];
  }
  return content;
}

LogicalResult ConcatOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  // C1: there is something to join, of one element type.
  if (operands.empty())
    return emitOpError() << "joins nothing";
  for (const Fact &operand : operands.drop_front())
    if (failed(requireSameElementType(*this, operands[0], operand)))
      return failure();
  Type element = elementTypeOf(operands[0]);
  SmallVector<Dims> shapes;
  for (const Fact &operand : operands) {
    std::optional<Dims> dims = dimsOf(context, *this, operand);
    if (!dims) {
      results.push_back(unrankedFact(element));
      return success();
    }
    shapes.push_back(std::move(*dims));
  }
  Dims joined = shapes.front();
  FailureOr<int64_t> axis = normalizeAxis(*this, getAxis(), joined.size());
  if (failed(axis))
    return failure();
  for (const Dims &shape : ArrayRef(shapes).drop_front()) {
    // C2: all have the same number of axes.
    if (shape.size() != joined.size())
      return emitOpError() << "joins " << toString(shapes.front()) << " and " << toString(shape);
    // C3: all but the joined axis agree.
    for (auto [i, sizes] : llvm::enumerate(llvm::zip(joined, shape))) {
      auto [size, other] = sizes;
      if (static_cast<int64_t>(i) == *axis) {
        size = dimAdd(size, other);
        continue;
      }
      FailureOr<DimAttr> common = requireEqual(context, *this, size, other, "joins on axis " + std::to_string(*axis));
      if (failed(common))
        return failure();
      size = *common;
    }
  }
  Fact result = rankedFact(joined, element);
  result.content = concatContents(operands, result, *axis);
  results.push_back(std::move(result));
  return success();
}

//===- Pad
//----------------------------------------------------------------------------------------------------------===//

LogicalResult PadOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  const Fact &input = operands[0];
  Type element = elementTypeOf(input);
  std::optional<Dims> dims = dimsOf(context, *this, input);
  // C1: the fill value has the input's element type.
  if (getFill() && failed(requireSameElementType(*this, input, factOf(*this, operands, getFill()))))
    return failure();
  if (!dims) {
    results.push_back(unrankedFact(element));
    return success();
  }
  if (getLow()) {
    // C2: resolved pads name each axis of a result with the same rank.
    auto type = dyn_cast<RankedTensorType>(getResult().getType());
    if (!type || getLow()->size() != dims->size() || type.getRank() != static_cast<int64_t>(dims->size()))
      return emitOpError() << "names " << getLow()->size() << " pads for " << toString(*dims);
    Fact result;
    result.type = type;
    results.push_back(std::move(result));
    return success();
  }
  if (!getPadsValue())
    return emitOpError() << "has no pads";
  const Fact &pads = factOf(*this, operands, getPadsValue());
  std::optional<SmallVector<int64_t>> axes;
  if (getAxesValue())
    axes = constantInts(factOf(*this, operands, getAxesValue()));
  else
    axes = llvm::to_vector(llvm::seq<int64_t>(0, dims->size()));
  if (!pads.content || !axes) {
    for (DimAttr &dim : *dims)
      dim = context.runtimeSymbol(*this, "padded");
    results.push_back(rankedFact(*dims, element));
    return success();
  }
  FailureOr<SmallVector<int64_t>> normal = normalizeAxes(*this, *axes, dims->size());
  if (failed(normal))
    return failure();
  // C3: two pads per axis.
  if (pads.content->size() != 2 * normal->size())
    return emitOpError() << "has " << pads.content->size() << " pads for " << normal->size() << " axes";
  for (auto [i, axis] : llvm::enumerate(*normal)) {
    DimAttr low = (*pads.content)[i], high = (*pads.content)[i + normal->size()];
    (*dims)[axis] = dimAdd((*dims)[axis], dimAdd(low, high));
  }
  // C4: no axis gets a negative size.
  if (failed(requireSizes(*this, *dims)))
    return failure();
  for (DimAttr size : *dims)
    if (!provablyNonNegative(size))
      context.guard(*this, size, GuardRelation::GreaterOrEqual, dimConstant(getContext(), 0),
                    nodeLabel(*this) + " removes more elements than there are");
  results.push_back(rankedFact(*dims, element));
  return success();
}

LogicalResult WindowsOp::infer(InferContext &context, ArrayRef<Fact> operands, SmallVectorImpl<Fact> &results) {
  // C1: there is one positive number of each kind per windowed axis.
  size_t count = getKernel().size();
  auto isPositive = [](int64_t value) { return value > 0; };
  if (getStrides().size() != count || getDilations().size() != count || !llvm::all_of(getKernel(), isPositive) ||
      !llvm::all_of(getStrides(), isPositive) || !llvm::all_of(getDilations(), isPositive))
    return emitOpError() << "has a kernel, strides and dilations that do not go together";
  std::optional<Dims> dims = dimsOf(context, *this, operands[0]);
  if (!dims) {
    results.push_back(unrankedFact(elementTypeOf(operands[0])));
    return success();
  }
  // C2: the axes exist.
  if (dims->size() < count)
    return emitOpError() << "takes windows over " << count << " axes of " << toString(*dims);
  Dims result(ArrayRef(*dims).drop_back(count));
  for (size_t i = 0; i < count; ++i) {
    int64_t reach;
    if (llvm::MulOverflow(getKernel()[i] - 1, getDilations()[i], reach) || reach == INT64_MAX)
      return emitOpError() << "has windows that are too large";
    DimAttr size = (*dims)[dims->size() - count + i], whole = dimConstant(getContext(), reach + 1);
    // C3: a window fits.
    if (failed(requireLessOrEqual(context, *this, whole, size, "takes windows")))
      return failure();
    DimAttr steps = dimFloorDiv(dimSub(size, whole), dimConstant(getContext(), getStrides()[i]));
    result.push_back(dimAdd(steps, dimConstant(getContext(), 1)));
  }
  for (int64_t size : getKernel())
    result.push_back(dimConstant(getContext(), size));
  results.push_back(rankedFact(result, elementTypeOf(operands[0])));
  return success();
}
