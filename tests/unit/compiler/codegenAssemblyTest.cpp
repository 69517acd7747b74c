// What the machine code of the hot loops looks like, and that it is always the same.
#include "tests/unit/compiler/codegenHarness.h"
#include <gtest/gtest.h>
#include <map>
#include <sstream>

using namespace codegen_test;

namespace {

const char *contract = R"(
kernel.func @contract symbols ["rows"] from "" {
^bb0(%x: !kernel.buffer<f32>, %w: !kernel.buffer<f32>, %b: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
  kernel.contract rows #transept.dim<rows> k 512 parts [2048]
      shapes [#transept.dims<[rows, 512]>, #transept.dims<[32, 512, 64]>, #transept.dims<[2048]>, #transept.dims<[rows, 2048]>]
      ins(%x, %w, %b) outs(%y) {
  ^bb1(%i: index, %j: index, %s: f32, %ba: !kernel.buffer<f32>):
    %0 = kernel.load %ba[%j] : !kernel.buffer<f32> -> f32
    %1 = arith.addf %s, %0 : f32
    kernel.yield %1 : f32
  } : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>) -> ()
}
)";

const char *attend = R"(
kernel.func @attend symbols ["B", "T", "S"] from "" {
^bb0(%q: !kernel.buffer<f32>, %k: !kernel.buffer<f32>, %v: !kernel.buffer<f32>, %m: !kernel.buffer<i64>, %y: !kernel.buffer<f32>):
  kernel.attend shapes [#transept.dims<[B, T, 8, 64]>, #transept.dims<[B, S, 8, 64]>, #transept.dims<[B, S, 8, 64]>, #transept.dims<[B, S]>,
      #transept.dims<[B, T, 8, 64]>] ins(%q, %k, %v, %m) outs(%y) {scale = 0.125 : f32, softcap = 0.0 : f32, emptyRow = 0 : i64, hasKeyMask}
      : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i64>, !kernel.buffer<f32>) -> ()
}
)";

struct Loop {
  int multiplyAdds = 0, stackAccesses = 0, subtractions = 0;
};

/// The innermost loops of one block.
std::vector<Loop> tightLoops(const std::string &assembly) {
  std::vector<Loop> loops;
  std::istringstream lines(assembly);
  std::string line, label;
  Loop current;
  while (std::getline(lines, line)) {
    if (line.rfind(".LBB", 0) == 0) {
      label = line.substr(0, line.find(':'));
      current = Loop();
      continue;
    }
    if (line.empty() || line[0] != '\t' || line[1] == '.' || line[1] == '#')
      continue;
    current.subtractions += line.find("\tvsub") != std::string::npos;
    current.multiplyAdds += line.find("\tvfmadd") != std::string::npos;
    current.stackAccesses += line.find("(%rsp") != std::string::npos || line.find("(%rbp") != std::string::npos;
    if (!label.empty() && line[1] == 'j' && line.find(label + "\n") == std::string::npos &&
        line.substr(line.find_last_of(" \t") + 1) == label)
      loops.push_back(current);
  }
  return loops;
}

std::string assemblyOf(const char *text, llvm::StringRef level) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = parseKernels(text, context);
  auto assembly = mlir::kernel::assembleCpu(*module, *mlir::kernel::findCpuLevel(level));
  return succeeded(assembly) ? *assembly : "";
}

TEST(Assembly, MatrixTilesKeepTheirSumsInRegisters) {
  // Multiply-adds of the tile of 1, 2 … 6 rows.
  const std::pair<const char *, std::vector<int>> levels[] = {{"avx512", {4, 8, 12, 16, 20, 24}},
                                                              {"avx2", {8, 8, 6, 8, 10, 12}}};
  for (const char *kernel : {contract, attend})
    for (const auto &[level, expected] : levels) {
      std::map<int, int> found; // multiply-adds of a loop: how many such loops
      for (const Loop &loop : tightLoops(assemblyOf(kernel, level))) {
        if (loop.multiplyAdds == 0 || loop.subtractions) // exp subtracts, tiles do not
          continue;
        ++found[loop.multiplyAdds];
        EXPECT_EQ(loop.stackAccesses, 0) << level << ": a loop of " << loop.multiplyAdds << " multiply-adds";
      }
      for (int count : expected)
        EXPECT_GE(found[count], 1) << level << " " << count;
      EXPECT_EQ(found.rbegin()->first, expected.back()) << level << ": loops are unrolled";
    }
}

TEST(Assembly, CallsNothing) {
  for (const mlir::kernel::CpuLevel &level : mlir::kernel::cpuLevels())
    for (const char *kernel : {contract, attend})
      EXPECT_EQ(assemblyOf(kernel, level.name).find("call"), std::string::npos) << level.name.str();
}

TEST(Assembly, ObjectsAreReproducible) {
  for (const std::string &level : runnableLevels()) {
    Kernels first(contract, level), second(contract, level);
    EXPECT_EQ(first.object(), second.object());
    EXPECT_EQ(first.object().find("/tmp"), std::string::npos);
  }
}

} // namespace
