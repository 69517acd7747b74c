//===- NodeImport.h - one ONNX node on its way into the IR ------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an import handler sees of a node: its inputs as values, its attributes, and builders for the canonical ops.
// Handlers take the operator's version and produce one meaning, so the IR knows no opsets.

#ifndef TRANSEPT_FRONTEND_NODEIMPORT_H
#define TRANSEPT_FRONTEND_NODEIMPORT_H

#include "frontend/TensorData.h"
#include "ir/Transept.h"
#include <set>

namespace mlir::transept {

class GraphImporter;
struct ImportScope;

/// Fills the body of a loop, whose arguments are the number of the repetition, whether it was told to go on, and what
/// is carried; appends what the body yields: whether to go on, what is carried, what is collected.
using LoopBody = llvm::function_ref<LogicalResult(Block &, SmallVectorImpl<Value> &)>;

class NodeImport {
public:
  NodeImport(GraphImporter &importer, const onnx::NodeProto &node, ImportScope &scope, Location loc, int64_t version,
             SmallVector<Value> inputs);

  const onnx::NodeProto &node;
  ImportScope &scope;
  const Location loc;
  const int64_t version; ///< of the node's operator set
  OpBuilder &builder;

  StringRef op() const { return node.op_type(); }

  //===- Inputs and outputs -===//
  /// Without trailing absent ones.
  size_t inputCount() const { return inputs.size(); }
  /// Null if it is absent.
  Value input(size_t index) const { return index < inputs.size() ? inputs[index] : Value(); }
  bool wants(int output) const { return output < node.output_size() && !node.output(output).empty(); }
  LogicalResult result(int output, Value value);
  LogicalResult result(Value value) { return result(0, value); }

  //===- Attributes: each is marked as understood; those that are not are refused by name -===//
  bool has(StringRef name) { return find(name) != nullptr; }
  int64_t integer(StringRef name, int64_t fallback);
  float real(StringRef name, float fallback);
  std::string text(StringRef name, StringRef fallback);
  std::optional<SmallVector<int64_t>> integers(StringRef name);
  std::optional<SmallVector<float>> reals(StringRef name);
  const onnx::TensorProto *tensor(StringRef name);
  const onnx::GraphProto *graph(StringRef name);
  /// For attributes that change nothing here.
  void ignore(StringRef name) { (void)find(name); }
  /// The attribute with a reference to an attribute of the surrounding function resolved; null if it is absent.
  const onnx::AttributeProto *find(StringRef name);
  std::optional<std::string> unusedAttribute() const;

  //===- Failures: both return failure() -===//
  /// The model asks for something that is not implemented. Importing goes on, so that all of it is reported at once.
  LogicalResult unsupported(const Twine &what);
  LogicalResult invalid(const Twine &what);

  //===- Building -===//
  Type elementOf(Value value) const { return cast<TensorType>(value.getType()).getElementType(); }
  Type i64() const { return builder.getI64Type(); }
  Type i1() const { return builder.getI1Type(); }
  /// Creates an op with one result of unknown shape.
  template <typename Op, typename... Args> Value make(Type element, Args &&...args) {
    return builder.create<Op>(loc, Type(UnrankedTensorType::get(element)), std::forward<Args>(args)...)->getResult(0);
  }
  /// An i64 vector, or with `scalar` its first element as a scalar.
  Value constant(ArrayRef<int64_t> values);
  Value scalar(int64_t value);
  /// A scalar of any element type.
  Value scalar(Type element, double value);
  Value reshape(Value input, ArrayRef<int64_t> shape, bool allowZero = false);
  Value reshape(Value input, Value shape);
  Value transpose(Value input, ArrayRef<int64_t> permutation);
  Value castTo(Value input, Type element);
  Value reduce(Value input, ReduceKind kind, ArrayRef<int64_t> axes, bool keepdims);
  /// Sizes of the axes [start, end) as an i64 vector; both may be negative, as in Python.
  Value sizes(Value input, std::optional<int64_t> start = {}, std::optional<int64_t> end = {});
  /// Elements [starts, ends) along one axis, one-element vectors.
  Value slice(Value input, Value starts, Value ends, int64_t axis);

  /// 0 … limit - 1, of an i64 scalar.
  Value countTo(Value limit);
  /// A loop with the given carried values; `count` and `condition` may be null. Its results: what was carried last,
  /// then what was collected, along a new first axis.
  FailureOr<SmallVector<Value>> loop(Value count, Value condition, ArrayRef<Value> initial, LoopBody body);

  //===- Tensors and graphs of the model -===//
  /// The contents of a tensor attribute; a failure is reported.
  Outcome<TensorData> decode(const onnx::TensorProto &tensor);
  /// A constant or weight; null after a reported failure.
  Value materialize(const onnx::TensorProto &tensor, StringRef name);
  /// A constant or weight that was computed here.
  Value materializeHost(const HostTensor &tensor);
  /// Imports a nested graph at the end of `block`, its inputs bound to `inputs`; appends its outputs.
  LogicalResult importBody(const onnx::GraphProto &graph, Block &block, ArrayRef<Value> inputs,
                           SmallVectorImpl<Value> &outputs);

  //===- What is known already -===//
  /// The elements of an integer constant.
  std::optional<SmallVector<int64_t>> constantIntegers(Value value) const;
  /// The elements of a constant or weight of any type.
  std::optional<SmallVector<double>> constantReals(Value value) const;
  std::optional<int64_t> rank(Value value);
  /// The dims where the rank is known.
  std::optional<SmallVector<DimAttr>> dims(Value value);

private:
  GraphImporter &importer;
  SmallVector<Value> inputs;
  std::set<std::string> understood;
};

/// Imports one node. The ONNX checker has seen it: arity, attribute names and kinds are right for its version.
using ImportHandler = LogicalResult (*)(NodeImport &);

/// The handlers by operator; one function per idea adds its own (ImportTable.cpp calls all of them).
class ImportTable {
public:
  static const ImportTable &get();
  void add(StringRef op, ImportHandler handler) { add("", op, handler); }
  void add(StringRef domain, StringRef op, ImportHandler handler);
  ImportHandler find(StringRef domain, StringRef op) const;
  /// "domain::operator" of all handlers, sorted; the standard domain is "".
  std::vector<std::string> keys() const;

private:
  llvm::StringMap<ImportHandler> handlers;
};

/// The convolution that the attributes of a Conv node or of a quantised one describe; `finish` gets its result. `bias`
/// may be null (ImportConv.cpp).
LogicalResult importConvolution(NodeImport &node, Value input, Value weight, Value bias,
                                llvm::function_ref<LogicalResult(Value)> finish);

void addElementwiseImports(ImportTable &table);
void addMathImports(ImportTable &table);
void addProductImports(ImportTable &table);
void addEinsumImports(ImportTable &table);
void addConvImports(ImportTable &table);
void addRecurrentImports(ImportTable &table);
void addWindowImports(ImportTable &table);
void addSamplingImports(ImportTable &table);
void addResizeImports(ImportTable &table);
void addSignalImports(ImportTable &table);
void addReductionImports(ImportTable &table);
void addNormImports(ImportTable &table);
void addShapeImports(ImportTable &table);
void addIndexImports(ImportTable &table);
void addQuantizationImports(ImportTable &table);
void addAttentionImports(ImportTable &table);
void addMicrosoftAttentionImports(ImportTable &table);
void addGroupQueryImports(ImportTable &table);
void addEmbeddingImports(ImportTable &table);
void addControlImports(ImportTable &table);
void addUniqueImports(ImportTable &table);
void addDetectionImports(ImportTable &table);
void addTreeImports(ImportTable &table);
void addNgramImports(ImportTable &table);

constexpr StringLiteral microsoftDomain = "com.microsoft";

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_NODEIMPORT_H
