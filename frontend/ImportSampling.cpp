//===- ImportSampling.cpp - operators that read images at computed positions --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Sampling.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {
Value sizeOf(NodeImport &node, Value input, int64_t axis) {
  return node.reshape(node.sizes(input, axis, axis == -1 ? std::nullopt : std::optional<int64_t>(axis + 1)),
                      ArrayRef<int64_t>{});
}

/// The grid [N, out…, axes] holds positions between -1 and 1, the last axis first.
LogicalResult importGridSample(NodeImport &node) {
  Value input = node.input(0), grid = node.input(1);
  std::string mode = node.text("mode", "linear"), padding = node.text("padding_mode", "zeros");
  bool alignsCorners = node.integer("align_corners", 0) != 0;
  if (mode == "bilinear")
    mode = "linear";
  if (mode == "bicubic")
    mode = "cubic";
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return node.invalid("has the unknown mode " + quoted(mode));
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return node.invalid("has the unknown padding_mode " + quoted(padding));
  std::optional<int64_t> rank = node.rank(input);
  if (!rank)
    return node.unsupported("GridSample of an input of unknown rank");
  if (*rank < 3 || *rank > 5)
    return node.invalid("has an input of " + Twine(*rank) + " axes; it needs 3 to 5");
  SampleEdge edge = padding == "zeros"    ? SampleEdge::Zero
                    : padding == "border" ? SampleEdge::Border
                    : alignsCorners       ? SampleEdge::ReflectCentre
                                          : SampleEdge::Reflect;
  Type type = node.elementOf(grid);
  auto number = [&](double value) { return node.scalar(type, value); };
  SmallVector<SmallVector<SampleTap>> taps;
  for (int64_t axis = 2; axis < *rank; ++axis) {
    Value size = sizeOf(node, input, axis), length = node.castTo(size, type);
    Value position = node.make<GatherOp>(type, grid, node.scalar(*rank - 1 - axis), static_cast<uint64_t>(-1));
    position = node.make<AddOp>(type, position, number(1));
    if (alignsCorners) {
      Value half = node.make<DivOp>(type, position, number(2));
      position = node.make<MulOp>(type, half, node.make<SubOp>(type, length, number(1)));
    } else {
      Value scaled = node.make<SubOp>(type, node.make<MulOp>(type, position, length), number(1));
      position = node.make<DivOp>(type, scaled, number(2));
    }
    if (mode == "nearest")
      position = node.make<RoundOp>(type, position);
    // A cubic keeps its position: its neighbours are looked for inside, each for itself.
    if (mode != "cubic")
      position = insidePosition(node, position, size, edge);
    taps.push_back(mode == "nearest"  ? nearestTap(node, position, size, edge)
                   : mode == "linear" ? linearTaps(node, position, size, edge)
                                      : cubicTaps(node, position, size, edge));
  }
  return node.result(combineTaps(node, input, taps));
}

/// Positions between -1 and 1 of a result of `size` [N, C, out…] under the affine maps theta [N, axes, axes + 1], the
/// last axis first: [N, out…, axes].
LogicalResult importAffineGrid(NodeImport &node) {
  Value theta = node.input(0), size = node.input(1);
  bool alignsCorners = node.integer("align_corners", 0) != 0;
  Type type = node.elementOf(theta), i64 = node.i64();
  std::optional<SmallVector<DimAttr>> dims = node.dims(size);
  std::optional<int64_t> length = dims && dims->size() == 1 && (*dims)[0] ? constantValue((*dims)[0]) : std::nullopt;
  if (!length)
    return node.unsupported("AffineGrid with a size of unknown length");
  if (*length < 3 || *length > 5)
    return node.invalid("has a size of " + Twine(*length) + " axes; it needs 4 or 5");
  int64_t axes = *length - 2;
  auto number = [&](double value) { return node.scalar(type, value); };
  Value space = node.slice(size, node.constant({2}), node.constant({*length}), 0);
  SmallVector<Value> columns;
  for (int64_t axis = axes; axis-- > 0;) {
    Value count = node.make<GatherOp>(i64, space, node.scalar(axis), uint64_t(0)), extent = node.castTo(count, type);
    Value steps =
        node.make<RangeOp>(i64, node.scalar(int64_t(0)), count, node.scalar(int64_t(1)), DimAttr(), IntegerAttr());
    Value at = node.make<MulOp>(type, node.castTo(steps, type), number(2));
    if (alignsCorners)
      extent = node.make<MaxOp>(type, node.make<SubOp>(type, extent, number(1)), number(1));
    else
      at = node.make<AddOp>(type, at, number(1));
    at = node.make<SubOp>(type, node.make<DivOp>(type, at, extent), number(1));
    SmallVector<int64_t> shape(static_cast<size_t>(axes), 1);
    shape[axis] = -1;
    at = node.make<BroadcastOp>(type, node.reshape(at, shape), space);
    columns.push_back(node.reshape(at, {-1, 1}));
  }
  Value unit = node.make<SubOp>(type, columns[0], columns[0]);
  columns.push_back(node.make<AddOp>(type, unit, number(1)));
  Value base = node.make<ConcatOp>(type, columns, uint64_t(1)); // [points, axes + 1]
  Value grid = node.make<MatMulOp>(type, base, node.transpose(theta, {0, 2, 1}));
  Value sizes[] = {node.sizes(theta, 0, 1), space, node.constant({axes})};
  return node.result(node.reshape(grid, node.make<ConcatOp>(i64, ValueRange(sizes), uint64_t(0))));
}

/// Linear samples of regions of interest, averaged per bin, or the largest weighted element of each bin.
class RoiAlign {
public:
  explicit RoiAlign(NodeImport &node) : node(node), type(node.elementOf(node.input(0))) {}

  LogicalResult run() {
    std::string mode = node.text("mode", "avg");
    // Before opset 16, regions were not shifted.
    std::string transform =
        node.text("coordinate_transformation_mode", node.version < 16 ? "output_half_pixel" : "half_pixel");
    int64_t height = node.integer("output_height", 1), width = node.integer("output_width", 1);
    samples = node.integer("sampling_ratio", 0);
    scale = node.real("spatial_scale", 1.0f);
    halfPixel = transform == "half_pixel";
    if (mode != "avg" && mode != "max")
      return node.invalid("has the unknown mode " + quoted(mode));
    if (!halfPixel && transform != "output_half_pixel")
      return node.invalid("has the unknown coordinate_transformation_mode " + quoted(transform));
    if (height < 1 || width < 1 || samples < 0)
      return node.invalid("has an output or a sampling_ratio that is not positive");
    if (samples == 0)
      return node.unsupported("RoiAlign with sampling_ratio 0, a number of samples that depends on the regions");
    Value images = node.make<GatherOp>(type, node.input(0), node.input(2), uint64_t(0)); // one per region
    Value inside;
    SmallVector<SmallVector<SampleTap>> taps;
    for (int64_t axis : {0, 1}) {
      Value size = sizeOf(node, images, axis + 2), length = node.castTo(size, type);
      Value position = positions(axis, axis == 0 ? height : width);
      // Up to one element outside still counts.
      Value isLow = node.make<LessOp>(node.i1(), position, number(-1));
      Value isHigh = node.make<LessOp>(node.i1(), length, position);
      Value fits = node.make<NotOp>(node.i1(), node.make<OrOp>(node.i1(), isLow, isHigh));
      inside = inside ? node.make<AndOp>(node.i1(), inside, fits) : fits;
      position = insidePosition(node, position, size, SampleEdge::Border);
      taps.push_back(linearTaps(node, position, size, SampleEdge::Border));
    }
    for (SampleTap &tap : taps[0])
      tap.inside = inside;
    Value sampled = combineTaps(node, images, taps, mode == "max");
    return node.result(node.reduce(sampled, mode == "max" ? ReduceKind::Max : ReduceKind::Mean, {-2, -1}, false));
  }

private:
  Value number(double value) { return node.scalar(type, value); }
  /// Column `column` of the regions, scaled and shifted: [regions].
  Value corner(int64_t column) {
    Value values = node.make<GatherOp>(type, node.input(1), node.scalar(column), uint64_t(1));
    values = node.make<MulOp>(type, values, number(scale));
    return halfPixel ? node.make<SubOp>(type, values, number(0.5)) : values;
  }
  /// Where the samples of all bins along an axis (0: y, 1: x) lie: [regions, height or 1, width or 1, samples or 1, …].
  Value positions(int64_t axis, int64_t bins) {
    Value start = corner(1 - axis), extent = node.make<SubOp>(type, corner(3 - axis), start);
    if (!halfPixel)
      extent = node.make<MaxOp>(type, extent, number(1));
    Value bin = node.make<DivOp>(type, extent, number(static_cast<double>(bins)));
    // In bins: number of the bin + (number of the sample + 0.5) / samples.
    auto table = RankedTensorType::get({bins * samples}, type);
    HostTensor inBins = HostTensor::make(table);
    for (int64_t i = 0; i < bins * samples; ++i)
      inBins.setDouble(i, static_cast<double>(i / samples) +
                              (static_cast<double>(i % samples) + 0.5) / static_cast<double>(samples));
    Value steps = node.builder.create<ConstantOp>(node.loc, table, inBins.toElements());
    SmallVector<int64_t> shape = {bins, 1, samples, 1};
    if (axis == 1)
      shape = {1, bins, 1, samples};
    steps = node.reshape(steps, shape);
    auto perRegion = [&](Value value) { return node.reshape(value, {-1, 1, 1, 1, 1}); };
    return node.make<AddOp>(type, perRegion(start), node.make<MulOp>(type, perRegion(bin), steps));
  }

  NodeImport &node;
  Type type;
  int64_t samples = 0;
  double scale = 1;
  bool halfPixel = true;
};
LogicalResult importRoiAlign(NodeImport &node) { return RoiAlign(node).run(); }
} // namespace

void mlir::transept::addSamplingImports(ImportTable &table) {
  table.add("GridSample", importGridSample);
  table.add("RoiAlign", importRoiAlign);
  table.add("AffineGrid", importAffineGrid);
}
