//===- Int8Sums.cpp - products of integers in a shader ------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A workgroup rounds its rows once, in chunks that fit into the memory it shares; then each team takes every n-th word
// of the chunk. The order of integer sums is no matter.

#include "codegen/vulkan/Int8Sums.h"
#include "codegen/emit/Num.h"
#include "codegen/vulkan/Kernels.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Emitter;
using emit::Num;

static constexpr int64_t chunkWords = 256;

Value vulkan::withoutOffset(Emitter &e, Value words) {
  Num bits{e, words};
  return (bits ^ bits.likeInteger(static_cast<int32_t>(0x80808080))).v;
}

SmallVector<Value> vulkan::signedBytes(Emitter &e, Value words) {
  Num integers{e, withoutOffset(e, words)};
  SmallVector<Value> bytes;
  for (int64_t i = 0; i < 4; ++i)
    bytes.push_back(((i == 3 ? integers : integers << (24 - 8 * i)) >> 24).v);
  return bytes;
}

Int8Sums::Int8Sums(Shader &shader, int64_t depth, bool rounds)
    : SlicedSums(shader, depth, /*groupSize=*/4, shader.e.b.getI32Type()), hasDot(shader.mayUse(integerDotFeature)),
      integers(shader, depth, contractRows, rounds), chunk(shader.sharedArray(i32, contractRows * chunkWords)) {}

void Int8Sums::fillChunk(const ContractTile &tile, Value from) {
  shader.forShare(e.index(0), e.mul(tile.count, e.index(chunkWords)), [&](Value i) {
    Value row = e.div(i, e.index(chunkWords)), word = e.add(from, e.rem(i, e.index(chunkWords)));
    e.ifThen(e.less(word, integers.words()),
             [&] { e.store(integers.word(tile, row, word), e.pointer(chunk, i, i32)); });
  });
}

Value Int8Sums::addProducts(Value sum, Value x, Value w) {
  if (hasDot) {
    Value product = e.b.create<spirv::SDotOp>(
        e.loc, i32, x, withoutOffset(e, w),
        spirv::PackedVectorFormatAttr::get(e.b.getContext(), spirv::PackedVectorFormat::PackedVectorFormat4x8Bit));
    return e.add(sum, product);
  }
  Num bits{e, x};
  for (auto [i, weight] : llvm::enumerate(signedBytes(e, w))) {
    Num factor = (bits << (24 - 8 * static_cast<int64_t>(i))) >> 24;
    sum = e.add(sum, e.mul(factor.v, weight));
  }
  return sum;
}

SmallVector<Value> Int8Sums::emit(const ContractTile &tile, int64_t height) {
  SmallVector<Value> totals(height * contractColumns, e.integer(i32, 0));
  return e.forLoop(e.index(0), integers.words(), chunkWords, totals, [&](Value from, ValueRange carried) {
    shader.barrier(); // nobody reads the last chunk any more
    fillChunk(tile, from);
    shader.barrier();
    Value to = e.minimum(e.sub(integers.words(), from), e.index(chunkWords));
    auto loop = [&](Value word, ValueRange sofar) {
      Emitter::Carried next(sofar);
      Value columns = loadWords(tile, e.add(from, word), i32);
      for (int64_t r = 0; r < height; ++r) {
        Value x = e.load(e.pointer(chunk, e.add(e.index(r * chunkWords), word), i32), i32);
        for (int64_t c = 0; c < contractColumns; ++c) {
          Value &sum = next[r * contractColumns + c];
          sum = addProducts(sum, x, shader.component(columns, c));
        }
      }
      return next;
    };
    return shader.strided(slice, to, slices, carried, loop);
  });
}
