//===- StageLimits.cpp - how many positions a model's tables hold -------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/ElementExpr.h"
#include "passes/Stage.h"

using namespace mlir;
using namespace mlir::transept;

static RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

int64_t transept::positionLimit(func::FuncOp function, StringRef symbol, bool newPosition) {
  MLIRContext *context = function.getContext();
  ElementExprs exprs(context);
  int64_t limit = 0;
  auto restrict = [&](int64_t bound) { limit = limit == 0 ? bound : std::min(limit, bound); };
  function.walk([&](Operation *op) {
    // Look-ups in tables: index = position + offset.
    if (auto gather = dyn_cast<GatherOp>(op)) {
      auto data = rankedType(gather.getData()), index = rankedType(gather.getIndices());
      if (!data || !index || !data.hasStaticShape())
        return;
      SmallVector<const Elem *> indices;
      SmallVector<DimAttr> symbols;
      for (DimAttr dim : dimsOf(index)) {
        symbols.push_back(exprs.indexSymbol("l", dim));
        indices.push_back(constantValue(dim) == 1 ? exprs.number(0) : exprs.index(symbols.back()));
      }
      const Elem *elem = exprs.at(gather.getIndices(), indices);
      for (auto [axis, dim] : llvm::enumerate(dimsOf(index)))
        if (symbolName(dim) == symbol && elem->kind == Elem::Kind::Index)
          if (std::optional<int64_t> offset = constantValue(dimSub(elem->index, symbols[axis])))
            restrict(data.getDimSize(gather.getAxis()) - *offset);
      // The one new position behind `symbol` earlier ones.
      if (elem->kind == Elem::Kind::Index && newPosition)
        if (std::optional<int64_t> offset = constantValue(dimSub(elem->index, dimSymbol(context, symbol))))
          restrict(data.getDimSize(gather.getAxis()) - *offset);
    }
    if (auto slice = dyn_cast<SliceOp>(op)) {
      auto from = rankedType(slice.getInput()), to = rankedType(slice.getResult());
      if (!from || !to || !from.hasStaticShape() || !slice.getStarts())
        return;
      for (auto [axis, dim] : llvm::enumerate(dimsOf(to))) {
        auto start = cast<DimAttr>((*slice.getStarts())[axis]);
        if (newPosition ? constantValue(dim) != 1 : symbolName(dim) != symbol)
          continue;
        if (std::optional<int64_t> offset =
                constantValue(newPosition ? dimSub(start, dimSymbol(context, symbol)) : start))
          restrict(from.getDimSize(axis) - *offset);
      }
    }
  });
  return limit;
}
