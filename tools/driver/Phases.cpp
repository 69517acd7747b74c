//===- Phases.cpp - the phases of a compilation, as one table -------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/Phases.h"
#include "codegen/Codegen.h"
#include "ir/Kernel.h"
#include "ir/Transept.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Fold.h"
#include "passes/Form.h"
#include "passes/Fuse.h"
#include "passes/IntegerProducts.h"
#include "passes/NarrowCaches.h"
#include "passes/NarrowWeights.h"
#include "passes/Passes.h"
#include "passes/Plan.h"
#include "passes/Quantise.h"
#include "passes/ReadSizes.h"
#include "passes/Screen.h"
#include "passes/Shortlist.h"
#include "passes/Stage.h"
#include "tools/driver/DiagnosticLog.h"
#include "tools/driver/PhaseChecks.h"
#include "tools/driver/TargetPasses.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace mlir::transept;

//===- Rows ---------------------------------------------------------------------------------------------------===//

namespace {

constexpr llvm::StringLiteral graphDialects[] = {"builtin", "func", "transept"};
constexpr llvm::StringLiteral kernelDialects[] = {"builtin", "kernel", "arith", "math", "scf"};
constexpr llvm::StringLiteral loweredDialects[] = {"builtin", "kernel", "arith", "math", "scf", "llvm", "spirv"};

void addShapes(PassList &list, const TargetOptions &) {
  list.push_back(createShapesPass());
  list.push_back(createRequireRanksPass());
}

void addFold(PassList &list, const TargetOptions &) {
  list.push_back(createIntegerProductsPass());
  list.push_back(createNarrowWeightsPass());
  list.push_back(createFoldPass());
  // Folded integers may be sizes; and fusion looks for the normal forms of movement.
  list.push_back(createShapesPass());
}

void addFuse(PassList &list, const TargetOptions &) {
  list.push_back(createBindInputsPass());
  list.push_back(createFusePass());
  list.push_back(createShapesPass());
}

void addStage(PassList &list, const TargetOptions &options) {
  list.push_back(createStagePass());
  // An axis that became one position makes new constants and sizes.
  list.push_back(createShapesPass());
  addFold(list, options);
}

void addQuantise(PassList &list, const TargetOptions &options) {
  list.push_back(createQuantisePass({options.precision, options.keepFp32}));
  list.push_back(createNarrowCachesPass(options.caches));
  list.push_back(createScreenPass(options.twoStageVocabulary));
  list.push_back(createShortlistPass(!options.hasVulkan()));
}

void addForm(PassList &list, const TargetOptions &) {
  list.push_back(createReadSizesPass());
  list.push_back(createFormPass());
}
void addPlan(PassList &list, const TargetOptions &) { list.push_back(createPlanPass()); }
void addSchedule(PassList &list, const TargetOptions &options) { list.push_back(createSchedulePass(options)); }
void addLower(PassList &list, const TargetOptions &options) { list.push_back(createLowerPass(options)); }
void addEmit(PassList &list, const TargetOptions &options) { list.push_back(createEmitPass(options)); }

const Phase table[] = {
    {"import", "Parses and checks the model's files, inlines functions, upgrades operators",
     "Canonical graph ops, one function per file; locations carry the names of ONNX nodes", graphDialects, nullptr,
     nullptr, ExitInvalidModel},
    {"shapes", "Infers symbolic shapes and integer contents, and deletes the arithmetic of sizes",
     "Every value has a rank, and every size is an expression over symbols", graphDialects, addShapes, checkShapes,
     ExitInvalidModel},
    {"fold", "Evaluates what constants decide, and shares equal and transposed-equal weights of all files",
     "Each weight once", graphDialects, addFold, checkShapes, ExitInvalidModel},
    // Before stage: caches are derived from fused attention, where "causal" is a fact instead of a pattern.
    {"fuse", "Makes attention, norms, activations and linear layers from their parts",
     "The module says of every attention site whether it was fused, or what broke the pattern", graphDialects, addFuse,
     checkFuse, ExitInvalidModel},
    {"stage", "Makes one generation program, whatever was exported; a plain graph stays as it is",
     "Caches are appended to and read in place; no function takes or returns them", graphDialects, addStage, checkStage,
     ExitUnsupported},
    {"quantise", "Decides which products multiply in bf16 or with 8-bit integers; in fp32, none",
     "Ops whose weights became narrow say so; narrow caches are written through casts", graphDialects, addQuantise,
     checkStage, ExitUsage},
    {"form", "Turns graph ops into kernels, and fuses and groups them",
     "Entries of kernels; sizes are attributes, no longer in types", kernelDialects, addForm, checkForm,
     ExitUnsupported},
    {"plan", "Gives kernels buffers, one arena with offsets, and an order with barriers",
     "Programs of dispatches; every size and offset is an expression over the entry's symbols", kernelDialects, addPlan,
     checkPlan, ExitInternal},
    {"schedule", "Decides work items, scratch and tiles of every kernel for the target",
     "Every kernel says its items and its scratch", kernelDialects, addSchedule, checkSchedule, ExitInternal},
    {"lower", "Writes every kernel as code of the target, once per level of its instruction set",
     "One module of LLVM dialect functions per level, one SPIR-V module per kernel", loweredDialects, addLower,
     checkLower, ExitInternal},
    {"emit", "Optimises and links the code", "One shared object per level, and shaders, kept beside the weights",
     kernelDialects, addEmit, checkEmit, ExitInternal},
    {"pack", "Packs weights, describes everything in the manifest, and writes the artifact", "One file", kernelDialects,
     nullptr, nullptr, ExitInternal},
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
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (llvm::is_contained(phase.dialects, dialect))
      return WalkResult::advance();
    op->emitError("'") << op->getName() << "' is not allowed after phase '" << phase.name << "'";
    return WalkResult::interrupt();
  });
  return success(!result.wasInterrupted() && succeeded(checkGuards(module)) &&
                 (!phase.check || succeeded(phase.check(module))));
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

std::optional<Failure> mlir::transept::runPass(ModuleOp module, std::unique_ptr<Pass> pass, ExitCode code,
                                               std::vector<std::string> *warnings) {
  std::string name = pass->getArgument().str();
  DiagnosticLog log(module.getContext());
  if (failed(applyPass(module, std::move(pass), /*checked=*/false))) {
    Failure failure = log.hasError() ? log.take(code, "") : Failure{ExitInternal, "it failed without a reason", {}};
    return failure.exitCode == ExitInternal ? internalFailure(failure, "internal error: in pass '" + name + "'")
                                            : failure;
  }
  if (failed(verify(module)))
    return internalFailure(log.take(ExitInternal, "the module is not valid"),
                           "internal error: after pass '" + name + "'");
  llvm::append_range(*warnings, log.takeWarnings());
  return std::nullopt;
}

std::vector<std::string> mlir::transept::cpuLevelNames(StringRef architecture) {
  std::vector<std::string> names;
  for (const kernel::CpuLevel &level : kernel::cpuLevels())
    if (architecture.empty() || level.architecture == architecture)
      names.push_back(level.name.str());
  return names;
}

TargetOptions mlir::transept::defaultTarget(StringRef precision) {
  TargetOptions options;
  options.precision = precision.str();
  options.cpuLevels = cpuLevelNames(llvm::Triple(llvm::sys::getDefaultTargetTriple()).getArchName());
  return options;
}

void mlir::transept::loadPhaseDialects(MLIRContext &context) {
  DialectRegistry registry;
  registry.insert<TranseptDialect, kernel::KernelDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect,
                  scf::SCFDialect>();
  kernel::registerCpuDialects(registry);
  kernel::registerVulkanDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}
