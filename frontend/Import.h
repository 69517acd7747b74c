//===- Import.h - from ONNX files to a module of the graph dialect ----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_IMPORT_H
#define TRANSEPT_FRONTEND_IMPORT_H

#include "frontend/Export.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::transept {

struct ImportResult {
  OwningOpRef<ModuleOp> module;
  ExportDescription description;
  /// One line each: what was assumed, and what a request will not get.
  std::vector<std::string> warnings;
};

struct ImportRequest {
  OnnxLimits limits;
  enum Kind { ByPath, AsGraph, AsExport } kind = ByPath;
};

/// Imports a .onnx file (one function, "main") or an export directory (one function per file, named by what it is). The
/// module carries everything that later phases need: attribute `transept.export`, weights in the context's store.
/// Loads the dialects it uses.
Outcome<ImportResult> importModel(const std::string &path, MLIRContext *context, const ImportRequest &request = {});

/// Titles of the operators that the importer has rules for, sorted: "Add", "com.microsoft::QuickGelu". Standard
/// operators that are defined by a function body of these need none.
std::vector<std::string> importedOperators();

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_IMPORT_H
