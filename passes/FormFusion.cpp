//===- FormFusion.cpp - the order of fusions
//-----------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormFusion.h"
#include "ir/HostTensor.h"
#include "ir/WeightStore.h"
#include "mlir/IR/Matchers.h"
#include "passes/Screen.h"
#include "passes/Shortlist.h"
#include "passes/Stage.h"

using namespace mlir;
using namespace mlir::transept;

/// Splats of up to this many bytes are stored; larger ones are cheaper to compute than to keep.
constexpr int64_t maxStoredSplatBytes = 1 << 16;

void transept::storeConstantMaps(kernel::EntryOp entry) {
  for (auto map : llvm::make_early_inc_range(entry.getBody().front().getOps<kernel::MapOp>())) {
    auto type = cast<RankedTensorType>(map->getResult(0).getType());
    Attribute value;
    if (map->getNumResults() != 1 || !map.getInputs().empty() || !type.hasStaticShape() ||
        type.getNumElements() * byteWidth(type.getElementType()) > maxStoredSplatBytes ||
        !matchPattern(map.getBody().front().getTerminator()->getOperand(0), m_Constant(&value)))
      continue;
    auto scalar = RankedTensorType::get({}, cast<TypedAttr>(value).getType());
    HostTensor element = HostTensor::fromElements(DenseElementsAttr::get(scalar, value));
    HostTensor tensor = HostTensor::make(type);
    for (int64_t i = 0, width = byteWidth(type.getElementType()); i < type.getNumElements(); ++i)
      std::copy(element.bytes().begin(), element.bytes().end(), tensor.data() + i * width);
    OpBuilder builder(map);
    std::string key = WeightStore::of(entry.getContext()).add(type, tensor.bytes());
    Value constant =
        builder.create<kernel::ConstantOp>(map.getLoc(), type, builder.getStrArrayAttr({key}),
                                           builder.getDenseBoolArrayAttr(false), builder.getStringAttr("rows"));
    map->getResult(0).replaceAllUsesWith(constant);
    map.erase();
  }
}

void transept::fuseEntry(kernel::EntryOp entry) {
  simplifyBodies(entry);
  inlineMaps(entry, InlineScope::Free);
  simplifyBodies(entry);
  // A map joins the contraction it follows before it is offered to others: there it costs no memory traffic at all.
  // Chains of maps must have become one for that.
  bool changed = true;
  while (changed) {
    changed = fuseEpilogues(entry);
    changed |= inlineMaps(entry, InlineScope::Single);
    simplifyBodies(entry);
  }
  mergeContracts(entry);
  while (inlineMaps(entry, InlineScope::All))
    simplifyBodies(entry);
  storeConstantMaps(entry);
  simplifyBodies(entry);
  if (llvm::is_contained({stepName, alignmentsName, greedyName, listedName}, entry.getSymName()))
    limitToLiveRows(entry);
}
