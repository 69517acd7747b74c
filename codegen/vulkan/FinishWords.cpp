//===- FinishWords.cpp - what the spirv dialect cannot say, in the words of a module ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/vulkan/FinishWords.h"
#include "codegen/vulkan/ToSpirv.h"
#include "transept/abi.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace mlir::kernel;
using namespace mlir::kernel::vulkan;

namespace {

// Numbers of the SPIR-V specification.
constexpr size_t headerWords = 5, boundAt = 3;
enum Opcode : uint32_t {
  OpTypeVoid = 19,
  OpTypeArray = 28,
  OpConstant = 43,
  OpSpecConstantComposite = 51,
  OpSpecConstantOp = 52,
  OpVariable = 59,
  OpDecorate = 71,
  OpFAdd = 129,
  OpFSub = 131,
  OpIMul = 132,
  OpFMul = 133,
  OpTypeCooperativeMatrix = 4456
};
enum Decoration : uint32_t { SpecId = 1, BuiltIn = 11, NoContraction = 42 };
constexpr uint32_t workgroupSize = 25;

/// The identifier of the constant that stands behind a word of matrixSizeWord.
std::optional<uint32_t> matrixConstantOf(uint32_t word) {
  switch (word) {
  case matrixSizeWord(MatrixSize::Rows):
    return TRANSEPT_SHADER_MATRIX_ROWS;
  case matrixSizeWord(MatrixSize::Columns):
    return TRANSEPT_SHADER_MATRIX_COLUMNS;
  case matrixSizeWord(MatrixSize::Depth):
    return TRANSEPT_SHADER_MATRIX_DEPTH;
  default:
    return std::nullopt;
  }
}

uint32_t head(size_t count, Opcode code) { return static_cast<uint32_t>(count << 16) | code; }

class Finisher {
public:
  explicit Finisher(SmallVectorImpl<uint32_t> &words) : words(words) {}

  void run() {
    SmallVector<uint32_t, 0> out(words.begin(), words.begin() + headerWords);
    collect();
    for (size_t at = headerWords; at < words.size(); at += words[at] >> 16) {
      ArrayRef<uint32_t> instruction(&words[at], words[at] >> 16);
      if (at == types)
        out.append(decorations);
      if (isLength(instruction))
        appendLength(out, instruction);
      else
        out.append(instruction.begin(), instruction.end());
      if (instruction[0] == head(7, OpTypeCooperativeMatrix))
        setSizes(MutableArrayRef<uint32_t>(out).take_back(7));
    }
    out[boundAt] = bound;
    words.assign(out.begin(), out.end());
  }

private:
  /// What is to be decorated, where decorations end, and the constants that are lengths of arrays or sizes of matrices.
  void collect() {
    bound = words[boundAt];
    for (size_t at = headerWords; at < words.size(); at += words[at] >> 16) {
      uint32_t code = words[at] & 0xffff;
      // Decorations come right before the first type, constant or variable; serialize begins with the decorated types.
      if (types == 0 && code >= OpTypeVoid && code <= OpVariable)
        types = at;
      if (code == OpFAdd || code == OpFSub || code == OpFMul)
        decorations.append({head(3, OpDecorate), words[at + 2], NoContraction});
      if (code == OpSpecConstantComposite) {
        decorations.append({head(4, OpDecorate), words[at + 2], BuiltIn, workgroupSize});
        groupSize = words[at + 3];
      }
      if (code == OpTypeArray)
        lengths.insert(words[at + 3]);
      if (words[at] == head(4, OpDecorate) && words[at + 2] == SpecId)
        pipelineConstants[words[at + 3]] = words[at + 1];
      if (words[at] == head(4, OpConstant))
        if (std::optional<uint32_t> constant = matrixConstantOf(words[at + 3]))
          matrixSizes[words[at + 2]] = *constant;
    }
  }

  bool isLength(ArrayRef<uint32_t> instruction) const {
    return (instruction[0] & 0xffff) == OpConstant && instruction.size() == 4 && lengths.contains(instruction[2]) &&
           perInvocationOf(instruction[3]);
  }

  void appendLength(SmallVectorImpl<uint32_t> &out, ArrayRef<uint32_t> constant) {
    uint32_t each = bound++;
    out.append({head(4, OpConstant), constant[1], each, static_cast<uint32_t>(*perInvocationOf(constant[3]))});
    out.append({head(6, OpSpecConstantOp), constant[1], constant[2], OpIMul, groupSize, each});
  }

  /// Rows and columns of a type of matrices.
  void setSizes(MutableArrayRef<uint32_t> type) {
    for (uint32_t &size : type.slice(4, 2))
      if (auto found = matrixSizes.find(size); found != matrixSizes.end())
        size = pipelineConstants.lookup(found->second);
  }

  SmallVectorImpl<uint32_t> &words;
  SmallVector<uint32_t> decorations;
  llvm::DenseSet<uint32_t> lengths;
  llvm::DenseMap<uint32_t, uint32_t> pipelineConstants; // by SpecId
  llvm::DenseMap<uint32_t, uint32_t> matrixSizes;       // SpecId, by the constant in its place
  size_t types = 0;
  uint32_t groupSize = 0, bound = 0;
};

} // namespace

void vulkan::finishWords(SmallVectorImpl<uint32_t> &words) { Finisher(words).run(); }
