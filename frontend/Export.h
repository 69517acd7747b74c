//===- Export.h - what an export directory holds ----------------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TRANSEPT_FRONTEND_EXPORT_H
#define TRANSEPT_FRONTEND_EXPORT_H

#include "frontend/OnnxFile.h"
#include "frontend/Settings.h"
#include "frontend/Tokenizer.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace mlir::transept {

/// What a file of an export computes. The name is that of its function in the module.
enum class GraphRole { Main, Encoder, CrossKeys, Decoder, DecoderWithPast, DecoderMerged, DecoderOnly, Monolith };
llvm::StringRef functionName(GraphRole role);

/// Role of an input or output, as a string because passes read it from the module:
///   source_ids, source_mask (1 = keep), source_padding (true = padding), source_lengths, source_features,
///   encoder_states, encoder_result (bound by name), target_ids, target_mask, target_padding, target_positions,
///   past_length, use_cache, logits, log_probs, alignment (attention weights over the source),
///   recurrent.N and recurrent_out.N: what a step takes from the one before, and hands to the next,
///   past.{self,cross}.{key,value}.N and present.{self,cross}.{key,value}.N, N the layer.
using PortRoles = std::map<std::string, std::string>;

struct ExportGraph {
  GraphRole role = GraphRole::Main;
  OnnxFile file;   ///< without its model once that is imported
  PortRoles roles; ///< by the model's own names of inputs and outputs
};

struct ExportDescription {
  bool encoderDecoder = false;
  bool decoderOnly = false;
  std::vector<ExportGraph> graphs; ///< in the order of GraphRole
  GenerationSettings settings;
  TokenizerFiles tokenizer;
  std::string licence; ///< as the export names it, or empty
  /// Whether it becomes a generation program, instead of a graph's own inputs and outputs.
  bool generates() const { return encoderDecoder || decoderOnly; }
  std::string sourceHash; ///< SHA-256 over names and contents of the files
};

/// Opens the files of an export directory, finds out what each is by its inputs and outputs, and reads settings and
/// tokenizer references. Graphs that others make redundant are left out: the merged decoder beside the two it was made
/// of. A file `transept.json` in the directory says what cannot be known from names, see frontend/Overrides.h. A folder
/// with one graph that is no part of a generating model is that graph.
Outcome<ExportDescription> openExport(const std::string &directory, const OnnxLimits &limits);

/// One file as an export: a graph of source and target ids.
Outcome<ExportDescription> openExportFile(const std::string &path, const OnnxLimits &limits);

/// A file with a search operator as an export, see frontend/SearchNode.h.
Outcome<ExportDescription> openSearchFile(OnnxFile file);

/// The module attribute `transept.export`.
DictionaryAttr describeExport(MLIRContext *context, const ExportDescription &description);

//===- Roles.cpp -===//

/// What a graph is, from its inputs and outputs; nullopt for a graph that is no part of a generating model.
std::optional<GraphRole> findGraphRole(const onnx::GraphProto &graph);
/// Roles of all inputs and outputs. `unknown` receives inputs whose role is not recognised.
PortRoles findPortRoles(const onnx::GraphProto &graph, GraphRole role, std::vector<std::string> &unknown);

} // namespace mlir::transept

#endif // TRANSEPT_FRONTEND_EXPORT_H
