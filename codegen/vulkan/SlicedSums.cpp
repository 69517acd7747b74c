//===- SlicedSums.cpp - products whose k is shared out among teams ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/vulkan/SlicedSums.h"
#include "codegen/vulkan/Kernels.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Emitter;

SlicedSums::SlicedSums(Shader &shader, int64_t depth, int64_t groupSize, Type element)
    : ContractSums(shader, depth, groupSize), slice(e.div(shader.local, e.index(contractTeam))),
      slices(e.div(shader.groupSize, e.index(contractTeam))),
      column(e.mul(e.rem(shader.local, e.index(contractTeam)), e.index(contractColumns))), element(element),
      sums(shader.sharedArrayPerInvocation(element, contractRows * panelColumns / contractTeam)) {}

int64_t SlicedSums::rows() const { return contractRows; }

Value SlicedSums::loadWords(const ContractTile &tile, Value groupIndex, Type type) {
  Value place = e.pointer(tile.weights, e.add(e.mul(groupIndex, e.index(panelColumns)), column), type);
  return e.b.create<LLVM::LoadOp>(e.loc, VectorType::get({4}, type), place, /*alignment=*/16);
}

void SlicedSums::compute(const ContractTile &tile) {
  prepare(tile);
  emitTile(tile, contractRows);
}

/// The smallest of the heights 1, 2, 4, … that holds the rows.
void SlicedSums::emitTile(const ContractTile &tile, int64_t height) {
  if (height == 1)
    return emitSums(tile, height);
  Value fits = e.less(tile.count, e.index(height / 2 + 1));
  e.ifElse(fits, [&] { emitTile(tile, height / 2); }, [&] { emitSums(tile, height); });
}

void SlicedSums::emitSums(const ContractTile &tile, int64_t height) {
  SmallVector<Value> mine = emit(tile, height);
  for (int64_t r = 0; r < height; ++r)
    for (int64_t c = 0; c < contractColumns; ++c)
      e.store(mine[r * contractColumns + c], sumAt(slice, e.index(r), e.add(column, e.index(c))));
}

/// Where the sum of a slice is, in the shared array.
Value SlicedSums::sumAt(Value slice, Value row, Value column) {
  Value place = e.add(e.mul(e.add(e.mul(slice, e.index(contractRows)), row), e.index(panelColumns)), column);
  return e.pointer(sums, place, element);
}

Value SlicedSums::sumOf(Value row, Value column) {
  auto load = [&](Value slice) { return e.load(sumAt(slice, row, column), element); };
  Value sum = e.forLoop(e.index(1), slices, 1, ValueRange{load(e.index(0))}, [&](Value slice, ValueRange sofar) {
    return Emitter::Carried{e.add(sofar[0], load(slice))};
  })[0];
  return finish(sum, row);
}
