//===- OnlineSoftmax.h - softmax over blocks of keys --------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A query row goes over absolute blocks of attendKeys keys from key 0. A hidden key has the score -inf and with it the
// weight 0, and a block of hidden keys changes nothing: the bits of a row depend on its visible keys alone.

#ifndef TRANSEPT_CODEGEN_CPU_ONLINESOFTMAX_H
#define TRANSEPT_CODEGEN_CPU_ONLINESOFTMAX_H

#include "codegen/emit/Emitter.h"

namespace mlir::kernel::cpu {

struct SoftmaxState {
  Value maximum; // of the scores so far; -inf at the start. One that is not a number may be left out
  Value total;   // of exp(score - maximum); 0 at the start and as long as nothing was visible; NaN where a score is
  Value factor;  // by which what was summed with earlier weights has to be multiplied
};

/// The score of 16 keys, -inf where hidden, from what `scores` holds for them; the position is within the block.
using ScoreOf = llvm::function_ref<Value(Value raw, Value position)>;

/// Replaces the `count` (up to attendKeys) raw scores of a block by their weights exp(score - maximum). Whole groups of
/// 16 are read and written; scores behind the last key become -inf.
SoftmaxState emitSoftmaxBlock(emit::Emitter &emitter, Value scores, Value count, ScoreOf scoreOf, Value maximum,
                              Value total);

/// Several rows and a block of keys.
struct SoftmaxRows {
  Value scores;          // [rows, attendKeys] raw scores, then weights
  Value maxima, totals;  // as in SoftmaxState, per row; 16 are read and written at a time
  Value shifts, factors; // 16 floats of scratch each
  Value parts;           // 16 * 16 floats of scratch
  Value rows, count;     // count: keys of the block
  bool whole = false;    // count is attendKeys
};

/// What emitSoftmaxBlock does, for many rows: what there is to do per row and block is done for 16 rows at once.
/// `scoreOf` and `rescale`, which gets the factors other than 1, are told the row.
void emitSoftmaxRows(emit::Emitter &emitter, const SoftmaxRows &softmax,
                     llvm::function_ref<Value(Value raw, Value row, Value position)> scoreOf,
                     llvm::function_ref<void(Value row, Value factor)> rescale);

/// Sixteen adjacent elements of row `row` of a table [rows, columns] that begin at `column`, which may lie outside; the
/// first sixteen elements of a row are equal, and so are the last.
Value emitRelative(emit::Emitter &emitter, Value table, llvm::ArrayRef<transept::DimAttr> shape, Value row,
                   Value column);

/// `maximum`, or 0 where nothing was visible: what exponents are taken relative to.
Value finiteMaximum(emit::Emitter &emitter, Value maximum);

} // namespace mlir::kernel::cpu

#endif // TRANSEPT_CODEGEN_CPU_ONLINESOFTMAX_H
