//===- Transept.cpp - registration of the graph-level dialect ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Transept.h"
#include "ir/Elementwise.h"
#include "ir/HostMath.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::transept;

#include "ir/TranseptDialect.cpp.inc"
#include "ir/TranseptEnums.cpp.inc"

#include "ir/GraphOpInterface.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/TranseptAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/TranseptTypes.cpp.inc"

#define GET_OP_CLASSES
#include "ir/TranseptOps.cpp.inc"

void TranseptDialect::initialize() {
  weightStore = std::make_shared<WeightStore>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/TranseptAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/TranseptTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/TranseptOps.cpp.inc"
      >();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  // C1: one expression per axis.
  if (shape.size() != getDims().size())
    return emitError() << "dims name " << getDims().size() << " axes of a tensor with " << shape.size();
  for (auto [axis, size, dim] : llvm::enumerate(shape, getDims())) {
    // C2: an axis is static exactly if its expression is a constant, and then both agree.
    std::optional<int64_t> value = constantValue(dim);
    bool staticAxis = !ShapedType::isDynamic(size);
    if (staticAxis != value.has_value() || (value && *value != size))
      return emitError() << "axis " << axis << " is " << size << " but its dim is " << toString(dim);
  }
  return success();
}
