//===- ShapeOracle.h - what is known of a value's shape during import -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_SHAPEORACLE_H
#define TRANSEPT_FRONTEND_SHAPEORACLE_H

#include "ir/GraphOp.h"
#include "ir/Transept.h"

namespace mlir::transept {

/// Answers the few questions whose answer decides what an operator of an old opset means (Softmax-11 on its last axis).
/// Asks the ops' own inference on demand, back to the graph's inputs; whatever fails there is reported by the shapes
/// phase, not here.
class ShapeOracle {
public:
  explicit ShapeOracle(MLIRContext *context) : context(context) {}
  const Fact &factOf(Value value);

private:
  void infer(Operation *op);

  MLIRContext *context;
  llvm::DenseMap<Value, Fact> facts;
  unsigned runtimeSymbols = 0;
};

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_SHAPEORACLE_H
