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

SmallVector<Value> vulkan::signedBytes(Emitter &e, Value words) {
  Num bits{e, words}, withoutOffset = bits ^ bits.likeInteger(static_cast<int32_t>(0x80808080));
  SmallVector<Value> bytes;
  for (int64_t i = 0; i < 4; ++i)
    bytes.push_back(((i == 3 ? withoutOffset : withoutOffset << (24 - 8 * i)) >> 24).v);
  return bytes;
}

/// 127 / x, rounded to nearest even, for normal x with bits `bits` whose quotient is normal: drivers may divide less
/// exactly.
static Value exactInverse(Emitter &e, Value bits) {
  auto wide = [&](Value word) { return Num{e, e.b.create<arith::ExtUIOp>(e.loc, e.b.getI64Type(), word)}; };
  auto quotientOf = [&](Num x, Num y) { return x.of(e.b.createOrFold<arith::DivUIOp>(e.loc, x.v, y.v)); };
  auto isTrue = [&](arith::CmpIPredicate predicate, Num x, Num y) { return x.of(e.compare(predicate, x.v, y.v)); };
  using Predicate = arith::CmpIPredicate;
  Num x = wide(bits), exponent = shiftRight(x, 23);
  Num mantissa = (x & x.likeInteger(0x7fffff)) | x.likeInteger(0x800000);
  // 26 or 27 bits, of which 2 or 3 are rounded away.
  Num dividend = x.likeInteger(int64_t(127) << 43), quotient = quotientOf(dividend, mantissa);
  Num exact = isTrue(Predicate::eq, quotient * mantissa, dividend);
  Num isLong = isTrue(Predicate::uge, quotient, x.likeInteger(1 << 26));
  Num kept = select(isLong, shiftRight(quotient, 3), shiftRight(quotient, 2));
  Num lost = select(isLong, quotient & x.likeInteger(7), (quotient & x.likeInteger(3)) << 1); // in eighths
  Num half = x.likeInteger(4);
  Num odd = isTrue(Predicate::eq, kept & x.likeInteger(1), x.likeInteger(1));
  Num up = isTrue(Predicate::ugt, lost, half) | (isTrue(Predicate::eq, lost, half) & (!exact | odd));
  Num rounded = select(up, kept + x.likeInteger(1), kept);
  Num power = select(isLong, x.likeInteger(259), x.likeInteger(258)) - exponent;
  Num result = (power << 23) + rounded;
  return Num{e, e.b.create<arith::TruncIOp>(e.loc, e.b.getI32Type(), result.v)}.asFloat().v;
}

Int8Sums::Int8Sums(Shader &shader, int64_t depth, bool rounds)
    : ContractSums(shader, depth, /*groupSize=*/4), rounds(rounds), hasDot(shader.mayUse(integerDotFeature)),
      slots(shader.sharedArrayPerInvocation(i32)), factors(shader.sharedArray(f32, contractRows)),
      scales(shader.sharedArray(f32, contractRows)), rounded(shader.sharedArray(i32, contractRows * chunkWords)) {}

void Int8Sums::prepare(const ContractTile &tile) {
  if (!rounds)
    return;
  Value isFirst = e.compare(arith::CmpIPredicate::eq, shader.local, e.index(0));
  e.forLoop(e.index(0), tile.count, 1, [&](Value row) {
    // Magnitudes are ordered like their bits, NaN above all.
    Value mine = shader.forShare(e.index(0), words(), ValueRange{e.integer(i32, 0)}, [&](Value word, ValueRange sofar) {
      Value largest = sofar[0];
      for (Value element : rowElements(tile, row, e.mul(word, e.index(4)), 4)) {
        Num bits = Num{e, element}.bits();
        largest = e.maximum(largest, (bits & bits.likeInteger(0x7fffffff)).v);
      }
      return Emitter::Carried{largest};
    })[0];
    Num bits{e, shader.combineInOrder("max", mine, slots)}, largest = bits.asFloat();
    e.ifThen(isFirst, [&] {
      constexpr double smallest = 1e-35;
      Value isNormal = e.compare(arith::CmpFPredicate::OGE, largest.v, e.number(f32, smallest));
      Value isFinite =
          e.compare(arith::CmpFPredicate::OLT, largest.v, e.number(f32, std::numeric_limits<double>::infinity()));
      Value divides = e.b.create<arith::AndIOp>(e.loc, isNormal, isFinite);
      Value factor = e.select(divides, exactInverse(e, bits.v), e.number(f32, 0));
      e.store(factor, e.pointer(factors, row, f32));
      e.store((largest / largest.like(127)).v, e.pointer(scales, row, f32));
    });
    shader.barrier();
  });
}

Value Int8Sums::roundedWord(const ContractTile &tile, Value row, Value word) {
  // Adding 1.5 * 2^23 leaves the integer, rounded to nearest even, in the low bits.
  constexpr double shift = 12582912.0;
  constexpr int64_t shiftBits = 0x4b400000;
  Num factor{e, e.load(e.pointer(factors, row, f32), f32)};
  Num packed{e, e.integer(i32, 0)};
  for (auto [place, element] : llvm::enumerate(rowElements(tile, row, e.mul(word, e.index(4)), 4))) {
    Num moved = Num{e, element} * factor + shift;
    Num byte = (moved.bits() - packed.likeInteger(shiftBits)) & packed.likeInteger(0xff);
    packed = packed | (byte << (8 * static_cast<int64_t>(place)));
  }
  return packed.v;
}

Value Int8Sums::integerWord(const ContractTile &tile, Value row, Value word) {
  Type i8 = e.b.getI8Type();
  Num packed{e, e.integer(i32, 0)};
  for (int64_t i = 0; i < 4; ++i) {
    Value k = e.add(e.mul(word, e.index(4)), e.index(i)), inside = e.minimum(k, e.index(depth - 1));
    Value byte = e.load(e.pointer(tile.x, e.add(e.mul(row, e.index(depth)), inside), i8), i8);
    Value wide = e.b.create<arith::ExtUIOp>(e.loc, i32, byte);
    if (depth % 4 != 0)
      wide = e.select(e.less(k, e.index(depth)), wide, e.integer(i32, 0));
    packed = packed | (Num{e, wide} << (8 * i));
  }
  return packed.v;
}

void Int8Sums::fillChunk(const ContractTile &tile, Value from) {
  shader.forShare(e.index(0), e.mul(tile.count, e.index(chunkWords)), [&](Value i) {
    Value row = e.div(i, e.index(chunkWords)), word = e.add(from, e.rem(i, e.index(chunkWords)));
    e.ifThen(e.less(word, words()), [&] {
      e.store(rounds ? roundedWord(tile, row, word) : integerWord(tile, row, word), e.pointer(rounded, i, i32));
    });
  });
}

Value Int8Sums::addProducts(Value sum, Value x, Value w) {
  if (hasDot) {
    Num bits{e, w};
    Value weights = (bits ^ bits.likeInteger(static_cast<int32_t>(0x80808080))).v;
    Value product = e.b.create<spirv::SDotOp>(
        e.loc, i32, x, weights,
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
  return e.forLoop(e.index(0), words(), chunkWords, totals, [&](Value from, ValueRange carried) {
    shader.barrier(); // nobody reads the last chunk any more
    fillChunk(tile, from);
    shader.barrier();
    Value to = e.minimum(e.sub(words(), from), e.index(chunkWords));
    auto loop = [&](Value word, ValueRange sofar) {
      Emitter::Carried next(sofar);
      Value columns = loadWords(tile, e.add(from, word), i32);
      for (int64_t r = 0; r < height; ++r) {
        Value x = e.load(e.pointer(rounded, e.add(e.index(r * chunkWords), word), i32), i32);
        for (int64_t c = 0; c < contractColumns; ++c) {
          Value &sum = next[r * contractColumns + c];
          sum = addProducts(sum, x, shader.component(columns, c));
        }
      }
      return next;
    };
    return shader.strided(tile.slice, to, tile.slices, carried, loop);
  });
}

Value Int8Sums::finish(Value sum, Value row) {
  if (!rounds)
    return sum;
  return e.mul(e.b.create<arith::SIToFPOp>(e.loc, f32, sum), e.load(e.pointer(scales, row, f32), f32));
}
