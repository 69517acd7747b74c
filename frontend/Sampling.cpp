//===- Sampling.cpp - elements between the elements of images -----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Sampling.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
/// Arithmetic on tensors of one element type.
struct Numbers {
  NodeImport &node;
  Type type;

  Numbers(NodeImport &node, Value like) : node(node), type(node.elementOf(like)) {}
  Value of(double value) { return node.scalar(type, value); }
  Value add(Value a, Value b) { return node.make<AddOp>(type, a, b); }
  Value sub(Value a, Value b) { return node.make<SubOp>(type, a, b); }
  Value mul(Value a, Value b) { return node.make<MulOp>(type, a, b); }
  Value div(Value a, Value b) { return node.make<DivOp>(type, a, b); }
  Value clamp(Value x, Value low, Value high) { return node.make<MinOp>(type, node.make<MaxOp>(type, x, low), high); }
};

/// min + r after an even number of reflections, max - r after an odd one.
Value reflect(NodeImport &node, Value position, Value low, Value high) {
  Numbers n(node, position);
  Value range = n.sub(high, low), distance = node.make<AbsOp>(n.type, n.sub(position, low));
  // A single element mirrored at its centre: everything is that element.
  Value isPoint = node.make<LessOrEqualOp>(node.i1(), range, n.of(0));
  Value safe = node.make<WhereOp>(n.type, isPoint, n.of(1), range);
  Value times = node.make<FloorOp>(n.type, n.div(distance, safe)), rest = n.sub(distance, n.mul(times, safe));
  Value half = n.mul(times, n.of(0.5));
  Value isEven = node.make<EqualOp>(node.i1(), half, node.make<FloorOp>(n.type, half));
  Value inside = node.make<WhereOp>(n.type, isEven, n.add(low, rest), n.sub(high, rest));
  return node.make<WhereOp>(n.type, isPoint, low, inside);
}

/// The neighbour at a whole position.
SampleTap tapAt(NodeImport &node, Value whole, Value size, SampleEdge edge, Value weight) {
  SampleTap tap{{}, {}, weight};
  if (edge != SampleEdge::Zero)
    whole = insidePosition(node, whole, size, edge);
  Numbers i(node, size);
  // Far away positions saturate, so that the largest index is no overflow away.
  Value index = node.castTo(whole, i.type), last = i.sub(size, i.of(1));
  if (edge == SampleEdge::Zero) {
    Value isLow = node.make<LessOp>(node.i1(), index, i.of(0)), isHigh = node.make<LessOp>(node.i1(), last, index);
    tap.inside = node.make<NotOp>(node.i1(), node.make<OrOp>(node.i1(), isLow, isHigh));
  }
  tap.index = i.clamp(index, i.of(0), last);
  return tap;
}
} // namespace

Value mlir::transept::insidePosition(NodeImport &node, Value position, Value size, SampleEdge edge) {
  Numbers n(node, position);
  Value count = node.castTo(size, n.type), last = n.sub(count, n.of(1));
  switch (edge) {
  case SampleEdge::Zero:
    return position;
  case SampleEdge::Border:
    return n.clamp(position, n.of(0), last);
  case SampleEdge::Reflect:
    return reflect(node, position, n.of(-0.5), n.sub(count, n.of(0.5)));
  case SampleEdge::ReflectCentre:
    return reflect(node, position, n.of(0), last);
  }
  return position;
}

SmallVector<SampleTap> mlir::transept::nearestTap(NodeImport &node, Value position, Value size, SampleEdge edge) {
  return {tapAt(node, node.make<RoundOp>(node.elementOf(position), position), size, edge, {})};
}

SmallVector<SampleTap> mlir::transept::linearTaps(NodeImport &node, Value position, Value size, SampleEdge edge) {
  Numbers n(node, position);
  Value whole = node.make<FloorOp>(n.type, position), rest = n.sub(position, whole);
  return {tapAt(node, whole, size, edge, n.sub(n.of(1), rest)), tapAt(node, n.add(whole, n.of(1)), size, edge, rest)};
}

/// Keys' cubic convolution with a = -0.75.
SmallVector<SampleTap> mlir::transept::cubicTaps(NodeImport &node, Value position, Value size, SampleEdge edge) {
  constexpr double a = -0.75;
  Numbers n(node, position);
  Value whole = node.make<FloorOp>(n.type, position), rest = n.sub(position, whole);
  auto polynomial = [&](Value x, std::array<double, 4> coefficients) {
    Value value = n.of(coefficients[0]);
    for (double coefficient : ArrayRef(coefficients).drop_front())
      value = n.add(n.mul(value, x), n.of(coefficient));
    return value;
  };
  auto near = [&](Value x) { return polynomial(x, {a + 2, -(a + 3), 0, 1}); };
  auto far = [&](Value x) { return polynomial(x, {a, -5 * a, 8 * a, -4 * a}); };
  Value one = n.of(1), other = n.sub(one, rest);
  Value weights[] = {far(n.add(rest, one)), near(rest), near(other), far(n.add(other, one))};
  SmallVector<SampleTap> taps;
  for (auto [i, weight] : llvm::enumerate(weights))
    taps.push_back(tapAt(node, n.add(whole, n.of(static_cast<double>(i) - 1)), size, edge, weight));
  return taps;
}

Value mlir::transept::pickPoints(NodeImport &node, Value images, ArrayRef<Value> indices) {
  Type element = node.elementOf(images), i64 = node.i64();
  Value place;
  for (auto [axis, index] : llvm::enumerate(indices)) {
    auto at = static_cast<int64_t>(axis) + 2;
    Value size = node.sizes(images, at, at + 1);
    place = place ? node.make<AddOp>(i64, node.make<MulOp>(i64, place, size), index) : index;
  }
  auto joined = [&](Value first, Value second) {
    return node.make<ConcatOp>(i64, ValueRange{first, second}, uint64_t(0));
  };
  Value shape = node.sizes(place, 1), leading = node.sizes(images, 0, 2);
  Value flatImages = node.reshape(images, {0, 0, -1}), flatPlaces = node.reshape(place, {0, 1, -1});
  flatPlaces = node.make<BroadcastOp>(i64, flatPlaces, joined(leading, node.sizes(flatPlaces, 2)));
  Value picked = node.make<GatherElementsOp>(element, flatImages, flatPlaces, static_cast<uint64_t>(-1));
  return node.reshape(picked, joined(leading, shape));
}

Value mlir::transept::combineTaps(NodeImport &node, Value images, ArrayRef<SmallVector<SampleTap>> taps,
                                  bool takesMaximum) {
  Type element = node.elementOf(images);
  size_t combinations = 1;
  for (const SmallVector<SampleTap> &axis : taps)
    combinations *= axis.size();
  Value result;
  for (size_t number = 0; number < combinations; ++number) {
    SmallVector<Value> indices;
    Value inside, weight;
    size_t rest = number;
    for (const SmallVector<SampleTap> &axis : taps) {
      const SampleTap &tap = axis[rest % axis.size()];
      rest /= axis.size();
      indices.push_back(tap.index);
      if (tap.inside)
        inside = inside ? node.make<AndOp>(node.i1(), inside, tap.inside) : tap.inside;
      if (tap.weight)
        weight = weight ? node.make<MulOp>(node.elementOf(weight), weight, tap.weight) : tap.weight;
    }
    Value picked = pickPoints(node, images, indices);
    auto perChannel = [&](Value value) {
      return node.make<UnsqueezeOp>(node.elementOf(value), value, Value(), node.builder.getDenseI64ArrayAttr({1}));
    };
    if (inside)
      picked = node.make<WhereOp>(element, perChannel(inside), picked, node.scalar(element, 0));
    if (weight)
      picked = node.make<MulOp>(element, picked, node.castTo(perChannel(weight), element));
    if (!result)
      result = picked;
    else
      result = takesMaximum ? node.make<MaxOp>(element, result, picked) : node.make<AddOp>(element, result, picked);
  }
  return result;
}

Value mlir::transept::sampleLinear(NodeImport &node, Value images, ArrayRef<Value> positions, SampleEdge edge) {
  SmallVector<SmallVector<SampleTap>> taps;
  for (auto [axis, position] : llvm::enumerate(positions)) {
    auto at = static_cast<int64_t>(axis) + 2;
    Value size = node.reshape(node.sizes(images, at, at + 1), ArrayRef<int64_t>{});
    taps.push_back(linearTaps(node, position, size, edge));
  }
  return combineTaps(node, images, taps);
}
