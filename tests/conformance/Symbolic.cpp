//===- Symbolic.cpp - a node test's model with symbols for sizes ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tests/conformance/Symbolic.h"
#include "frontend/Import.h"
#include "onnx/onnx_pb.h"
#include "passes/Shapes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::transept;
namespace fs = std::filesystem;

namespace {

/// A size of an operand that is a property of the graph, not a batch or a length: a number of heads, the length of
/// index tuples.
struct StructuralSize {
  const char *op;
  int input, rank, axis; ///< rank 0: any; a negative axis counts from the end
};
constexpr StructuralSize structuralSizes[] = {
    {"Attention", 0, 4, 1}, {"Attention", 1, 4, 1},        {"Attention", 2, 4, 1},        {"Attention", 3, 4, 1},
    {"Attention", 3, 3, 0}, {"Attention", 4, 4, 1},        {"Attention", 5, 4, 1},        {"RotaryEmbedding", 0, 0, -1},
    {"GatherND", 1, 0, -1}, {"RotaryEmbedding", 1, 0, -1}, {"RotaryEmbedding", 2, 0, -1}, {"ScatterND", 1, 0, -1}};

bool isStructural(const onnx::ModelProto &model, const std::string &input, int rank, int axis) {
  for (const onnx::NodeProto &node : model.graph().node())
    for (const StructuralSize &size : structuralSizes)
      if (node.op_type() == size.op && size.input < node.input_size() && node.input(size.input) == input &&
          (size.rank == 0 || size.rank == rank) && axis == (size.axis < 0 ? size.axis + rank : size.axis))
        return true;
  return false;
}

/// Arguments of a function whose elements become sizes, amounts or axes. The length of such a list is a rank.
class ListArguments {
public:
  explicit ListArguments(func::FuncOp function) : function(function) {
    function.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (isShapeOperand(operand))
          follow(operand.get());
    });
  }

  llvm::StringSet<> names;

private:
  void follow(Value value) {
    if (!seen.insert(value).second)
      return;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (argument.getOwner() == &function.front() && type && type.getRank() == 1)
        names.insert(function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "transept.name").getValue());
      return;
    }
    Operation *op = value.getDefiningOp();
    if (isa<ShapeOp, SizeOp>(op)) // how many there are follows from a rank, not from a length
      return;
    for (Value operand : op->getOperands())
      follow(operand);
    if (auto branches = dyn_cast<IfOp>(op))
      for (Region &region : branches->getRegions())
        follow(region.front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
  }

  func::FuncOp function;
  llvm::DenseSet<Value> seen;
};

/// Names of those inputs of a model; none where it cannot be imported.
llvm::StringSet<> listInputs(const fs::path &file) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  ImportRequest request;
  request.kind = ImportRequest::AsGraph;
  Outcome<ImportResult> imported = importModel(file.string(), &context, request);
  if (!imported)
    return {};
  return ListArguments(imported->module->lookupSymbol<func::FuncOp>("main")).names;
}

} // namespace

void mlir::transept::makeSymbolic(onnx::ModelProto &model, const fs::path &file, const onnx::ModelProto &original) {
  llvm::StringSet<> lists = listInputs(file);
  onnx::GraphProto &graph = *model.mutable_graph();
  graph.clear_value_info();
  int count = 0;
  for (onnx::ValueInfoProto &input : *graph.mutable_input()) {
    if (!input.type().has_tensor_type())
      continue;
    onnx::TensorShapeProto &shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis, ++count)
      if (!lists.contains(input.name()) && !isStructural(original, input.name(), shape.dim_size(), axis))
        shape.mutable_dim(axis)->set_dim_param("size" + std::to_string(count));
  }
  for (onnx::ValueInfoProto &output : *graph.mutable_output())
    if (output.type().has_tensor_type())
      output.mutable_type()->mutable_tensor_type()->clear_shape();
}
