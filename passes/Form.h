//===- Form.h - graph ops become kernels ------------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_FORM_H
#define TRANSEPT_PASSES_FORM_H

#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::transept {

/// Module pass: every func.func of graph ops (ranked types with dims, resolved forms) becomes a kernel.entry of kernels
/// on plain tensors. Afterwards no graph op and no dims encoding is left.
std::unique_ptr<Pass> createFormPass();

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_FORM_H
