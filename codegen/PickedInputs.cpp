//===- PickedInputs.cpp - what kernels read in part
//------------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/PickedInputs.h"
#include "ir/ListedTokens.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kernel;

/// Scalars of a kernel's bodies that depend on something that was read.
static DenseSet<Value> valuesFromData(KernelOp kernel) {
  DenseSet<Value> found;
  auto isFound = [&](Value value) { return found.contains(value); };
  kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == kernel.getOperation())
      return;
    // What an op with regions that read hands on may be anything it has read.
    if (llvm::none_of(op->getOperands(), isFound) &&
        !op->walk([](LoadOp) { return WalkResult::interrupt(); }).wasInterrupted())
      return;
    found.insert(op->result_begin(), op->result_end());
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      const bool counts =
          llvm::none_of(ValueRange({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()}), isFound);
      found.insert(loop.getBody()->args_begin() + counts, loop.getBody()->args_end());
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      for (Region &region : loop->getRegions())
        found.insert(region.args_begin(), region.args_end());
    }
  });
  return found;
}

SmallVector<unsigned> kernel::pickedInputs(FuncOp function) {
  SmallVector<unsigned> picked;
  function.walk([&](KernelOp op) {
    const size_t inputs = op.getInputs().size();
    // Few columns of its matrix are read where it begins with approximations, or with a list.
    if (isa<SearchHeadOp>(op) && inputs > 3)
      return picked.push_back(op->hasAttr(listedAttrName) ? 1 : 3);
    SmallVector<unsigned> reads(inputs), picks(inputs);
    const DenseSet<Value> fromData = valuesFromData(op);
    for (Region &body : op->getRegions())
      body.walk([&](LoadOp load) {
        // Behind the indices, a body has an argument for each input, or for the last ones; then come outputs.
        SmallVector<Value> buffers;
        for (BlockArgument argument : body.getArguments())
          if (isa<BufferType>(argument.getType()))
            buffers.push_back(argument);
        const size_t number = llvm::find(buffers, load.getSource()) - buffers.begin();
        const size_t input = number + (inputs > buffers.size() ? inputs - buffers.size() : 0);
        if (number == buffers.size() || input >= inputs)
          return;
        ++reads[input];
        picks[input] += llvm::any_of(load.getIndices(), [&](Value index) { return fromData.contains(index); });
      });
    for (size_t input = 0; input < inputs; ++input)
      if (reads[input] && reads[input] == picks[input])
        picked.push_back(static_cast<unsigned>(input));
  });
  return picked;
}
