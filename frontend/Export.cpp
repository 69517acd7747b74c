//===- Export.cpp - what an export directory holds -------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/Export.h"
#include "frontend/FileBytes.h"
#include "frontend/Overrides.h"
#include "frontend/SearchNode.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
/// A folder with more models than this is a collection of variants, not an export.
constexpr size_t maxFiles = 16;

Failure invalid(const std::string &directory, const llvm::Twine &what) {
  return {ExitInvalidModel, printable(directory) + ": " + what.str(), {}};
}

/// Paths of the .onnx files in a folder, sorted.
Outcome<std::vector<std::string>> listModels(const std::string &directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(directory, error), end; at != end && !error; at.increment(error))
    if (llvm::sys::path::extension(at->path()) == ".onnx")
      paths.push_back(at->path());
  if (error)
    return Failure{ExitFile, printable(directory) + ": " + error.message(), {}};
  llvm::sort(paths);
  return paths;
}

/// Files under the names that Hugging Face exports use, if the folder has them: other files are variants of these.
std::vector<std::string> keepCanonical(std::vector<std::string> paths) {
  static constexpr llvm::StringRef names[] = {"encoder_model.onnx", "decoder_model.onnx",
                                              "decoder_with_past_model.onnx", "decoder_model_merged.onnx",
                                              "cross_kv_model.onnx"};
  std::vector<std::string> canonical;
  for (const std::string &path : paths)
    if (llvm::is_contained(names, llvm::sys::path::filename(path)))
      canonical.push_back(path);
  auto named = [&](llvm::StringRef part) {
    return llvm::any_of(canonical,
                        [&](const std::string &path) { return llvm::sys::path::filename(path).contains(part); });
  };
  return named("encoder") && named("decoder") ? canonical : paths;
}

class ExportReader {
public:
  ExportReader(std::string directory, const OnnxLimits &limits) : directory(std::move(directory)), limits(limits) {}

  Outcome<ExportDescription> read() {
    Outcome<std::map<std::string, FileOverride>> said = readOverrides(directory);
    if (!said)
      return std::move(said.failure());
    overrides = std::move(*said);
    Outcome<std::vector<std::string>> paths = findModels();
    if (!paths)
      return std::move(paths.failure());
    for (const std::string &path : *paths)
      if (std::optional<Failure> failure = add(path))
        return std::move(*failure);
    if (isPlainGraph())
      return plainGraph();
    return finish();
  }

  Outcome<ExportDescription> readFile(const std::string &path) {
    if (std::optional<Failure> failure = add(path))
      return std::move(*failure);
    return finish();
  }
  Outcome<ExportDescription> readFile(OnnxFile file) {
    if (std::optional<Failure> failure = addFile(std::move(file), {}))
      return std::move(*failure);
    return finish();
  }

private:
  Outcome<std::vector<std::string>> findModels() {
    Outcome<std::vector<std::string>> paths = listModels(directory);
    if (!paths)
      return paths;
    llvm::SmallString<256> nested(directory);
    llvm::sys::path::append(nested, "onnx");
    if (paths->empty() && llvm::sys::fs::is_directory(nested)) {
      paths = listModels(nested.str().str());
      if (!paths)
        return paths;
    }
    if (paths->empty())
      return invalid(directory, "holds no .onnx file");
    *paths = keepCanonical(std::move(*paths));
    if (paths->size() > maxFiles)
      return invalid(directory,
                     "holds " + llvm::Twine(paths->size()) + " .onnx files; leave one variant of each in the folder");
    return paths;
  }

  std::optional<Failure> add(const std::string &path) {
    const FileOverride &said = overrides[llvm::sys::path::filename(path).str()];
    if (said.leaveOut)
      return std::nullopt;
    Outcome<OnnxFile> file = openOnnx(path, limits);
    if (!file)
      return std::move(file.failure());
    return addFile(std::move(*file), said);
  }

  std::optional<Failure> addFile(OnnxFile file, const FileOverride &said) {
    if (hasSearchNode(file.model->graph()))
      return addSearch(std::move(file));
    std::optional<GraphRole> role = said.role ? said.role : findGraphRole(file.model->graph());
    if (!role) {
      others.push_back(file.name);
      lone = std::move(file);
      return std::nullopt;
    }
    return addGraph(std::move(file), *role, said);
  }

  std::optional<Failure> addSearch(OnnxFile file) {
    std::string path = file.path;
    Outcome<SearchParts> search = splitSearch(std::move(file));
    if (!search)
      return std::move(search.failure());
    for (SearchParts::Part &part : search->parts) {
      std::optional<GraphRole> role = part.role ? part.role : findGraphRole(part.file.model->graph());
      if (!role)
        return Failure{ExitUnsupported,
                       printable(path) + ": the graphs of its search operator take no caches that are known by name; "
                                         "export encoder and decoder as files of their own",
                       {}};
      if (std::optional<Failure> failure = addGraph(std::move(part.file), *role, {}))
        return failure;
    }
    searchSettings = search->settings;
    return std::nullopt;
  }

  std::optional<Failure> addGraph(OnnxFile file, GraphRole role, const FileOverride &said) {
    for (const ExportGraph &graph : description.graphs)
      if (graph.role == role)
        return invalid(directory, "holds two files that are a " + functionName(role) + ", " + quoted(graph.file.name) +
                                      " and " + quoted(file.name) + "; keep one of them");
    ExportGraph graph;
    graph.role = role;
    std::vector<std::string> unknown;
    graph.roles = findPortRoles(file.model->graph(), role, unknown);
    if (std::optional<Failure> failure = applyOverrides(said, file, graph.roles))
      return failure;
    graph.file = std::move(file);
    for (const std::string &name : unknown)
      if (!said.ports.count(name))
        unknownInputs.emplace_back(role, name);
    description.graphs.push_back(std::move(graph));
    return std::nullopt;
  }

  std::optional<Failure> applyOverrides(const FileOverride &said, const OnnxFile &file, PortRoles &roles) const {
    for (const auto &[name, role] : said.ports) {
      auto isIt = [&, &name = name](const onnx::ValueInfoProto &port) { return port.name() == name; };
      if (llvm::none_of(file.model->graph().input(), isIt) && llvm::none_of(file.model->graph().output(), isIt))
        return invalid(directory, "transept.json gives a role to " + quoted(name) + ", which " + quoted(file.name) +
                                      " has not among its inputs and outputs");
      roles[name] = role;
    }
    return std::nullopt;
  }

  /// One graph that is no part of a generating model. An encoder without its decoder is an incomplete export.
  bool isPlainGraph() const {
    if (description.graphs.size() + others.size() != 1)
      return false;
    llvm::StringRef name = lone ? lone->name : description.graphs[0].file.name;
    bool encoder = !lone && description.graphs[0].role == GraphRole::Encoder;
    return (lone || encoder) && !name.contains("encoder") && !name.contains("decoder") &&
           !saysEncoderDecoder(directory);
  }

  Outcome<ExportDescription> plainGraph() {
    ExportGraph graph;
    graph.file = lone ? std::move(*lone) : std::move(description.graphs[0].file);
    description.graphs.clear();
    description.graphs.push_back(std::move(graph));
    description.licence = readLicence(directory);
    description.sourceHash = description.graphs[0].file.sha256;
    return std::move(description);
  }

  ExportGraph *find(GraphRole role) {
    auto found = llvm::find_if(description.graphs, [&](const ExportGraph &graph) { return graph.role == role; });
    return found == description.graphs.end() ? nullptr : &*found;
  }

  /// The decoders that count: the separate pair, or the merged one.
  void dropRedundant() {
    bool pair = find(GraphRole::Decoder) && find(GraphRole::DecoderWithPast);
    // A step with caches alone does not make the whole graph redundant: how its first step looks is not said.
    bool split = find(GraphRole::Encoder) && (find(GraphRole::Decoder) || find(GraphRole::DecoderMerged));
    llvm::erase_if(description.graphs, [&](const ExportGraph &graph) {
      return (pair && graph.role == GraphRole::DecoderMerged) || (split && graph.role == GraphRole::Monolith);
    });
    llvm::sort(description.graphs, [](const ExportGraph &a, const ExportGraph &b) { return a.role < b.role; });
  }

  std::string otherNames() const {
    std::string text;
    for (const std::string &name : others)
      text += (text.empty() ? " (" : ", ") + printable(name);
    return text.empty() ? text : text + " is not part of one)";
  }

  std::optional<Failure> checkComplete() {
    bool encoder = find(GraphRole::Encoder), monolith = find(GraphRole::Monolith);
    bool decoder = find(GraphRole::Decoder) || find(GraphRole::DecoderWithPast) || find(GraphRole::DecoderMerged);
    if (monolith || (encoder && decoder) || description.decoderOnly)
      return std::nullopt;
    if (encoder)
      return invalid(directory, "holds an encoder, " + quoted(find(GraphRole::Encoder)->file.name) +
                                    ", but no decoder" + otherNames() +
                                    "; export the decoder too, or compile the .onnx file itself");
    if (decoder)
      return invalid(directory, "holds a decoder, " + quoted(description.graphs.front().file.name) +
                                    ", but no encoder" + otherNames() + "; export the encoder into the same folder");
    return invalid(directory, "holds no encoder-decoder and no decoder with caches" + otherNames() +
                                  "; to compile a single graph, give the .onnx file itself");
  }

  /// Results of the encoder that a decoder takes under the same name are bound to each other.
  std::optional<Failure> bindByName() {
    ExportGraph *encoder = find(GraphRole::Encoder);
    for (const auto &[role, name] : unknownInputs) {
      ExportGraph *graph = find(role);
      if (!graph)
        continue; // dropped
      if (encoder && graph != encoder && encoder->roles.count(name)) {
        graph->roles[name] = encoder->roles[name];
        continue;
      }
      return Failure{ExitUnsupported,
                     printable(graph->file.path) + ": the role of input " + quoted(name) +
                         " in generation is not known; rename it like the inputs of a Hugging Face export, or compile "
                         "the .onnx file itself",
                     {}};
    }
    return std::nullopt;
  }

  /// The last declared size of the value with a role, 0 if there is none or it is no constant.
  static int64_t lastSize(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> &ports, const PortRoles &roles,
                          llvm::StringRef role) {
    for (const onnx::ValueInfoProto &port : ports) {
      auto found = roles.find(port.name());
      const onnx::TensorShapeProto &shape = port.type().tensor_type().shape();
      if (found != roles.end() && found->second == role && shape.dim_size() > 0)
        return shape.dim(shape.dim_size() - 1).dim_value();
    }
    return 0;
  }

  /// Encoder and decoder come from one model, and every cache that goes in comes out.
  std::optional<Failure> checkPairs() {
    ExportGraph *encoder = find(GraphRole::Encoder);
    for (ExportGraph &graph : description.graphs) {
      const onnx::GraphProto &proto = graph.file.model->graph();
      int64_t made = encoder ? lastSize(encoder->file.model->graph().output(), encoder->roles, "encoder_states") : 0;
      int64_t taken = lastSize(proto.input(), graph.roles, "encoder_states");
      if (made && taken && made != taken)
        return invalid(directory, quoted(graph.file.name) + " expects encoder states of size " + llvm::Twine(taken) +
                                      ", but " + quoted(encoder->file.name) + " makes them of size " +
                                      llvm::Twine(made) + "; they come from different models");
      for (const auto &[name, role] : graph.roles) {
        llvm::StringRef cache = role;
        if (!cache.consume_front("past.self."))
          continue;
        std::string wanted = ("present.self." + cache).str();
        if (llvm::none_of(graph.roles, [&](const auto &port) { return port.second == wanted; }))
          return invalid(graph.file.path, "takes the cache " + quoted(name) +
                                              " but returns no cache that goes with it (" + wanted + ")");
      }
    }
    return std::nullopt;
  }

  void hashSources() {
    std::string all;
    for (const ExportGraph &graph : description.graphs)
      all += graph.file.name + '\0' + graph.file.sha256 + '\n';
    description.sourceHash = sha256(all);
  }

  Outcome<ExportDescription> finish() {
    // A step that takes nothing from an encoder by a known name may take it by the names of its results.
    ExportGraph *only = find(GraphRole::DecoderOnly);
    if (only && find(GraphRole::Encoder) && !find(GraphRole::DecoderWithPast)) {
      only->role = GraphRole::DecoderWithPast;
      for (auto &[role, name] : unknownInputs)
        if (role == GraphRole::DecoderOnly)
          role = GraphRole::DecoderWithPast;
    }
    description.decoderOnly = find(GraphRole::DecoderOnly) && description.graphs.size() == 1;
    description.encoderDecoder = !description.decoderOnly;
    dropRedundant();
    if (std::optional<Failure> failure = checkComplete())
      return std::move(*failure);
    if (std::optional<Failure> failure = bindByName())
      return std::move(*failure);
    if (std::optional<Failure> failure = checkPairs())
      return std::move(*failure);
    Outcome<GenerationSettings> settings = readSettings(directory);
    if (!settings)
      return std::move(settings.failure());
    Outcome<TokenizerFiles> tokenizer = findTokenizer(directory);
    if (!tokenizer)
      return std::move(tokenizer.failure());
    description.settings = std::move(*settings);
    if (!searchSettings.empty())
      overrideSettings(description.settings, searchSettings);
    description.tokenizer = std::move(*tokenizer);
    description.licence = readLicence(directory);
    hashSources();
    return std::move(description);
  }

  std::string directory;
  OnnxLimits limits;
  ExportDescription description;
  std::map<std::string, FileOverride> overrides;
  std::vector<std::string> others; ///< files that are no part of a generating model
  std::optional<OnnxFile> lone;    ///< the last of them
  std::string searchSettings;      ///< JSON, of a search operator
  std::vector<std::pair<GraphRole, std::string>> unknownInputs;
};
} // namespace

Outcome<ExportDescription> mlir::transept::openExport(const std::string &directory, const OnnxLimits &limits) {
  return ExportReader(directory, limits).read();
}

Outcome<ExportDescription> mlir::transept::openExportFile(const std::string &path, const OnnxLimits &limits) {
  std::string directory = llvm::sys::path::parent_path(path).str();
  return ExportReader(directory.empty() ? "." : directory, limits).readFile(path);
}

Outcome<ExportDescription> mlir::transept::openSearchFile(OnnxFile file) {
  std::string directory = file.directory;
  OnnxLimits limits = file.limits;
  return ExportReader(directory, limits).readFile(std::move(file));
}

DictionaryAttr mlir::transept::describeExport(MLIRContext *context, const ExportDescription &description) {
  Builder builder(context);
  auto named = [&](llvm::StringRef name, Attribute value) { return builder.getNamedAttr(name, value); };
  auto text = [&](llvm::StringRef value) -> Attribute { return builder.getStringAttr(value); };

  SmallVector<NamedAttribute> roles, sources, files;
  for (const ExportGraph &graph : description.graphs) {
    SmallVector<NamedAttribute> ports;
    for (const auto &[name, role] : graph.roles)
      ports.push_back(named(name, text(role)));
    roles.push_back(named(functionName(graph.role), builder.getDictionaryAttr(ports)));
    sources.push_back(named(functionName(graph.role), text(graph.file.name)));
  }
  for (const TokenizerFiles::File &file : description.tokenizer.files)
    files.push_back(named(file.name, text(file.sha256)));
  SmallVector<Attribute> refused;
  for (const std::string &setting : description.settings.refused)
    refused.push_back(text(setting));
  NamedAttribute tokenizer[] = {named("files", builder.getDictionaryAttr(files)),
                                named("kind", text(description.tokenizer.kind))};
  NamedAttribute all[] = {named("config", text(description.settings.config)),
                          named("kind", text(description.encoderDecoder ? "encoder-decoder"
                                             : description.decoderOnly  ? "decoder"
                                                                        : "graph")),
                          named("licence", text(description.licence)),
                          named("refused", builder.getArrayAttr(refused)),
                          named("roles", builder.getDictionaryAttr(roles)),
                          named("settings", text(description.settings.json)),
                          named("source_hash", text(description.sourceHash)),
                          named("sources", builder.getDictionaryAttr(sources)),
                          named("tokenizer", builder.getDictionaryAttr(tokenizer))};
  return builder.getDictionaryAttr(all);
}
