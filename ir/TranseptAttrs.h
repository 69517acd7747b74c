//===- TranseptAttrs.h - attributes of the graph-level dialect --------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_TRANSEPTATTRS_H
#define TRANSEPT_IR_TRANSEPTATTRS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TensorEncoding.h"

#include "ir/TranseptEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/TranseptAttrs.h.inc"

#endif // TRANSEPT_IR_TRANSEPTATTRS_H
