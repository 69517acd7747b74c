//===- MatrixSums.cpp - products of integers by matrices of subgroups ---------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The workgroup brings a chunk of k into memory it shares: rows of x as integers, and columns of the panel without
// their offset, each contiguous along k. A subgroup multiplies one column of matrices by some rows of them.

#include "codegen/vulkan/MatrixSums.h"
#include "codegen/vulkan/Int8Sums.h"
#include "codegen/vulkan/Kernels.h"
#include "codegen/vulkan/ToSpirv.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;
using emit::Emitter;

// Rows and columns of a chunk begin at multiples of 16 bytes, as matrices must, and in different banks of memory.
static constexpr int64_t chunkWords = matrixTileDepth / 4, pitch = chunkWords + 4;
static constexpr int64_t weightsAt = matrixTileRows * pitch, sharedWords = weightsAt + panelColumns * pitch;
static_assert(matrixTileRows * panelColumns <= sharedWords, "sums take the place of the chunk");

namespace {

/// Types of matrices whose sizes are constants of the pipeline.
struct MatrixTypes {
  explicit MatrixTypes(OpBuilder &b) {
    auto type = [&](Type element, MatrixSize rows, MatrixSize columns, spirv::CooperativeMatrixUseKHR use) {
      return spirv::CooperativeMatrixType::get(element, matrixSizeWord(rows), matrixSizeWord(columns),
                                               spirv::Scope::Subgroup, use);
    };
    using Use = spirv::CooperativeMatrixUseKHR;
    x = type(b.getI8Type(), MatrixSize::Rows, MatrixSize::Depth, Use::MatrixA);
    weights = type(b.getI8Type(), MatrixSize::Depth, MatrixSize::Columns, Use::MatrixB);
    sums = type(b.getI32Type(), MatrixSize::Rows, MatrixSize::Columns, Use::MatrixAcc);
  }
  Type x, weights, sums;
};

} // namespace

MatrixSums::MatrixSums(Shader &shader, int64_t depth, bool rounds)
    : ContractSums(shader, depth, /*groupSize=*/4), integers(shader, depth, matrixTileRows, rounds),
      shared(shader.sharedArray(i32, sharedWords)) {}

void MatrixSums::compute(const ContractTile &tile) {
  integers.prepare(tile);
  Value columns = e.div(e.index(panelColumns), shader.matrixColumns);
  column = e.rem(shader.subgroup, columns);
  row = e.div(shader.subgroup, columns);
  step = e.div(shader.subgroups, columns);
  auto ceilDiv = [&](Value x, Value y) { return e.div(e.sub(e.add(x, y), e.index(1)), y); };
  matrices = ceilDiv(tile.count, shader.matrixRows);
  height = ceilDiv(matrices, step);
  emitTile(tile, matricesPerSubgroup);
}

/// The smallest of the heights 1, 2, 4 that holds the subgroup's matrices.
void MatrixSums::emitTile(const ContractTile &tile, int64_t most) {
  if (most == 1)
    return emitSums(tile, most);
  Value fits = e.less(height, e.index(most / 2 + 1));
  e.ifElse(fits, [&] { emitTile(tile, most / 2); }, [&] { emitSums(tile, most); });
}

/// The subgroup's i-th row of matrices; one behind the last computes the last one again.
Value MatrixSums::rowOf(int64_t i) {
  return e.minimum(e.add(row, e.mul(step, e.index(i))), e.sub(matrices, e.index(1)));
}

void MatrixSums::emitSums(const ContractTile &tile, int64_t most) {
  MatrixTypes types(e.b);
  Value zero = e.b.create<spirv::CompositeConstructOp>(e.loc, types.sums, ValueRange{e.integer(i32, 0)});
  auto multiply = [&](Value x, Value weights, Value sum) -> Value {
    using Operands = spirv::CooperativeMatrixOperandsKHR;
    auto areSigned = Operands::ASigned | Operands::BSigned | Operands::CSigned | Operands::ResultSigned;
    return e.b.create<spirv::KHRCooperativeMatrixMulAddOp>(
        e.loc, types.sums, x, weights, sum, spirv::CooperativeMatrixOperandsKHRAttr::get(e.b.getContext(), areSigned));
  };
  Value firstColumn = e.mul(e.mul(column, shader.matrixColumns), e.index(pitch));
  SmallVector<Value> sums(most, zero);
  sums = e.forLoop(e.index(0), integers.words(), chunkWords, sums, [&](Value from, ValueRange carried) {
    shader.barrier(); // nobody reads the last chunk any more
    fillRows(tile, from);
    fillWeights(tile, from);
    shader.barrier();
    Value bytes = e.mul(e.minimum(e.sub(integers.words(), from), e.index(chunkWords)), e.index(4));
    return shader.strided(e.index(0), bytes, shader.matrixDepth, carried, [&](Value k, ValueRange sofar) {
      Emitter::Carried next;
      Value word = e.div(k, e.index(4));
      Value weights = load(types.weights, e.add(e.add(e.index(weightsAt), firstColumn), word), false);
      for (int64_t i = 0; i < most; ++i) {
        Value firstRow = e.mul(e.mul(rowOf(i), shader.matrixRows), e.index(pitch));
        next.push_back(multiply(load(types.x, e.add(firstRow, word), true), weights, sofar[i]));
      }
      return next;
    });
  });
  shader.barrier(); // sums take the place of the chunk
  for (int64_t i = 0; i < most; ++i)
    e.ifThen(e.less(e.add(row, e.mul(step, e.index(i))), matrices), [&] {
      Value place =
          e.add(e.mul(e.mul(rowOf(i), shader.matrixRows), e.index(panelColumns)), e.mul(column, shader.matrixColumns));
      e.b.create<spirv::KHRCooperativeMatrixStoreOp>(
          e.loc, pointerTo(place), sums[i], spirv::CooperativeMatrixLayoutKHR::RowMajor, e.integer(i32, panelColumns),
          spirv::MemoryAccessAttr::get(e.b.getContext(), spirv::MemoryAccess::NonPrivatePointer));
    });
}

/// Behind the end of a row there are zeros up to the end of the chunk: whatever the weights are there, products are 0.
void MatrixSums::fillRows(const ContractTile &tile, Value from) {
  shader.forShare(e.index(0), e.mul(tile.count, e.index(chunkWords)), [&](Value i) {
    Value row = e.div(i, e.index(chunkWords)), word = e.rem(i, e.index(chunkWords)), k = e.add(from, word);
    Value place = e.pointer(shared, e.add(e.mul(row, e.index(pitch)), word), i32);
    e.ifElse(
        e.less(k, integers.words()), [&] { e.store(integers.word(tile, row, k), place); },
        [&] { e.store(e.integer(i32, 0), place); });
  });
}

void MatrixSums::fillWeights(const ContractTile &tile, Value from) {
  constexpr int64_t fours = panelColumns / 4;
  shader.forShare(e.index(0), e.index(fours * chunkWords), [&](Value i) {
    Value column = e.mul(e.rem(i, e.index(fours)), e.index(4)), word = e.div(i, e.index(fours));
    Value k = e.add(from, word);
    e.ifThen(e.less(k, integers.words()), [&] {
      Value place = e.pointer(tile.weights, e.add(e.mul(k, e.index(panelColumns)), column), i32);
      Value four = e.b.create<LLVM::LoadOp>(e.loc, VectorType::get({4}, i32), place, /*alignment=*/16);
      four = withoutOffset(e, four);
      for (int64_t c = 0; c < 4; ++c) {
        Value to = e.add(e.mul(e.add(column, e.index(c)), e.index(pitch)), word);
        e.store(shader.component(four, c), e.pointer(shared, e.add(e.index(weightsAt), to), i32));
      }
    });
  });
}

/// The place of a word in the shared array, as the spirv dialect has pointers.
Value MatrixSums::pointerTo(Value word) {
  Type type = spirv::PointerType::get(i32, spirv::StorageClass::Workgroup);
  return e.b.create<UnrealizedConversionCastOp>(e.loc, type, e.pointer(shared, word, i32)).getResult(0);
}

Value MatrixSums::load(Type matrix, Value word, bool rowsAreAdjacent) {
  auto layout =
      rowsAreAdjacent ? spirv::CooperativeMatrixLayoutKHR::RowMajor : spirv::CooperativeMatrixLayoutKHR::ColumnMajor;
  return e.b.create<spirv::KHRCooperativeMatrixLoadOp>(
      e.loc, matrix, pointerTo(word), layout, e.integer(i32, pitch),
      spirv::MemoryAccessAttr::get(e.b.getContext(), spirv::MemoryAccess::NonPrivatePointer));
}

Value MatrixSums::sumOf(Value row, Value column) {
  Value place = e.add(e.mul(row, e.index(panelColumns)), column);
  return integers.finish(e.load(e.pointer(shared, place, i32), i32), row);
}
