//===- Kernel.cpp - registration and verification of the kernel-level dialect -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Kernel.h"
#include "ir/Transept.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kernel;

#include "ir/KernelDialect.cpp.inc"

#include "ir/KernelOpInterface.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/KernelTypes.cpp.inc"

#define GET_OP_CLASSES
#include "ir/KernelOps.cpp.inc"

void KernelDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/KernelTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/KernelOps.cpp.inc"
      >();
}

int64_t kernel::panelGroup(Type element) {
  constexpr unsigned bits = 32;
  unsigned width = element.getIntOrFloatBitWidth();
  return width < bits ? bits / width : 1;
}

RankedTensorType kernel::panelType(Type element, int64_t panels, int64_t k) {
  int64_t group = panelGroup(element);
  SmallVector<int64_t> shape = {panels, (k + group - 1) / group, panelColumns};
  if (group > 1)
    shape.push_back(group);
  return RankedTensorType::get(shape, element);
}

Type kernel::elementTypeOf(Type type) {
  if (auto buffer = dyn_cast<BufferType>(type))
    return buffer.getElementType();
  return cast<ShapedType>(type).getElementType();
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FuncOp>(getOperation()->getParentOp(), getCalleeAttr());
  // C1: the callee exists.
  if (!callee)
    return emitOpError() << "calls " << getCalleeAttr() << ", which is no kernel.func";
  // C2: one buffer per parameter.
  if (callee.getBody().getNumArguments() != getBuffers().size())
    return emitOpError() << "passes " << getBuffers().size() << " buffers to " << getCalleeAttr() << ", which takes "
                         << callee.getBody().getNumArguments();
  return success();
}
