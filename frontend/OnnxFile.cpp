//===- OnnxFile.cpp - an ONNX model, opened, parsed and checked ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "frontend/OnnxFile.h"
#include "frontend/FileBytes.h"
#include "frontend/WireFormat.h"
#include "onnx/defs/schema.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/common.h>
#if GOOGLE_PROTOBUF_VERSION < 4022000
#include <google/protobuf/stubs/logging.h>
#endif

using namespace mlir::transept;

namespace {
Failure invalid(const OnnxFile &file, const llvm::Twine &what) {
  return {ExitInvalidModel, printable(file.path) + ": " + what.str(), {}};
}
Failure tooMuch(const OnnxFile &file, const llvm::Twine &what) {
  return {ExitLimit, printable(file.path) + ": " + what.str(), {}};
}

std::string notAModel(llvm::StringRef bytes, const std::string &reason) {
  llvm::StringRef format = guessFormat(bytes);
  return format.empty() ? "not an ONNX model: " + reason
                        : ("not an ONNX model, it looks like " + format + "; export the model to ONNX first").str();
}

/// The first standard operator that changed between `opset` and the oldest supported version; empty if none did.
std::string changedOperator(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, int opset) {
  for (const onnx::NodeProto &node : nodes) {
    if (node.domain().empty() || node.domain() == "ai.onnx") {
      const onnx::OpSchema *then = onnx::OpSchemaRegistry::Schema(node.op_type(), opset),
                           *oldest = onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(minOpset));
      if (!then || !oldest || then->SinceVersion() != oldest->SinceVersion())
        return node.op_type();
    }
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        if (std::string changed = changedOperator(attribute.g().node(), opset); !changed.empty())
          return changed;
  }
  return {};
}

std::optional<Failure> checkVersions(OnnxFile &file) {
  onnx::ModelProto &model = *file.model;
  if (!model.has_graph())
    return invalid(file, "the file holds no graph; it may be cut short");
  int64_t ir = model.ir_version();
  if (ir > maxIrVersion)
    return Failure{ExitUnsupported,
                   printable(file.path) + ": IR version " + std::to_string(ir) + " is newer than supported (" +
                       std::to_string(minIrVersion) + " to " + std::to_string(maxIrVersion) +
                       "); convert the model with onnx.version_converter or export it with an older opset",
                   {}};
  if (ir < minIrVersion)
    return invalid(file, "IR version " + llvm::Twine(ir) + " is not valid (supported: " + llvm::Twine(minIrVersion) +
                             " to " + llvm::Twine(maxIrVersion) + ")");
  // Version 14 brings element types, which are refused where they occur; the checker knows versions by number only.
  model.set_ir_version(std::min<int64_t>(ir, onnx::IR_VERSION));
  for (onnx::OperatorSetIdProto &import : *model.mutable_opset_import()) {
    if (import.domain() == "ai.onnx")
      import.clear_domain();
    auto [known, added] = file.opsets.try_emplace(import.domain(), import.version());
    if (!added && known->second != import.version())
      return invalid(file, "imports the operator set " + quoted(import.domain()) + " twice, as versions " +
                               llvm::Twine(known->second) + " and " + llvm::Twine(import.version()));
  }
  if (file.opsets.empty())
    return invalid(file, "does not say which version of the ONNX operators it uses; it may be cut short");
  auto standard = file.opsets.find("");
  if (standard == file.opsets.end())
    return std::nullopt; // only operators of other domains
  int64_t opset = standard->second;
  if (opset < 1)
    return invalid(file, "opset " + llvm::Twine(opset) + " is not valid");
  // An older model is fine where its operators mean the same.
  std::string changed = opset < minOpset ? changedOperator(model.graph().node(), static_cast<int>(opset)) : "";
  if (!changed.empty() || opset > maxOpset)
    return Failure{ExitUnsupported,
                   printable(file.path) + ": opset " + std::to_string(opset) + " is " +
                       (opset < minOpset ? "older" : "newer") + " than supported (" + std::to_string(minOpset) +
                       " to " + std::to_string(maxOpset) + ")" +
                       (changed.empty() ? "" : ", and " + printable(changed) + " has changed since") +
                       "; convert the model with onnx.version_converter or export it again",
                   {}};
  return std::nullopt;
}
/// One spelling per operator set: the standard one is "", and ONNX Runtime's unofficial additions to it are its own.
template <typename Nodes> bool normalizeDomains(Nodes &nodes) {
  bool added = false;
  for (onnx::NodeProto &node : nodes) {
    if (node.domain() == "ai.onnx")
      node.clear_domain();
    if (node.domain().empty() &&
        (node.op_type() == "SimplifiedLayerNormalization" || node.op_type() == "SkipSimplifiedLayerNormalization")) {
      node.set_domain("com.microsoft");
      added = true;
    }
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        added |= normalizeDomains(*attribute.mutable_g()->mutable_node());
  }
  return added;
}

void normalizeDomains(OnnxFile &file) {
  onnx::ModelProto &model = *file.model;
  auto import = [](auto &holder) {
    auto &opsets = *holder.mutable_opset_import();
    for (const onnx::OperatorSetIdProto &opset : opsets)
      if (opset.domain() == "com.microsoft")
        return;
    onnx::OperatorSetIdProto &opset = *holder.add_opset_import();
    opset.set_domain("com.microsoft");
    opset.set_version(1);
  };
  if (normalizeDomains(*model.mutable_graph()->mutable_node())) {
    import(model);
    file.opsets.try_emplace("com.microsoft", 1);
  }
  for (onnx::FunctionProto &function : *model.mutable_functions()) {
    for (onnx::OperatorSetIdProto &opset : *function.mutable_opset_import())
      if (opset.domain() == "ai.onnx")
        opset.clear_domain();
    if (normalizeDomains(*function.mutable_node()))
      import(function);
  }
}

std::optional<Failure> parse(OnnxFile &file, llvm::StringRef bytes, unsigned depth) {
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::LogSilencer silence; // it would write to stderr about names that are not UTF-8
#endif
  file.model = std::make_unique<onnx::ModelProto>();
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT32_MAX);
  coded.SetRecursionLimit(static_cast<int>(file.limits.nesting));
  if (file.model->ParsePartialFromCodedStream(&coded) && coded.ConsumedEntireMessage())
    return std::nullopt;
  if (depth > file.limits.nesting)
    return tooMuch(file, "messages are nested more than " + llvm::Twine(file.limits.nesting) + " deep");
  std::string reason = "a field ends too early or has a wrong type";
  if (bytes.size() == file.contents->size()) // positions are those of the file
    reason += " near byte " + std::to_string(std::max(0, coded.CurrentPosition()));
  return invalid(file, notAModel(bytes, reason));
}
} // namespace

llvm::StringRef mlir::transept::guessFormat(llvm::StringRef bytes) {
  struct Magic {
    llvm::StringRef bytes;
    size_t offset;
    llvm::StringRef format;
  };
  static constexpr Magic magics[] = {
      {"\x89PNG", 0, "a PNG image"},
      {"\xff\xd8\xff", 0, "a JPEG image"},
      {"GIF8", 0, "a GIF image"},
      {"PK\x03\x04", 0, "a ZIP archive or a PyTorch checkpoint"},
      {"\x80\x02", 0, "a Python pickle or a PyTorch checkpoint"},
      {"\x80\x04", 0, "a Python pickle or a PyTorch checkpoint"},
      {"\x1f\x8b", 0, "gzip data"},
      {"BZh", 0, "bzip2 data"},
      {"\xfd"
       "7zXZ",
       0, "xz data"},
      {"TFL3", 4, "a TensorFlow Lite model"},
      {"ORTM", 4, "an ONNX Runtime .ort file"},
      {"\x7f"
       "ELF",
       0, "an ELF program"},
      {"%PDF", 0, "a PDF document"},
      {"GGUF", 0, "a GGUF model"},
      {"\x89HDF", 0, "an HDF5 file"},
      {"version https://git-lfs", 0, "a Git LFS pointer: fetch the file itself with git lfs pull"},
      {"<!DOCTYPE", 0, "an HTML page"},
      {"<html", 0, "an HTML page"},
      {"<?xml", 0, "an XML document"},
      {"{\"", 8, "a safetensors file"},
  };
  for (const Magic &magic : magics)
    if (bytes.size() > magic.offset && bytes.drop_front(magic.offset).starts_with(magic.bytes))
      return magic.format;
  auto isText = [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t'; };
  llvm::StringRef start = bytes.take_front(256);
  if (start.size() >= 8 && llvm::all_of(start, isText))
    return "a text file";
  return {};
}

Outcome<OnnxFile> mlir::transept::openOnnx(const std::string &path, const OnnxLimits &limits) {
  OnnxFile file;
  file.path = path;
  file.name = llvm::sys::path::filename(path).str();
  file.directory = llvm::sys::path::parent_path(path).str();
  if (file.directory.empty())
    file.directory = ".";
  file.limits = limits;

  Outcome<InputFile> input = InputFile::open(path);
  if (!input)
    return std::move(input.failure());
  if (input->size() == 0)
    return invalid(file, "the file is empty");
  if (input->size() > limits.fileBytes) {
    std::string message = "has " + std::to_string(input->size()) + " bytes, more than the " +
                          std::to_string(limits.fileBytes) +
                          " that an ONNX file can have; save the weights as "
                          "external data";
    return tooMuch(file, message);
  }
  std::string bytes(input->size(), '\0');
  if (std::optional<Failure> failure = input->read(0, {bytes.data(), bytes.size()}))
    return std::move(*failure);

  // A walk over the outer fields first: it says where a file is broken, and counts before anything is allocated.
  WireSummary summary = summarizeModel(bytes);
  if (!summary.error.empty())
    return invalid(file, notAModel(bytes, summary.error));
  if (summary.nodes > limits.nodes)
    return tooMuch(file, "the graph has " + llvm::Twine(summary.nodes) + " nodes, more than the limit of " +
                             llvm::Twine(limits.nodes));

  file.sha256 = sha256(bytes);
  if (bytes.size() > largeContent)
    bytes = withoutLargeContents(bytes, file.sha256, limits.nesting);
  file.contents = std::make_shared<InputFile>(std::move(*input));
  if (std::optional<Failure> failure = parse(file, bytes, summary.depth))
    return std::move(*failure);
  if (std::optional<Failure> failure = checkVersions(file))
    return std::move(*failure);
  normalizeDomains(file);
  return file;
}
