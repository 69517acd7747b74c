//===- ImportResize.cpp - Resize and Upsample ---------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interpolation goes axis by axis: a result is the weighted sum of gathered slices. Which slices and weights is
// arithmetic on the sizes, in double precision, which folds where the sizes are constant.

#include "frontend/NodeImport.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {
/// x as p / q with a small q, exactly.
std::optional<std::pair<int64_t, int64_t>> asFraction(double x) {
  for (int64_t q = 1; q <= 1000; ++q) {
    double p = std::round(x * static_cast<double>(q));
    if (p >= 1 && p < 1e9 && static_cast<float>(p / static_cast<double>(q)) == static_cast<float>(x))
      return std::pair(static_cast<int64_t>(p), q);
  }
  return std::nullopt;
}

class Resize {
public:
  explicit Resize(NodeImport &node) : node(node), f64(node.builder.getF64Type()), i64(node.i64()) {}
  LogicalResult run();

private:
  /// One axis to resize; all values are scalars.
  struct Axis {
    int64_t axis;
    Value in, out; // sizes, i64
    Value scale;   // f64
    std::optional<double> knownScale;
    size_t place; // among the given axes
  };

  LogicalResult readAttributes();
  LogicalResult readAxes();
  LogicalResult readScales(Value scales);
  LogicalResult readSizes(Value sizes);

  Value resize(Value input, const Axis &axis);
  Value position(const Axis &axis);
  Value roi(const Axis &axis, bool end) {
    Value all = node.castTo(node.input(1), f64);
    int64_t at = static_cast<int64_t>(axis.place + (end ? axes.size() : 0));
    return node.make<GatherOp>(f64, all, node.scalar(at), uint64_t(0));
  }
  Value nearest(Value x);
  std::pair<Value, Value> taps(Value x, const Axis &axis);
  Value cubic(Value distance);

  Value number(double value) { return node.scalar(f64, value); }
  Value add(Value a, Value b) { return node.make<AddOp>(node.elementOf(a), a, b); }
  Value sub(Value a, Value b) { return node.make<SubOp>(node.elementOf(a), a, b); }
  Value mul(Value a, Value b) { return node.make<MulOp>(node.elementOf(a), a, b); }
  Value div(Value a, Value b) { return node.make<DivOp>(node.elementOf(a), a, b); }
  Value floor(Value x) { return node.make<FloorOp>(f64, x); }
  Value pick(Value condition, Value a, Value b) { return node.make<WhereOp>(node.elementOf(a), condition, a, b); }
  Value less(Value a, Value b) { return node.make<LessOp>(node.i1(), a, b); }
  Value equal(Value a, Value b) { return node.make<EqualOp>(node.i1(), a, b); }

  NodeImport &node;
  Type f64, i64;
  std::string mode, transform, nearestMode, policy;
  bool antialias = false, excludesOutside = false;
  double cubicA = -0.75, extrapolation = 0;
  int64_t rank = 0;
  SmallVector<Axis> axes;
};

LogicalResult Resize::readAttributes() {
  mode = node.text("mode", "nearest");
  if (node.op() == "Upsample" || node.version < 11) {
    transform = "asymmetric";
    nearestMode = "floor";
    return success();
  }
  transform = node.text("coordinate_transformation_mode", "half_pixel");
  nearestMode = node.text("nearest_mode", "round_prefer_floor");
  policy = node.text("keep_aspect_ratio_policy", "stretch");
  antialias = node.integer("antialias", 0) != 0;
  excludesOutside = node.integer("exclude_outside", 0) != 0;
  cubicA = node.real("cubic_coeff_a", -0.75f);
  extrapolation = node.real("extrapolation_value", 0.0f);
  static constexpr StringLiteral transforms[] = {"half_pixel",          "half_pixel_symmetric", "pytorch_half_pixel",
                                                 "align_corners",       "asymmetric",           "tf_crop_and_resize",
                                                 "tf_half_pixel_for_nn"};
  static constexpr StringLiteral roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  static constexpr StringLiteral policies[] = {"stretch", "not_larger", "not_smaller"};
  if (!llvm::is_contained(transforms, transform))
    return node.invalid("has the unknown coordinate_transformation_mode " + quoted(transform));
  if (!llvm::is_contained(roundings, nearestMode))
    return node.invalid("has the unknown nearest_mode " + quoted(nearestMode));
  if (!llvm::is_contained(policies, policy))
    return node.invalid("has the unknown keep_aspect_ratio_policy " + quoted(policy));
  return success();
}

LogicalResult Resize::readAxes() {
  std::optional<int64_t> known = node.rank(node.input(0));
  if (!known)
    return node.unsupported(node.op() + " of an input of unknown rank");
  rank = *known;
  SmallVector<int64_t> named = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (std::optional<SmallVector<int64_t>> given = node.integers("axes"); given && !given->empty())
    named = *given;
  for (auto [place, axis] : llvm::enumerate(named)) {
    int64_t normal = axis < 0 ? axis + rank : axis;
    if (normal < 0 || normal >= rank || llvm::any_of(axes, [&](const Axis &other) { return other.axis == normal; }))
      return node.invalid("has axes that do not exist or are named twice");
    Value in = node.sizes(node.input(0), normal, normal + 1);
    axes.push_back({normal, node.reshape(in, ArrayRef<int64_t>{}), {}, {}, {}, place});
  }
  return success();
}

/// The result has floor(size * scale) elements.
LogicalResult Resize::readScales(Value scales) {
  std::optional<SmallVector<double>> known = node.constantReals(scales);
  if (known && known->size() != axes.size())
    return node.invalid("has " + Twine(known->size()) + " scales for " + Twine(axes.size()) + " axes");
  for (Axis &axis : axes) {
    Value scale =
        node.make<GatherOp>(node.elementOf(scales), scales, node.scalar(static_cast<int64_t>(axis.place)), uint64_t(0));
    axis.scale = node.castTo(scale, f64);
    axis.out = node.castTo(floor(mul(node.castTo(axis.in, f64), axis.scale)), i64);
    if (!known)
      continue;
    axis.knownScale = (*known)[axis.place];
    if (!(*axis.knownScale > 0) || !std::isfinite(*axis.knownScale))
      return node.invalid("has a scale that is not positive");
    // An integer expression says the size for every size of the input.
    if (auto fraction = asFraction(*axis.knownScale))
      axis.out = div(mul(axis.in, node.scalar(fraction->first)), node.scalar(fraction->second));
  }
  return success();
}

LogicalResult Resize::readSizes(Value sizes) {
  for (Axis &axis : axes) {
    axis.out = node.make<GatherOp>(i64, sizes, node.scalar(static_cast<int64_t>(axis.place)), uint64_t(0));
    axis.scale = div(node.castTo(axis.out, f64), node.castTo(axis.in, f64));
    std::optional<SmallVector<int64_t>> wanted = node.constantIntegers(sizes);
    std::optional<SmallVector<DimAttr>> dims = node.dims(node.input(0));
    std::optional<int64_t> in = dims && (*dims)[axis.axis] ? constantValue((*dims)[axis.axis]) : std::nullopt;
    if (wanted && wanted->size() == axes.size() && in && *in > 0)
      axis.knownScale = static_cast<double>((*wanted)[axis.place]) / static_cast<double>(*in);
  }
  if (policy == "stretch")
    return success();
  // One scale for all axes, the smallest or the largest; sizes are rounded.
  Value common = axes.front().scale;
  std::optional<double> known = axes.front().knownScale;
  bool smaller = policy == "not_larger";
  for (const Axis &axis : ArrayRef(axes).drop_front()) {
    common = smaller ? node.make<MinOp>(f64, common, axis.scale) : node.make<MaxOp>(f64, common, axis.scale);
    if (known && axis.knownScale)
      known = smaller ? std::min(*known, *axis.knownScale) : std::max(*known, *axis.knownScale);
    else
      known.reset();
  }
  for (Axis &axis : axes) {
    axis.scale = common;
    axis.knownScale = known;
    axis.out = node.castTo(floor(add(mul(node.castTo(axis.in, f64), common), number(0.5))), i64);
  }
  return success();
}

/// Where each element of the result lies in the input, f64 [out].
Value Resize::position(const Axis &axis) {
  Value in = node.castTo(axis.in, f64), one = number(1), half = number(0.5);
  Value x = node.castTo(
      node.make<RangeOp>(i64, node.scalar(int64_t(0)), axis.out, node.scalar(int64_t(1)), DimAttr(), IntegerAttr()),
      f64);
  Value length = mul(axis.scale, in); // of the result, not rounded
  Value isPoint = equal(length, one), most = sub(in, one), rest = pick(isPoint, one, sub(length, one));
  auto centred = [&](Value of) { return sub(div(add(of, half), axis.scale), half); };
  if (transform == "asymmetric")
    return div(x, axis.scale);
  if (transform == "tf_half_pixel_for_nn")
    return div(add(x, half), axis.scale);
  if (transform == "align_corners")
    return pick(isPoint, number(0), div(mul(x, most), rest));
  if (transform == "pytorch_half_pixel")
    return pick(isPoint, number(-0.5), centred(x));
  if (transform == "half_pixel_symmetric") {
    Value adjustment = div(node.castTo(axis.out, f64), length);
    return add(mul(div(in, number(2)), sub(one, adjustment)), centred(x));
  }
  if (transform == "tf_crop_and_resize") {
    Value start = roi(axis, false), extent = sub(roi(axis, true), start);
    Value spread = div(mul(mul(x, extent), most), rest), middle = div(mul(extent, most), number(2));
    return add(pick(isPoint, middle, spread), mul(start, most));
  }
  return centred(x);
}

Value Resize::nearest(Value x) {
  if (nearestMode == "floor")
    return floor(x);
  if (nearestMode == "ceil")
    return node.make<CeilOp>(f64, x);
  if (nearestMode == "round_prefer_ceil")
    return floor(add(x, number(0.5)));
  return node.make<CeilOp>(f64, sub(x, number(0.5)));
}

/// Cubic convolution at a distance.
Value Resize::cubic(Value distance) {
  Value x = node.make<AbsOp>(f64, distance);
  auto polynomial = [&](ArrayRef<double> coefficients) {
    Value value = number(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      value = add(mul(value, x), number(coefficient));
    return value;
  };
  double a = cubicA;
  Value near = polynomial({a + 2, -(a + 3), 0, 1}), far = polynomial({a, -5 * a, 8 * a, -4 * a});
  Value isNear = node.make<LessOrEqualOp>(node.i1(), x, number(1));
  return pick(isNear, near, pick(less(x, number(2)), far, number(0)));
}

/// Indices and weights [out, taps] of the elements around each position. Antialiasing widens the kernel where the image
/// becomes smaller, so that how many there are depends on the scale.
std::pair<Value, Value> Resize::taps(Value x, const Axis &axis) {
  Value whole = node.make<FloorOp>(f64, x), scale = number(1);
  if (antialias)
    scale = node.make<MinOp>(f64, axis.scale, number(1));
  bool isCubic = mode == "cubic";
  Value one = node.scalar(int64_t(1)), two = node.scalar(int64_t(2));
  double reach = isCubic ? -2 : -1;
  Value first;
  if (std::optional<double> known = antialias ? axis.knownScale : 1.0)
    first = node.scalar(static_cast<int64_t>(std::floor(reach / std::min(*known, 1.0))) + 1);
  else
    first = add(node.castTo(floor(div(number(reach), scale)), i64), one);
  Value offsets = node.make<RangeOp>(i64, first, sub(two, first), one, DimAttr(), IntegerAttr());
  auto column = [&](Value of) { return node.reshape(of, {-1, 1}); };
  Value index = add(column(node.castTo(whole, i64)), offsets);
  Value distance = mul(sub(node.castTo(offsets, f64), column(sub(x, whole))), scale);
  Value weight =
      isCubic ? cubic(distance) : node.make<MaxOp>(f64, sub(number(1), node.make<AbsOp>(f64, distance)), number(0));
  if (excludesOutside) {
    Value last = sub(axis.in, one);
    Value outside = node.make<OrOp>(node.i1(), less(index, node.scalar(int64_t(0))), less(last, index));
    weight = pick(outside, number(0), weight);
  }
  if (antialias || excludesOutside)
    weight = div(weight, node.reduce(weight, ReduceKind::Sum, {1}, /*keepdims=*/true));
  return {index, weight};
}

Value Resize::resize(Value input, const Axis &axis) {
  Value x = position(axis), last = sub(axis.in, node.scalar(int64_t(1)));
  Type element = node.elementOf(input);
  auto slices = [&](Value index) {
    index = node.make<MinOp>(i64, node.make<MaxOp>(i64, index, node.scalar(int64_t(0))), last);
    return node.make<GatherOp>(element, input, index, static_cast<uint64_t>(axis.axis));
  };
  SmallVector<int64_t> behind(static_cast<size_t>(rank - axis.axis - 1), 1); // axes of size 1 for those that follow
  Value result;
  if (mode == "nearest") {
    result = slices(node.castTo(nearest(x), i64));
  } else {
    auto [index, weight] = taps(x, axis);
    Value sizes[] = {node.sizes(weight), node.constant(behind)};
    Value factors = node.reshape(weight, node.make<ConcatOp>(i64, ValueRange(sizes), uint64_t(0)));
    Value terms = mul(slices(index), node.castTo(factors, element));
    result = node.reduce(terms, ReduceKind::Sum, {axis.axis + 1}, /*keepdims=*/false);
  }
  if (transform != "tf_crop_and_resize")
    return result;
  Value outside = node.make<OrOp>(node.i1(), less(x, number(0)), less(node.castTo(last, f64), x));
  behind.insert(behind.begin(), -1);
  return pick(node.reshape(outside, behind), node.scalar(element, extrapolation), result);
}

LogicalResult Resize::run() {
  if (failed(readAttributes()) || failed(readAxes()))
    return failure();
  if (mode == "bilinear" || mode == "linear")
    mode = "linear";
  else if (mode != "nearest" && mode != "cubic")
    return node.invalid("has the unknown mode " + quoted(mode));
  Value input = node.input(0), scales, sizes;
  if (node.op() == "Upsample" && node.version < 9) {
    std::optional<SmallVector<float>> given = node.reals("scales");
    if (!given)
      return node.invalid("has no scales");
    auto type = RankedTensorType::get({static_cast<int64_t>(given->size())}, node.builder.getF32Type());
    scales = node.builder.create<ConstantOp>(node.loc, type, DenseElementsAttr::get(type, ArrayRef<float>(*given)));
  } else if (node.op() == "Upsample" || node.version < 11) {
    scales = node.input(1);
  } else {
    scales = node.input(2);
    sizes = node.input(3);
    // An empty tensor stands for an absent input.
    if (std::optional<SmallVector<DimAttr>> dims = scales ? node.dims(scales) : std::nullopt)
      if (dims->size() == 1 && (*dims)[0] && constantValue((*dims)[0]) == 0)
        scales = {};
  }
  if (!scales == !sizes)
    return node.invalid("needs either scales or sizes");
  if (failed(scales ? readScales(scales) : readSizes(sizes)))
    return failure();
  if (transform == "tf_crop_and_resize" && !node.input(1))
    return node.invalid("has no roi");
  if (antialias && mode == "nearest")
    return node.invalid("has antialias with mode 'nearest'");
  // Numbers between elements are computed in floats, and rounded towards zero into integers.
  Type element = node.elementOf(input);
  Value result = input;
  if (mode != "nearest" && !isa<FloatType>(element))
    result = node.castTo(result, node.builder.getF32Type());
  for (const Axis &axis : axes) {
    if (axis.knownScale == 1.0 && transform != "tf_crop_and_resize")
      continue;
    result = resize(result, axis);
  }
  return node.result(node.castTo(result, element));
}

LogicalResult importResize(NodeImport &node) { return Resize(node).run(); }
} // namespace

void mlir::transept::addResizeImports(ImportTable &table) {
  table.add("Resize", importResize);
  table.add("Upsample", importResize);
}
