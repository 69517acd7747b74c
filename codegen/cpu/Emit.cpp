//===- Emit.cpp - LLVM dialect functions to a shared object -------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/Codegen.h"
#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "transept/abi.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

// The public header declares them for all targets that LLVM was built with; only these are used.
extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeAArch64TargetInfo();
void LLVMInitializeAArch64Target();
void LLVMInitializeAArch64TargetMC();
void LLVMInitializeAArch64AsmPrinter();
}

using namespace mlir;
using namespace mlir::kernel;

static std::string tripleOf(const CpuLevel &level) { return level.architecture.str() + "-unknown-linux-gnu"; }

/// The processor that has nothing but what the features name.
static StringRef processorOf(const CpuLevel &level) { return level.architecture == "x86_64" ? "x86-64" : "generic"; }

static std::string featuresOf(const CpuLevel &level) {
  std::string features;
  SmallVector<StringRef> names;
  level.features.split(names, ',', -1, /*KeepEmpty=*/false);
  for (StringRef name : names)
    features += (features.empty() ? "+" : ",+") + name.str();
  return features;
}

static std::unique_ptr<llvm::TargetMachine> createMachine(const CpuLevel &level, std::string &error) {
  static std::once_flag once; // layers: LLVM registers its targets once per process
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
  std::string triple = tripleOf(level);
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, processorOf(level), featuresOf(level), llvm::TargetOptions(),
                                  llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Gives the kernels their attributes and builds the exported table.
static void finishModule(llvm::Module &module, const CpuLevel &level) {
  std::string features = featuresOf(level);
  SmallVector<llvm::Constant *> kernels;
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr("target-cpu", processorOf(level));
    if (!features.empty())
      function.addFnAttr("target-features", features);
    // Loops that fill or copy stay loops: there is no library to call.
    function.addFnAttr("no-builtins");
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    kernels.push_back(&function);
  }
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::getUnqual(context);
  auto *listType = llvm::ArrayType::get(pointer, kernels.size());
  auto *list = new llvm::GlobalVariable(module, listType, /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
                                        llvm::ConstantArray::get(listType, kernels), "kernels");
  auto *i32 = llvm::Type::getInt32Ty(context);
  static_assert(offsetof(transept_kernel_table, count) == 4 && offsetof(transept_kernel_table, kernels) == 8);
  auto *table = llvm::ConstantStruct::getAnon(
      {llvm::ConstantInt::get(i32, TRANSEPT_ABI_VERSION), llvm::ConstantInt::get(i32, kernels.size()), list});
  new llvm::GlobalVariable(module, table->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, table,
                           TRANSEPT_KERNEL_TABLE_SYMBOL);
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions options;
  // Unrolling the loop of a matrix tile runs out of registers.
  options.LoopUnrolling = false;
  options.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, options);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// Optimises and generates code of the given kind.
static LogicalResult generate(ModuleOp lowered, const CpuLevel &level, llvm::CodeGenFileType kind,
                              SmallVectorImpl<char> &code) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(lowered, context, "kernels");
  if (!module)
    return lowered.emitError("the translation to LLVM IR failed");
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(level, error);
  if (!machine)
    return lowered.emitError("no code generator for ") << tripleOf(level) << ": " << error;
  module->setTargetTriple(tripleOf(level));
  module->setDataLayout(machine->createDataLayout());
  finishModule(*module, level);
  optimize(*module, *machine);
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, kind))
    return lowered.emitError("the code generator cannot write this kind of file");
  passes.run(*module);
  return success();
}

/// Links an object into a shared object without undefined symbols. `error` gets the linker's words.
static FailureOr<std::string> link(ArrayRef<char> object, std::string &error) {
  // lld has global state, and reads and writes files only.
  static std::mutex linker; // layers: guards the linker's own globals
  std::lock_guard<std::mutex> lock(linker);
  SmallString<128> input, output;
  int descriptor;
  if (std::error_code code = llvm::sys::fs::createTemporaryFile("transept-kernels", "o", descriptor, input)) {
    error = code.message();
    return failure();
  }
  llvm::FileRemover removeInput(input);
  {
    llvm::raw_fd_ostream file(descriptor, /*shouldClose=*/true);
    file.write(object.data(), object.size());
    file.close();
    if (file.has_error()) {
      error = file.error().message();
      file.clear_error();
      return failure();
    }
  }
  if (std::error_code code = llvm::sys::fs::createTemporaryFile("transept-kernels", "so", output)) {
    error = code.message();
    return failure();
  }
  llvm::FileRemover removeOutput(output);
  const char *arguments[] = {"ld.lld",
                             "-shared",
                             "--hash-style=gnu",
                             "--build-id=none",
                             "--threads=1",
                             "-z",
                             "now",
                             "-z",
                             "relro",
                             "-z",
                             "defs",
                             "-z",
                             "noexecstack",
                             "-Bsymbolic",
                             "--gc-sections",
                             input.c_str(),
                             "-o",
                             output.c_str()};
  llvm::raw_string_ostream errors(error);
  std::string out;
  llvm::raw_string_ostream ignored(out);
  lld::Result result = lld::lldMain(arguments, ignored, errors, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return failure();
  auto linked = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked) {
    error = linked.getError().message();
    return failure();
  }
  return (*linked)->getBuffer().str();
}

FailureOr<std::string> kernel::emitLoweredCpu(ModuleOp lowered, const CpuLevel &level) {
  SmallVector<char, 0> object;
  if (failed(generate(lowered, level, llvm::CodeGenFileType::ObjectFile, object)))
    return failure();
  std::string error;
  FailureOr<std::string> shared = link(object, error);
  if (failed(shared))
    return lowered.emitError("linking the kernels of level ") << level.name << " failed: " << error;
  return shared;
}

FailureOr<std::string> kernel::emitCpu(ModuleOp module, const CpuLevel &level) {
  OwningOpRef<ModuleOp> lowered = lowerCpu(module, level);
  if (!lowered)
    return failure();
  return emitLoweredCpu(*lowered, level);
}

FailureOr<std::string> kernel::assembleCpu(ModuleOp module, const CpuLevel &level) {
  OwningOpRef<ModuleOp> lowered = lowerCpu(module, level);
  SmallVector<char, 0> assembly;
  if (!lowered || failed(generate(*lowered, level, llvm::CodeGenFileType::AssemblyFile, assembly)))
    return failure();
  return std::string(assembly.begin(), assembly.end());
}
