//===- ImportSignal.cpp - Fourier transforms and filter banks -----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A discrete Fourier transform is a product with a matrix of cosines and sines: complex numbers lie as all real parts,
// then all imaginary parts, on both sides.

#include "frontend/NodeImport.h"
#include "ir/HostMath.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

namespace {
constexpr double twoPi = 6.283185307179586476925286766559;

/// What a transform turns into what.
struct Transform {
  int64_t parts = 1; ///< of the input: 1 real, 2 complex
  bool inverse = false;
  bool onesided = false; ///< the half of the frequencies that says all of a real signal, as input of an inverse
  Type element;
  std::optional<int64_t> known; ///< the length
  Value length;                 ///< the same, an i64 scalar
};

/// The value of element (i, o) of a matrix from input part `from` to output part `to`, given the cosine and sine of
/// 2 pi i o / length: the sign of the sine, or none of it.
struct Entry {
  bool isSine;
  double sign;
};
Entry entryOf(bool inverse, int from, int to) {
  bool isSine = from != to;
  // Forwards, exp(-i w) = cos - i sin: real parts give -sin to the imaginary one, imaginary parts sin to the real one.
  return {isSine, !isSine ? 1.0 : (to == 1) != inverse ? -1.0 : 1.0};
}

class Matrix {
public:
  Matrix(NodeImport &node, const Transform &transform) : node(node), t(transform) {}

  /// [parts * inputs, 2 * outputs], or for a real result [parts * inputs, outputs].
  Value build() { return t.known ? constant() : computed(); }
  bool isReal() const { return t.inverse && t.onesided; }

private:
  Value constant() {
    int64_t n = *t.known, half = n / 2 + 1;
    int64_t inputs = isReal() ? half : n, outputs = t.onesided && !t.inverse ? half : n, to = isReal() ? 1 : 2;
    auto type = RankedTensorType::get({t.parts * inputs, to * outputs}, t.element);
    HostTensor matrix = HostTensor::make(type);
    std::vector<double> cosine(n), sine(n);
    for (int64_t i = 0; i < n; ++i) {
      double angle = twoPi * static_cast<double>(i) / static_cast<double>(n);
      cosine[i] = math::cos(angle);
      sine[i] = math::sin(angle);
    }
    for (int64_t row = 0; row < t.parts * inputs; ++row)
      for (int64_t column = 0; column < to * outputs; ++column) {
        int64_t i = row % inputs, at = i * (column % outputs) % n;
        Entry entry = entryOf(t.inverse, static_cast<int>(row / inputs), static_cast<int>(column / outputs));
        double value = entry.sign * (entry.isSine ? sine[at] : cosine[at]);
        // Of a half, all frequencies but the first and the middle one stand for two.
        if (isReal() && i != 0 && 2 * i != n)
          value *= 2;
        matrix.setDouble(row * to * outputs + column, t.inverse ? value / static_cast<double>(n) : value);
      }
    return node.materializeHost(matrix);
  }

  Value computed() {
    Type f64 = node.builder.getF64Type(), i64 = node.i64();
    auto number = [&](double value) { return node.scalar(f64, value); };
    Value one = node.scalar(int64_t(1)), two = node.scalar(int64_t(2));
    Value half = node.make<AddOp>(i64, node.make<DivOp>(i64, t.length, two), one);
    Value rows = node.reshape(node.countTo(isReal() ? half : t.length), {-1, 1});
    Value columns = node.countTo(t.onesided && !t.inverse ? half : t.length);
    Value place = node.make<ModOp>(i64, node.make<MulOp>(i64, rows, columns), t.length, int64_t(0));
    Value length = node.castTo(t.length, f64);
    Value angle = node.make<DivOp>(f64, node.make<MulOp>(f64, node.castTo(place, f64), number(twoPi)), length);
    Value factor = t.inverse ? node.make<ReciprocalOp>(f64, length) : number(1);
    if (isReal()) {
      Value twice = node.make<MulOp>(i64, rows, two);
      Value isOnce = node.make<OrOp>(node.i1(), node.make<EqualOp>(node.i1(), rows, node.scalar(int64_t(0))),
                                     node.make<EqualOp>(node.i1(), twice, t.length));
      Value weight = node.make<WhereOp>(f64, isOnce, number(1), number(2));
      factor = node.make<MulOp>(f64, weight, factor);
    }
    SmallVector<Value> parts;
    for (int from = 0; from < t.parts; ++from) {
      SmallVector<Value> across;
      for (int to = 0; to < (isReal() ? 1 : 2); ++to) {
        Entry entry = entryOf(t.inverse, from, to);
        Value wave = entry.isSine ? node.make<SinOp>(f64, angle) : node.make<CosOp>(f64, angle);
        Value scale = node.make<MulOp>(f64, factor, number(entry.sign));
        across.push_back(node.castTo(node.make<MulOp>(f64, wave, scale), t.element));
      }
      parts.push_back(across.size() == 1 ? across[0] : node.make<ConcatOp>(t.element, across, uint64_t(1)));
    }
    return parts.size() == 1 ? parts[0] : node.make<ConcatOp>(t.element, parts, uint64_t(0));
  }

  NodeImport &node;
  const Transform &t;
};

/// How many parts numbers have, from the last axis of the input; a failure is reported. Where only a run can say, an
/// imaginary part of 0 is added to numbers without one.
std::optional<int64_t> partsOf(NodeImport &node, Value &input) {
  std::optional<SmallVector<DimAttr>> dims = node.dims(input);
  std::optional<int64_t> parts = dims && !dims->empty() && dims->back() ? constantValue(dims->back()) : std::nullopt;
  if (parts && (*parts == 1 || *parts == 2))
    return parts;
  if (parts)
    (void)node.invalid("has numbers of " + Twine(*parts) + " parts; real ones have 1 and complex ones 2");
  if (!parts && dims && !dims->empty()) {
    Value missing = node.make<SubOp>(node.i64(), node.constant({2}), node.sizes(input, -1));
    Value amounts = node.make<ConcatOp>(node.i64(), ValueRange{node.constant({0}), missing}, uint64_t(0));
    input = node.make<PadOp>(node.elementOf(input), input, amounts, Value(), node.constant({-1}), PadMode::Constant,
                             ArrayAttr());
    return 2;
  }
  if (!parts)
    (void)node.unsupported(node.op() + " of an input of unknown rank");
  return std::nullopt;
}

/// The transform of numbers of so many parts along one axis; null after a reported failure.
Value transformAlong(NodeImport &node, Value input, int64_t parts, int64_t axis) {
  Transform transform;
  Type element = transform.element = node.elementOf(input);
  transform.inverse = node.integer("inverse", 0) != 0;
  transform.onesided = node.integer("onesided", 0) != 0;
  std::optional<int64_t> rank = node.rank(input);
  axis += axis < 0 ? *rank : 0;
  if (axis < 0 || axis >= *rank - 1) {
    (void)node.invalid("transforms an axis that does not exist, or the parts of its numbers");
    return {};
  }
  transform.parts = parts;
  // The length: given, or that of the axis, of which a half of the frequencies says twice as much.
  bool fromHalf = transform.inverse && transform.onesided;
  Value size = node.reshape(node.sizes(input, axis, axis + 1), ArrayRef<int64_t>{});
  std::optional<DimAttr> dim = (*node.dims(input))[axis];
  std::optional<int64_t> knownSize = *dim ? constantValue(*dim) : std::nullopt;
  if (Value given = node.input(1)) {
    transform.length = node.castTo(node.reshape(given, ArrayRef<int64_t>{}), node.i64());
    if (std::optional<SmallVector<int64_t>> value = node.constantIntegers(given); value && value->size() == 1)
      transform.known = value->front();
  } else {
    Value one = node.scalar(int64_t(1)), two = node.scalar(int64_t(2));
    Value twice = node.make<MulOp>(node.i64(), node.make<SubOp>(node.i64(), size, one), two);
    transform.length = fromHalf ? twice : size;
    if (knownSize)
      transform.known = fromHalf ? 2 * (*knownSize - 1) : *knownSize;
  }
  constexpr int64_t limit = 1 << 13; // a matrix of that size has 2^28 elements
  if (transform.known && (*transform.known < 1 || *transform.known > limit)) {
    (void)node.unsupported("DFT of length " + Twine(*transform.known) + " (1 to " + Twine(limit) + " are supported)");
    return {};
  }
  // [others…, parts * positions], cut or filled up with zeros.
  SmallVector<int64_t> order;
  for (int64_t other = 0; other < *rank - 1; ++other)
    if (other != axis)
      order.push_back(other);
  auto others = static_cast<int64_t>(order.size());
  order.append({*rank - 1, axis});
  Value x = node.transpose(input, order), i64one = node.scalar(int64_t(1));
  Value wanted = transform.length;
  if (fromHalf)
    wanted = node.make<AddOp>(node.i64(), node.make<DivOp>(node.i64(), wanted, node.scalar(int64_t(2))), i64one);
  if (node.input(1)) {
    Value more = node.reshape(node.make<SubOp>(node.i64(), wanted, size), {1});
    Value amounts = node.make<ConcatOp>(node.i64(), ValueRange{node.constant({0}), more}, uint64_t(0));
    x = node.make<PadOp>(element, x, amounts, Value(), node.constant({-1}), PadMode::Constant, ArrayAttr());
  }
  auto joined = [&](ArrayRef<int64_t> rest) {
    return node.make<ConcatOp>(node.i64(), ValueRange{node.sizes(x, 0, others), node.constant(rest)}, uint64_t(0));
  };
  Matrix matrix(node, transform);
  Value y = node.make<MatMulOp>(element, node.reshape(x, joined({-1})), matrix.build());
  y = node.reshape(y, joined({matrix.isReal() ? 1 : 2, -1}));
  SmallVector<int64_t> back(*rank);
  for (auto [at, from] : llvm::enumerate(order))
    back[from] = static_cast<int64_t>(at);
  return node.transpose(y, back);
}

/// An axis that is data: the axes before and behind it become one each.
Value transformAlongData(NodeImport &node, Value input, int64_t parts, int64_t rank, Value axis) {
  Type i64 = node.i64(), element = node.elementOf(input);
  Value one = node.scalar(int64_t(1)), sizes = node.sizes(input, 0, rank - 1);
  Value places = node.countTo(node.scalar(rank - 1));
  Value along = node.make<GatherOp>(i64, sizes, node.reshape(axis, {1}), uint64_t(0)); // in range, or an error
  Value negative = node.make<LessOp>(node.i1(), axis, node.scalar(int64_t(0)));
  axis = node.make<WhereOp>(i64, negative, node.make<AddOp>(i64, axis, node.scalar(rank)), axis);
  auto product = [&](Value isMeant) {
    return node.reduce(node.make<WhereOp>(i64, isMeant, sizes, one), ReduceKind::Prod, {0}, /*keepdims=*/true);
  };
  Value before = product(node.make<LessOp>(node.i1(), places, axis)),
        behind = product(node.make<LessOp>(node.i1(), axis, places));
  Value flat = node.make<ConcatOp>(i64, ValueRange{before, along, behind, node.constant({parts})}, uint64_t(0));
  Value result = transformAlong(node, node.reshape(input, flat), parts, /*axis=*/1);
  if (!result)
    return {};
  Value shape = node.make<WhereOp>(i64, node.make<EqualOp>(node.i1(), places, axis), node.sizes(result, 1, 2), sizes);
  shape = node.make<ConcatOp>(i64, ValueRange{shape, node.sizes(result, 3)}, uint64_t(0));
  return node.make<ReshapeOp>(element, result, shape, /*allowZero=*/true);
}

LogicalResult importDft(NodeImport &node) {
  Value input = node.input(0), given = node.version < 20 ? Value() : node.input(2), result;
  int64_t axis = node.version < 20 ? node.integer("axis", 1) : -2;
  std::optional<int64_t> rank = node.rank(input), parts = partsOf(node, input);
  if (!rank || !parts)
    return failure();
  if (std::optional<SmallVector<int64_t>> known = node.constantIntegers(given); known && known->size() == 1) {
    axis = known->front();
    given = {};
  }
  if (given)
    result = transformAlongData(node, input, *parts, *rank,
                                node.castTo(node.reshape(given, ArrayRef<int64_t>{}), node.i64()));
  else
    result = transformAlong(node, input, *parts, axis);
  return result ? node.result(result) : failure();
}

/// Transforms of windows of the signal [batch, positions, parts]: [batch, frames, frequencies, 2].
LogicalResult importStft(NodeImport &node) {
  Value signal = node.input(0), window = node.input(2);
  Type i64 = node.i64();
  Transform transform;
  Type element = transform.element = node.elementOf(signal);
  transform.onesided = node.integer("onesided", 1) != 0;
  std::optional<int64_t> parts = partsOf(node, signal);
  if (!parts)
    return failure();
  transform.parts = *parts;
  auto scalar = [&](size_t index) { return node.castTo(node.reshape(node.input(index), ArrayRef<int64_t>{}), i64); };
  if (!node.input(1) || (!node.input(3) && !window))
    return node.invalid("has no frame_step, or neither a window nor a frame_length");
  Value step = scalar(1);
  if (Value given = node.input(3)) {
    transform.length = scalar(3);
    if (std::optional<SmallVector<int64_t>> value = node.constantIntegers(given); value && value->size() == 1)
      transform.known = value->front();
  } else {
    transform.length = node.reshape(node.sizes(window, 0, 1), ArrayRef<int64_t>{});
    std::optional<SmallVector<DimAttr>> dims = node.dims(window);
    if (dims && dims->size() == 1 && (*dims)[0])
      transform.known = constantValue((*dims)[0]);
  }
  constexpr int64_t limit = 1 << 13;
  if (transform.known && (*transform.known < 1 || *transform.known > limit))
    return node.unsupported("STFT with frames of " + Twine(*transform.known) + " positions (1 to " + Twine(limit) +
                            " are supported)");
  // Positions of frame f: f * step and what follows.
  Value positions = node.reshape(node.sizes(signal, 1, 2), ArrayRef<int64_t>{});
  Value behind = node.make<MaxOp>(i64, node.make<SubOp>(i64, positions, transform.length), node.scalar(int64_t(0)));
  Value steps = node.make<DivOp>(i64, behind, step);
  Value first = node.make<MulOp>(i64, node.countTo(node.make<AddOp>(i64, steps, node.scalar(int64_t(1)))), step);
  Value places = node.make<AddOp>(i64, node.reshape(first, {-1, 1}), node.countTo(transform.length));
  Value frames = node.make<GatherOp>(element, signal, places, uint64_t(1)); // [batch, frames, length, parts]
  frames = node.transpose(frames, {0, 1, 3, 2});
  if (window)
    frames = node.make<MulOp>(element, frames, window);
  frames = node.reshape(frames, {0, 0, -1});
  Value result = node.make<MatMulOp>(element, frames, Matrix(node, transform).build());
  return node.result(node.transpose(node.reshape(result, {0, 0, 2, -1}), {0, 1, 3, 2}));
}

/// Triangles between points that lie evenly on the mel scale: [frequencies, bins].
LogicalResult importMelWeightMatrix(NodeImport &node) {
  Type f64 = node.builder.getF64Type(), i64 = node.i64();
  auto type = static_cast<int32_t>(node.integer("output_datatype", 1));
  Type element = elementTypeOf(node.builder.getContext(), type);
  if (!element)
    return node.unsupported("MelWeightMatrix of " + dataTypeName(type));
  auto input = [&](size_t index, Type as) {
    return node.castTo(node.reshape(node.input(index), ArrayRef<int64_t>{}), as);
  };
  auto real = [&](double value) { return node.scalar(f64, value); };
  auto whole = [&](int64_t value) { return node.scalar(value); };
  auto add = [&](Value a, Value b) { return node.make<AddOp>(node.elementOf(a), a, b); };
  auto sub = [&](Value a, Value b) { return node.make<SubOp>(node.elementOf(a), a, b); };
  auto mul = [&](Value a, Value b) { return node.make<MulOp>(node.elementOf(a), a, b); };
  auto div = [&](Value a, Value b) { return node.make<DivOp>(node.elementOf(a), a, b); };
  const double log10 = math::log(10);
  auto mel = [&](Value hertz) {
    Value ratio = node.make<LogOp>(f64, add(real(1), div(hertz, real(700))));
    return div(mul(real(2595), ratio), real(log10));
  };
  Value bins = input(0, i64), length = input(1, i64), low = mel(input(3, f64)), high = mel(input(4, f64));
  Value pointCount = add(bins, whole(2)), step = div(sub(high, low), node.castTo(pointCount, f64));
  Value mels = add(mul(node.castTo(node.countTo(pointCount), f64), step), low);
  Value ratio = node.make<ExpOp>(f64, mul(div(mels, real(2595)), real(log10)));
  Value hertz = mul(real(700), sub(ratio, real(1)));
  Value scaled = div(mul(node.castTo(add(length, whole(1)), f64), hertz), input(2, f64));
  Value points = node.castTo(node.make<FloorOp>(f64, scaled), i64);
  auto from = [&](int64_t first) {
    return node.make<GatherOp>(i64, points, add(node.countTo(bins), whole(first)), uint64_t(0));
  };
  Value left = from(0), centre = from(1), right = from(2);
  Value at = node.reshape(node.countTo(add(div(length, whole(2)), whole(1))), {-1, 1});
  // A side without extent is the centre alone.
  auto share = [&](Value part, Value extent) {
    return div(node.castTo(part, f64), node.castTo(node.make<MaxOp>(i64, extent, whole(1)), f64));
  };
  auto less = [&](Value a, Value b) { return node.make<LessOp>(node.i1(), a, b); };
  auto pick = [&](Value condition, Value a, Value b) { return node.make<WhereOp>(f64, condition, a, b); };
  Value isPoint = node.make<EqualOp>(node.i1(), left, centre), isCentre = node.make<EqualOp>(node.i1(), at, centre);
  Value rising = pick(isPoint, pick(isCentre, real(1), real(0)), share(sub(at, left), sub(centre, left)));
  Value outside = node.make<OrOp>(node.i1(), less(at, left), less(centre, at));
  Value falling = share(sub(right, at), sub(right, centre));
  Value isFalling = node.make<AndOp>(node.i1(), node.make<LessOrEqualOp>(node.i1(), centre, at), less(at, right));
  return node.result(node.castTo(pick(isFalling, falling, pick(outside, real(0), rising)), element));
}
} // namespace

void mlir::transept::addSignalImports(ImportTable &table) {
  table.add("DFT", importDft);
  table.add("STFT", importStft);
  table.add("MelWeightMatrix", importMelWeightMatrix);
}
