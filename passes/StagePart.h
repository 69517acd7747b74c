//===- StagePart.h - a function of an export, by the roles of its inputs and outputs ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_STAGEPART_H
#define TRANSEPT_PASSES_STAGEPART_H

#include "passes/Shapes.h"
#include "passes/Stage.h"

namespace mlir::transept {

/// A function of the export and what its inputs and outputs are (roles by the model's own names, made by the importer).
struct Part {
  func::FuncOp function;
  DictionaryAttr roles;

  explicit operator bool() const { return static_cast<bool>(function); }

  std::string argumentName(unsigned index) const { return nameOf(true, index); }
  std::string resultName(unsigned index) const { return nameOf(false, index); }
  std::string argumentRole(unsigned index) const { return roleOf(argumentName(index)); }
  std::string resultRole(unsigned index) const { return roleOf(resultName(index)); }
  std::optional<unsigned> argument(StringRef role) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (argumentRole(i) == role)
        return i;
    return std::nullopt;
  }
  std::optional<unsigned> resultIndex(ArrayRef<StringRef> wanted) {
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (llvm::is_contained(wanted, StringRef(resultRole(i))))
        return i;
    return std::nullopt;
  }
  Operation *end() { return function.getBody().front().getTerminator(); }

private:
  std::string nameOf(bool argument, unsigned index) const {
    auto owner = const_cast<func::FuncOp &>(function);
    auto name = argument ? owner.getArgAttrOfType<StringAttr>(index, "transept.name")
                         : owner.getResultAttrOfType<StringAttr>(index, "transept.name");
    return name ? name.str() : "";
  }
  std::string roleOf(StringRef name) const {
    auto role = !name.empty() && roles ? roles.getAs<StringAttr>(name) : StringAttr();
    return role ? role.str() : "";
  }
};

/// The function `name` of an export; empty where there is none.
Part findPart(ModuleOp module, StringRef name);

/// Renames the symbols that are axes of the arguments with these roles (a null name: any; nothing to do where an axis
/// is no symbol).
LogicalResult nameAxes(Part &part, ArrayRef<StringRef> roles, ArrayRef<DimAttr> axes);

/// Replaces inputs of a decoder that follow from the number of positions before (`past`) and of new ones: positions,
/// lengths, and masks of its own ids, which hide nothing.
LogicalResult fillDecoderInputs(Part &part, DimAttr past, DimAttr positions);

constexpr StringRef sourceMasks[] = {"source_mask", "source_padding"};

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_STAGEPART_H
