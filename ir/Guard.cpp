//===- Guard.cpp - relations that only a run can confirm, as attributes --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Guard.h"
#include "ir/TranseptAttrs.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::transept;

// In the order of GuardRelation.
static constexpr StringLiteral relationNames[] = {"eq", "le", "ge", "ne"};

std::optional<Guard> transept::parseGuard(Attribute attr) {
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(attr);
  if (!dictionary)
    return std::nullopt;
  auto lhs = dictionary.getAs<DimAttr>("lhs"), rhs = dictionary.getAs<DimAttr>("rhs");
  auto relation = dictionary.getAs<StringAttr>("relation"), message = dictionary.getAs<StringAttr>("message");
  const StringLiteral *known = relation ? llvm::find(relationNames, relation.getValue()) : std::end(relationNames);
  if (!lhs || !rhs || !message || known == std::end(relationNames))
    return std::nullopt;
  return Guard{lhs, static_cast<GuardRelation>(known - relationNames), rhs, message.str()};
}

SmallVector<Guard> transept::guardsFromAttr(ArrayAttr attr) {
  SmallVector<Guard> guards;
  for (Attribute entry : attr ? attr.getValue() : ArrayRef<Attribute>())
    if (std::optional<Guard> guard = parseGuard(entry))
      guards.push_back(std::move(*guard));
  return guards;
}

ArrayAttr transept::guardsToAttr(MLIRContext *context, ArrayRef<Guard> guards) {
  Builder builder(context);
  SmallVector<Attribute> list;
  for (const Guard &guard : guards)
    list.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("lhs", guard.lhs), builder.getNamedAttr("rhs", guard.rhs),
         builder.getNamedAttr("relation", builder.getStringAttr(relationNames[static_cast<unsigned>(guard.relation)])),
         builder.getNamedAttr("message", builder.getStringAttr(guard.message))}));
  return builder.getArrayAttr(list);
}
