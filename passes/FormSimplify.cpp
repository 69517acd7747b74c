//===- FormSimplify.cpp - scalar code of bodies, cleaned up
//----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/FormFusion.h"

using namespace mlir;
using namespace mlir::transept;

/// Kernels whose results nobody reads. cache_append and search_head have effects on states.
static bool isDeadKernel(Operation &op) {
  return isa<kernel::KernelOp>(op) && !isa<kernel::CacheAppendOp, kernel::SearchHeadOp>(op) && op.use_empty();
}

static void eraseDead(kernel::EntryOp entry) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(entry.getBody().front())))
    if (isDeadKernel(op) || isOpTriviallyDead(&op))
      op.erase();
}

/// Folding puts constants at the top of the isolated entry; a kernel is cut out with its body alone.
static void sinkConstants(kernel::EntryOp entry) {
  for (Operation &kernelOp : entry.getBody().front()) {
    if (!isa<kernel::KernelOp>(kernelOp))
      continue;
    for (Region &region : kernelOp.getRegions()) {
      DenseMap<Operation *, Operation *> local;
      Operation *last = nullptr; // copies stand at the top of the body, in order of first use
      region.walk([&](Operation *op) {
        for (OpOperand &operand : op->getOpOperands()) {
          Operation *constant = operand.get().getDefiningOp();
          if (!constant || !matchPattern(constant, m_Constant()) || region.isAncestor(constant->getParentRegion()))
            continue;
          Operation *&copy = local[constant];
          if (!copy) {
            OpBuilder builder = OpBuilder::atBlockBegin(&region.front());
            if (last)
              builder.setInsertionPointAfter(last);
            last = copy = builder.clone(*constant);
          }
          operand.set(copy->getResult(0));
        }
      });
    }
  }
}

void transept::simplifyBodies(kernel::EntryOp entry) {
  MLIRContext *context = entry.getContext();
  RewritePatternSet patterns(context);
  for (StringRef dialect : {"arith", "scf"})
    context->getLoadedDialect(dialect)->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (isa<arith::ArithDialect, scf::SCFDialect>(op.getDialect()))
      op.getCanonicalizationPatterns(patterns, context);
  // Not converging leaves valid code.
  (void)applyPatternsAndFoldGreedily(entry, std::move(patterns));
  IRRewriter rewriter(context);
  DominanceInfo dominance;
  eliminateCommonSubExpressions(rewriter, dominance, entry);
  eraseDead(entry);
  sinkConstants(entry);
  eraseDead(entry);
}
