//===- PackArtifact.cpp - the last phase: one file ------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/PackArtifact.h"
#include "codegen/Pack.h"
#include "runtime/ArtifactWriter.h"
#include "tools/driver/Attachments.h"
#include "tools/driver/TargetPasses.h"
#include "tools/driver/TokenizerPart.h"
#include "transept/version.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace mlir::transept;
namespace runtime = ::transept;

namespace {

constexpr const char *weightsSection = "weights";

Failure failureOf(const runtime::Status &status) { return {status.exitCode(), status.message(), {}}; }

/// Sections in the order of the file. `content` bytes outlive the writing.
class Packer {
public:
  Packer(ModuleOp module, const TargetOptions &options) : module(module), options(options) {}

  std::optional<Failure> collect();
  Outcome<PackedSizes> write(const std::string &path);

private:
  std::optional<Failure> addCode();
  std::optional<Failure> addTokenizer();
  void addBytes(std::string name, runtime::SectionKind kind, StringRef content) {
    sections.push_back({std::move(name), kind, content.size(),
                        [content](const runtime::ByteSink &sink) { return sink(content.data(), content.size()); }});
  }

  ModuleOp module;
  const TargetOptions &options;
  kernel::ManifestInputs inputs;
  std::string tokenizerConfig;
  std::vector<runtime::ArtifactSection> sections;
  PackedSizes sizes;
};

std::optional<Failure> Packer::addCode() {
  for (Attribute element : module->getAttrOfType<ArrayAttr>(codeAttrName)) {
    auto entry = cast<DictionaryAttr>(element);
    kernel::ManifestInputs::Code code;
    code.target = cast<StringAttr>(entry.get("target")).str();
    code.level = cast<StringAttr>(entry.get("level")).str();
    for (Attribute feature : cast<ArrayAttr>(entry.get("features")))
      code.features.push_back(cast<StringAttr>(feature).str());
    code.section = "code/" + code.target + "-" + code.level;
    std::optional<StringRef> bytes = storedBytes(module.getContext(), cast<StringAttr>(entry.get("object")).getValue());
    if (!bytes)
      return Failure{ExitInvalidModel, "the code of level '" + code.level + "' is missing", {}};
    if (auto shaders = entry.getAs<ArrayAttr>("shaders"))
      code.shaders = shadersFromAttribute(shaders);
    addBytes(code.section, code.target == "cpu" ? runtime::SectionKind::Code : runtime::SectionKind::Spirv, *bytes);
    sizes.code += bytes->size();
    inputs.code.push_back(std::move(code));
  }
  return std::nullopt;
}

std::optional<Failure> Packer::addTokenizer() {
  Outcome<TokenizerPart> part = tokenizerPartOf(module);
  if (!part)
    return std::move(part.failure());
  inputs.tokenizerKind = part->kind;
  tokenizerConfig = part->config;
  for (const auto &[name, content] : part->files) {
    addBytes(name, runtime::SectionKind::File, content);
    inputs.tokenizerFiles.push_back(name);
  }
  return std::nullopt;
}

std::optional<Failure> Packer::collect() {
  if (std::optional<Failure> failure = addCode())
    return failure;
  return addTokenizer();
}

Outcome<PackedSizes> Packer::write(const std::string &path) {
  Outcome<kernel::PackedWeights> weights = kernel::PackedWeights::of(module);
  if (!weights)
    return std::move(weights.failure());
  inputs.producer = "transept " TRANSEPT_VERSION;
  inputs.precision = options.precision;
  inputs.weightsSection = weightsSection;
  Outcome<runtime::program::Manifest> manifest = kernel::makeManifest(module, *weights, inputs);
  if (!manifest)
    return std::move(manifest.failure());
  manifest->mutable_tokenizer()->set_config_json(tokenizerConfig);
  std::string text = manifest->SerializeAsString();
  std::vector<runtime::ArtifactSection> all;
  all.push_back(runtime::ArtifactSection::fromBytes("manifest", runtime::SectionKind::Manifest, std::move(text)));
  std::move(sections.begin(), sections.end(), std::back_inserter(all));
  if (sizes.weights = weights->bytes(); sizes.weights > 0)
    all.push_back({weightsSection, runtime::SectionKind::Weights, sizes.weights, [&](const runtime::ByteSink &sink) {
                     runtime::Status status;
                     bool complete = weights->write([&](const void *data, uint64_t bytes) {
                       status = sink(data, bytes);
                       return status.ok();
                     });
                     return complete || !status.ok()
                                ? status
                                : runtime::Status(runtime::Code::Internal, "the weights cannot be packed");
                   }});
  if (runtime::Status status = runtime::writeArtifact(path, all); !status.ok())
    return failureOf(status);
  llvm::sys::fs::file_size(path, sizes.artifact);
  return sizes;
}

} // namespace

Outcome<PackedSizes> mlir::transept::packArtifact(ModuleOp module, const TargetOptions &options,
                                                  const std::string &path) {
  Packer packer(module, options);
  if (std::optional<Failure> failure = packer.collect())
    return std::move(*failure);
  return packer.write(path);
}
