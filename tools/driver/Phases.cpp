//===- Phases.cpp - the phases of a compilation, as one table -------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/Phases.h"
#include "codegen/Codegen.h"
#include "ir/Kernel.h"
#include "ir/Transept.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Fold.h"
#include "passes/Fuse.h"
#include "passes/Passes.h"
#include "tools/driver/DiagnosticLog.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::transept;

//===- Rows ---------------------------------------------------------------------------------------------------===//

namespace {

constexpr llvm::StringLiteral graphDialects[] = {"builtin", "func", "transept"};

void buildShapes(PassList &list, const TargetOptions &) { list.push_back(createShapesPass()); }

void buildFold(PassList &list, const TargetOptions &) {
  list.push_back(createFoldPass());
  // Folded integers may be sizes; and fusion looks for the normal forms of movement.
  list.push_back(createShapesPass());
}

void buildFuse(PassList &list, const TargetOptions &) {
  list.push_back(createFusePass());
  list.push_back(createShapesPass());
}

/// Every value has a rank, and every size is an expression.
LogicalResult checkShapes(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto ranked = dyn_cast<RankedTensorType>(type);
      if (isa<TensorType>(type) && (!ranked || llvm::is_contained(dimsOf(ranked), DimAttr()))) {
        op->emitError("has a result of unknown shape, ") << type;
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult checkFuse(ModuleOp module) {
  if (!module->hasAttr("transept.fusion"))
    return module.emitError("has no report of attention sites");
  return checkShapes(module);
}

const Phase table[] = {
    {"import", "Parses and checks the model's files, inlines functions, upgrades operators",
     "Canonical graph ops, one function per file; locations carry the names of ONNX nodes", graphDialects, nullptr,
     nullptr, ExitInvalidModel},
    {"shapes", "Infers symbolic shapes and integer contents, and deletes the arithmetic of sizes",
     "Every value has a rank, and every size is an expression over symbols", graphDialects, buildShapes, checkShapes,
     ExitInvalidModel},
    {"fold", "Evaluates what constants decide, and shares equal and transposed-equal weights of all files",
     "Each weight once", graphDialects, buildFold, checkShapes, ExitInvalidModel},
    // Before stage: caches are derived from fused attention, where "causal" is a fact instead of a pattern.
    {"fuse", "Makes attention, norms, activations and linear layers from their parts",
     "The module says of every attention site whether it was fused, or what broke the pattern", graphDialects,
     buildFuse, checkFuse, ExitInvalidModel},
};

} // namespace

ArrayRef<Phase> mlir::transept::phases() { return table; }

//===- Names --------------------------------------------------------------------------------------------------===//

const Phase *mlir::transept::findPhase(StringRef name) {
  const Phase *found = llvm::find_if(table, [&](const Phase &phase) { return phase.name == name; });
  return found == std::end(table) ? nullptr : found;
}

unsigned mlir::transept::phaseNumber(const Phase &phase) { return static_cast<unsigned>(&phase - table) + 1; }

std::string mlir::transept::phaseStem(const Phase &phase) {
  return llvm::formatv("{0,0+2}-{1}", phaseNumber(phase), phase.name).str();
}

std::string mlir::transept::phaseNames() {
  std::string names;
  for (const Phase &phase : table)
    names += (names.empty() ? "" : ", ") + phase.name.str();
  return names;
}

std::string mlir::transept::phasesPage() {
  std::string page = "# Phases\n\n"
                     "Made by `transept-compile --print-phases` from the table in `tools/driver/Phases.cpp`.\n"
                     "`--dump-ir DIR` writes `01-import.mlir` and so on; `--stop-after` and `--start-from` take the "
                     "names.\n\n"
                     "| # | phase | does | afterwards | dialects afterwards |\n|---|---|---|---|---|\n";
  llvm::raw_string_ostream out(page);
  for (const Phase &phase : table) {
    out << "| " << phaseNumber(phase) << " | " << phase.name << " | " << phase.sentence << " | " << phase.afterwards
        << " | ";
    llvm::interleaveComma(phase.dialects, out, [&](StringRef name) { out << '`' << name << '`'; });
    out << " |\n";
  }
  return page;
}

//===- Running ------------------------------------------------------------------------------------------------===//

static Failure internalFailure(Failure failure, const llvm::Twine &where) {
  failure.exitCode = ExitInternal;
  failure.message = (where + ": " + failure.message).str();
  return failure;
}

LogicalResult mlir::transept::verifyPhase(ModuleOp module, const Phase &phase) {
  WalkResult result = module.walk([&](Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (llvm::is_contained(phase.dialects, dialect))
      return WalkResult::advance();
    op->emitError("'") << op->getName() << "' is not allowed after phase '" << phase.name << "'";
    return WalkResult::interrupt();
  });
  return success(!result.wasInterrupted() && (!phase.check || succeeded(phase.check(module))));
}

std::optional<Failure> mlir::transept::checkPhase(ModuleOp module, const Phase &phase) {
  DiagnosticLog log(module.getContext());
  if (succeeded(verifyPhase(module, phase)))
    return std::nullopt;
  return internalFailure(log.take(ExitInternal, "the check failed"),
                         "internal error: after phase '" + phase.name + "'");
}

LogicalResult mlir::transept::applyPass(ModuleOp module, std::unique_ptr<Pass> pass, bool checked) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  manager.enableVerifier(checked);
  manager.addPass(std::move(pass));
  return manager.run(module);
}

std::optional<Failure> mlir::transept::runPass(ModuleOp module, std::unique_ptr<Pass> pass, ExitCode code) {
  std::string name = pass->getArgument().str();
  DiagnosticLog log(module.getContext());
  if (failed(applyPass(module, std::move(pass), /*checked=*/false)))
    return log.hasError() ? log.take(code, "")
                          : Failure{ExitInternal, "internal error: pass '" + name + "' failed", {}};
  if (failed(verify(module)))
    return internalFailure(log.take(ExitInternal, "the module is not valid"),
                           "internal error: after pass '" + name + "'");
  return std::nullopt;
}

TargetOptions mlir::transept::defaultTarget() {
  TargetOptions options;
  for (const kernel::CpuLevel &level : kernel::cpuLevels())
    options.cpuLevels.push_back(level.name.str());
  return options;
}

void mlir::transept::loadPhaseDialects(MLIRContext &context) {
  context.loadDialect<TranseptDialect, kernel::KernelDialect, func::FuncDialect>();
}
