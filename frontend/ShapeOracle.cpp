//===- ShapeOracle.cpp - what is known of a value's shape during import ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/ShapeOracle.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
class QuietContext : public InferContext {
public:
  QuietContext(MLIRContext *mlirContext, unsigned &count) : count(count) { context = mlirContext; }
  void guard(Operation *, DimAttr, GuardRelation, DimAttr, StringRef) override {}
  DimAttr runtimeSymbol(Operation *, StringRef) override {
    return dimSymbol(context, "run-time size " + std::to_string(count++));
  }

private:
  unsigned &count;
};
} // namespace

void ShapeOracle::infer(Operation *op) {
  SmallVector<Fact> operands, results;
  for (Value operand : op->getOperands())
    operands.push_back(facts.lookup(operand));
  // Errors are for the shapes phase, which sees every op.
  ScopedDiagnosticHandler quiet(context, [](Diagnostic &) { return success(); });
  QuietContext inferContext(context, runtimeSymbols);
  auto graphOp = dyn_cast<GraphOp>(op);
  bool known = graphOp && op->getNumRegions() == 0 && succeeded(graphOp.infer(inferContext, operands, results)) &&
               results.size() == op->getNumResults();
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    Fact fact;
    if (known)
      fact = results[index];
    if (!fact.type)
      fact.type = cast<TensorType>(result.getType());
    facts[result] = std::move(fact);
  }
}

const Fact &ShapeOracle::factOf(Value value) {
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Value next = work.back();
    if (facts.contains(next)) {
      work.pop_back();
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!op) {
      facts[next].type = cast<TensorType>(next.getType());
      work.pop_back();
      continue;
    }
    size_t before = work.size();
    for (Value operand : op->getOperands())
      if (!facts.contains(operand))
        work.push_back(operand);
    if (work.size() == before) {
      infer(op);
      work.pop_back();
    }
  }
  return facts[value];
}
