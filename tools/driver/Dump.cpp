//===- Dump.cpp - a module as files, complete enough to go on from --------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/Dump.h"
#include "ir/Transept.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Parser/Parser.h"
#include "runtime/AtomicFile.h"
#include "tools/driver/DiagnosticLog.h"
#include "tools/driver/Phases.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::transept;

namespace {
constexpr StringLiteral phaseAttrName = "transept.phase";
constexpr StringLiteral weightsAttrName = "transept.weights";
constexpr size_t keyLength = 64;

std::string inDirectory(StringRef directory, StringRef name) {
  SmallString<128> path(directory);
  llvm::sys::path::append(path, name);
  return std::string(path);
}

std::optional<Failure> writeFile(const std::string &path, StringRef content) {
  ::transept::Result<::transept::AtomicFile> file = ::transept::AtomicFile::create(path);
  ::transept::Status status = file.ok() ? file->write(0, content.data(), content.size()) : file.status();
  if (status.ok())
    status = file->commit();
  if (!status.ok())
    return Failure{status.exitCode(), status.message(), {}};
  return std::nullopt;
}

/// Whether a file of the dump directory is one of ours: 04-fuse.mlir, 04-fuse.2-transept-shapes.mlir.
bool isDumpName(StringRef name) {
  if (name == weightsFileName)
    return true;
  return name.ends_with(".mlir") &&
         llvm::any_of(phases(), [&](const Phase &phase) { return name.starts_with(phaseStem(phase) + "."); });
}
} // namespace

std::optional<Failure> DumpWriter::prepare() {
  std::error_code code = llvm::sys::fs::create_directories(directory);
  if (!code) {
    llvm::sys::fs::directory_iterator it(directory, code), end;
    for (; it != end && !code; it.increment(code))
      if (isDumpName(llvm::sys::path::filename(it->path())))
        llvm::sys::fs::remove(it->path());
  }
  if (code)
    return Failure{ExitFile, "cannot write dumps into " + quoted(directory) + ": " + code.message(), {}};
  return std::nullopt;
}

std::optional<Failure> DumpWriter::write(ModuleOp module, StringRef stem, StringRef phase) {
  const size_t known = keys.size();
  keys.merge(referencedWeights(module));
  if (keys.size() > known) {
    std::vector<std::string> list(keys.begin(), keys.end());
    std::string error;
    if (failed(WeightStore::of(module.getContext()).save(inDirectory(directory, weightsFileName), list, error)))
      return Failure{ExitFile, "cannot write " + error, {}};
  }
  Builder builder(module.getContext());
  module->setAttr(phaseAttrName, builder.getStringAttr(phase));
  if (!keys.empty())
    module->setAttr(weightsAttrName, builder.getStringAttr(weightsFileName));
  std::string text = printModule(module);
  module->removeAttr(phaseAttrName);
  module->removeAttr(weightsAttrName);
  return writeFile(inDirectory(directory, (stem + ".mlir").str()), text);
}

std::string mlir::transept::printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, OpPrintingFlags().enableDebugInfo(true, /*prettyForm=*/false));
  out << '\n';
  return text;
}

std::set<std::string> mlir::transept::referencedWeights(ModuleOp module) {
  const WeightStore &store = WeightStore::of(module.getContext());
  std::set<std::string> keys;
  AttrTypeWalker walker;
  walker.addWalk([&](StringAttr text) {
    if (text.getValue().size() == keyLength && store.lookup(text.getValue()).type)
      keys.insert(text.getValue().str());
  });
  module->walk([&](Operation *op) { walker.walk(op->getAttrDictionary()); });
  return keys;
}

std::optional<Failure> mlir::transept::loadWeights(ModuleOp module, const std::string &path) {
  auto name = module->getAttrOfType<StringAttr>(weightsAttrName);
  if (!name)
    return std::nullopt;
  module->removeAttr(weightsAttrName);
  if (llvm::sys::path::filename(name.getValue()) != name.getValue())
    return Failure{ExitInvalidModel, printable(path) + ": its weights file must lie beside it", {}};
  std::string error;
  if (failed(WeightStore::of(module.getContext())
                 .load(inDirectory(llvm::sys::path::parent_path(path), name.getValue()), error)))
    return Failure{ExitFile, "cannot read " + error, {}};
  return std::nullopt;
}

DictionaryAttr mlir::transept::optionsToAttr(MLIRContext *context, const TargetOptions &options) {
  Builder builder(context);
  SmallVector<StringRef> levels(options.cpuLevels.begin(), options.cpuLevels.end());
  SmallVector<NamedAttribute> entries = {builder.getNamedAttr("cpu_levels", builder.getStrArrayAttr(levels)),
                                         builder.getNamedAttr("precision", builder.getStringAttr(options.precision)),
                                         builder.getNamedAttr("target", builder.getStringAttr(options.target))};
  if (options.caches != TargetOptions().caches)
    entries.push_back(builder.getNamedAttr("caches", builder.getStringAttr(options.caches)));
  SmallVector<StringRef> kept(options.keepFp32.begin(), options.keepFp32.end());
  if (!kept.empty())
    entries.push_back(builder.getNamedAttr("keep_fp32", builder.getStrArrayAttr(kept)));
  if (options.twoStageVocabulary)
    entries.push_back(builder.getNamedAttr("two_stage_vocabulary", builder.getUnitAttr()));
  return builder.getDictionaryAttr(entries);
}

/// Appends the strings of an array; false where it is none.
static bool appendStrings(ArrayAttr array, std::vector<std::string> &strings) {
  for (Attribute element : array) {
    auto text = dyn_cast<StringAttr>(element);
    if (!text)
      return false;
    strings.push_back(text.str());
  }
  return true;
}

std::optional<TargetOptions> mlir::transept::optionsFromAttr(DictionaryAttr attr) {
  auto target = attr.getAs<StringAttr>("target"), precision = attr.getAs<StringAttr>("precision");
  auto levels = attr.getAs<ArrayAttr>("cpu_levels");
  if (!target || !precision || !levels)
    return std::nullopt;
  TargetOptions options;
  options.target = target.str();
  options.precision = precision.str();
  if (auto caches = attr.getAs<StringAttr>("caches"))
    options.caches = caches.str();
  options.twoStageVocabulary = attr.contains("two_stage_vocabulary");
  auto kept = attr.getAs<ArrayAttr>("keep_fp32");
  if (!appendStrings(levels, options.cpuLevels) || (kept && !appendStrings(kept, options.keepFp32)))
    return std::nullopt;
  return options;
}

Outcome<LoadedDump> mlir::transept::loadDump(const std::string &path, MLIRContext *context) {
  LoadedDump dump;
  DiagnosticLog log(context);
  ParserConfig config(context);
  if (!llvm::sys::fs::is_regular_file(path))
    return Failure{ExitFile, quoted(path) + " is not a file", {}};
  dump.module = parseSourceFile<ModuleOp>(path, config);
  if (!dump.module)
    return log.take(ExitInvalidModel, printable(path) + ": is no valid dump");
  if (std::optional<Failure> failure = loadWeights(*dump.module, path))
    return std::move(*failure);
  Operation *module = *dump.module;
  if (auto phase = module->getAttrOfType<StringAttr>(phaseAttrName)) {
    dump.phase = phase.str();
    module->removeAttr(phaseAttrName);
  }
  if (auto options = module->getAttrOfType<DictionaryAttr>(optionsAttrName)) {
    dump.options = optionsFromAttr(options);
    if (!dump.options)
      return Failure{
          ExitInvalidModel, printable(path) + ": module attribute " + optionsAttrName.str() + " is malformed", {}};
  }
  return dump;
}

void mlir::transept::normalizeUseLists(ModuleOp module) {
  // The parser makes an op after its regions, adds the uses by its operands in order, and every new use goes to the
  // front.
  llvm::DenseMap<Operation *, unsigned> created;
  module->walk([&](Operation *op) { created.try_emplace(op, created.size()); });
  auto normalize = [&](Value value) {
    SmallVector<std::pair<std::pair<unsigned, unsigned>, unsigned>> uses;
    for (auto [index, use] : llvm::enumerate(value.getUses()))
      uses.push_back({{created.lookup(use.getOwner()), use.getOperandNumber()}, static_cast<unsigned>(index)});
    if (uses.size() < 2)
      return;
    llvm::sort(uses, [](const auto &lhs, const auto &rhs) { return lhs.first > rhs.first; });
    // The use that is at place i now goes to place order[i].
    SmallVector<unsigned> order(uses.size());
    for (auto [place, use] : llvm::enumerate(uses))
      order[use.second] = place;
    value.shuffleUseList(order);
  };
  module->walk([&](Operation *op) {
    for (Value result : op->getResults())
      normalize(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          normalize(argument);
  });
}
