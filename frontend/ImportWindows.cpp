//===- ImportWindows.cpp - pooling and what else looks at windows -------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pooling is a reduction over the kernel axes of the windows of a padded input.

#include "frontend/WindowShape.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::transept;

namespace {
/// -1, -2, … for the last `count` axes, ascending.
SmallVector<int64_t> lastAxes(size_t count) {
  SmallVector<int64_t> axes;
  for (size_t axis = count; axis-- > 0;)
    axes.push_back(-static_cast<int64_t>(axis) - 1);
  return axes;
}

Value reduceLast(NodeImport &node, Value input, ReduceKind kind, size_t axes) {
  return node.reduce(input, kind, lastAxes(axes), /*keepdims=*/false);
}

/// The input with all its padding.
Value padded(NodeImport &node, const WindowShape &shape, Value input, Value fill) {
  if (!shape.isPadded() && !shape.ceil)
    return input;
  SpatialPads pads = padsOf(node, shape, input);
  if (pads.behind)
    pads.high = node.make<AddOp>(node.i64(), pads.high, pads.behind);
  return padSpatial(node, input, shape.axes(), pads.low, pads.high, fill);
}

Value windows(NodeImport &node, const WindowShape &shape, Value input) {
  return node.make<WindowsOp>(node.elementOf(input), input, shape.kernel, shape.strides, shape.dilations);
}

Value filled(NodeImport &node, Type element, Value shape, double value) {
  auto type = RankedTensorType::get({}, element);
  HostTensor tensor = HostTensor::make(type);
  tensor.setDouble(0, value);
  return node.make<FillOp>(element, shape, tensor.toElements());
}

/// A number that no element is below.
double lowest(Type element) {
  if (isa<FloatType>(element))
    return -std::numeric_limits<double>::infinity();
  unsigned width = element.getIntOrFloatBitWidth();
  return element.isUnsignedInteger() || width == 1 ? 0.0 : -std::ldexp(1.0, static_cast<int>(width) - 1);
}

FailureOr<WindowShape> readPool(NodeImport &node) {
  FailureOr<WindowShape> shape = WindowShape::read(node, nullptr);
  if (failed(shape))
    return failure();
  shape->ceil = node.integer("ceil_mode", 0) != 0;
  if (std::optional<int64_t> rank = node.rank(node.input(0)); rank && *rank != static_cast<int64_t>(shape->axes()) + 2)
    return node.invalid("has a kernel of " + Twine(shape->axes()) + " axes for an input of " + Twine(*rank));
  return shape;
}

/// The sum of a window divided by the number of its elements that count: those of the input, or with
/// `count_include_pad` also those of the padding, but not what `ceil_mode` adds behind it.
LogicalResult importAveragePool(NodeImport &node) {
  FailureOr<WindowShape> shape = readPool(node);
  bool countsPads = node.integer("count_include_pad", 0) != 0;
  if (failed(shape))
    return failure();
  Value input = node.input(0);
  Type element = node.elementOf(input);
  size_t axes = shape->axes();
  if (!shape->isPadded() && !shape->ceil)
    return node.result(reduceLast(node, windows(node, *shape, input), ReduceKind::Mean, axes));
  SpatialPads pads = padsOf(node, *shape, input);
  Value one = node.scalar(element, 1);
  Value sizes = node.make<ConcatOp>(
      node.i64(), ValueRange{node.constant({1, 1}), node.sizes(input, -static_cast<int64_t>(axes))}, uint64_t(0));
  Value ones = padSpatial(node, filled(node, element, sizes, 1), axes, pads.low, pads.high, countsPads ? one : Value());
  Value all = padSpatial(node, input, axes, pads.low, pads.high);
  if (pads.behind) {
    Value none = node.constant(SmallVector<int64_t>(axes, 0));
    ones = padSpatial(node, ones, axes, none, pads.behind);
    all = padSpatial(node, all, axes, none, pads.behind);
  }
  auto sum = [&](Value of) { return reduceLast(node, windows(node, *shape, of), ReduceKind::Sum, axes); };
  return node.result(node.make<DivOp>(element, sum(all), sum(ones)));
}

/// The place of the largest element of each window among all elements of the input, row-major or, with
/// `storage_order`, with the spatial axes in reverse order.
Value largestPlaces(NodeImport &node, const WindowShape &shape, Value values, bool columnMajor) {
  Value input = node.input(0);
  auto axes = static_cast<int64_t>(shape.axes());
  Type i64 = node.i64();
  Value total = node.make<SizeOp>(i64, input);
  Value places =
      node.make<RangeOp>(i64, node.scalar(int64_t(0)), total, node.scalar(int64_t(1)), DimAttr(), IntegerAttr());
  if (columnMajor) {
    SmallVector<Value> sizes = {node.sizes(input, 0, 2)};
    SmallVector<int64_t> order = {0, 1};
    for (int64_t axis = axes; axis-- > 0;) {
      sizes.push_back(node.sizes(input, axis + 2, axis + 3));
      order.push_back(axis + 2);
    }
    places = node.reshape(places, node.make<ConcatOp>(i64, sizes, uint64_t(0)));
    places = node.transpose(places, order);
  } else {
    places = node.reshape(places, node.sizes(input));
  }
  auto flat = [&](Value of) {
    int64_t elements = 1;
    for (int64_t size : shape.kernel)
      elements *= size;
    Value sizes =
        node.make<ConcatOp>(i64, ValueRange{node.sizes(of, 0, axes + 2), node.constant({elements})}, uint64_t(0));
    return node.reshape(of, sizes);
  };
  Value largest = node.make<ArgMaxOp>(i64, flat(values), static_cast<uint64_t>(-1), /*keepdims=*/true,
                                      /*selectLastIndex=*/false);
  Value candidates = flat(windows(node, shape, padded(node, shape, places, {})));
  Value picked = node.make<GatherElementsOp>(i64, candidates, largest, static_cast<uint64_t>(-1));
  return node.make<SqueezeOp>(i64, picked, Value(), node.builder.getDenseI64ArrayAttr({-1}));
}

LogicalResult importMaxPool(NodeImport &node) {
  FailureOr<WindowShape> shape = readPool(node);
  bool columnMajor = node.integer("storage_order", 0) != 0;
  if (failed(shape))
    return failure();
  int64_t elements = 1;
  for (int64_t size : shape->kernel)
    if (llvm::MulOverflow(elements, size, elements))
      return node.invalid("has a kernel that is too large");
  Value input = node.input(0);
  Type element = node.elementOf(input);
  Value values = windows(node, *shape, padded(node, *shape, input, node.scalar(element, lowest(element))));
  if (node.wants(1))
    (void)node.result(1, largestPlaces(node, *shape, values, columnMajor));
  return node.result(reduceLast(node, values, ReduceKind::Max, shape->axes()));
}

/// (sum of |x|^p)^(1/p)
Value norm(NodeImport &node, Value input, ArrayRef<int64_t> axes, bool keepdims, int64_t power) {
  if (power == 1 || power == 2)
    return node.reduce(input, power == 1 ? ReduceKind::L1 : ReduceKind::L2, axes, keepdims);
  Type element = node.elementOf(input);
  Value size = node.make<AbsOp>(element, input);
  Value powers = node.make<PowOp>(element, size, node.scalar(element, static_cast<double>(power)));
  Value sum = node.reduce(powers, ReduceKind::Sum, axes, keepdims);
  return node.make<PowOp>(element, sum, node.scalar(element, 1.0 / static_cast<double>(power)));
}

std::optional<int64_t> powerOf(NodeImport &node) {
  int64_t power = node.integer("p", 2);
  if (power >= 1)
    return power;
  (void)node.invalid("has p " + Twine(power));
  return std::nullopt;
}

LogicalResult importLpPool(NodeImport &node) {
  FailureOr<WindowShape> shape = readPool(node);
  std::optional<int64_t> power = powerOf(node);
  if (failed(shape) || !power)
    return failure();
  Value values = windows(node, *shape, padded(node, *shape, node.input(0), {}));
  return node.result(norm(node, values, lastAxes(shape->axes()), /*keepdims=*/false, *power));
}

/// Over all spatial axes, which stay with size 1.
LogicalResult importGlobalPool(NodeImport &node) {
  Value input = node.input(0);
  std::optional<int64_t> rank = node.rank(input);
  if (!rank)
    return node.unsupported(node.op() + " of an input of unknown rank");
  if (*rank < 3)
    return node.invalid("has an input of " + Twine(*rank) + " axes; it needs 3 or more");
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(2, *rank));
  if (node.op() == "GlobalAveragePool")
    return node.result(node.reduce(input, ReduceKind::Mean, axes, true));
  if (node.op() == "GlobalMaxPool")
    return node.result(node.reduce(input, ReduceKind::Max, axes, true));
  std::optional<int64_t> power = powerOf(node);
  return power ? node.result(norm(node, input, axes, true, *power)) : failure();
}

/// x / (bias + alpha / size * sum of squares of the channels around)^beta
LogicalResult importLrn(NodeImport &node) {
  Value input = node.input(0);
  Type element = node.elementOf(input);
  int64_t size = node.integer("size", 0);
  double alpha = node.real("alpha", 1e-4f), beta = node.real("beta", 0.75f), bias = node.real("bias", 1.0f);
  std::optional<int64_t> rank = node.rank(input);
  if (size < 1)
    return node.invalid("has size " + Twine(size));
  if (!rank)
    return node.unsupported("LRN of an input of unknown rank");
  if (*rank < 2)
    return node.invalid("has an input of " + Twine(*rank) + " axes; it needs 2 or more");
  // Channels become the last axis and go back.
  SmallVector<int64_t> last = llvm::to_vector(llvm::seq<int64_t>(0, *rank)), back(*rank);
  std::rotate(last.begin() + 1, last.begin() + 2, last.end());
  for (auto [to, from] : llvm::enumerate(last))
    back[from] = static_cast<int64_t>(to);
  Value squares = node.transpose(node.make<MulOp>(element, input, input), last);
  squares = padSpatial(node, squares, 1, node.constant({(size - 1) / 2}), node.constant({size / 2}));
  Value around =
      node.make<WindowsOp>(element, squares, ArrayRef<int64_t>{size}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1});
  Value sum = node.transpose(reduceLast(node, around, ReduceKind::Sum, 1), back);
  Value scaled = node.make<MulOp>(element, sum, node.scalar(element, alpha / static_cast<double>(size)));
  Value base = node.make<AddOp>(element, scaled, node.scalar(element, bias));
  return node.result(node.make<DivOp>(element, input, node.make<PowOp>(element, base, node.scalar(element, beta))));
}

/// Places elements where a pooling found them; 0 elsewhere. A larger output_shape adds at the ends.
LogicalResult importMaxUnpool(NodeImport &node) {
  FailureOr<WindowShape> shape = WindowShape::read(node, nullptr);
  if (failed(shape))
    return failure();
  Value input = node.input(0), places = node.input(1);
  Type element = node.elementOf(input), i64 = node.i64();
  SmallVector<int64_t> rest;
  for (size_t axis = 0; axis < shape->axes(); ++axis)
    rest.push_back(shape->kernel[axis] - shape->strides[axis] - shape->pads[axis] - shape->pads[axis + shape->axes()]);
  Value sizes = node.make<MulOp>(i64, node.sizes(input, 2), node.constant(shape->strides));
  sizes = node.make<ConcatOp>(
      i64, ValueRange{node.sizes(input, 0, 2), node.make<AddOp>(i64, sizes, node.constant(rest))}, uint64_t(0));
  Value total = node.reduce(sizes, ReduceKind::Prod, {0}, /*keepdims=*/true);
  Value flat = node.make<ScatterElementsOp>(element, filled(node, element, total, 0), node.reshape(places, {-1}),
                                            node.reshape(input, {-1}), uint64_t(0), ScatterKind::Replace);
  Value result = node.reshape(flat, sizes);
  if (Value wanted = node.input(2)) {
    Value more = node.make<SubOp>(i64, wanted, sizes), none = node.make<SubOp>(i64, more, more);
    Value amounts = node.make<ConcatOp>(i64, ValueRange{none, more}, uint64_t(0));
    result = node.make<PadOp>(element, result, amounts, Value(), Value(), PadMode::Constant, ArrayAttr());
  }
  return node.result(result);
}

LogicalResult importDet(NodeImport &node) {
  return node.result(node.make<DetOp>(node.elementOf(node.input(0)), node.input(0)));
}
} // namespace

void mlir::transept::addWindowImports(ImportTable &table) {
  table.add("AveragePool", importAveragePool);
  table.add("MaxPool", importMaxPool);
  table.add("LpPool", importLpPool);
  for (StringRef op : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"})
    table.add(op, importGlobalPool);
  table.add("LRN", importLrn);
  table.add("MaxUnpool", importMaxUnpool);
  table.add("Det", importDet);
}
