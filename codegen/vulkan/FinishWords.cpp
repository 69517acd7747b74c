//===- FinishWords.cpp - what the spirv dialect cannot say, in the words of a module ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codegen/vulkan/FinishWords.h"
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
  OpFMul = 133
};
enum Decoration : uint32_t { BuiltIn = 11, NoContraction = 42 };
constexpr uint32_t workgroupSize = 25;

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
    }
    out[boundAt] = bound;
    words.assign(out.begin(), out.end());
  }

private:
  /// What is to be decorated, where decorations end, and the constants that are lengths of arrays.
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

  SmallVectorImpl<uint32_t> &words;
  SmallVector<uint32_t> decorations;
  llvm::DenseSet<uint32_t> lengths;
  size_t types = 0;
  uint32_t groupSize = 0, bound = 0;
};

} // namespace

void vulkan::finishWords(SmallVectorImpl<uint32_t> &words) { Finisher(words).run(); }
