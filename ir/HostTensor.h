//===- HostTensor.h - a dense tensor in host memory ------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_IR_HOSTTENSOR_H
#define TRANSEPT_IR_HOSTTENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <memory>
#include <vector>

namespace mlir::transept {

/// A dense row-major tensor of static shape. i1 is one byte per element; f16 and bf16 hold their 16-bit patterns; for
/// types below a byte see ir/NarrowTypes.h.
/// Copies share the buffer; writers call `make` for a fresh one.
class HostTensor {
public:
  HostTensor() = default;
  /// A zero-filled tensor. `type` must have a static shape.
  static HostTensor make(RankedTensorType type);
  static HostTensor fromBytes(RankedTensorType type, ArrayRef<char> bytes);
  /// Small constants: splats are expanded.
  static HostTensor fromElements(ElementsAttr elements);

  explicit operator bool() const { return static_cast<bool>(storage); }
  RankedTensorType getType() const { return type; }
  Type elementType() const { return type.getElementType(); }
  ArrayRef<int64_t> shape() const { return type.getShape(); }
  int64_t numElements() const { return type.getNumElements(); }
  ArrayRef<char> bytes() const { return *storage; }
  char *data() { return storage->data(); }
  template <typename T> T *data() { return reinterpret_cast<T *>(storage->data()); }
  template <typename T> const T *data() const { return reinterpret_cast<const T *>(storage->data()); }

  /// Element `index` (row-major) as double or as a 64-bit integer, whatever the element type.
  double getDouble(int64_t index) const;
  int64_t getInt(int64_t index) const;
  /// Converts to the element type: round to nearest even for floats, wrap for integers, non-zero for i1.
  void setDouble(int64_t index, double value);
  void setInt(int64_t index, int64_t value);

  /// The element type is an integer or builtin float type.
  DenseElementsAttr toElements() const;

private:
  RankedTensorType type;
  std::shared_ptr<std::vector<char>> storage;
};

/// Bytes per element in host memory: i1 takes one.
unsigned byteWidth(Type elementType);

} // namespace mlir::transept

#endif // TRANSEPT_IR_HOSTTENSOR_H
