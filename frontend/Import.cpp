//===- Import.cpp - from ONNX files to a module of the graph dialect -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Import.h"
#include "frontend/GraphImporter.h"
#include "frontend/SearchNode.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FileSystem.h"
#include <new>

using namespace mlir;
using namespace mlir::transept;

namespace {
/// One graph with its own inputs and outputs, unless it is a whole generation in one operator.
Outcome<ExportDescription> describeGraph(const std::string &path, const ImportRequest &request) {
  Outcome<OnnxFile> file = openOnnx(path, request.limits);
  if (!file)
    return std::move(file.failure());
  if (request.kind == ImportRequest::ByPath && hasSearchNode(file->model->graph()))
    return openSearchFile(std::move(*file));
  ExportDescription description;
  description.sourceHash = file->sha256;
  ExportGraph graph;
  graph.file = std::move(*file);
  description.graphs.push_back(std::move(graph));
  return description;
}

Outcome<ExportDescription> openSource(const std::string &path, const ImportRequest &request) {
  bool directory = llvm::sys::fs::is_directory(path);
  if (directory && request.kind == ImportRequest::AsGraph)
    return Failure{ExitUsage, printable(path) + ": is a directory; as a graph, give one of its .onnx files", {}};
  if (directory)
    return openExport(path, request.limits);
  return request.kind == ImportRequest::AsExport ? openExportFile(path, request.limits) : describeGraph(path, request);
}

/// Operators that are missing are reported for all files at once, before anything else is said about the graphs.
std::optional<Failure> checkGraphs(ExportDescription &description) {
  std::optional<Failure> missing;
  for (ExportGraph &graph : description.graphs) {
    std::vector<UnsupportedFeature> features = findUnsupportedOperators(graph.file);
    if (features.empty())
      continue;
    Failure failure = unsupportedFailure(graph.file, features);
    if (!missing)
      missing = std::move(failure);
    else
      missing->details.insert(missing->details.end(), failure.details.begin(), failure.details.end());
  }
  if (missing)
    return missing;
  for (ExportGraph &graph : description.graphs)
    if (std::optional<Failure> failure = checkModel(graph.file))
      return failure;
  return std::nullopt;
}

/// Results without a role, attention weights for example, would keep alive what fusion takes out.
void dropResults(func::FuncOp function, const PortRoles &roles) {
  Operation *end = function.getBody().front().getTerminator();
  llvm::BitVector dropped(function.getNumResults());
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto name = function.getResultAttrOfType<StringAttr>(i, "transept.name");
    if (name && !roles.count(name.str()))
      dropped.set(i);
  }
  if (dropped.all())
    return;
  end->eraseOperands(dropped);
  function.eraseResults(dropped);
}

Outcome<ImportResult> import(const std::string &path, MLIRContext *context, const ImportRequest &request) {
  context->loadDialect<func::FuncDialect, TranseptDialect>();
  Outcome<ExportDescription> description = openSource(path, request);
  if (!description)
    return std::move(description.failure());
  if (std::optional<Failure> failure = checkGraphs(*description))
    return std::move(*failure);

  ImportResult result;
  result.module = ModuleOp::create(UnknownLoc::get(context));
  ImportOptions options;
  options.overridableInitializers = !description->generates();
  for (ExportGraph &graph : description->graphs) {
    GraphImporter importer(context, graph.file, options);
    if (std::optional<Failure> failure = importer.importGraph(*result.module, functionName(graph.role)))
      return std::move(*failure);
    if (description->generates())
      dropResults(result.module->lookupSymbol<func::FuncOp>(functionName(graph.role)), graph.roles);
    graph.file.model.reset(); // its weights are in the store now
    graph.file.contents.reset();
  }
  result.module->getOperation()->setAttr("transept.export", describeExport(context, *description));
  for (const std::string &setting : description->settings.refused)
    result.warnings.push_back("the export asks for " + setting +
                              ", which is not implemented; a request will be refused unless it sets another value");
  result.description = std::move(*description);
  return result;
}
} // namespace

Outcome<ImportResult> mlir::transept::importModel(const std::string &path, MLIRContext *context,
                                                  const ImportRequest &request) {
  try {
    return import(path, context, request);
  } catch (const std::bad_alloc &) {
    return Failure{ExitMemory, printable(path) + ": not enough memory to import the model", {}};
  }
}
