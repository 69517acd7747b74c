//===- RowIntegers.cpp - rows of a product as integers in a shader ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/vulkan/RowIntegers.h"
#include "codegen/emit/Num.h"
#include "codegen/vulkan/Kernels.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Emitter;
using emit::Num;

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

RowIntegers::RowIntegers(Shader &shader, int64_t depth, int64_t rows, bool rounds)
    : shader(shader), e(shader.e), f32(e.f32()), i32(e.b.getI32Type()), depth(depth), rounds(rounds) {
  if (!rounds)
    return;
  slots = shader.sharedArrayPerInvocation(i32);
  factors = shader.sharedArray(f32, rows);
  scales = shader.sharedArray(f32, rows);
}

Value RowIntegers::words() { return e.index((depth + 3) / 4); }

/// A team looks through a row; the order of a maximum is no matter.
void RowIntegers::prepare(const ContractTile &tile) {
  if (!rounds)
    return;
  Value team = e.div(shader.local, e.index(contractTeam)), member = e.rem(shader.local, e.index(contractTeam));
  Value isFirst = e.compare(arith::CmpIPredicate::eq, member, e.index(0));
  shader.strided(
      e.index(0), tile.count, e.div(shader.groupSize, e.index(contractTeam)), ValueRange(),
      [&](Value from, ValueRange) {
        Value row = e.add(from, team), isThere = e.less(row, tile.count);
        e.ifThen(isThere, [&] { e.store(largestOf(tile, row, member), e.pointer(slots, shader.local, i32)); });
        shader.barrier();
        e.ifThen(e.b.create<arith::AndIOp>(e.loc, isThere, isFirst), [&] {
          auto slot = [&](Value i) { return e.load(e.pointer(slots, e.add(shader.local, i), i32), i32); };
          Value largest =
              e.forLoop(e.index(1), e.index(contractTeam), 1, ValueRange{slot(e.index(0))},
                        [&](Value i, ValueRange sofar) { return Emitter::Carried{e.maximum(sofar[0], slot(i))}; })[0];
          storeScale(row, largest);
        });
        shader.barrier();
        return Emitter::Carried();
      });
}

/// Of the words that fall to one of a team. Magnitudes are ordered like their bits, NaN above all.
Value RowIntegers::largestOf(const ContractTile &tile, Value row, Value member) {
  return shader.strided(member, words(), e.index(contractTeam), ValueRange{e.integer(i32, 0)},
                        [&](Value word, ValueRange sofar) {
                          Value largest = sofar[0];
                          for (Value element : rowElements(shader, tile, depth, row, e.mul(word, e.index(4)), 4)) {
                            Num bits = Num{e, element}.bits();
                            largest = e.maximum(largest, (bits & bits.likeInteger(0x7fffffff)).v);
                          }
                          return Emitter::Carried{largest};
                        })[0];
}

void RowIntegers::storeScale(Value row, Value largestBits) {
  constexpr double smallest = 1e-35;
  Num bits{e, largestBits}, largest = bits.asFloat();
  Value isNormal = e.compare(arith::CmpFPredicate::OGE, largest.v, e.number(f32, smallest));
  Value isFinite =
      e.compare(arith::CmpFPredicate::OLT, largest.v, e.number(f32, std::numeric_limits<double>::infinity()));
  Value divides = e.b.create<arith::AndIOp>(e.loc, isNormal, isFinite);
  e.store(e.select(divides, exactInverse(e, bits.v), e.number(f32, 0)), e.pointer(factors, row, f32));
  e.store((largest / largest.like(127)).v, e.pointer(scales, row, f32));
}

Value RowIntegers::word(const ContractTile &tile, Value row, Value word) {
  return rounds ? roundedWord(tile, row, word) : integerWord(tile, row, word);
}

Value RowIntegers::roundedWord(const ContractTile &tile, Value row, Value word) {
  // Adding 1.5 * 2^23 leaves the integer, rounded to nearest even, in the low bits.
  constexpr double shift = 12582912.0;
  constexpr int64_t shiftBits = 0x4b400000;
  Num factor{e, e.load(e.pointer(factors, row, f32), f32)};
  Num packed{e, e.integer(i32, 0)};
  for (auto [place, element] : llvm::enumerate(rowElements(shader, tile, depth, row, e.mul(word, e.index(4)), 4))) {
    Num moved = Num{e, element} * factor + shift;
    Num byte = (moved.bits() - packed.likeInteger(shiftBits)) & packed.likeInteger(0xff);
    packed = packed | (byte << (8 * static_cast<int64_t>(place)));
  }
  return packed.v;
}

Value RowIntegers::integerWord(const ContractTile &tile, Value row, Value word) {
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

Value RowIntegers::finish(Value sum, Value row) {
  if (!rounds)
    return sum;
  return e.mul(e.b.create<arith::SIToFPOp>(e.loc, f32, sum), e.load(e.pointer(scales, row, f32), f32));
}
