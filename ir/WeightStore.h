//===- WeightStore.h - the contents of weights, once each ------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_WEIGHTSTORE_H
#define TRANSEPT_IR_WEIGHTSTORE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mlir::transept {

/// Weight contents by content hash. One per context, owned by the transept dialect. Not thread-safe.
/// Content is dense row-major in little-endian element order, i1 as one byte per element.
class WeightStore {
public:
  struct Weight {
    RankedTensorType type;
    ArrayRef<char> bytes;
  };

  /// The store of a context that has the transept dialect loaded.
  static WeightStore &of(MLIRContext *context);

  /// Copies `bytes` into the store and returns the key: lower-case hexadecimal SHA-256 over element type, shape and
  /// content. The same content gives the same key and is held once.
  std::string add(RankedTensorType type, ArrayRef<char> bytes);
  /// The same, taking the buffer.
  std::string add(RankedTensorType type, std::vector<char> bytes);
  /// Null type if there is no such key.
  Weight lookup(StringRef key) const;

  /// Writes the weights with these keys to `path` (index first, then contents; deterministic); reads them back.
  LogicalResult save(StringRef path, ArrayRef<std::string> keys, std::string &error) const;
  LogicalResult load(StringRef path, std::string &error);

private:
  struct Entry {
    RankedTensorType type;
    std::vector<char> bytes;
  };
  std::map<std::string, Entry, std::less<>> entries;
  MLIRContext *context = nullptr;
};

} // namespace mlir::transept

#endif // TRANSEPT_IR_WEIGHTSTORE_H
