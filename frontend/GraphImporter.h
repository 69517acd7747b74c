//===- GraphImporter.h - ONNX graphs become functions -----------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_GRAPHIMPORTER_H
#define TRANSEPT_FRONTEND_GRAPHIMPORTER_H

#include "frontend/OnnxFile.h"
#include "frontend/ShapeOracle.h"
#include "frontend/TensorData.h"
#include "ir/Transept.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <map>

namespace mlir::transept {

class NodeImport;

/// What names mean while a list of nodes is imported: a graph, a branch, or the body of a function.
struct ImportScope {
  /// Null for the main graph and for function bodies, which see no outer names.
  ImportScope *outer = nullptr;
  Block *block = nullptr;
  /// Null values stand for results of nodes that could not be imported.
  llvm::StringMap<Value> values;
  /// Optional inputs of a function that the call leaves out.
  std::set<std::string> absent;
  llvm::StringMap<const onnx::TensorProto *> initializers;
  /// Initializers are created at the start of the block, in the order of their first use.
  Operation *lastInitializer = nullptr;
  const std::map<std::string, int64_t> *opsets = nullptr;
  /// Attributes of the call, where this is inside a function body.
  const std::map<std::string, const onnx::AttributeProto *> *attributes = nullptr;
  /// Name of the function's call node, for locations.
  std::string prefix;
  unsigned depth = 0;
};

struct ImportOptions {
  /// An initializer that is also a graph input is a default that a caller may override. In an export nobody can feed
  /// it, so it is a constant there.
  bool overridableInitializers = true;
};

/// One kind of thing that is not supported, and where it occurs.
struct UnsupportedFeature {
  std::string what; ///< "operator my.ops::Fancy, version 1", or "attribute 'x' of Resize"
  std::vector<std::string> nodes;
};

/// Imports the graphs of one file.
class GraphImporter {
public:
  GraphImporter(MLIRContext *context, const OnnxFile &file, const ImportOptions &options);

  /// Appends a function to `module`. All unsupported features of the graph are in the failure's details.
  std::optional<Failure> importGraph(ModuleOp module, StringRef name);

  //===- For NodeImport and the handlers -===//
  const OnnxFile &file;
  MLIRContext *context;
  OpBuilder builder;
  ShapeOracle shapes;

  /// Imports a nested graph of `node` at the end of `block`, its inputs bound to `inputs`; appends its outputs.
  LogicalResult importBody(NodeImport &node, const onnx::GraphProto &graph, Block &block, ArrayRef<Value> inputs,
                           SmallVectorImpl<Value> &outputs);
  /// A constant for a tensor: small ones are written out, others go to the weight store.
  Value materialize(const onnx::TensorProto &tensor, StringRef name, Location loc);
  void reportUnsupported(const onnx::NodeProto &node, const ImportScope &scope, const Twine &what);
  void reportFailure(const Failure &why) {
    if (!failure)
      failure = why;
  }
  void reportInvalid(const onnx::NodeProto &node, const ImportScope &scope, const Twine &what);

private:
  /// What a name stands for. A null value is a result of a node that could not be imported.
  struct Name {
    enum { Unknown, Absent, Known } state = Unknown;
    Value value;
  };
  std::optional<Failure> declareInputs(const onnx::GraphProto &graph, func::FuncOp function, ImportScope &scope);
  std::optional<Failure> returnOutputs(const onnx::GraphProto &graph, func::FuncOp function, ImportScope &scope);
  Outcome<RankedTensorType> inputType(const onnx::ValueInfoProto &input);
  Attribute defaultValue(const onnx::TensorProto &tensor, RankedTensorType type);
  LogicalResult importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, ImportScope &scope);
  LogicalResult importNode(const onnx::NodeProto &node, ImportScope &scope);
  LogicalResult dispatch(NodeImport &node);
  LogicalResult expand(NodeImport &node, const onnx::FunctionProto &function);
  /// The body of a standard operator that is defined as a function, built for this node; null if it has none.
  std::unique_ptr<onnx::FunctionProto> standardBody(NodeImport &node);
  Name lookup(StringRef name, ImportScope &scope);
  Location locationOf(const onnx::NodeProto &node, const ImportScope &scope) const;

  ImportOptions options;
  std::optional<Failure> failure;
  std::vector<UnsupportedFeature> unsupported;
  std::set<std::string> labels;                                 ///< names of sizes in use
  std::map<std::string, const onnx::FunctionProto *> functions; ///< by domain, name and overload
  uint64_t importedNodes = 0;
};

/// "domain::Op", without the standard domain.
std::string operatorTitle(const onnx::NodeProto &node);
/// The node's name, or the first result of a node without one.
std::string nodeTitle(const onnx::NodeProto &node);
void addFeature(std::vector<UnsupportedFeature> &features, std::string what, std::string node);
/// Operators of the model that have neither a handler nor a body; empty if there are none.
std::vector<UnsupportedFeature> findUnsupportedOperators(const OnnxFile &file);
/// One line with the first three, and all of them as details.
Failure unsupportedFailure(const OnnxFile &file, const std::vector<UnsupportedFeature> &features);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_GRAPHIMPORTER_H
