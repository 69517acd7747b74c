//===- PickedInputs.h - what kernels read in part
//--------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TRANSEPT_CODEGEN_PICKEDINPUTS_H
#define TRANSEPT_CODEGEN_PICKEDINPUTS_H

#include "ir/Kernel.h"

namespace mlir::kernel {

/// Inputs of a kernel, by number, all of whose reads are at an index that another read decides: the table of an
/// embedding. How much of them a run reads depends on data; of other inputs it reads everything.
SmallVector<unsigned> pickedInputs(FuncOp function);

} // namespace mlir::kernel

#endif
