// The compiler's and the runtime's list of instruction set levels are one list.
#include "codegen/Codegen.h"
#include "runtime/CpuFeatures.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

namespace {

TEST(CpuLevels, CompilerAndRuntimeAgree) {
  std::vector<std::string> names;
  for (const mlir::kernel::CpuLevel &level : mlir::kernel::cpuLevels()) {
    names.push_back(level.name.str());
    llvm::SmallVector<llvm::StringRef> used;
    level.features.split(used, ',', -1, /*KeepEmpty=*/false);
    std::vector<std::string> compiled(used.begin(), used.end()), checked = transept::levelFeatures(level.name);
    llvm::sort(compiled);
    llvm::sort(checked);
    EXPECT_EQ(compiled, checked) << level.name.str()
                                 << ": what code is compiled for must be what a processor is asked for";
  }
  EXPECT_EQ(names, transept::cpuLevels());
}

} // namespace
