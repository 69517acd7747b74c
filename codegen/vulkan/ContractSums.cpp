//===- ContractSums.cpp - the inner loop of products in a shader --------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights are read sixteen bytes at a time, narrow ones as 32-bit words that are taken apart: that needs no 16-bit
// storage, and a load of its own for each element would be slower where there is.

#include "codegen/vulkan/ContractSums.h"
#include "codegen/emit/Num.h"
#include "codegen/vulkan/Int8Sums.h"
#include "codegen/vulkan/Kernels.h"
#include "codegen/vulkan/MatrixSums.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Emitter;
using emit::Num;
using emit::ProductKind;

static_assert(contractColumns == 4, "columns of an invocation are read at once");

SmallVector<Value> vulkan::rowElements(Shader &shader, const ContractTile &tile, int64_t depth, Value row, Value k,
                                       int64_t count) {
  Emitter &e = shader.e;
  Type f32 = e.f32();
  SmallVector<Value> elements;
  if (count == 4 && depth % 4 == 0) { // rows begin at multiples of 16 bytes
    Value four = shader.loadFour(e.pointer(tile.x, e.add(e.mul(row, e.index(depth)), k), f32));
    for (int64_t i = 0; i < 4; ++i)
      elements.push_back(shader.component(four, i));
    return elements;
  }
  for (int64_t i = 0; i < count; ++i) {
    Value position = e.add(k, e.index(i)), inside = e.minimum(position, e.index(depth - 1));
    Value element = e.load(e.pointer(tile.x, e.add(e.mul(row, e.index(depth)), inside), f32), f32);
    if (depth % count != 0)
      element = e.select(e.less(position, e.index(depth)), element, e.number(f32, 0));
    elements.push_back(element);
  }
  return elements;
}

namespace {

/// Products whose sums are floats.
class FloatSums : public SlicedSums {
public:
  FloatSums(Shader &shader, int64_t depth, ProductKind kind, int64_t block)
      : SlicedSums(shader, depth,
                   kind == ProductKind::Float  ? 1
                   : kind == ProductKind::Bf16 ? 2
                                               : 4,
                   shader.e.f32()),
        kind(kind), block(block) {}

protected:
  /// Per element one chain over ascending k of the slice.
  SmallVector<Value> emit(const ContractTile &tile, int64_t height) override {
    SmallVector<Value> totals(height, e.number(shader.four(), 0));
    const int64_t step = depth % 4 == 0 ? 4 : groupSize;
    Value steps = e.index((depth + step - 1) / step), length = e.div(e.sub(e.add(steps, slices), e.index(1)), slices);
    Value from = e.mul(slice, length), to = e.minimum(e.add(from, length), steps);
    Emitter::Carried done = e.forLoop(from, to, 1, totals, [&](Value index, ValueRange sofar) {
      Emitter::Carried next(sofar);
      Value k = e.mul(index, e.index(step));
      SmallVector<Value> w = weightsAt(tile, k, step);
      for (int64_t r = 0; r < height; ++r) { // a row behind the last one computes the last one again
        Value row = e.minimum(e.index(r), e.sub(tile.count, e.index(1)));
        for (auto [x, factor] : llvm::zip(rowElements(shader, tile, depth, row, k, step), w))
          next[r] = e.fma(shader.splat(kind == ProductKind::Bf16 ? rounded(x) : x), factor, next[r]);
      }
      return next;
    });
    SmallVector<Value> sums;
    for (Value total : done)
      for (int64_t c = 0; c < contractColumns; ++c)
        sums.push_back(shader.component(total, c));
    return sums;
  }

private:
  /// Of `count` adjacent k, four columns each.
  SmallVector<Value> weightsAt(const ContractTile &tile, Value k, int64_t count) {
    SmallVector<Value> weights;
    for (int64_t i = 0; i < count; i += groupSize) {
      Value words = loadWords(tile, e.div(e.add(k, e.index(i)), e.index(groupSize)), groupSize == 1 ? f32 : i32);
      Num bits{e, words};
      if (kind == ProductKind::Float)
        weights.push_back(words);
      else if (kind == ProductKind::Bf16)
        weights.append({asFloats((bits << 16).v), asFloats((bits & bits.likeInteger(-65536)).v)});
      else
        for (Value integer : signedBytes(e, words)) {
          Value weight = e.b.create<arith::SIToFPOp>(e.loc, shader.four(), integer);
          weights.push_back(block ? e.mul(weight, scalesAt(tile, e.add(k, e.index(i)))) : weight);
        }
    }
    return weights;
  }

  /// Of the four columns, for the block of k.
  Value scalesAt(const ContractTile &tile, Value k) {
    Value row = e.mul(e.div(k, e.index(block)), e.index(panelColumns));
    return shader.loadFour(e.pointer(tile.scales, e.add(row, column), f32));
  }

  Value asFloats(Value words) { return e.b.create<arith::BitcastOp>(e.loc, shader.four(), words); }

  /// To the nearest bf16, as f32.
  Value rounded(Value number) {
    Num x{e, number}, bits = x.bits(), odd = shiftRight(bits, 16) & bits.likeInteger(1);
    Num nearest = (bits + odd + bits.likeInteger(0x7fff)) & bits.likeInteger(-65536);
    return select(equal(x, x), nearest.asFloat(), x).v;
  }

  const ProductKind kind;
  const int64_t block; // of k with one scale per column; 0: integers are the weights
};

} // namespace

std::unique_ptr<ContractSums> ContractSums::create(Shader &shader, ContractOp op) {
  FailureOr<ProductKind> kind = emit::productKindOf(op);
  if (failed(kind))
    return nullptr;
  const int64_t depth = op.getK();
  if (*kind == ProductKind::Int8 || *kind == ProductKind::Integers) {
    const bool rounds = *kind == ProductKind::Int8;
    if (shader.mayUse(matrixFeature))
      return std::make_unique<MatrixSums>(shader, depth, rounds);
    return std::make_unique<Int8Sums>(shader, depth, rounds);
  }
  return std::make_unique<FloatSums>(shader, depth, *kind, op.getBlock());
}
