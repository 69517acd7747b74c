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
    auto count = [&](Value limit) {
      return node.make<RangeOp>(i64, node.scalar(int64_t(0)), limit, one, DimAttr(), IntegerAttr());
    };
    Value rows = node.reshape(count(isReal() ? half : t.length), {-1, 1});
    Value columns = count(t.onesided && !t.inverse ? half : t.length);
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

/// A scalar that the node needs to know; nullopt after a reported failure.
std::optional<int64_t> knownScalar(NodeImport &node, size_t index, StringRef name) {
  std::optional<SmallVector<int64_t>> value = node.constantIntegers(node.input(index));
  if (value && value->size() == 1)
    return value->front();
  (void)node.unsupported(node.op() + " with " + name + " that is no constant");
  return std::nullopt;
}

LogicalResult importDft(NodeImport &node) {
  Value input = node.input(0);
  Transform transform;
  transform.element = node.elementOf(input);
  transform.inverse = node.integer("inverse", 0) != 0;
  transform.onesided = node.integer("onesided", 0) != 0;
  int64_t axis = node.version < 20 ? node.integer("axis", 1) : -2;
  if (node.version >= 20 && node.input(2)) {
    std::optional<int64_t> given = knownScalar(node, 2, "an axis");
    if (!given)
      return failure();
    axis = *given;
  }
  std::optional<int64_t> rank = node.rank(input), parts = partsOf(node, input);
  if (!rank || !parts)
    return failure();
  axis += axis < 0 ? *rank : 0;
  if (axis < 0 || axis >= *rank - 1)
    return node.invalid("transforms an axis that does not exist, or the parts of its numbers");
  transform.parts = *parts;
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
  if (transform.known && (*transform.known < 1 || *transform.known > limit))
    return node.unsupported("DFT of length " + Twine(*transform.known) + " (1 to " + Twine(limit) + " are supported)");
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
    x = node.make<PadOp>(transform.element, x, amounts, Value(), node.constant({-1}), PadMode::Constant, ArrayAttr());
  }
  auto joined = [&](ArrayRef<int64_t> rest) {
    return node.make<ConcatOp>(node.i64(), ValueRange{node.sizes(x, 0, others), node.constant(rest)}, uint64_t(0));
  };
  Matrix matrix(node, transform);
  Value y = node.make<MatMulOp>(transform.element, node.reshape(x, joined({-1})), matrix.build());
  y = node.reshape(y, joined({matrix.isReal() ? 1 : 2, -1}));
  SmallVector<int64_t> back(*rank);
  for (auto [at, from] : llvm::enumerate(order))
    back[from] = static_cast<int64_t>(at);
  return node.result(node.transpose(y, back));
}

/// Transforms of windows of the signal [batch, positions, parts]: [batch, frames, frequencies, 2].
LogicalResult importStft(NodeImport &node) {
  Value signal = node.input(0), window = node.input(2);
  Transform transform;
  transform.element = node.elementOf(signal);
  transform.onesided = node.integer("onesided", 1) != 0;
  std::optional<int64_t> parts = partsOf(node, signal), step = knownScalar(node, 1, "a frame_step");
  if (!parts || !step)
    return failure();
  transform.parts = *parts;
  if (node.input(3)) {
    transform.known = knownScalar(node, 3, "a frame_length");
  } else if (std::optional<SmallVector<DimAttr>> dims = window ? node.dims(window) : std::nullopt) {
    if (dims->size() == 1 && (*dims)[0])
      transform.known = constantValue((*dims)[0]);
  }
  if (!transform.known)
    return node.unsupported("STFT with a window whose length is no constant");
  constexpr int64_t limit = 1 << 13;
  if (*transform.known < 1 || *transform.known > limit || *step < 1)
    return node.invalid("has frames of " + Twine(*transform.known) + " positions every " + Twine(*step));
  Value frames =
      node.make<WindowsOp>(transform.element, node.transpose(signal, {0, 2, 1}), ArrayRef<int64_t>{*transform.known},
                           ArrayRef<int64_t>{*step}, ArrayRef<int64_t>{1}); // [batch, parts, frames, length]
  if (window)
    frames = node.make<MulOp>(transform.element, frames, window);
  frames = node.reshape(node.transpose(frames, {0, 2, 1, 3}), {0, 0, -1});
  Value result = node.make<MatMulOp>(transform.element, frames, Matrix(node, transform).build());
  return node.result(node.transpose(node.reshape(result, {0, 0, 2, -1}), {0, 1, 3, 2}));
}

/// Triangles between points that lie evenly on the mel scale: [frequencies, bins].
LogicalResult importMelWeightMatrix(NodeImport &node) {
  std::optional<int64_t> bins = knownScalar(node, 0, "num_mel_bins"), length = knownScalar(node, 1, "a dft_length"),
                         rate = knownScalar(node, 2, "a sample_rate");
  if (!bins || !length || !rate)
    return failure();
  double edges[2];
  for (size_t i : {0, 1}) {
    std::optional<SmallVector<double>> value = node.constantReals(node.input(3 + i));
    if (!value || value->size() != 1)
      return node.unsupported("MelWeightMatrix with edges that are no constants");
    edges[i] = 2595 * math::log(1 + value->front() / 700) / math::log(10);
  }
  auto type = static_cast<int32_t>(node.integer("output_datatype", 1));
  Type element = elementTypeOf(node.builder.getContext(), type);
  if (!element)
    return node.unsupported("MelWeightMatrix of " + dataTypeName(type));
  constexpr int64_t limit = 1 << 16;
  if (*bins < 1 || *bins > limit || *length < 1 || *length > limit || *rate < 1)
    return node.invalid("has " + Twine(*bins) + " bins of " + Twine(*length) + " positions at rate " + Twine(*rate));
  int64_t frequencies = *length / 2 + 1;
  std::vector<int64_t> points;
  for (int64_t i = 0; i < *bins + 2; ++i) {
    double mel = edges[0] + static_cast<double>(i) * (edges[1] - edges[0]) / static_cast<double>(*bins + 2);
    double hertz = 700 * (math::exp(mel / 2595 * math::log(10)) - 1);
    double point = std::floor(static_cast<double>(*length + 1) * hertz / static_cast<double>(*rate));
    if (!(point >= 0 && point < static_cast<double>(frequencies)))
      return node.invalid("has edges outside of what the sample rate allows");
    points.push_back(static_cast<int64_t>(point));
  }
  HostTensor table = HostTensor::make(RankedTensorType::get({frequencies, *bins}, element));
  for (int64_t bin = 0; bin < *bins; ++bin) {
    int64_t low = points[bin], centre = points[bin + 1], high = points[bin + 2];
    if (low == centre)
      table.setDouble(centre * *bins + bin, 1);
    for (int64_t at = low; low < centre && at <= centre; ++at)
      table.setDouble(at * *bins + bin, static_cast<double>(at - low) / static_cast<double>(centre - low));
    for (int64_t at = centre; at < high; ++at)
      table.setDouble(at * *bins + bin, static_cast<double>(high - at) / static_cast<double>(high - centre));
  }
  return node.result(node.materializeHost(table));
}
} // namespace

void mlir::transept::addSignalImports(ImportTable &table) {
  table.add("DFT", importDft);
  table.add("STFT", importStft);
  table.add("MelWeightMatrix", importMelWeightMatrix);
}
