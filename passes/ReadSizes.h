//===- ReadSizes.h - sizes that only data says --------------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_READSIZES_H
#define TRANSEPT_PASSES_READSIZES_H

#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::transept {

/// Rewrites ops whose shape, amounts or axes are data (an input, a count of elements): the sizes of the result are
/// computed by graph ops and read back by transept.read_sizes, under the names that inference gave them; what remains
/// of the op is a resolved form.
std::unique_ptr<Pass> createReadSizesPass();

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_READSIZES_H
