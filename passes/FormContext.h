//===- FormContext.h - what forming one entry needs --------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_PASSES_FORMCONTEXT_H
#define TRANSEPT_PASSES_FORMCONTEXT_H

#include "ir/HostTensor.h"
#include "ir/Transept.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/FormBody.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::transept {

/// Where the layers' keys and values lie in a block of the self cache, in elements. Per layer in ascending order:
/// key [heads, 16, keySize], then value [heads, 16, valueSize].
struct CacheLayout {
  struct Layer {
    int64_t heads = 0, keySize = 0, valueSize = 0;
    int64_t keyOffset = 0, valueOffset = 0;
  };
  std::map<int64_t, Layer> layers;
  int64_t blockElements = 0;
  /// f32 or bf16, see passes/NarrowCaches.h.
  Type element;

  /// Collects the appends of the whole module: all entries share one pool.
  static FailureOr<CacheLayout> of(ModuleOp module);
};

/// Emits an error that names op and node. Its location is fused with the metadata "unsupported", by which a tool tells
/// a model it cannot compile from a fault of its own.
InFlightDiagnostic emitUnsupported(Operation *op);
/// The ONNX nodes a location stands for, without repetition.
SmallVector<StringRef> sourceNodesOf(Location location);
/// The first of them, or the op's name.
std::string sourceNodeOf(Operation *op);

/// The entry under construction, and the kernel-level tensor of every graph value so far.
class FormContext {
public:
  FormContext(kernel::EntryOp entry, const CacheLayout &cache);

  kernel::EntryOp entry;
  const CacheLayout &cache;
  /// Inserts at the end of the entry.
  OpBuilder builder;

  MLIRContext *context() const { return builder.getContext(); }
  Value tensor(Value graphValue) const { return values.lookup(graphValue); }
  void define(Value graphValue, Value tensor) { values[graphValue] = tensor; }

  DimAttr constant(int64_t value) const { return dimConstant(context(), value); }
  DimAttr symbol(StringRef name) const { return dimSymbol(context(), name); }
  DimsAttr dims(ArrayRef<DimAttr> list) const { return DimsAttr::get(context(), list); }
  ArrayAttr dimArray(ArrayRef<DimAttr> list) const;
  /// Shapes of `inputs`, then `outputs`.
  ArrayAttr shapes(ArrayRef<Value> inputs, ArrayRef<DimsAttr> outputs) const;

  using MapBody = function_ref<Value(Body &, ValueRange indices, ValueRange sources)>;
  /// A kernel.map with one output; `body` yields a value of the compute type of `elementType`.
  Value map(Location loc, ArrayRef<DimAttr> domain, ArrayRef<Value> inputs, Type elementType, MapBody body);

  using RowsBody = function_ref<void(Body &, Value row, ValueRange sources)>;
  /// A kernel.rows with one output of shape [rows, length] written by the body's row_map, or, without, of shape [rows]
  /// yielded by it (the body then makes the terminator).
  Value rows(Location loc, DimAttr rowCount, DimAttr length, ArrayRef<Value> inputs, Type elementType, bool mapped,
             RowsBody body);

  struct Output {
    SmallVector<DimAttr> dims;
    Type elementType;
  };
  using SerialBody = function_ref<void(Body &, Value item, ValueRange outputs, ValueRange sources)>;
  /// A kernel.serial; what an item's body does not store stays undefined.
  SmallVector<Value> serial(Location loc, DimAttr items, ArrayRef<Value> inputs, ArrayRef<Output> outputs,
                            SerialBody body);

  Value view(Location loc, Value source, ArrayRef<DimAttr> dims);
  /// The tensor under leading dims flattened to one and its last dim: [rows, N].
  Value viewAsRows(Location loc, Value source);
  Value cast(Location loc, Value source, Type elementType);

  /// A weight as it is ("rows"), or several matrices in panels. Made at the top of the entry, each once.
  Value weight(StringRef key, RankedTensorType type);
  Value panels(ArrayRef<std::string> keys, ArrayRef<bool> transposed, RankedTensorType type);
  /// A name for a label, variable or arena, new in this entry.
  std::string fresh(StringRef hint) { return (hint + "." + Twine(names[hint]++)).str(); }
  Value state(StringRef name, ArrayRef<DimAttr> dims, Type elementType);
  void exportTo(Location loc, StringRef name, Value value);

private:
  Value atTop(Attribute key, function_ref<Value(OpBuilder &)> make);

  DenseMap<Value, Value> values;
  llvm::MapVector<Attribute, Value> top;
  llvm::StringMap<unsigned> names;
};

/// What a state is, for `inspect`.
StringRef stateRole(StringRef name);

/// One value of the body of a row_reduce or row_map; `position` counts along the row.
using RowStep = function_ref<Value(Body &, Value position)>;
Value rowReduce(Body &b, StringRef kind, Type type, RowStep step);
void rowMap(Body &b, int64_t output, RowStep step);

} // namespace mlir::transept

#endif // TRANSEPT_PASSES_FORMCONTEXT_H
