//===- Unsupported.cpp - all that a model needs and the importer lacks, in one go ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/GraphImporter.h"
#include "frontend/NodeImport.h"
#include "onnx/defs/schema.h"

using namespace mlir;
using namespace mlir::transept;

std::string mlir::transept::operatorTitle(const onnx::NodeProto &node) {
  if (node.domain().empty())
    return node.op_type();
  return node.domain() + "::" + node.op_type();
}

void mlir::transept::addFeature(std::vector<UnsupportedFeature> &features, std::string what, std::string node) {
  for (UnsupportedFeature &feature : features)
    if (feature.what == what) {
      feature.nodes.push_back(std::move(node));
      return;
    }
  features.push_back({std::move(what), {std::move(node)}});
}

namespace {
class OperatorScan {
public:
  explicit OperatorScan(const OnnxFile &file) {
    for (const onnx::FunctionProto &function : file.model->functions())
      functions[function.domain() + '\0' + function.name() + '\0' + function.overload()] = &function;
    scan(file.model->graph().node(), file.opsets, 0);
  }
  std::vector<UnsupportedFeature> features;

private:
  using Opsets = std::map<std::string, int64_t>;

  void scan(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, const Opsets &opsets, unsigned depth) {
    if (depth > 100)
      return;
    for (const onnx::NodeProto &node : nodes) {
      visit(node, opsets, depth);
      for (const onnx::AttributeProto &attribute : node.attribute())
        if (attribute.has_g())
          scan(attribute.g().node(), opsets, depth + 1);
    }
  }

  void visit(const onnx::NodeProto &node, const Opsets &opsets, unsigned depth) {
    auto local = functions.find(node.domain() + '\0' + node.op_type() + '\0' + node.overload());
    if (local != functions.end()) {
      if (!visited.insert(local->second).second)
        return;
      Opsets own;
      for (const onnx::OperatorSetIdProto &import : local->second->opset_import())
        own[import.domain()] = import.version();
      scan(local->second->node(), own, depth + 1);
      return;
    }
    const std::string &domain = node.domain();
    auto opset = opsets.find(domain);
    if (opset == opsets.end())
      return; // the checker names the missing import
    bool handled = ImportTable::get().find(domain, node.op_type()) != nullptr;
    const onnx::OpSchema *schema =
        onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset->second), domain);
    bool standard = domain.empty();
    bool expandable = schema && (schema->HasFunction() || schema->HasContextDependentFunction());
    if (standard ? schema && (handled || expandable) : handled)
      return;
    std::string what = "operator " + printable(operatorTitle(node)) + ", version " + std::to_string(opset->second);
    if (const onnx::OpSchema *latest = standard && !schema ? onnx::OpSchemaRegistry::Schema(node.op_type()) : nullptr)
      what += " (it exists from opset " + std::to_string(firstVersion(node.op_type(), latest->SinceVersion())) + " on)";
    addFeature(features, what, nodeTitle(node));
  }

  static int firstVersion(const std::string &op, int version) {
    for (int candidate = 1; candidate < version; ++candidate)
      if (onnx::OpSchemaRegistry::Schema(op, candidate, ""))
        return candidate;
    return version;
  }

  std::map<std::string, const onnx::FunctionProto *> functions;
  std::set<const onnx::FunctionProto *> visited;
};

std::string describe(const UnsupportedFeature &feature, size_t nodes) {
  std::string text = feature.what + " (node" + (feature.nodes.size() > 1 ? "s " : " ");
  for (size_t index = 0; index < std::min(nodes, feature.nodes.size()); ++index)
    text += (index ? ", " : "") + quoted(feature.nodes[index], 100);
  if (feature.nodes.size() > nodes)
    text += " and " + std::to_string(feature.nodes.size() - nodes) + " more";
  return text + ")";
}
} // namespace

std::vector<UnsupportedFeature> mlir::transept::findUnsupportedOperators(const OnnxFile &file) {
  return OperatorScan(file).features;
}

Failure mlir::transept::unsupportedFailure(const OnnxFile &file, const std::vector<UnsupportedFeature> &features) {
  constexpr size_t named = 3;
  Failure failure{ExitUnsupported, printable(file.path) + ": not supported: ", {}};
  for (size_t index = 0; index < std::min(named, features.size()); ++index)
    failure.message += (index ? "; " : "") + describe(features[index], 1);
  if (features.size() > named)
    failure.message += "; and " + std::to_string(features.size() - named) + " more, see --report";
  for (const UnsupportedFeature &feature : features)
    failure.details.push_back(describe(feature, 5));
  return failure;
}
