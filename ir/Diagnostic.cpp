//===- Diagnostic.cpp - failures that reach the user ----------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/Diagnostic.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

using namespace mlir::transept;

namespace {
/// Length of the valid UTF-8 sequence at the start of `text`, 0 if there is none.
size_t sequenceLength(llvm::StringRef text) {
  auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
  return llvm::getUTF8SequenceSize(begin, begin + text.size());
}
} // namespace

std::string mlir::transept::printable(llvm::StringRef text, size_t limit) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= limit) {
      out += "...";
      break;
    }
    auto first = static_cast<unsigned char>(text.front());
    size_t length = first < 0x80 ? 1 : sequenceLength(text);
    // C1 control characters, U+0080 to U+009F, are two bytes.
    bool control =
        first < 0x20 || first == 0x7f || (first == 0xc2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xa0);
    if (length == 0 || control) {
      out += "\\x";
      out += llvm::hexdigit(first >> 4, /*LowerCase=*/true);
      out += llvm::hexdigit(first & 15, /*LowerCase=*/true);
      text = text.drop_front();
      continue;
    }
    out += text.take_front(length);
    text = text.drop_front(length);
  }
  return out;
}

std::string mlir::transept::quoted(llvm::StringRef text, size_t limit) { return "'" + printable(text, limit) + "'"; }
