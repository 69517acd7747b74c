//===- PhaseChecks.cpp - what holds after each phase ----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/PhaseChecks.h"
#include "ir/Guard.h"
#include "ir/Kernel.h"
#include "ir/Transept.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "passes/Screen.h"
#include "passes/Shortlist.h"
#include "passes/Stage.h"
#include "tools/driver/TargetPasses.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::transept;

/// Calls `check` for the op and for every type of its results and block arguments, everywhere but in nested modules.
static LogicalResult forEachType(ModuleOp module, llvm::function_ref<LogicalResult(Operation *, Type)> check) {
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != module && isa<ModuleOp>(op))
      return WalkResult::skip();
    for (Type type : op->getResultTypes())
      if (failed(check(op, type)))
        return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          if (failed(check(op, type)))
            return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult mlir::transept::checkGuards(ModuleOp module) {
  WalkResult result = module.walk<WalkOrder::PreOrder>([](Operation *op) {
    SmallVector<Attribute> guards;
    auto add = [&](Attribute list) {
      if (auto array = dyn_cast_or_null<ArrayAttr>(list))
        llvm::append_range(guards, array);
      else if (list)
        guards.push_back(list);
    };
    add(op->getDiscardableAttr(guardsAttrName));
    if (auto entry = dyn_cast<kernel::EntryOp>(op))
      add(entry.getGuards());
    else if (auto program = dyn_cast<kernel::ProgramOp>(op))
      add(program.getGuards());
    else if (auto guard = dyn_cast<kernel::GuardOp>(op))
      add(guard.getRelation());
    if (llvm::all_of(guards, [](Attribute guard) { return parseGuard(guard).has_value(); }))
      return WalkResult::advance();
    op->emitError("'") << op->getName() << "' has a malformed guard";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult mlir::transept::checkShapes(ModuleOp module) {
  return forEachType(module, [](Operation *op, Type type) -> LogicalResult {
    auto ranked = dyn_cast<RankedTensorType>(type);
    if (isa<TensorType>(type) && (!ranked || llvm::is_contained(dimsOf(ranked), DimAttr())))
      return op->emitError("'") << op->getName() << "' has a value of unknown shape, " << type;
    return success();
  });
}

LogicalResult mlir::transept::checkFuse(ModuleOp module) {
  if (!module->hasAttr("transept.fusion"))
    return module.emitError("the module has no report of attention sites");
  return checkShapes(module);
}

LogicalResult mlir::transept::checkStage(ModuleOp module) {
  if (module->hasAttr("transept.generation"))
    for (auto function : module.getOps<func::FuncOp>()) {
      StringRef name = function.getName();
      if (!llvm::is_contained({encodeName, stepName, alignmentsName, scoreName, prefillName, advanceName,
                               advanceBeamsName, greedyName, listedName},
                              name))
        return function.emitError("function '") << name << "' is no part of a generation program";
      if (name == stepName && function.getNumArguments() + function.getNumResults() > 0)
        return function.emitError("function 'step' takes or returns tensors; all it has is states");
    }
  return checkShapes(module);
}

/// Only ops of these kinds at the top.
template <typename... Ops> static LogicalResult checkTop(ModuleOp module) {
  for (Operation &op : *module.getBody())
    if (!isa<Ops...>(op))
      return op.emitError("'") << op.getName() << "' is not allowed here";
  return success();
}

LogicalResult mlir::transept::checkForm(ModuleOp module) {
  if (failed(checkTop<kernel::EntryOp>(module)))
    return failure();
  return forEachType(module, [](Operation *op, Type type) -> LogicalResult {
    if (auto ranked = dyn_cast<RankedTensorType>(type); ranked && ranked.getEncoding())
      return op->emitError("'") << op->getName() << "' has a value with an encoding, " << type;
    return success();
  });
}

static LogicalResult checkProgram(kernel::ProgramOp program) {
  llvm::StringSet<> symbols;
  for (auto symbol : program.getSymbols().getAsRange<StringAttr>())
    symbols.insert(symbol.getValue());
  for (Attribute symbol :
       program.getRunTimeSymbolsAttr() ? program.getRunTimeSymbolsAttr().getValue() : ArrayRef<Attribute>())
    symbols.insert(cast<StringAttr>(symbol).getValue());
  auto check = [&](Operation *op, DimAttr dim) -> LogicalResult {
    SmallVector<StringRef> used;
    if (dim)
      collectSymbols(dim, used);
    for (StringRef symbol : used)
      if (!symbols.contains(symbol))
        return op->emitError("'") << op->getName() << "' depends on '" << symbol << "', which is no symbol of '"
                                  << program.getSymName() << "'";
    return success();
  };
  int64_t segments = 0;
  for (auto segment : program.getOps<kernel::SegmentOp>()) {
    ++segments;
    if (failed(check(segment, segment.getArenaBytesAttr())))
      return failure();
    for (Attribute value : segment.getSetValuesAttr() ? segment.getSetValuesAttr().getValue() : ArrayRef<Attribute>())
      if (failed(check(segment, dyn_cast<DimAttr>(value))))
        return failure();
  }
  auto isSegment = [&](std::optional<uint64_t> index) { return !index || static_cast<int64_t>(*index) <= segments; };
  for (auto segment : program.getOps<kernel::SegmentOp>())
    if (!isSegment(segment.getNext()) || !isSegment(segment.getOtherwise()))
      return segment.emitError("'") << segment->getName() << "' is followed by no segment";
  for (Attribute guard : program.getGuards()) {
    std::optional<Guard> relied = parseGuard(guard); // checkGuards has seen it
    if (failed(check(program, relied->lhs)) || failed(check(program, relied->rhs)))
      return failure();
  }
  for (auto buffer : program.getOps<kernel::BufferOp>()) {
    if (buffer.getStorage() == "arena" && !buffer.getOffset())
      return buffer.emitError("buffer '") << buffer.getName() << "' has no place in the arena";
    for (DimAttr dim : buffer.getShape().getDims())
      if (failed(check(buffer, dim)))
        return failure();
    if (failed(check(buffer, buffer.getOffsetAttr())))
      return failure();
  }
  return success();
}

static LogicalResult checkPrograms(ModuleOp module) {
  for (auto program : module.getOps<kernel::ProgramOp>())
    if (failed(checkProgram(program)))
      return failure();
  return forEachType(module, [](Operation *op, Type type) -> LogicalResult {
    if (isa<TensorType>(type))
      return op->emitError("'") << op->getName() << "' still has a tensor, " << type;
    return success();
  });
}

LogicalResult mlir::transept::checkPlan(ModuleOp module) {
  return failure(failed(checkTop<kernel::FuncOp, kernel::ProgramOp>(module)) || failed(checkPrograms(module)));
}

static LogicalResult checkScheduled(ModuleOp module) {
  for (auto function : module.getOps<kernel::FuncOp>())
    if (!function.getItems() || !function.getScratch())
      return function.emitError("kernel '") << function.getSymName() << "' does not say its items and scratch";
  return checkPrograms(module);
}

LogicalResult mlir::transept::checkSchedule(ModuleOp module) {
  return failure(failed(checkTop<kernel::FuncOp, kernel::ProgramOp>(module)) || failed(checkScheduled(module)));
}

LogicalResult mlir::transept::checkLower(ModuleOp module) {
  if (failed(checkTop<kernel::FuncOp, kernel::ProgramOp, ModuleOp>(module)))
    return failure();
  long kernels = std::distance(module.getOps<kernel::FuncOp>().begin(), module.getOps<kernel::FuncOp>().end());
  for (auto lowered : module.getOps<ModuleOp>()) {
    auto isBody = [](Operation &op) {
      auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
      // Of a shader's variants, the plain one counts.
      return function ? !function.isExternal()
                      : isa<spirv::ModuleOp>(op) && !op.hasAttr(kernel::shaderFeaturesAttrName);
    };
    long bodies = llvm::count_if(*lowered.getBody(), isBody);
    if (!lowered.getSymName() || bodies != kernels)
      return lowered.emitError("module '")
             << lowered.getSymName().value_or("") << "' has " << bodies << " functions for " << kernels << " kernels";
  }
  return checkScheduled(module);
}

LogicalResult mlir::transept::checkEmit(ModuleOp module) {
  auto objects = module->getAttrOfType<ArrayAttr>(codeAttrName);
  if (!objects)
    return module.emitError("the module has no code");
  for (Attribute element : objects) {
    auto object = dyn_cast<DictionaryAttr>(element);
    auto features = object ? object.getAs<ArrayAttr>("features") : ArrayAttr();
    if (!features || !llvm::all_of(features, [](Attribute name) { return isa<StringAttr>(name); }) ||
        !object.getAs<StringAttr>("level") || !object.getAs<StringAttr>("object") ||
        !object.getAs<StringAttr>("target"))
      return module.emitError("attribute '") << codeAttrName << "' is malformed";
  }
  return checkSchedule(module);
}
