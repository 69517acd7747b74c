//===- ImportShapes.cpp - operators that move elements, and shapes as data -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/NodeImport.h"
#include "frontend/TensorData.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
LogicalResult importReshape(NodeImport &node) {
  bool allowZero = node.integer("allowzero", 0);
  Value input = node.input(0);
  return node.result(node.make<ReshapeOp>(node.elementOf(input), input, node.input(1), allowZero));
}

LogicalResult importTranspose(NodeImport &node) {
  std::optional<SmallVector<int64_t>> permutation = node.integers("perm");
  if (!permutation) {
    std::optional<int64_t> rank = node.rank(node.input(0));
    if (!rank)
      return node.unsupported("Transpose without 'perm' of an input of unknown rank");
    permutation = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, *rank)));
  }
  // C1: every axis occurs once.
  SmallVector<int64_t> sorted = *permutation;
  llvm::sort(sorted);
  for (auto [index, axis] : llvm::enumerate(sorted))
    if (axis != static_cast<int64_t>(index))
      return node.invalid("has a 'perm' that is no permutation");
  return node.result(node.transpose(node.input(0), *permutation));
}

LogicalResult importExpand(NodeImport &node) {
  return node.result(node.make<BroadcastOp>(node.elementOf(node.input(0)), node.input(0), node.input(1)));
}

LogicalResult importTile(NodeImport &node) {
  return node.result(node.make<TileOp>(node.elementOf(node.input(0)), node.input(0), node.input(1)));
}

/// Axes were an attribute before opset 13.
template <typename Op> LogicalResult importAxes(NodeImport &node) {
  Value input = node.input(0), axesValue = node.input(1);
  std::optional<SmallVector<int64_t>> axes = axesValue ? node.constantIntegers(axesValue) : node.integers("axes");
  DenseI64ArrayAttr attribute = axes ? node.builder.getDenseI64ArrayAttr(*axes) : DenseI64ArrayAttr();
  if (std::is_same_v<Op, UnsqueezeOp> && !axes && !axesValue)
    return node.invalid("does not say which axes to insert");
  return node.result(node.make<Op>(node.elementOf(input), input, axes ? Value() : axesValue, attribute));
}

/// Starts, ends and axes were attributes before opset 10.
LogicalResult importSlice(NodeImport &node) {
  Value input = node.input(0), starts = node.input(1), ends = node.input(2), axes = node.input(3);
  if (node.version < 10) {
    std::optional<SmallVector<int64_t>> start = node.integers("starts"), end = node.integers("ends"),
                                        axis = node.integers("axes");
    if (!start || !end || start->size() != end->size() || (axis && axis->size() != start->size()))
      return node.invalid("has starts, ends and axes of different lengths");
    starts = node.constant(*start);
    ends = node.constant(*end);
    axes = axis ? node.constant(*axis) : Value();
  }
  return node.result(node.make<SliceOp>(node.elementOf(input), input, starts, ends, axes, node.input(4), ArrayAttr(),
                                        DenseI64ArrayAttr()));
}

LogicalResult importConcat(NodeImport &node) {
  SmallVector<Value> inputs;
  for (size_t index = 0; index < node.inputCount(); ++index) {
    if (!node.input(index) || node.elementOf(node.input(index)) != node.elementOf(node.input(0)))
      return node.invalid("joins inputs of different element types");
    inputs.push_back(node.input(index));
  }
  uint64_t axis = static_cast<uint64_t>(node.integer("axis", 1));
  return node.result(node.make<ConcatOp>(node.elementOf(inputs[0]), inputs, axis));
}

/// Part sizes that are constants: each part is a slice between running sums.
LogicalResult splitAt(NodeImport &node, ArrayRef<int64_t> sizes, int64_t axis) {
  if (sizes.size() != static_cast<size_t>(node.node.output_size()))
    return node.invalid("has " + Twine(sizes.size()) + " part sizes for " + Twine(node.node.output_size()) +
                        " results");
  int64_t start = 0;
  SmallVector<std::pair<int64_t, int64_t>> parts;
  for (int64_t size : sizes) {
    int64_t end;
    if (size < 0 || llvm::AddOverflow(start, size, end))
      return node.invalid("has the part size " + Twine(size));
    parts.emplace_back(start, end);
    start = end;
  }
  // C1: the parts make up the axis, where its size is known.
  if (std::optional<SmallVector<DimAttr>> dims = node.dims(node.input(0))) {
    int64_t rank = static_cast<int64_t>(dims->size()), at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank)
      return node.invalid("has axis " + Twine(axis) + " for " + Twine(rank) + " axes");
    std::optional<int64_t> whole = (*dims)[at] ? constantValue((*dims)[at]) : std::nullopt;
    if (whole && *whole != start)
      return node.invalid("has parts of " + Twine(start) + " elements together for an axis of " + Twine(*whole));
  }
  for (auto [index, part] : llvm::enumerate(parts))
    if (node.wants(static_cast<int>(index)))
      (void)node.result(static_cast<int>(index),
                        node.slice(node.input(0), node.constant({part.first}), node.constant({part.second}), axis));
  return success();
}

/// Part sizes that a run computes.
LogicalResult splitByValue(NodeImport &node, Value sizes, int64_t axis) {
  Value ends = node.make<CumSumOp>(node.i64(), sizes, Value(), node.builder.getI64IntegerAttr(0), /*exclusive=*/false,
                                   /*reverse=*/false);
  Value starts = node.make<SubOp>(node.i64(), ends, sizes);
  for (int index = 0; index < node.node.output_size(); ++index) {
    if (!node.wants(index))
      continue;
    Value first = node.constant({index}), last = node.constant({index + 1});
    (void)node.result(
        index, node.slice(node.input(0), node.slice(starts, first, last, 0), node.slice(ends, first, last, 0), axis));
  }
  return success();
}

/// Equal parts; the last one is smaller where the division leaves a rest.
LogicalResult splitEvenly(NodeImport &node, int64_t axis) {
  int64_t count = node.node.output_size();
  Value whole = node.sizes(node.input(0), axis, axis == -1 ? std::nullopt : std::optional<int64_t>(axis + 1));
  Value part = whole;
  if (count > 1)
    part = node.make<DivOp>(node.i64(), node.make<AddOp>(node.i64(), whole, node.constant({count - 1})),
                            node.constant({count}));
  for (int64_t index = 0; index < count; ++index) {
    if (!node.wants(static_cast<int>(index)))
      continue;
    auto times = [&](int64_t factor) { return node.make<MulOp>(node.i64(), part, node.constant({factor})); };
    Value start = index == 0 ? node.constant({0}) : times(index);
    Value end = index == count - 1 ? whole : times(index + 1);
    (void)node.result(static_cast<int>(index), node.slice(node.input(0), start, end, axis));
  }
  return success();
}

/// Part sizes were an attribute before opset 13; num_outputs came with 18.
LogicalResult importSplit(NodeImport &node) {
  int64_t axis = node.integer("axis", 0);
  std::optional<SmallVector<int64_t>> sizes = node.integers("split");
  Value sizesValue = node.input(1);
  if (sizesValue && !sizes)
    sizes = node.constantIntegers(sizesValue);
  int64_t parts = node.integer("num_outputs", node.node.output_size());
  if (parts != node.node.output_size())
    return node.invalid("has num_outputs " + Twine(parts) + " but " + Twine(node.node.output_size()) + " results");
  if (sizes)
    return splitAt(node, *sizes, axis);
  return sizesValue ? splitByValue(node, sizesValue, axis) : splitEvenly(node, axis);
}

/// Amounts and fill value were attributes before opset 11.
LogicalResult importPad(NodeImport &node) {
  Value input = node.input(0), pads = node.input(1), fill = node.input(2);
  Type element = node.elementOf(input);
  std::string name = node.text("mode", "constant");
  std::optional<PadMode> mode = symbolizePadMode(name);
  if (!mode)
    return node.invalid("has the unknown mode " + quoted(name));
  if (node.version < 11) {
    std::optional<SmallVector<int64_t>> amounts = node.integers("pads");
    if (!amounts)
      return node.invalid("has no pads");
    pads = node.constant(*amounts);
    float value = node.real("value", 0.0f);
    fill = value == 0.0f ? Value() : node.scalar(element, value);
  }
  return node.result(node.make<PadOp>(element, input, pads, fill, node.input(3), *mode, ArrayAttr()));
}

/// A matrix: axes before `axis`, and axes from it on.
LogicalResult importFlatten(NodeImport &node) {
  int64_t axis = node.integer("axis", 1);
  Value input = node.input(0);
  Value rows = node.reduce(node.sizes(input, 0, axis), ReduceKind::Prod, {0}, /*keepdims=*/true);
  Value columns = node.reduce(node.sizes(input, axis), ReduceKind::Prod, {0}, /*keepdims=*/true);
  return node.result(node.reshape(input, node.make<ConcatOp>(node.i64(), ValueRange{rows, columns}, uint64_t(0))));
}

LogicalResult importShape(NodeImport &node) {
  std::optional<int64_t> start, end;
  if (node.has("start"))
    start = node.integer("start", 0);
  if (node.has("end"))
    end = node.integer("end", 0);
  return node.result(node.sizes(node.input(0), start, end));
}

LogicalResult importSize(NodeImport &node) { return node.result(node.make<SizeOp>(node.i64(), node.input(0))); }

LogicalResult importConstantOfShape(NodeImport &node) {
  MLIRContext *context = node.builder.getContext();
  ElementsAttr value = DenseElementsAttr::get(RankedTensorType::get({}, Float32Type::get(context)), 0.0f);
  if (const onnx::TensorProto *tensor = node.tensor("value")) {
    Outcome<TensorData> data = node.decode(*tensor);
    if (!data)
      return failure();
    if (data->type.getNumElements() != 1)
      return node.invalid("has a value of " + Twine(data->type.getNumElements()) + " elements; it must have one");
    auto scalar = RankedTensorType::get({}, data->type.getElementType());
    value = HostTensor::fromBytes(scalar, data->bytes).toElements();
  }
  return node.result(node.make<FillOp>(value.getElementType(), node.input(0), value));
}

LogicalResult importRange(NodeImport &node) {
  return node.result(node.make<RangeOp>(node.elementOf(node.input(0)), node.input(0), node.input(1), node.input(2),
                                        DimAttr(), IntegerAttr()));
}

LogicalResult importTrilu(NodeImport &node) {
  Value input = node.input(0), diagonal = node.input(1);
  bool upper = node.integer("upper", 1);
  IntegerAttr k = diagonal ? IntegerAttr() : node.builder.getI64IntegerAttr(0);
  if (std::optional<SmallVector<int64_t>> known = node.constantIntegers(diagonal); known && known->size() == 1) {
    k = node.builder.getI64IntegerAttr((*known)[0]);
    diagonal = {};
  }
  return node.result(node.make<TriluOp>(node.elementOf(input), input, diagonal, k, upper));
}

/// Channels of blocks become positions, or the other way round.
LogicalResult importBlocks(NodeImport &node) {
  Value input = node.input(0);
  int64_t block = node.integer("blocksize", 0);
  bool toSpace = node.op() == "DepthToSpace";
  std::string mode = toSpace ? node.text("mode", "DCR") : "DCR";
  if (block < 1 || block > (int64_t(1) << 20))
    return node.invalid("has blocksize " + Twine(block));
  if (mode != "DCR" && mode != "CRD")
    return node.invalid("has the unknown mode " + quoted(mode));
  Value batch = node.sizes(input, 0, 1), channels = node.sizes(input, 1, 2), height = node.sizes(input, 2, 3),
        width = node.sizes(input, 3, 4), size = node.constant({block}), any = node.constant({-1});
  auto joined = [&](ArrayRef<Value> parts) { return node.make<ConcatOp>(node.i64(), ValueRange(parts), uint64_t(0)); };
  auto times = [&](Value a) { return node.make<MulOp>(node.i64(), a, size); };
  auto part = [&](Value a) { return node.make<DivOp>(node.i64(), a, size); };
  if (!toSpace) {
    Value split = node.reshape(input, joined({batch, channels, part(height), size, part(width), size}));
    split = node.transpose(split, {0, 3, 5, 1, 2, 4});
    return node.result(node.reshape(split, joined({batch, any, part(height), part(width)})));
  }
  Value rest = part(part(channels)), split;
  if (mode == "DCR")
    split = node.transpose(node.reshape(input, joined({batch, size, size, rest, height, width})), {0, 3, 4, 1, 5, 2});
  else
    split = node.transpose(node.reshape(input, joined({batch, rest, size, size, height, width})), {0, 1, 4, 2, 5, 3});
  return node.result(node.reshape(split, joined({batch, rest, times(height), times(width)})));
}

/// 1 where column = row + k.
LogicalResult importEyeLike(NodeImport &node) {
  Value input = node.input(0);
  Type element = node.elementOf(input);
  if (node.has("dtype")) {
    auto type = static_cast<int32_t>(node.integer("dtype", 0));
    element = elementTypeOf(node.builder.getContext(), type);
    if (!element)
      return node.unsupported("EyeLike of " + dataTypeName(type));
  }
  Value diagonal = node.scalar(node.integer("k", 0));
  auto size = [&](int64_t axis) { return node.reshape(node.sizes(input, axis, axis + 1), ArrayRef<int64_t>{}); };
  Value rows = node.reshape(node.countTo(size(0)), {-1, 1}), columns = node.countTo(size(1));
  Value hit = node.make<EqualOp>(node.i1(), columns, node.make<AddOp>(node.i64(), rows, diagonal));
  return node.result(node.castTo(hit, element));
}

/// The first elements of each row along the time axis in reverse order.
LogicalResult importReverseSequence(NodeImport &node) {
  Value input = node.input(0), lengths = node.input(1);
  int64_t time = node.integer("time_axis", 0), batch = node.integer("batch_axis", 1);
  std::optional<int64_t> rank = node.rank(input);
  if (!rank)
    return node.unsupported("ReverseSequence of an input of unknown rank");
  if (time < 0 || batch < 0 || time > 1 || batch > 1 || time == batch || *rank < 2)
    return node.invalid("has batch axis " + Twine(batch) + " and time axis " + Twine(time));
  Type i64 = node.i64();
  SmallVector<int64_t> timeShape(static_cast<size_t>(*rank), 1), batchShape(timeShape);
  timeShape[time] = -1;
  batchShape[batch] = -1;
  Value count = node.reshape(node.sizes(input, time, time + 1), ArrayRef<int64_t>{});
  Value steps = node.reshape(node.countTo(count), timeShape);
  Value length = node.reshape(node.castTo(lengths, i64), batchShape);
  Value mirrored = node.make<SubOp>(i64, node.make<SubOp>(i64, length, node.scalar(int64_t(1))), steps);
  Value place = node.make<WhereOp>(i64, node.make<LessOp>(node.i1(), steps, length), mirrored, steps);
  place = node.make<BroadcastOp>(i64, place, node.sizes(input));
  return node.result(node.make<GatherElementsOp>(node.elementOf(input), input, place, static_cast<uint64_t>(time)));
}
} // namespace

void mlir::transept::addShapeImports(ImportTable &table) {
  table.add("Reshape", importReshape);
  table.add("Transpose", importTranspose);
  table.add("Expand", importExpand);
  table.add("Tile", importTile);
  table.add("Squeeze", importAxes<SqueezeOp>);
  table.add("Unsqueeze", importAxes<UnsqueezeOp>);
  table.add("Slice", importSlice);
  table.add("Concat", importConcat);
  table.add("Split", importSplit);
  table.add("Pad", importPad);
  table.add("Flatten", importFlatten);
  table.add("Shape", importShape);
  table.add("Size", importSize);
  table.add("ConstantOfShape", importConstantOfShape);
  table.add("Range", importRange);
  table.add("Trilu", importTrilu);
  table.add("DepthToSpace", importBlocks);
  table.add("SpaceToDepth", importBlocks);
  table.add("EyeLike", importEyeLike);
  table.add("ReverseSequence", importReverseSequence);
}
