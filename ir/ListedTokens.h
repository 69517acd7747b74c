//===- ListedTokens.h - a search head that computes the logits of some tokens --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With the unit attribute `listed`, kernel.search_head computes logits of N tokens, N a multiple of 64, and nothing
// else. Inputs: x f32 [rows, K], packed f32 matrix [ceil(V / 64), K, 64], tokens i32 [N] (-1: none; its logit means
// nothing), fresh i32 [N / 64], columns f32 [N / 64, K + 1, 64] (written in place), bias f32 [V] (may be missing).
// Output: logits f32 [rows, N], with the bits that kernel.contract and its epilogue give these tokens.
// `columns` holds the tokens' columns of the matrix and, behind them, their bias. Where `fresh` is not 0, they are
// copied first. An item is 64 tokens with up to 96 rows; of those of the same tokens, each copies for itself.

#ifndef TRANSEPT_IR_LISTEDTOKENS_H
#define TRANSEPT_IR_LISTEDTOKENS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::kernel {

constexpr llvm::StringLiteral listedAttrName = "listed";

} // namespace mlir::kernel

#endif // TRANSEPT_IR_LISTEDTOKENS_H
