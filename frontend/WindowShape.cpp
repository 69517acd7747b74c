//===- WindowShape.cpp - kernel, strides, dilations and padding of a node -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/WindowShape.h"

using namespace mlir;
using namespace mlir::transept;

FailureOr<WindowShape> WindowShape::read(NodeImport &node, const SmallVector<int64_t> *kernel) {
  WindowShape shape;
  std::optional<SmallVector<int64_t>> given = node.integers("kernel_shape"), strides = node.integers("strides"),
                                      pads = node.integers("pads"), dilations = node.integers("dilations");
  if (kernel && given && given->size() != kernel->size())
    return node.invalid("has a kernel_shape of " + Twine(given->size()) + " axes, but a weight of " +
                        Twine(kernel->size()));
  if (!kernel && !given)
    return node.invalid("has no kernel_shape");
  shape.kernel = kernel ? *kernel : *given;
  size_t axes = shape.axes();
  std::string autoPad = node.text("auto_pad", "NOTSET");
  if (autoPad == "SAME_UPPER")
    shape.padding = SameUpper;
  else if (autoPad == "SAME_LOWER")
    shape.padding = SameLower;
  else if (autoPad != "NOTSET" && autoPad != "VALID" && !autoPad.empty())
    return node.invalid("has the unknown auto_pad " + quoted(autoPad));
  if (autoPad != "NOTSET" && !autoPad.empty())
    pads.reset();
  auto orElse = [](const std::optional<SmallVector<int64_t>> &values, size_t count, int64_t fallback) {
    return values && !values->empty() ? *values : SmallVector<int64_t>(count, fallback);
  };
  shape.strides = orElse(strides, axes, 1);
  shape.dilations = orElse(dilations, axes, 1);
  shape.pads = orElse(pads, 2 * axes, 0);
  if (shape.strides.size() != axes || shape.dilations.size() != axes || shape.pads.size() != 2 * axes)
    return node.invalid("has strides, dilations or pads for another number of axes than " + Twine(axes));
  constexpr int64_t limit = int64_t(1) << 30; // products of two stay far from overflow
  auto isSize = [](int64_t value) { return value > 0 && value < limit; };
  if (!llvm::all_of(shape.strides, isSize) || !llvm::all_of(shape.dilations, isSize) ||
      !llvm::all_of(shape.kernel, isSize))
    return node.invalid("has a kernel size, stride or dilation that is not positive or too large");
  if (llvm::any_of(shape.pads, [](int64_t value) { return value <= -limit || value >= limit; }))
    return node.invalid("has pads that are too large");
  return shape;
}

namespace {
/// Arithmetic on the sizes of the spatial axes, i64 vectors.
struct Vectors {
  NodeImport &node;

  Value of(ArrayRef<int64_t> values) { return node.constant(values); }
  Value add(Value a, Value b) { return node.make<AddOp>(node.i64(), a, b); }
  Value sub(Value a, Value b) { return node.make<SubOp>(node.i64(), a, b); }
  Value mul(Value a, Value b) { return node.make<MulOp>(node.i64(), a, b); }
  Value div(Value a, Value b) { return node.make<DivOp>(node.i64(), a, b); }
  Value max(Value a, Value b) { return node.make<MaxOp>(node.i64(), a, b); }
  Value min(Value a, Value b) { return node.make<MinOp>(node.i64(), a, b); }
  Value ceilDiv(Value a, ArrayRef<int64_t> divisor) {
    SmallVector<int64_t> more = llvm::map_to_vector(divisor, [](int64_t d) { return d - 1; });
    return div(add(a, of(more)), of(divisor));
  }
};
} // namespace

SpatialPads mlir::transept::padsOf(NodeImport &node, const WindowShape &shape, Value input) {
  Vectors v{node};
  auto axes = static_cast<int64_t>(shape.axes());
  SmallVector<int64_t> reach;
  for (size_t axis = 0; axis < shape.axes(); ++axis)
    reach.push_back(shape.reach(axis));
  SpatialPads pads{v.of(ArrayRef(shape.pads).take_front(axes)), v.of(ArrayRef(shape.pads).drop_front(axes)), {}};
  if (shape.padding == WindowShape::Explicit && !shape.ceil)
    return pads;
  Value sizes = node.sizes(input, -axes), one = v.of({1}), zero = v.of({0}), strides = v.of(shape.strides);
  if (shape.padding != WindowShape::Explicit) {
    // As many windows as a stride divides the axis into.
    Value steps = v.sub(v.ceilDiv(sizes, shape.strides), one);
    Value total = v.max(v.sub(v.add(v.mul(steps, strides), v.of(reach)), sizes), zero);
    Value lower = v.div(total, v.of({2})), upper = v.sub(total, lower);
    bool isUpper = shape.padding == WindowShape::SameUpper;
    return {isUpper ? lower : upper, isUpper ? upper : lower, {}};
  }
  // Steps behind the first window; one that starts behind the elements is left out.
  Value whole = v.add(v.add(sizes, pads.low), pads.high);
  auto atLeastNone = [&](Value count) { return v.max(count, zero); };
  Value steps = v.ceilDiv(atLeastNone(v.sub(whole, v.of(reach))), shape.strides);
  steps = v.min(steps, v.div(atLeastNone(v.sub(v.add(sizes, pads.low), one)), strides));
  pads.behind = v.max(v.sub(v.add(v.mul(steps, strides), v.of(reach)), whole), zero);
  return pads;
}

Value mlir::transept::padSpatial(NodeImport &node, Value input, size_t axes, Value low, Value high, Value fill) {
  Value amounts = node.make<ConcatOp>(node.i64(), ValueRange{low, high}, uint64_t(0));
  SmallVector<int64_t> which;
  for (size_t axis = axes; axis-- > 0;)
    which.push_back(-static_cast<int64_t>(axis) - 1);
  return node.make<PadOp>(node.elementOf(input), input, amounts, fill, node.constant(which), PadMode::Constant,
                          ArrayAttr());
}
