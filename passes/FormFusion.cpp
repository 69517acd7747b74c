//===- FormFusion.cpp - the order of fusions
//-----------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/FormFusion.h"

using namespace mlir;
using namespace mlir::transept;

void transept::fuseEntry(kernel::EntryOp entry) { simplifyBodies(entry); }
