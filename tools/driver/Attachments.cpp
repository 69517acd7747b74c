//===- Attachments.cpp - files that travel with a module ------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/Attachments.h"
#include "frontend/FileBytes.h"
#include "ir/Transept.h"

using namespace mlir;
using namespace mlir::transept;

static constexpr StringLiteral filesAttrName = "transept.files";
/// No tokenizer file is larger.
static constexpr uint64_t fileLimit = 256u << 20;

std::optional<Failure> mlir::transept::attachTokenizer(ModuleOp module, const TokenizerFiles &tokenizer) {
  if (tokenizer.kind == "none")
    return std::nullopt;
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> entries;
  for (const TokenizerFiles::File &file : tokenizer.files) {
    Outcome<std::string> bytes = readWholeFile(file.path, fileLimit);
    if (!bytes)
      return std::move(bytes.failure());
    if (sha256(*bytes) != file.sha256)
      return Failure{ExitFile, printable(file.path) + ": changed while it was read", {}};
    auto type = RankedTensorType::get({static_cast<int64_t>(bytes->size())}, builder.getI8Type());
    std::string key =
        WeightStore::of(module.getContext()).add(type, llvm::ArrayRef<char>(bytes->data(), bytes->size()));
    entries.push_back(builder.getNamedAttr(file.name, builder.getStringAttr(key)));
  }
  module->setAttr(filesAttrName, builder.getDictionaryAttr(entries));
  return std::nullopt;
}

std::optional<StringRef> mlir::transept::storedBytes(MLIRContext *context, StringRef key) {
  WeightStore::Weight stored = WeightStore::of(context).lookup(key);
  if (!stored.type)
    return std::nullopt;
  return StringRef(stored.bytes.data(), stored.bytes.size());
}

Outcome<std::map<std::string, StringRef>> mlir::transept::attachedFiles(ModuleOp module) {
  std::map<std::string, StringRef> files;
  auto attr = module->getAttrOfType<DictionaryAttr>(filesAttrName);
  if (!attr)
    return files;
  for (NamedAttribute entry : attr) {
    auto key = dyn_cast<StringAttr>(entry.getValue());
    std::optional<StringRef> bytes = key ? storedBytes(module.getContext(), key.getValue()) : std::nullopt;
    if (!bytes)
      return Failure{ExitInvalidModel, "the content of file " + quoted(entry.getName().getValue()) + " is missing", {}};
    files[entry.getName().str()] = *bytes;
  }
  return files;
}
