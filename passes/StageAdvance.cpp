//===- StageAdvance.cpp - from one step to the next without the host ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Kernel.h"
#include "passes/StepBuilder.h"

using namespace mlir;
using namespace mlir::transept;

static RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Blocks of the head.
static int64_t headBlocks(const WholeModel &model) {
  func::FuncOp function = model.function;
  Value logits = function.getBody().front().getTerminator()->getOperand(0);
  return llvm::divideCeil(rankedType(logits).getShape().back(), kernel::vocabularyBlock);
}

/// Blocks of the head ascend, as tokens do in them: of equal candidates the first one has the lowest token. All rows
/// are continued, also those not in use, whose candidates are zeros or those of an earlier step: the next step may read
/// the token and the position of any row.
void StepBuilder::buildAdvance() {
  Location loc = model.function.getLoc();
  DimAttr blocks = dimConstant(context, headBlocks(model));
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type(), i64 = builder.getI64Type();
  startEntry(advanceName, {});
  auto best = [&](StringRef name, Type element) {
    Value all = state(name, {rows, blocks, dimSymbol(context, "topk")}, element);
    Attribute zero = dimConstant(context, 0);
    Value first =
        builder.create<SliceOp>(loc, makeType({rows, blocks, one}, element), all, Value(), Value(), Value(), Value(),
                                builder.getArrayAttr({zero, zero, zero}), builder.getDenseI64ArrayAttr({1, 1, 1}));
    return reshape(loc, first, {rows, blocks});
  };
  Value block = builder.create<ArgMaxOp>(loc, makeType({rows, one}, i64), best("search.value", f32), /*axis=*/1,
                                         /*keepdims=*/true, /*selectLastIndex=*/false, /*smallest=*/false);
  Value token = builder.create<GatherElementsOp>(loc, makeType({rows, one}, i32), best("search.token", i32), block,
                                                 /*axis=*/1);
  continueRows(token);
  builder.create<func::ReturnOp>(loc);
  result.advance = true;
}

/// `token` i32 [rows, 1] at the next position. No candidate is -1; what follows it is not taken.
void StepBuilder::continueRows(Value token) {
  Location loc = model.function.getLoc();
  Type i64 = builder.getI64Type();
  token = builder.create<CastOp>(loc, makeType({rows, one}, i64), token, TypeAttr::get(i64));
  HostTensor zero = HostTensor::make(RankedTensorType::get({}, i64));
  Value none = builder.create<ConstantOp>(loc, zero.getType(), zero.toElements());
  token = builder.create<MaxOp>(loc, token.getType(), token, none);
  builder.create<ExportOp>(loc, "step.token", reshape(loc, token, {rows}));
  Value next = addNumber(loc, state("step.position", {rows, one}, i64), 1);
  builder.create<ExportOp>(loc, "step.position", reshape(loc, next, {rows}));
}

namespace {

/// Element-wise ops on tensors whose axes are equal or 1, and what is made of them.
struct Tensors {
  OpBuilder &b;
  Location loc;
  Type i1 = b.getI1Type(), i32 = b.getI32Type();

  SmallVector<DimAttr> together(Value x, Value y) const {
    SmallVector<DimAttr> left = dimsOf(rankedType(x)), right = dimsOf(rankedType(y));
    if (left.empty() || right.empty())
      return left.empty() ? right : left;
    for (auto [l, r] : llvm::zip_equal(left, right))
      l = constantValue(l) == 1 ? r : l;
    return left;
  }
  template <typename Op> Value apply(Value x, Value y, Type element = Type()) const {
    return b.create<Op>(loc, makeType(together(x, y), element ? element : rankedType(x).getElementType()), x, y);
  }
  Value add(Value x, Value y) const { return apply<AddOp>(x, y); }
  Value sub(Value x, Value y) const { return apply<SubOp>(x, y); }
  Value less(Value x, Value y) const { return apply<LessOp>(x, y, i1); }
  Value equal(Value x, Value y) const { return apply<EqualOp>(x, y, i1); }
  Value both(Value x, Value y) const { return apply<AndOp>(x, y); }
  Value either(Value x, Value y) const { return apply<OrOp>(x, y); }
  /// Whether a candidate goes before another: the larger value, of equal ones the one that `breaks` the tie.
  Value before(Value value, Value other, Value breaks) const {
    return either(less(other, value), both(equal(value, other), breaks));
  }
  Value zero() const {
    HostTensor number = HostTensor::make(RankedTensorType::get({}, i32));
    return b.create<ConstantOp>(loc, number.getType(), number.toElements());
  }
  Value range(DimAttr size) const {
    return b.create<RangeOp>(loc, makeType({size}, i32), Value(), Value(), Value(), dimConstant(b.getContext(), 0),
                             b.getI64IntegerAttr(1));
  }
  Value reshape(Value x, ArrayRef<DimAttr> dims) const {
    return b.create<ReshapeOp>(loc, makeType(dims, rankedType(x).getElementType()), x, Value(), false);
  }
  Value reduce(ReduceKind kind, Value x, ArrayRef<int64_t> axes) const {
    SmallVector<DimAttr> dims;
    for (auto [axis, dim] : llvm::enumerate(dimsOf(rankedType(x))))
      if (!llvm::is_contained(axes, static_cast<int64_t>(axis)))
        dims.push_back(dim);
    return b.create<ReduceOp>(loc, makeType(dims, rankedType(x).getElementType()), x, Value(), kind,
                              b.getDenseI64ArrayAttr(axes), /*keepdims=*/false, /*noopWithEmptyAxes=*/false);
  }
  Value count(Value condition, ArrayRef<int64_t> axes) const {
    Value numbers = b.create<CastOp>(loc, makeType(dimsOf(rankedType(condition)), i32), condition, TypeAttr::get(i32));
    return reduce(ReduceKind::Sum, numbers, axes);
  }
  /// The number in i32 `numbers` where `condition` holds, which is in one place at most; else 0.
  Value only(Value condition, Value numbers, ArrayRef<int64_t> axes) const {
    Value found = b.create<WhereOp>(loc, makeType(together(condition, numbers), i32), condition, numbers, zero());
    return reduce(ReduceKind::Max, found, axes);
  }
  /// Rows of `data` [rows, …].
  Value gatherRows(Value data, Value rows) const {
    SmallVector<DimAttr> dims = dimsOf(rankedType(rows)), inner = dimsOf(rankedType(data));
    dims.append(inner.begin() + 1, inner.end());
    return b.create<GatherOp>(loc, makeType(dims, rankedType(data).getElementType()), data, rows, /*axis=*/0);
  }
  /// result[i, j] = data[i, columns[i, j]].
  Value gatherColumns(Value data, Value columns) const {
    return b.create<GatherElementsOp>(loc, makeType(dimsOf(rankedType(columns)), rankedType(data).getElementType()),
                                      data, columns, /*axis=*/1);
  }
};

} // namespace

/// Row r is member r - step.first[r] of the step.beams[r] rows of its search, and becomes the continuation of that rank
/// among all of theirs. Ranks are counted, so that nothing is computed one after another; of a row no more than `topk`
/// candidates matter, and no search has more than `topk` rows. Where logits are not numbers ranks may be anything, but
/// no index leaves its tensor.
void StepBuilder::buildAdvanceBeams() {
  Location loc = model.function.getLoc();
  DimAttr topk = dimSymbol(context, "topk"), blocks = dimConstant(context, headBlocks(model)),
          all = dimMul(blocks, topk), capacity = dimSymbol(context, "capacity");
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type(), i64 = builder.getI64Type();
  startEntry(advanceBeamsName, {});
  Tensors t{builder, loc};

  Value maxima = state("search.max", {rows, blocks}, f32), sums = state("search.sum", {rows, blocks}, f32);
  Value total = t.reduce(ReduceKind::LogSumExp, t.add(maxima, builder.create<LogOp>(loc, sums.getType(), sums)), {1});

  // The best of each row, in order.
  Value values = t.reshape(state("search.value", {rows, blocks, topk}, f32), {rows, all});
  Value tokens = t.reshape(state("search.token", {rows, blocks, topk}, i32), {rows, all});
  Value numbers = t.range(all), places = t.range(topk);
  Value isEarlier = t.less(t.reshape(numbers, {one, one, all}), t.reshape(numbers, {one, all, one}));
  Value rank =
      t.count(t.before(t.reshape(values, {rows, one, all}), t.reshape(values, {rows, all, one}), isEarlier), {2});
  Value hasPlace = t.equal(t.reshape(rank, {rows, one, all}), t.reshape(places, {one, topk, one}));
  Value best = t.only(hasPlace, t.reshape(numbers, {one, one, all}), {2}); // [rows, topk]
  Value token = t.gatherColumns(tokens, best);
  Value score = t.add(t.reshape(state("step.score", {rows}, f32), {rows, one}),
                      t.sub(t.gatherColumns(values, best), t.reshape(total, {rows, one})));

  // Those of all rows of the search: [rows, member, candidate].
  Value first = t.reshape(state("step.first", {rows}, i32), {rows, one});
  Value beams = t.reshape(state("step.beams", {rows}, i32), {rows, one});
  Value member = t.reshape(places, {one, topk}), isMember = t.less(member, beams); // [rows, topk]
  Value row = t.add(first, builder.create<WhereOp>(loc, makeType({rows, topk}, i32), isMember, member, t.zero()));
  Value own = t.reshape(t.range(rows), {rows, one});
  auto wide = [&](Value x, DimAttr r, DimAttr candidate, DimAttr other, DimAttr otherCandidate) {
    return t.reshape(x, {r, candidate, other, otherCandidate});
  };
  Value isSame = t.equal(row, own), isLower = t.less(row, own);
  Value breaksTie = t.either(wide(isLower, rows, one, topk, one),
                             t.both(wide(isSame, rows, one, topk, one),
                                    t.less(wide(places, one, one, one, topk), wide(places, one, topk, one, one))));
  Value isBefore =
      t.before(wide(t.gatherRows(score, row), rows, one, topk, topk), wide(score, rows, topk, one, one), breaksTie);
  Value rankOfAll = t.count(t.both(isBefore, wide(isMember, rows, one, topk, one)), {2, 3}); // [rows, topk]

  Value isMine = t.both(t.equal(t.gatherRows(rankOfAll, row), t.reshape(t.sub(own, first), {rows, one, one})),
                        t.reshape(isMember, {rows, topk, one}));
  Value parent = t.add(t.reshape(first, {rows}), t.only(isMine, t.reshape(places, {one, topk, one}), {1, 2}));
  Value choice = t.only(isMine, t.reshape(places, {one, one, topk}), {1, 2});
  Value width = builder.create<DimValueOp>(loc, makeType({}, i32), builder.getArrayAttr({topk}));
  Value chosen = t.add(t.apply<MulOp>(parent, width), choice);
  auto ofChosen = [&](Value x) { return t.gatherRows(t.reshape(x, {dimMul(rows, topk)}), chosen); };

  // Up to here positions lie where the parent has them; places behind are the row's own.
  Value table = state("step.block", {rows, capacity}, i32), positions = state("step.position", {rows, one}, i64);
  Value column = builder.create<CastOp>(loc, makeType({capacity}, i64), t.range(capacity), TypeAttr::get(i64));
  Value isNew = t.less(positions, t.reshape(column, {one, capacity}));
  Value moved = builder.create<WhereOp>(loc, table.getType(), isNew, table, t.gatherRows(table, parent));
  builder.create<ExportOp>(loc, "step.block", moved);
  builder.create<ExportOp>(loc, "step.from", parent);
  builder.create<ExportOp>(loc, "step.score", ofChosen(score));
  continueRows(t.reshape(ofChosen(token), {rows, one}));
  builder.create<func::ReturnOp>(loc);
}
