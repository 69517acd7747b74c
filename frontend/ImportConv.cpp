//===- ImportConv.cpp - convolutions ------------------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Sampling.h"
#include "frontend/WindowShape.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
enum class KernelUse {
  Always,      ///< the kernel must be known
  SamePadding, ///< only padding that keeps sizes depends on it
  Never,
};

/// Kernel sizes as the weight [O, C / group, kernel…] has them, else as the attribute says; where neither does and
/// nothing depends on it, 1.
FailureOr<WindowShape> readConv(NodeImport &node, Value input, Value weight, KernelUse use) {
  std::optional<SmallVector<DimAttr>> dims = node.dims(weight);
  if (std::optional<int64_t> rank = node.rank(input); rank && dims && *rank != static_cast<int64_t>(dims->size()))
    return node.invalid("has an input of " + Twine(*rank) + " axes and a weight of " + Twine(dims->size()));
  SmallVector<int64_t> kernel;
  bool known = dims && dims->size() > 2;
  for (size_t axis = 2; known && axis < dims->size(); ++axis) {
    std::optional<int64_t> size = (*dims)[axis] ? constantValue((*dims)[axis]) : std::nullopt;
    known = size && *size > 0;
    kernel.push_back(size.value_or(0));
  }
  if (dims && dims->size() < 3)
    return node.invalid("has a weight of " + Twine(dims->size()) + " axes; a convolution needs 3 or more");
  std::string padding = node.text("auto_pad", "NOTSET");
  bool isExplicit = padding == "NOTSET" || padding == "VALID";
  if (!known && !node.has("kernel_shape")) {
    if (!dims || use == KernelUse::Always || (use == KernelUse::SamePadding && !isExplicit))
      return node.unsupported(node.op() + " with a weight of unknown shape and no kernel_shape");
    kernel.assign(dims->size() - 2, 1);
    known = true;
  }
  return WindowShape::read(node, known ? &kernel : nullptr);
}

Value convolve(NodeImport &node, const WindowShape &shape, Value input, Value weight, Value bias,
               ArrayRef<int64_t> pads, int64_t group) {
  return node.make<ConvOp>(node.elementOf(input), input, weight, bias, shape.strides, pads, shape.dilations,
                           static_cast<uint64_t>(group));
}

LogicalResult importConv(NodeImport &node) {
  return importConvolution(node, node.input(0), node.input(1), node.input(2),
                           [&](Value result) { return node.result(result); });
}

//===- Transposed convolution
//---------------------------------------------------------------------------------------===//

/// The elements of the spatial axes with `strides[i] - 1` zeros behind each.
Value spread(NodeImport &node, Value input, ArrayRef<int64_t> strides) {
  if (llvm::all_of(strides, [](int64_t stride) { return stride == 1; }))
    return input;
  Type element = node.elementOf(input), i64 = node.i64();
  SmallVector<int64_t> inserted, amounts(strides.size(), 0);
  for (auto [axis, stride] : llvm::enumerate(strides)) {
    inserted.push_back(static_cast<int64_t>(2 * axis + 3));
    amounts.push_back(stride - 1);
  }
  Value apart = node.make<UnsqueezeOp>(element, input, Value(), node.builder.getDenseI64ArrayAttr(inserted));
  apart = node.make<PadOp>(element, apart, node.constant(amounts), Value(), node.constant(inserted), PadMode::Constant,
                           ArrayAttr());
  Value sizes = node.make<MulOp>(i64, node.sizes(input, 2), node.constant(strides));
  return node.reshape(apart, node.make<ConcatOp>(i64, ValueRange{node.sizes(input, 0, 2), sizes}, uint64_t(0)));
}

/// A weight [C, O / group, kernel…] as that of the convolution which computes the same: [O, C / group, kernel…], every
/// kernel axis reversed.
Value transposedWeight(NodeImport &node, Value weight, size_t axes, int64_t group) {
  Type element = node.elementOf(weight), i64 = node.i64();
  SmallVector<int64_t> which, firsts(axes, -1), ends(axes, INT64_MIN), steps(axes, -1);
  for (size_t axis = 0; axis < axes; ++axis)
    which.push_back(static_cast<int64_t>(axis) + 2);
  weight = node.make<SliceOp>(element, weight, node.constant(firsts), node.constant(ends), node.constant(which),
                              node.constant(steps), ArrayAttr(), DenseI64ArrayAttr());
  auto joined = [&](ArrayRef<Value> parts) { return node.make<ConcatOp>(i64, ValueRange(parts), uint64_t(0)); };
  Value groups = node.constant({group}), rest = node.constant({-1});
  weight = node.reshape(weight, joined({groups, rest, node.sizes(weight, 1)}));
  SmallVector<int64_t> order = {0, 2, 1};
  for (size_t axis = 0; axis < axes; ++axis)
    order.push_back(static_cast<int64_t>(axis) + 3);
  weight = node.transpose(weight, order);
  Value outputs = node.make<MulOp>(i64, node.sizes(weight, 1, 2), groups);
  return node.reshape(weight, joined({outputs, node.sizes(weight, 2)}));
}

/// What is cut off at both ends of the full result, i64 vectors; `full` are its sizes.
std::pair<Value, Value> cuts(NodeImport &node, const WindowShape &shape, Value full, Value input) {
  Type i64 = node.i64();
  std::optional<SmallVector<int64_t>> wanted = node.integers("output_shape");
  size_t axes = shape.axes();
  Value sizes;
  if (wanted && wanted->size() >= axes)
    sizes = node.constant(ArrayRef(*wanted).take_back(axes));
  else if (shape.padding != WindowShape::Explicit)
    sizes = node.make<MulOp>(i64, node.sizes(input, 2), node.constant(shape.strides));
  else
    return {node.constant(ArrayRef(shape.pads).take_front(axes)), node.constant(ArrayRef(shape.pads).drop_front(axes))};
  // Halves of what is too much; what is missing comes behind.
  Value more = node.make<SubOp>(i64, full, sizes), total = node.make<MaxOp>(i64, more, node.constant({0}));
  Value half = node.make<DivOp>(i64, total, node.constant({2})), other = node.make<SubOp>(i64, total, half);
  Value low = shape.padding == WindowShape::SameUpper ? half : other;
  return {low, node.make<SubOp>(i64, more, low)};
}

/// The input with zeros between its elements, convolved with the reversed kernel.
LogicalResult importConvTranspose(NodeImport &node) {
  Value input = node.input(0), weight = node.input(1);
  FailureOr<WindowShape> shape = readConv(node, input, weight, KernelUse::Never);
  int64_t group = node.integer("group", 1);
  std::optional<SmallVector<int64_t>> more = node.integers("output_padding");
  if (failed(shape))
    return failure();
  size_t axes = shape->axes();
  if (group < 1)
    return node.invalid("has group " + Twine(group));
  if (more && more->size() != axes)
    return node.invalid("has output_padding for " + Twine(more->size()) + " axes instead of " + Twine(axes));
  // In front of the first element the kernel reaches over nothing but it, and likewise behind the last one, where zeros
  // have been put already.
  Type i64 = node.i64();
  auto add = [&](Value a, Value b) { return node.make<AddOp>(i64, a, b); };
  auto sub = [&](Value a, Value b) { return node.make<SubOp>(i64, a, b); };
  Value one = node.constant({1}), kernel = node.sizes(weight, 2);
  Value front = node.make<MulOp>(i64, sub(kernel, one), node.constant(shape->dilations));
  Value behind = sub(add(front, one), node.constant(shape->strides));
  if (more)
    behind = add(behind, node.constant(*more));
  Value all = spread(node, input, shape->strides);
  Value full = add(node.sizes(all, 2), behind);
  auto [low, high] = cuts(node, *shape, full, input);
  all = padSpatial(node, all, axes, sub(front, low), sub(behind, high));
  WindowShape steps = *shape;
  steps.strides.assign(axes, 1);
  return node.result(convolve(node, steps, all, transposedWeight(node, weight, axes, group), node.input(2),
                              SmallVector<int64_t>(2 * axes, 0), group));
}

//===- Windows back to images
//---------------------------------------------------------------------------------------===//

/// Adds up the elements of [N, C * kernel, windows] where they come from in [N, C, image…].
LogicalResult importCol2Im(NodeImport &node) {
  Value input = node.input(0), image = node.castTo(node.input(1), node.i64()),
        block = node.castTo(node.input(2), node.i64());
  Type element = node.elementOf(input), i64 = node.i64();
  // How many axes there are, the vectors say.
  std::optional<SmallVector<DimAttr>> dims = node.dims(block);
  std::optional<int64_t> axes = dims && dims->size() == 1 && (*dims)[0] ? constantValue((*dims)[0]) : std::nullopt;
  if (!axes || *axes < 1)
    return node.unsupported("Col2Im with a block_shape of unknown length");
  SmallVector<int64_t> unknown(static_cast<size_t>(*axes), 1);
  FailureOr<WindowShape> shape = WindowShape::read(node, &unknown);
  if (failed(shape))
    return failure();
  auto add = [&](Value a, Value b) { return node.make<AddOp>(i64, a, b); };
  auto sub = [&](Value a, Value b) { return node.make<SubOp>(i64, a, b); };
  auto mul = [&](Value a, Value b) { return node.make<MulOp>(i64, a, b); };
  auto div = [&](Value a, Value b) { return node.make<DivOp>(i64, a, b); };
  auto mod = [&](Value a, Value b) { return node.make<ModOp>(i64, a, b, int64_t(0)); };
  auto joined = [&](ArrayRef<Value> parts) { return node.make<ConcatOp>(i64, ValueRange(parts), uint64_t(0)); };
  auto product = [&](Value sizes) { return node.reduce(sizes, ReduceKind::Prod, {0}, /*keepdims=*/true); };
  auto count = [&](Value limit) {
    limit = node.reshape(limit, ArrayRef<int64_t>{});
    return node.make<RangeOp>(i64, node.scalar(int64_t(0)), limit, node.scalar(int64_t(1)), DimAttr(), IntegerAttr());
  };
  auto at = [&](Value vector, int64_t axis) {
    return node.slice(vector, node.constant({axis}), node.constant({axis + 1}), 0);
  };
  // The padded image, and how many windows it has.
  Value low = node.constant(ArrayRef(shape->pads).take_front(*axes)),
        high = node.constant(ArrayRef(shape->pads).drop_front(*axes));
  Value padded = add(add(image, low), high), one = node.constant({1});
  Value reach = add(mul(sub(block, one), node.constant(shape->dilations)), one);
  Value windows = add(div(sub(padded, reach), node.constant(shape->strides)), one);
  // For every element of a window, then every window: its place in the padded image.
  Value elements = product(block), places = product(windows);
  Value element0 = node.reshape(count(elements), {-1, 1}), window0 = count(places), table;
  Value restOfElement = element0, restOfWindow = window0, stride = one;
  for (int64_t axis = *axes; axis-- > 0;) {
    Value inside = mul(mod(restOfElement, at(block, axis)), node.constant({shape->dilations[axis]}));
    Value start = mul(mod(restOfWindow, at(windows, axis)), node.constant({shape->strides[axis]}));
    Value part = mul(add(inside, start), stride);
    table = table ? add(table, part) : part;
    restOfElement = div(restOfElement, at(block, axis));
    restOfWindow = div(restOfWindow, at(windows, axis));
    stride = mul(stride, at(padded, axis));
  }
  Value batch = node.sizes(input, 0, 1), total = mul(elements, places);
  Value values = node.reshape(input, joined({batch, node.constant({-1}), total}));
  Value leading = node.sizes(values, 0, 2);
  auto zero = HostTensor::make(RankedTensorType::get({}, element)).toElements();
  Value flat = node.make<FillOp>(element, joined({leading, product(padded)}), zero);
  Value indices = node.make<BroadcastOp>(i64, node.reshape(table, {-1}), node.sizes(values));
  flat = node.make<ScatterElementsOp>(element, flat, indices, values, static_cast<uint64_t>(-1), ScatterKind::Add);
  Value result = node.reshape(flat, joined({leading, padded}));
  Value none = node.constant(SmallVector<int64_t>(static_cast<size_t>(*axes), 0));
  return node.result(padSpatial(node, result, static_cast<size_t>(*axes), sub(none, low), sub(none, high)));
}

//===- Deformable convolution
//---------------------------------------------------------------------------------------===//

/// Samples the windows at shifted positions, then multiplies with the weight.
class DeformConv {
public:
  explicit DeformConv(NodeImport &node) : node(node), element(node.elementOf(node.input(0))) {}

  LogicalResult run() {
    Value input = node.input(0), weight = node.input(1), offset = node.input(2), bias = node.input(3),
          mask = node.input(4);
    FailureOr<WindowShape> read = readConv(node, input, weight, KernelUse::Always);
    int64_t group = node.integer("group", 1), offsetGroup = node.integer("offset_group", 1);
    if (failed(read))
      return failure();
    if (group < 1 || offsetGroup < 1)
      return node.invalid("has group " + Twine(group) + " and offset_group " + Twine(offsetGroup));
    shape = *read;
    auto axes = static_cast<int64_t>(shape.axes());
    for (int64_t size : shape.kernel)
      if (llvm::MulOverflow(taps, size, taps))
        return node.invalid("has a kernel that is too large");
    // [N, offset groups, taps, axes, out…]; groups go to the batch.
    Value out = node.sizes(offset, 2);
    Value shifts = node.castTo(node.reshape(offset, sized({node.constant({-1, taps, axes}), out})), element);
    SmallVector<Value> positions;
    for (int64_t axis = 0; axis < axes; ++axis) {
      Value shift = node.make<GatherOp>(element, shifts, node.scalar(axis), uint64_t(2)); // [N * G, taps, out…]
      positions.push_back(node.make<AddOp>(element, shift, regular(axis, out)));
    }
    Value groups = node.constant({offsetGroup}), batch = node.sizes(input, 0, 1);
    Value images = node.reshape(
        input, sized({node.make<MulOp>(node.i64(), batch, groups), node.constant({-1}), node.sizes(input, 2)}));
    // [N * G, C / G, taps, out…]
    Value sampled = sampleLinear(node, images, positions, SampleEdge::Zero);
    if (mask) {
      Value factors = node.reshape(mask, sized({node.constant({-1, 1, taps}), out}));
      sampled = node.make<MulOp>(element, sampled, factors);
    }
    return node.result(multiply(sampled, weight, bias, batch, out, group));
  }

private:
  Value sized(ArrayRef<Value> parts) { return node.make<ConcatOp>(node.i64(), ValueRange(parts), uint64_t(0)); }

  /// Where a window reads along `axis` without shifts: [taps, 1… out_axis … 1].
  Value regular(int64_t axis, Value out) {
    auto axes = static_cast<int64_t>(shape.axes());
    SmallVector<int64_t> inside, taps1(static_cast<size_t>(axes) + 1, 1), outShape(static_cast<size_t>(axes), 1);
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t rest = tap;
      for (int64_t other = axes; --other > axis;)
        rest /= shape.kernel[other];
      inside.push_back(rest % shape.kernel[axis] * shape.dilations[axis] - shape.pads[axis]);
    }
    taps1[0] = -1;
    outShape[axis] = -1;
    Value count = node.make<GatherOp>(node.i64(), out, node.scalar(axis), uint64_t(0));
    Value steps = node.make<RangeOp>(node.i64(), node.scalar(int64_t(0)), count, node.scalar(int64_t(1)), DimAttr(),
                                     IntegerAttr());
    steps = node.make<MulOp>(node.i64(), steps, node.scalar(shape.strides[axis]));
    Value all = node.make<AddOp>(node.i64(), node.reshape(node.constant(inside), taps1), node.reshape(steps, outShape));
    return node.castTo(all, element);
  }

  /// columns [N * G, C / G, taps, out…] times weight [O, C / group, kernel…].
  Value multiply(Value columns, Value weight, Value bias, Value batch, Value out, int64_t group) {
    Type i64 = node.i64();
    Value outputs = node.sizes(weight, 0, 1), groups = node.constant({group}), rest = node.constant({-1});
    Value points = node.reduce(out, ReduceKind::Prod, {0}, /*keepdims=*/true);
    columns = node.reshape(columns, sized({batch, groups, rest, points}));
    Value perGroup = node.make<DivOp>(i64, outputs, groups);
    Value rows = node.reshape(weight, sized({groups, perGroup, rest}));
    Value product = node.make<MatMulOp>(element, rows, columns); // [N, group, O / group, points]
    product = node.reshape(product, sized({batch, outputs, out}));
    if (!bias)
      return product;
    SmallVector<int64_t> channels(shape.axes() + 1, 1);
    channels[0] = -1;
    return node.make<AddOp>(element, product, node.reshape(bias, channels));
  }

  NodeImport &node;
  Type element;
  WindowShape shape;
  int64_t taps = 1;
};
LogicalResult importDeformConv(NodeImport &node) { return DeformConv(node).run(); }
} // namespace

LogicalResult mlir::transept::importConvolution(NodeImport &node, Value input, Value weight, Value bias,
                                                llvm::function_ref<LogicalResult(Value)> finish) {
  FailureOr<WindowShape> shape = readConv(node, input, weight, KernelUse::SamePadding);
  int64_t group = node.integer("group", 1);
  if (failed(shape))
    return failure();
  if (group < 1)
    return node.invalid("has group " + Twine(group));
  SmallVector<int64_t> pads = shape->pads;
  if (shape->padding != WindowShape::Explicit || llvm::any_of(pads, [](int64_t amount) { return amount < 0; })) {
    SpatialPads amounts = padsOf(node, *shape, input);
    input = padSpatial(node, input, shape->axes(), amounts.low, amounts.high);
    pads.assign(pads.size(), 0);
  }
  return finish(convolve(node, *shape, input, weight, bias, pads, group));
}

void mlir::transept::addConvImports(ImportTable &table) {
  table.add("Conv", importConv);
  table.add("ConvTranspose", importConvTranspose);
  table.add("Col2Im", importCol2Im);
  table.add("DeformConv", importDeformConv);
}
