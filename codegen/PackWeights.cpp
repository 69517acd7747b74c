//===- PackWeights.cpp - the bytes of the weights section
//--------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/Pack.h"
#include "ir/HostTensor.h"
#include "ir/WeightStore.h"
#include "transept/abi.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir;
using namespace mlir::kernel;
using mlir::transept::byteWidth;
using mlir::transept::ExitInternal;
using mlir::transept::Failure;
using mlir::transept::Outcome;
using mlir::transept::WeightStore;

namespace {

constexpr uint64_t alignment = TRANSEPT_BUFFER_ALIGNMENT, slack = TRANSEPT_BUFFER_SLACK;
static_assert(panelColumns * sizeof(float) % alignment == 0, "parts of a packed matrix are aligned");

/// A weight as a matrix [K, N].
struct Matrix {
  const char *data;
  int64_t k, n;
  bool transposed; // stored [N, K]
  unsigned width;  // bytes per element
  int64_t group;   // elements of adjacent k that lie side by side
  int64_t panels() const { return llvm::divideCeil(n, panelColumns); }
  uint64_t panelBytes() const { return llvm::divideCeil(k, group) * group * panelColumns * width; }
  uint64_t packedBytes() const { return panels() * panelBytes(); }
};

Matrix matrixOf(const WeightStore::Weight &weight, bool transposed) {
  ArrayRef<int64_t> shape = weight.type.getShape();
  return {weight.bytes.data(),
          shape[transposed],
          shape[!transposed],
          transposed,
          byteWidth(weight.type.getElementType()),
          panelGroup(weight.type.getElementType())};
}

/// Columns of panel `panel`, [ceil(K / g)][64][g], zero where the matrix has no more columns or rows.
void packPanel(const Matrix &matrix, int64_t panel, std::vector<char> &out) {
  const unsigned width = matrix.width;
  const int64_t group = matrix.group;
  out.assign(matrix.panelBytes(), 0);
  int64_t first = panel * panelColumns, columns = std::min(panelColumns, matrix.n - first);
  for (int64_t k = 0; k < matrix.k; ++k) {
    char *row = out.data() + (k / group * panelColumns * group + k % group) * width;
    if (!matrix.transposed && group == 1) {
      std::memcpy(row, matrix.data + (k * matrix.n + first) * width, columns * width);
      continue;
    }
    for (int64_t column = 0; column < columns; ++column) {
      int64_t at = matrix.transposed ? (first + column) * matrix.k + k : k * matrix.n + first + column;
      std::memcpy(row + column * group * width, matrix.data + at * width, width);
    }
  }
}

bool writeZeros(uint64_t count, PackedWeights::Sink sink) {
  static constexpr char zeros[alignment + slack] = {};
  for (; count > 0; count -= std::min<uint64_t>(count, sizeof(zeros)))
    if (!sink(zeros, std::min<uint64_t>(count, sizeof(zeros))))
      return false;
  return true;
}

} // namespace

std::optional<Failure> PackedWeights::add(BufferOp buffer) {
  auto fail = [](const Twine &what) {
    return Failure{ExitInternal, ("internal error: phase pack: " + what).str(), {}};
  };
  if (!buffer.getKeys() || !buffer.getTransposed() || !buffer.getLayout() ||
      buffer.getKeys()->size() != buffer.getTransposed()->size() || buffer.getKeys()->empty())
    return fail("a constant buffer has no keys");
  Constant constant;
  constant.panels = *buffer.getLayout() == "panels";
  for (auto [key, transposed] : llvm::zip(*buffer.getKeys(), *buffer.getTransposed())) {
    Part part{cast<StringAttr>(key).str(), transposed};
    WeightStore::Weight weight = WeightStore::of(context).lookup(part.key);
    if (!weight.type)
      return fail("there is no weight with key " + part.key);
    if (constant.panels && weight.type.getRank() != 2)
      return fail("weight " + part.key + " is no matrix");
    constant.bytes += constant.panels ? matrixOf(weight, part.transposed).packedBytes() : weight.bytes.size();
    constant.parts.push_back(part);
  }
  if (!constant.panels && constant.parts.size() != 1)
    return fail("a constant that is not packed has several keys");
  if (indexOf.try_emplace({constant.panels, constant.parts}, constants.size()).second)
    constants.push_back(std::move(constant));
  return std::nullopt;
}

void PackedWeights::place() {
  // Which larger constant holds each smaller one, and in which part it begins.
  auto holder = [&](const Constant &constant) -> std::optional<std::pair<size_t, size_t>> {
    for (auto [i, other] : llvm::enumerate(constants)) {
      if (!other.panels || !constant.panels || other.parts.size() <= constant.parts.size())
        continue;
      auto found = std::search(other.parts.begin(), other.parts.end(), constant.parts.begin(), constant.parts.end());
      if (found != other.parts.end())
        return std::pair(i, static_cast<size_t>(found - other.parts.begin()));
    }
    return std::nullopt;
  };
  std::vector<std::optional<std::pair<size_t, size_t>>> holders;
  for (Constant &constant : constants) {
    holders.push_back(holder(constant));
    constant.shared = holders.back().has_value();
    if (constant.shared)
      continue;
    constant.offset = llvm::alignTo(total, alignment);
    total = constant.offset + constant.bytes;
    unique += constant.bytes;
  }
  if (total)
    total = llvm::alignTo(total, alignment) + slack;
  // The largest first: a holder may itself lie inside another one.
  std::vector<size_t> order(constants.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  llvm::stable_sort(order, [&](size_t a, size_t b) { return constants[a].parts.size() > constants[b].parts.size(); });
  for (size_t i : order) {
    if (!holders[i])
      continue;
    auto [outer, first] = *holders[i];
    uint64_t offset = constants[outer].offset;
    for (const Part &part : ArrayRef(constants[outer].parts).take_front(first))
      offset += matrixOf(WeightStore::of(context).lookup(part.key), part.transposed).packedBytes();
    constants[i].offset = offset;
  }
}

Outcome<PackedWeights> PackedWeights::of(ModuleOp module) {
  PackedWeights weights;
  weights.context = module.getContext();
  std::optional<Failure> failure;
  module.walk([&](BufferOp buffer) {
    if (!failure && buffer.getStorage() == "constant")
      failure = weights.add(buffer);
  });
  if (failure)
    return std::move(*failure);
  weights.place();
  return weights;
}

const PackedWeights::Constant &PackedWeights::constantOf(BufferOp buffer) const {
  std::vector<Part> parts;
  for (auto [key, transposed] : llvm::zip(*buffer.getKeys(), *buffer.getTransposed()))
    parts.push_back({cast<StringAttr>(key).str(), transposed});
  return constants[indexOf.at({*buffer.getLayout() == "panels", parts})];
}

uint64_t PackedWeights::offsetOf(BufferOp buffer) const { return constantOf(buffer).offset; }
uint64_t PackedWeights::bytesOf(BufferOp buffer) const { return constantOf(buffer).bytes; }

bool PackedWeights::writeConstant(const Constant &constant, Sink sink) const {
  for (const Part &part : constant.parts) {
    WeightStore::Weight weight = WeightStore::of(context).lookup(part.key);
    if (!constant.panels) {
      if (!weight.bytes.empty() && !sink(weight.bytes.data(), weight.bytes.size()))
        return false;
      continue;
    }
    Matrix matrix = matrixOf(weight, part.transposed);
    std::vector<char> panel;
    for (int64_t i = 0; i < matrix.panels(); ++i) {
      packPanel(matrix, i, panel);
      if (!sink(panel.data(), panel.size()))
        return false;
    }
  }
  return true;
}

bool PackedWeights::write(Sink sink) const {
  uint64_t written = 0;
  for (const Constant &constant : constants) {
    if (constant.shared)
      continue;
    if (!writeZeros(constant.offset - written, sink) || !writeConstant(constant, sink))
      return false;
    written = constant.offset + constant.bytes;
  }
  return writeZeros(total - written, sink);
}
