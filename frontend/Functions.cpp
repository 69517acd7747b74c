//===- Functions.cpp - functions of the model and of the standard are expanded where they are called -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/GraphImporter.h"
#include "frontend/NodeImport.h"
#include "onnx/defs/schema.h"

using namespace mlir;
using namespace mlir::transept;

LogicalResult GraphImporter::expand(NodeImport &node, const onnx::FunctionProto &function) {
  ImportScope scope;
  scope.block = node.scope.block;
  scope.prefix = node.scope.prefix + nodeTitle(node.node) + "/";
  scope.depth = node.scope.depth + 1;
  if (scope.depth > file.limits.nesting) {
    failure = Failure{ExitLimit,
                      printable(file.path) + ": function " + quoted(function.name()) + " is expanded more than " +
                          std::to_string(file.limits.nesting) + " deep; functions must not call themselves",
                      {}};
    return mlir::failure();
  }
  std::map<std::string, int64_t> opsets;
  for (const onnx::OperatorSetIdProto &import : function.opset_import())
    opsets[import.domain()] = import.version();
  scope.opsets = &opsets;

  std::map<std::string, const onnx::AttributeProto *> attributes;
  for (const onnx::AttributeProto &attribute : function.attribute_proto())
    attributes[attribute.name()] = &attribute;
  for (const onnx::AttributeProto &attribute : node.node.attribute())
    if (const onnx::AttributeProto *bound = node.find(attribute.name()))
      attributes[attribute.name()] = bound;
  scope.attributes = &attributes;

  if (node.inputCount() > static_cast<size_t>(function.input_size()))
    return node.invalid("has " + Twine(node.inputCount()) + " inputs, but its function takes " +
                        Twine(function.input_size()));
  for (auto [index, name] : llvm::enumerate(function.input())) {
    if (Value value = node.input(index))
      scope.values[name] = value;
    else
      scope.absent.insert(name);
  }
  if (failed(importNodes(function.node(), scope)))
    return mlir::failure();
  for (auto [index, name] : llvm::enumerate(function.output())) {
    if (!node.wants(static_cast<int>(index)))
      continue;
    Name value = lookup(name, scope);
    if (value.state != Name::Known)
      return node.invalid("calls a function whose output " + quoted(name) + " is made by no node");
    (void)node.result(static_cast<int>(index), value.value);
  }
  return success();
}

namespace {
/// The types of the inputs as far as they are known, for bodies that depend on them.
std::vector<onnx::TypeProto> inputTypes(NodeImport &node) {
  std::vector<onnx::TypeProto> types;
  for (int index = 0; index < node.node.input_size(); ++index) {
    onnx::TypeProto &type = types.emplace_back();
    Value value = node.input(index);
    if (!value)
      continue;
    type.mutable_tensor_type()->set_elem_type(dataTypeOf(node.elementOf(value)));
    std::optional<SmallVector<DimAttr>> dims = node.dims(value);
    if (!dims)
      continue;
    onnx::TensorShapeProto *shape = type.mutable_tensor_type()->mutable_shape();
    for (DimAttr dim : *dims)
      if (std::optional<int64_t> size = dim ? constantValue(dim) : std::nullopt)
        shape->add_dim()->set_dim_value(*size);
      else
        shape->add_dim();
  }
  return types;
}
/// The version to ask a body for: the wanted one, or the first after it for which the standard has a body. Bodies name
/// the operator sets that they use, so a later one means the same.
int bodyVersion(const std::vector<int> &versions, int wanted) {
  int later = wanted;
  for (int version : versions) {
    if (version <= wanted)
      return wanted;
    later = later == wanted ? version : std::min(later, version);
  }
  return later;
}

/// The node with references to attributes of a surrounding function resolved: body builders look at attributes.
onnx::NodeProto resolveAttributes(NodeImport &node) {
  onnx::NodeProto resolved = node.node;
  resolved.clear_attribute();
  for (const onnx::AttributeProto &attribute : node.node.attribute())
    if (const onnx::AttributeProto *bound = node.find(attribute.name())) {
      onnx::AttributeProto &copy = *resolved.add_attribute();
      copy = *bound;
      copy.set_name(attribute.name());
    }
  return resolved;
}
} // namespace

std::unique_ptr<onnx::FunctionProto> GraphImporter::standardBody(NodeImport &node) {
  auto version = static_cast<int>(node.version);
  const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Schema(node.node.op_type(), version, node.node.domain());
  if (!schema)
    return nullptr;
  auto body = std::make_unique<onnx::FunctionProto>();
  try {
    if (schema->HasFunction()) {
      const onnx::FunctionProto *fixed = schema->GetFunction(bodyVersion(schema->function_opset_versions(), version));
      if (!fixed)
        return nullptr;
      *body = *fixed;
    } else if (schema->HasContextDependentFunction()) {
      onnx::NodeProto resolved = resolveAttributes(node);
      std::vector<onnx::TypeProto> types = inputTypes(node);
      onnx::FunctionBodyBuildContextImpl bodyContext(resolved, types);
      if (!schema->BuildContextDependentFunction(
              bodyContext, *body, bodyVersion(schema->context_dependent_function_opset_versions(), version)))
        return nullptr;
    } else {
      return nullptr;
    }
  } catch (const std::exception &) {
    return nullptr;
  }
  // A body refers to attributes that the call may leave out; their defaults are in the schema.
  for (const auto &[name, attribute] : schema->attributes())
    if (attribute.default_value.has_name()) {
      onnx::AttributeProto &copy = *body->add_attribute_proto();
      copy = attribute.default_value;
      copy.set_name(name);
    }
  return body;
}
