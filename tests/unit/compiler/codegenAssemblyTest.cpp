// What the machine code of the hot loops looks like, and that it is always the same.
#include "tests/unit/compiler/codegenHarness.h"
#include <algorithm>
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

const char *attendSource = R"(
kernel.func @source symbols ["rows", "batch", "S"] from "" {
^bb0(%q: !kernel.buffer<f32>, %k: !kernel.buffer<f32>, %v: !kernel.buffer<f32>, %s: !kernel.buffer<i32>, %y: !kernel.buffer<f32>):
  kernel.attend_source shapes [#transept.dims<[rows, 1, 8, 64]>, #transept.dims<[batch, S, 8, 64]>, #transept.dims<[batch, S, 8, 64]>,
      #transept.dims<[rows]>, #transept.dims<[rows, 1, 8, 64]>] ins(%q, %k, %v, %s) outs(%y) {scale = 0.125 : f32, emptyRow = 0 : i64}
      : (!kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<f32>, !kernel.buffer<i32>, !kernel.buffer<f32>) -> ()
}
)";

struct Loop {
  std::vector<std::string> instructions; // with their operands
  bool hasFramePointer = false;
  int count(const std::string &part) const {
    return std::count_if(instructions.begin(), instructions.end(),
                         [&](const std::string &line) { return line.find(part) != std::string::npos; });
  }
  int stackAccesses() const { return count("(%rsp") + (hasFramePointer ? count("(%rbp") : 0); }
};

/// The innermost loops of one block; with `all`, every block.
std::vector<Loop> tightLoops(const std::string &assembly, bool all = false) {
  std::vector<Loop> loops;
  std::istringstream lines(assembly);
  std::string line, label;
  Loop current;
  bool hasFramePointer = false;
  while (std::getline(lines, line)) {
    if (!line.empty() && line[0] != '\t' && line[0] != '.' && line[0] != '#')
      hasFramePointer = false; // another function begins
    hasFramePointer |= line.find("movq\t%rsp, %rbp") != std::string::npos;
    if (all && (line.rfind(".LBB", 0) == 0 || line.rfind("# %bb", 0) == 0)) {
      loops.push_back(current);
      current = {{}, hasFramePointer};
    } else if (line.rfind(".LBB", 0) == 0) {
      label = line.substr(0, line.find(':'));
      current = {{}, hasFramePointer};
      continue;
    }
    if (line.empty() || line[0] != '\t' || line[1] == '.' || line[1] == '#')
      continue;
    current.instructions.push_back(line);
    if (!all && !label.empty() && line[1] == 'j' && line.substr(line.find_last_of(" \t") + 1) == label)
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
        const int multiplyAdds = loop.count("\tvfmadd");
        if (multiplyAdds == 0 || loop.count("\tvsub")) // exp subtracts, tiles do not
          continue;
        ++found[multiplyAdds];
        EXPECT_EQ(loop.stackAccesses(), 0) << level << ": a loop of " << multiplyAdds << " multiply-adds";
      }
      for (int count : expected)
        EXPECT_GE(found[count], 1) << level << " " << count;
      EXPECT_EQ(found.rbegin()->first, expected.back()) << level << ": loops are unrolled";
    }
}

TEST(Assembly, WeightsOfWholeBlocksStayInRegisters) {
  // Four groups of 16 scores, each with the 7 multiply-adds of its exponential. With 16 registers, its constants do not
  // all fit beside them.
  struct Case {
    const char *level;
    int multiplyAdds, stackAccesses;
  };
  for (const Case &expected : {Case{"avx512", 28, 0}, {"avx2", 56, 12}}) {
    int found = 0;
    for (const Loop &block : tightLoops(assemblyOf(attend, expected.level), /*all=*/true))
      if (block.count("\tvfm") == expected.multiplyAdds && block.count("\tvsub")) {
        ++found;
        EXPECT_LE(block.stackAccesses(), expected.stackAccesses) << expected.level;
      }
    EXPECT_EQ(found, 1) << expected.level;
  }
}

TEST(Assembly, RowsBringTheNextKeyNear) {
  // A key and a value of 64 floats are four lines each.
  int found = 0;
  for (const Loop &loop : tightLoops(assemblyOf(attendSource, "avx512")))
    if (loop.count("\tvfmadd") == 4 && loop.count("\tprefetcht1") == 4) {
      ++found;
      EXPECT_EQ(loop.count("%zmm") - loop.count("\tvfmadd") - loop.count("\tvbroadcastss"), 0);
    }
  EXPECT_EQ(found, 1);
}

/// A product with weights of `element`, in groups of `width` of k.
std::string narrowContract(const std::string &element, int width, const std::string &attributes) {
  std::string text = contract;
  auto replace = [&](const std::string &word, const std::string &by) {
    size_t at = text.find(word);
    text.replace(at, word.size(), by);
  };
  replace("%w: !kernel.buffer<f32>", "%w: !kernel.buffer<" + element + ">");
  replace("[32, 512, 64]", "[32, " + std::to_string(512 / width) + ", 64, " + std::to_string(width) + "]");
  replace("outs(%y) {", "outs(%y) attributes {" + attributes + "} {");
  replace(": (!kernel.buffer<f32>, !kernel.buffer<f32>", ": (!kernel.buffer<f32>, !kernel.buffer<" + element + ">");
  return text;
}

TEST(Assembly, NarrowTilesKeepTheirSumsInRegisters) {
  struct Case {
    const char *level, *element;
    int width;
    const char *attributes, *instruction;
    std::vector<int> expected; // instructions in the tile of 1, 2 … rows
  };
  const Case cases[] = {
      {"avx512bf16", "bf16", 2, "", "\tvdpbf16ps", {4, 8, 12, 16, 20, 24}},
      {"avx512", "bf16", 2, "", "\tvfmadd", {8, 16, 24, 32, 40}},
      {"avx2", "bf16", 2, "", "\tvfmadd", {8, 8, 12, 16}},
      {"avx512vnni", "ui8", 4, "quantised", "\tvpdpbusd", {4, 8, 12, 16, 20, 24}},
      {"avx512", "ui8", 4, "quantised", "\tvpmaddwd", {8, 16, 24, 32, 40}},
      {"avx2", "ui8", 4, "quantised", "\tvpmaddwd", {8, 8, 12, 16}},
      {"avx512", "ui8", 4, "", "\tvfmadd", {16, 32, 48, 64, 80}},
      {"avx2", "ui8", 4, "", "\tvfmadd", {16, 16, 24, 32, 40}},
  };
  for (const Case &narrow : cases) {
    const std::string text = narrowContract(narrow.element, narrow.width, narrow.attributes);
    const std::string what = std::string(narrow.level) + " " + narrow.element + " " + narrow.attributes;
    std::map<int, int> found;
    for (const Loop &loop : tightLoops(assemblyOf(text.c_str(), narrow.level)))
      if (const int count = loop.count(narrow.instruction)) {
        ++found[count];
        EXPECT_EQ(loop.stackAccesses(), 0) << what << ": a loop of " << count;
      }
    for (int count : narrow.expected)
      EXPECT_GE(found[count], 1) << what << " " << count;
    ASSERT_FALSE(found.empty()) << what;
    EXPECT_EQ(found.rbegin()->first, narrow.expected.back()) << what << ": the tallest tile, or loops are unrolled";
  }
}

// A tile of all 64 columns has two streams of prefetches, narrower ones at least one, and those that take a step apart
// have them once per step. Those of attention, whose keys are no panels, have none.
TEST(Assembly, TilesOfContractionsFetchTheNextPanel) {
  const std::pair<std::string, std::string> products[] = {
      {contract, "\tvfmadd"},
      {narrowContract("bf16", 2, ""), "\tvdpbf16ps"},
      {narrowContract("ui8", 4, "quantised"), "\tvpdpbusd"},
      {narrowContract("ui8", 4, "quantised"), "\tvpmaddwd"},
  };
  const char *levels[] = {"avx512", "avx512bf16", "avx512vnni", "avx512"};
  for (auto [product, level] : llvm::zip(products, levels)) {
    int tiles = 0;
    for (const Loop &loop : tightLoops(assemblyOf(product.first.c_str(), level)))
      if (loop.count(product.second)) {
        ++tiles;
        EXPECT_EQ(loop.count("\tprefetcht1"), 2) << level << product.second;
      }
    EXPECT_GE(tiles, 5) << level << product.second;
  }
  int narrowTiles = 0;
  for (const Loop &loop : tightLoops(assemblyOf(contract, "avx2")))
    if (loop.count("\tvfmadd") >= 6) {
      ++narrowTiles;
      EXPECT_EQ(loop.count("\tprefetcht1"), loop.count("\tvbroadcastss") <= 2 ? 2 : 1);
    }
  EXPECT_GE(narrowTiles, 6);
  for (const Loop &loop : tightLoops(assemblyOf(attend, "avx512")))
    if (loop.count("\tvfmadd"))
      EXPECT_EQ(loop.count("\tprefetcht1"), 0);
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
