#include "tests/unit/compiler/codegenHarness.h"
#include "ir/Transept.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "runtime/CpuFeatures.h"
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace codegen_test;

Bytes::Bytes(size_t size) : size(size) {
  size_t total = (size + TRANSEPT_BUFFER_SLACK + TRANSEPT_BUFFER_ALIGNMENT - 1) / TRANSEPT_BUFFER_ALIGNMENT *
                 TRANSEPT_BUFFER_ALIGNMENT;
  base = static_cast<char *>(std::aligned_alloc(TRANSEPT_BUFFER_ALIGNMENT, total));
  std::memset(base, 0xff, total);
}

Bytes::~Bytes() {
  for (size_t i = 0; base && i < TRANSEPT_BUFFER_SLACK; ++i)
    if (base[size + i] != char(0xff)) {
      std::fprintf(stderr, "byte %zu behind a buffer of %zu bytes was written\n", i, size);
      std::abort();
    }
  std::free(base);
}

Array<float> codegen_test::randomFloats(size_t count, unsigned seed, float bound) {
  Array<float> values(count);
  std::mt19937 generator(seed);
  for (float &value : values)
    value = (float(generator() >> 8) / float(1 << 23) - 1) * bound;
  return values;
}

static void check(bool ok, const char *what) {
  if (ok)
    return;
  std::fprintf(stderr, "test kernel: %s failed\n", what);
  std::abort();
}

mlir::OwningOpRef<mlir::ModuleOp> codegen_test::parseKernels(const std::string &text, mlir::MLIRContext &context) {
  context.loadDialect<mlir::kernel::KernelDialect, mlir::transept::TranseptDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect, mlir::scf::SCFDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  check(bool(module), "parsing");
  check(succeeded(mlir::kernel::scheduleCpu(*module)), "schedule");
  return module;
}

Kernels::Kernels(const std::string &text, llvm::StringRef level) : context(mlir::MLIRContext::Threading::DISABLED) {
  module = parseKernels(text, context);
  for (auto func : module->getOps<mlir::kernel::FuncOp>()) {
    Kernel kernel;
    for (auto name : func.getSymbols().getAsValueRange<mlir::StringAttr>())
      kernel.symbols.push_back(name.str());
    kernel.items = *func.getItems();
    kernel.scratch = *func.getScratch();
    kernels.push_back(kernel);
  }
  auto object = mlir::kernel::emitCpu(*module, *mlir::kernel::findCpuLevel(level));
  check(succeeded(object), "emission");
  bytes = *object;
  file = memfd_create("kernels", 0);
  check(write(file, bytes.data(), bytes.size()) == ssize_t(bytes.size()), "writing");
  library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  check(library, "loading");
  table = static_cast<const transept_kernel_table *>(dlsym(library, TRANSEPT_KERNEL_TABLE_SYMBOL));
  check(table && table->abi_version == TRANSEPT_ABI_VERSION && table->count == kernels.size(), "the kernel table");
}

Kernels::~Kernels() {
  if (library)
    dlclose(library);
  close(file);
}

void Kernels::run(unsigned index, std::vector<void *> buffers, std::vector<int64_t> sizes, int parts) {
  for (int part = parts; part-- > 0;)
    runPart(index, buffers, sizes, part, parts);
}

void Kernels::runPart(unsigned index, std::vector<void *> buffers, std::vector<int64_t> sizes, int part, int parts) {
  const Kernel &kernel = kernels.at(index);
  llvm::StringMap<int64_t> symbols;
  for (size_t i = 0; i < kernel.symbols.size(); ++i)
    symbols[kernel.symbols[i]] = sizes.at(i);
  int64_t items = *mlir::transept::evaluate(kernel.items, symbols);
  Bytes scratch(*mlir::transept::evaluate(kernel.scratch, symbols));
  transept_dispatch dispatch = {buffers.data(), sizes.data(), &error};
  table->kernels[index](&dispatch, items * part / parts, items * (part + 1) / parts, scratch.data());
}

std::vector<std::string> codegen_test::runnableLevels(llvm::StringRef precision) {
  std::vector<std::string> names;
  const std::vector<std::string> usable = transept::cpuFeatures();
  for (const mlir::kernel::CpuLevel &level : mlir::kernel::cpuLevels())
    if (level.dotBf16 <= (precision == "bf16") && level.dotInt8 <= (precision == "int8") &&
        llvm::all_of(transept::levelFeatures(level.name),
                     [&](const auto &feature) { return llvm::is_contained(usable, feature); }))
      names.push_back(level.name.str());
  return names;
}

std::vector<std::string> codegen_test::fusedLevels() {
  std::vector<std::string> names = runnableLevels();
  llvm::erase_if(names, [](const std::string &name) { return !mlir::kernel::findCpuLevel(name)->fusedMultiplyAdd; });
  return names;
}
