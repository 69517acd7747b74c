//===- MergeMapDimensions.cpp - fewer, longer dimensions for kernel.map -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A map over [batch, source, 512] whose loads use the three indices side by side is a map over [batch * source * 512]:
// no index arithmetic, and full vectors where the innermost dimension is short.

#include "codegen/emit/WorkItems.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::transept;

namespace {

/// True where dimensions d and d + 1 of the domain only occur as adjacent indices of loads, of the same extents.
bool mergeable(MapOp op, unsigned d, ArrayRef<DimAttr> domain) {
  Block &block = op.getBody().front();
  Value outer = block.getArgument(d), inner = block.getArgument(d + 1);
  auto side = [&](Value value, unsigned offset) {
    for (OpOperand &use : value.getUses()) {
      auto load = dyn_cast<LoadOp>(use.getOwner());
      if (!load || use.getOperandNumber() == 0)
        return false;
      unsigned place = use.getOperandNumber() - 1; // among the indices
      if (place < offset || place - offset + 1 >= load.getIndices().size())
        return false;
      unsigned first = place - offset;
      if (load.getIndices()[first] != outer || load.getIndices()[first + 1] != inner)
        return false;
      unsigned input = cast<BlockArgument>(load.getSource()).getArgNumber() - domain.size();
      if (cast<DimsAttr>(op.getShapes()[input]).getDims()[first + 1] != domain[d + 1])
        return false;
    }
    return true;
  };
  return side(outer, 0) && side(inner, 1);
}

/// Inputs whose loads all use both dimensions get the merged shape; an input that no load touches keeps its own.
bool shapesAgree(MapOp op, unsigned d, unsigned rank, SmallVectorImpl<std::optional<unsigned>> &places) {
  Block &block = op.getBody().front();
  Value outer = block.getArgument(d);
  places.assign(op.getInputs().size(), std::nullopt);
  for (unsigned i = 0; i < op.getInputs().size(); ++i) {
    std::optional<unsigned> place;
    bool plain = false;
    for (Operation *user : block.getArgument(rank + i).getUsers()) {
      auto load = dyn_cast<LoadOp>(user);
      if (!load)
        return false;
      std::optional<unsigned> found;
      for (auto [k, index] : llvm::enumerate(load.getIndices())) {
        if (index != outer)
          continue;
        if (found)
          return false;
        found = k;
      }
      if (found && place && *found != *place)
        return false;
      plain |= !found;
      place = found ? found : place;
    }
    if (place && plain)
      return false;
    places[i] = place;
  }
  return true;
}

void merge(MapOp op, unsigned d, SmallVectorImpl<DimAttr> &domain, ArrayRef<std::optional<unsigned>> places) {
  Block &block = op.getBody().front();
  unsigned rank = domain.size();
  SmallVector<Attribute> shapes(op.getShapes().getValue());
  auto mergeDims = [](ArrayRef<DimAttr> dims, unsigned at) {
    SmallVector<DimAttr> merged(dims);
    merged[at] = dimMul(merged[at], merged[at + 1]);
    merged.erase(merged.begin() + at + 1);
    return merged;
  };
  for (auto [i, place] : llvm::enumerate(places)) {
    if (!place)
      continue;
    shapes[i] = DimsAttr::get(op.getContext(), mergeDims(cast<DimsAttr>(shapes[i]).getDims(), *place));
    for (Operation *user : llvm::make_early_inc_range(block.getArgument(rank + i).getUsers()))
      cast<LoadOp>(user)->eraseOperand(1 + *place + 1);
  }
  for (unsigned i = op.getInputs().size(); i < shapes.size(); ++i)
    shapes[i] = DimsAttr::get(op.getContext(), mergeDims(cast<DimsAttr>(shapes[i]).getDims(), d));
  SmallVector<DimAttr> merged = mergeDims(domain, d);
  domain.assign(merged.begin(), merged.end());
  op.setShapesAttr(ArrayAttr::get(op.getContext(), shapes));
  op.setDomainAttr(ArrayAttr::get(op.getContext(), SmallVector<Attribute>(domain.begin(), domain.end())));
  block.eraseArgument(d + 1);
}

} // namespace

void emit::mergeMapDimensions(MapOp op) {
  SmallVector<DimAttr> domain;
  for (Attribute dim : op.getDomain())
    domain.push_back(cast<DimAttr>(dim));
  // Live rows count the leading dimension, which therefore stays.
  unsigned first = op.getLiveRows() ? 1 : 0;
  for (unsigned d = domain.size(); d-- > first + 1;) {
    SmallVector<std::optional<unsigned>> places;
    if (mergeable(op, d - 1, domain) && shapesAgree(op, d - 1, domain.size(), places))
      merge(op, d - 1, domain, places);
  }
}

transept::DimAttr emit::chunksOf(transept::DimAttr size, int64_t chunk) {
  MLIRContext *context = size.getContext();
  return dimFloorDiv(dimAdd(size, dimConstant(context, chunk - 1)), dimConstant(context, chunk));
}
