//===- ShapesSubstitute.cpp - replacing symbols -----------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/AttrTypeSubElements.h"
#include "passes/Shapes.h"

using namespace mlir;
using namespace mlir::transept;

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
