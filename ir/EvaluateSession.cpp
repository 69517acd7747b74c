//===- EvaluateSession.cpp - ops that only the interpreter can evaluate ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// They depend on a session's state or on regions, which a single op does not see.

#include "ir/Evaluate.h"

using namespace mlir;
using namespace mlir::transept;

#define NEEDS_SESSION(Op)                                                                                              \
  LogicalResult Op::evaluate(ArrayRef<HostTensor>, SmallVectorImpl<HostTensor> &) {                                    \
    return emitOpError() << "is evaluated by the interpreter only";                                                    \
  }

NEEDS_SESSION(IfOp)
NEEDS_SESSION(LoopOp)
NEEDS_SESSION(StateOp)
NEEDS_SESSION(ExportOp)
NEEDS_SESSION(CacheAppendOp)
NEEDS_SESSION(CacheAttentionOp)
NEEDS_SESSION(CrossAttentionOp)
NEEDS_SESSION(SearchHeadOp)

#undef NEEDS_SESSION
