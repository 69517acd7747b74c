//===- FinishWords.h - what the spirv dialect cannot say, in the words of a module ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_CODEGEN_VULKAN_FINISHWORDS_H
#define TRANSEPT_CODEGEN_VULKAN_FINISHWORDS_H

#include "mlir/Support/LLVM.h"

namespace mlir::kernel::vulkan {

/// The length of a shared array with `count` elements for each invocation, until finishWords.
constexpr int64_t countPerInvocation(int64_t count) { return 0x7e000000 + count; }
/// The other way round; nothing for other lengths.
constexpr std::optional<int64_t> perInvocationOf(int64_t length) {
  return length >= countPerInvocation(0) ? std::optional<int64_t>(length - countPerInvocation(0)) : std::nullopt;
}

/// Says of every sum and product of floats that it is to be rounded on its own: formulas rely on it, and a driver may
/// otherwise contract them. Makes the specialisation constant composite the size of workgroups, lengths of shared
/// arrays multiples of its first component, and sizes of matrices the constants that pipelines set.
void finishWords(SmallVectorImpl<uint32_t> &words);

} // namespace mlir::kernel::vulkan

#endif // TRANSEPT_CODEGEN_VULKAN_FINISHWORDS_H
