//===- ShapesGuards.cpp - guards as attributes; replacing symbols ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/AttrTypeSubElements.h"
#include "passes/Shapes.h"

using namespace mlir;
using namespace mlir::transept;

static constexpr StringLiteral relationNames[] = {"eq", "le", "ge", "ne"};

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

SmallVector<Guard> transept::guardsFromAttr(ArrayAttr attr) {
  SmallVector<Guard> guards;
  for (Attribute entry : attr ? attr.getValue() : ArrayRef<Attribute>()) {
    auto dictionary = dyn_cast<DictionaryAttr>(entry);
    if (!dictionary)
      continue;
    auto lhs = dictionary.getAs<DimAttr>("lhs"), rhs = dictionary.getAs<DimAttr>("rhs");
    auto relation = dictionary.getAs<StringAttr>("relation"), message = dictionary.getAs<StringAttr>("message");
    const StringLiteral *known = relation ? llvm::find(relationNames, relation.getValue()) : std::end(relationNames);
    if (lhs && rhs && message && known != std::end(relationNames))
      guards.push_back({lhs, static_cast<GuardRelation>(known - relationNames), rhs, message.str()});
  }
  return guards;
}

LogicalResult transept::substituteSymbol(func::FuncOp function, StringRef symbol, DimAttr replacement) {
  bool negative = false;
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](DimAttr dim) -> std::pair<Attribute, WalkResult> {
    return {substitute(dim, symbol, replacement), WalkResult::skip()};
  });
  replacer.addReplacement([&](RankedTensorType type) -> std::optional<std::pair<Type, WalkResult>> {
    if (!isa_and_nonnull<DimsAttr>(type.getEncoding()))
      return std::nullopt;
    Dims dims = dimsOf(type);
    for (DimAttr &dim : dims) {
      dim = substitute(dim, symbol, replacement);
      if (std::optional<int64_t> value = constantValue(dim); value && *value < 0) {
        negative = true;
        return std::pair<Type, WalkResult>(type, WalkResult::interrupt());
      }
    }
    return std::pair<Type, WalkResult>(makeType(dims, type.getElementType()), WalkResult::skip());
  });
  // A negative size shows before anything is changed: interrupted replacements give null types.
  auto stays = [&](Type type) { return replacer.replace(type) && !negative; };
  WalkResult checked = function.walk([&](Operation *op) {
    bool fine = llvm::all_of(op->getResultTypes(), stays);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        fine &= llvm::all_of(block.getArgumentTypes(), stays);
    return fine ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (checked.wasInterrupted())
    return function.emitError() << "a size gets negative with " << symbol << " = " << toString(replacement);
  replacer.recursivelyReplaceElementsIn(function, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
  return success();
}
