//===- Report.cpp - what a compilation found and decided ------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/driver/Report.h"
#include "ir/Kernel.h"
#include "passes/Shapes.h"
#include "passes/Stage.h"
#include "llvm/Support/FormatVariadic.h"
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace mlir::transept;
using json = nlohmann::ordered_json;

static constexpr StringLiteral reportAttrName = "transept.report";

//===- Facts --------------------------------------------------------------------------------------------------===//

/// The kernels of every entry: those on tensors, or those its dispatches run.
static DictionaryAttr countKernels(ModuleOp module) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> entries;
  for (auto entry : module.getOps<kernel::EntryOp>()) {
    std::map<std::string, int64_t> kinds;
    entry.walk([&](kernel::KernelOp op) { ++kinds[op->getName().stripDialect().str()]; });
    SmallVector<NamedAttribute> counts;
    for (const auto &[kind, count] : kinds)
      counts.push_back(builder.getNamedAttr(kind, builder.getI64IntegerAttr(count)));
    entries.push_back(builder.getNamedAttr(entry.getSymName(), builder.getDictionaryAttr(counts)));
  }
  return builder.getDictionaryAttr(entries);
}

static ArrayAttr collectGuards(ModuleOp module) {
  Builder builder(module.getContext());
  llvm::SetVector<Attribute> messages;
  for (auto entry : module.getOps<kernel::EntryOp>())
    for (Attribute guard : entry.getGuards())
      if (auto dictionary = dyn_cast<DictionaryAttr>(guard))
        if (auto message = dictionary.getAs<StringAttr>("message"))
          messages.insert(message);
  return builder.getArrayAttr(messages.getArrayRef());
}

void mlir::transept::recordFacts(ModuleOp module, const Phase &phase, ArrayRef<std::string> warnings) {
  Builder builder(module.getContext());
  NamedAttrList facts(module->getAttrOfType<DictionaryAttr>(reportAttrName));
  if (!warnings.empty()) {
    SmallVector<Attribute> list;
    if (auto known = dyn_cast_or_null<ArrayAttr>(facts.get("warnings")))
      llvm::append_range(list, known);
    for (const std::string &warning : warnings)
      list.push_back(builder.getStringAttr(warning));
    facts.set("warnings", builder.getArrayAttr(list));
  }
  // Staging folds again, over copies of what there is.
  if (phase.name == "fold")
    if (Attribute folding = module->getAttr("transept.folding"))
      facts.set("folding", folding);
  if (phase.name == "stage")
    facts.set("shape_ops", builder.getI64IntegerAttr(countShapeOps(module)));
  if (phase.name == "form") {
    facts.set("kernels", countKernels(module));
    facts.set("guards", collectGuards(module));
  }
  if (!facts.empty())
    module->setAttr(reportAttrName, facts.getDictionary(module.getContext()));
}

static std::vector<std::string> stringsOf(Attribute attribute) {
  std::vector<std::string> strings;
  if (auto array = dyn_cast_or_null<ArrayAttr>(attribute))
    for (Attribute element : array)
      if (auto text = dyn_cast<StringAttr>(element))
        strings.push_back(text.str());
  return strings;
}

/// What foldReport reads from a module, from the copy that is kept of it.
static FoldReport foldingFrom(DictionaryAttr folding) {
  OwningOpRef<ModuleOp> holder = ModuleOp::create(UnknownLoc::get(folding.getContext()));
  (*holder)->setAttr("transept.folding", folding);
  return foldReport(*holder);
}

void mlir::transept::collectFacts(ModuleOp module, CompileReport &report) {
  if (module->hasAttr("transept.fusion"))
    report.fusion = fusionReport(module);
  report.staging = stringsOf(module->getAttr(stagingNotesAttrName));
  report.quantisation = quantiseReport(module);
  auto facts = module->getAttrOfType<DictionaryAttr>(reportAttrName);
  if (!facts)
    return;
  report.warnings = stringsOf(facts.get("warnings"));
  report.guards = stringsOf(facts.get("guards"));
  if (auto count = facts.getAs<IntegerAttr>("shape_ops"))
    report.shapeOps = count.getInt();
  if (auto folding = facts.getAs<DictionaryAttr>("folding"))
    report.folding = foldingFrom(folding);
  report.kernels.clear();
  if (auto kernels = facts.getAs<DictionaryAttr>("kernels"))
    for (NamedAttribute entry : kernels) {
      report.kernels.push_back({entry.getName().str(), {}});
      if (auto counts = dyn_cast<DictionaryAttr>(entry.getValue()))
        for (NamedAttribute count : counts)
          if (auto number = dyn_cast<IntegerAttr>(count.getValue()))
            report.kernels.back().kinds[count.getName().str()] = number.getInt();
    }
}

//===- JSON ---------------------------------------------------------------------------------------------------===//

/// Element-wise and irregular ops become kernels of this kind.
static constexpr const char *genericKind = "map";

static unsigned countGeneric(const CompileReport &report) {
  unsigned count = 0;
  for (const EntryKernels &entry : report.kernels)
    if (auto found = entry.kinds.find(genericKind); found != entry.kinds.end())
      count += found->second;
  return count;
}

static json fusionAsJson(const FusionReport &fusion) {
  json unfused = json::array();
  for (const FusionReport::Unfused &site : fusion.unfused)
    unfused.push_back({{"node", site.node}, {"reason", site.reason}});
  return {{"sites", fusion.sites}, {"fused", fusion.fused}, {"unfused", unfused}};
}

static json quantisationAsJson(const QuantiseReport &quantisation) {
  json kept = json::array();
  for (const QuantiseReport::Kept &entry : quantisation.kept)
    kept.push_back({{"node", entry.node}, {"reason", entry.reason}});
  return {{"weights", quantisation.weights},
          {"narrow", quantisation.narrow},
          {"bytes_fp32", quantisation.bytes},
          {"bytes_narrow", quantisation.narrowBytes},
          {"also_read", quantisation.alsoRead},
          {"also_read_bytes", quantisation.alsoReadBytes},
          {"kept", kept}};
}

static json accuracyAsJson(const AccuracyReport &accuracy) {
  auto texts = [](const TextScores &scores) {
    return json{{"word_error_rate", scores.wordErrorRate()}, {"bleu", scores.bleu()}};
  };
  json page = {{"inputs", accuracy.inputs},
               {"tokens", accuracy.tokens},
               {"mean_divergence", accuracy.meanDivergence},
               {"max_divergence", accuracy.maxDivergence},
               {"rms_error", accuracy.rmsError},
               {"max_error", accuracy.maxError},
               {"deviation", accuracy.deviation},
               {"same_tokens", accuracy.sameTokens},
               {"same_outputs", accuracy.sameOutputs}};
  if (int64_t pairs = accuracy.exactTexts.pairs())
    page["targets"] = {{"texts", pairs}, {"fp32", texts(accuracy.exactTexts)}, {"narrow", texts(accuracy.otherTexts)}};
  return page;
}

std::string mlir::transept::reportAsJson(const CompileReport &report) {
  json page = {{"source", report.source}};
  if (!report.output.empty())
    page["output"] = report.output;
  if (report.target)
    page["target"] = {{"target", report.target->target},
                      {"precision", report.target->precision},
                      {"cpu_levels", report.target->cpuLevels}};
  page["warnings"] = report.warnings;
  if (report.fusion) {
    page["attention"] = fusionAsJson(*report.fusion);
    page["assumptions"] = report.fusion->assumptions;
  }
  if (report.shapeOps)
    page["shape_ops_left"] = *report.shapeOps;
  if (report.folding) {
    const FoldReport &folding = *report.folding;
    page["folding"] = {{"folded_ops", folding.foldedOps}};
    page["weights"] = {{"count", folding.weights},
                       {"bytes", folding.weightBytes},
                       {"shared", folding.sharedEqual + folding.sharedTransposed},
                       {"shared_equal", folding.sharedEqual},
                       {"shared_transposed", folding.sharedTransposed},
                       {"bytes_saved", folding.sharedEqualBytes + folding.sharedTransposedBytes}};
  }
  page["staging"] = report.staging;
  if (!report.quantisation.precision.empty())
    page["quantisation"] = quantisationAsJson(report.quantisation);
  page["guards"] = report.guards;
  if (!report.kernels.empty()) {
    json kernels = json::object();
    for (const EntryKernels &entry : report.kernels)
      kernels[entry.entry] = entry.kinds;
    page["kernels"] = kernels;
    page["generic_ops"] = countGeneric(report);
  }
  json seconds = json::object();
  for (const auto &[phase, time] : report.seconds)
    seconds[phase] = std::round(time * 1e6) / 1e6;
  page["seconds"] = seconds;
  if (report.sizes)
    page["artifact"] = {
        {"bytes", report.sizes->artifact}, {"weight_bytes", report.sizes->weights}, {"code_bytes", report.sizes->code}};
  if (report.accuracy)
    page["accuracy"] = accuracyAsJson(*report.accuracy);
  if (report.failure)
    page["error"] = {{"exit_code", report.failure->exitCode},
                     {"message", report.failure->message},
                     {"details", report.failure->details}};
  return page.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

//===- Text ---------------------------------------------------------------------------------------------------===//

std::string mlir::transept::bytesAsText(uint64_t bytes) {
  if (bytes < 1000)
    return std::to_string(bytes) + " B";
  double value = bytes;
  const char *unit = "";
  for (const char *next : {"kB", "MB", "GB", "TB"}) {
    if (value < 999.5)
      break;
    value /= 1000;
    unit = next;
  }
  return llvm::formatv(value < 10 ? "{0:f1} {1}" : "{0:f0} {1}", value, unit).str();
}

static void printList(raw_ostream &out, StringRef title, ArrayRef<std::string> lines) {
  if (lines.empty())
    return;
  out << title << "\n";
  for (const std::string &line : lines)
    out << "  " << line << "\n";
}

std::string mlir::transept::reportAsText(const CompileReport &report) {
  std::string page;
  llvm::raw_string_ostream out(page);
  if (report.fusion) {
    out << "attention  fused " << report.fusion->fused << " of " << report.fusion->sites << " sites\n";
    for (const FusionReport::Unfused &site : report.fusion->unfused)
      out << "  not fused: " << site.node << ": " << site.reason << "\n";
  }
  if (report.shapeOps)
    out << "shapes     " << *report.shapeOps << " shape ops left\n";
  if (report.folding) {
    const FoldReport &folding = *report.folding;
    out << "weights    " << folding.weights << ", " << bytesAsText(folding.weightBytes) << "; "
        << folding.sharedEqual + folding.sharedTransposed << " shared, "
        << bytesAsText(folding.sharedEqualBytes + folding.sharedTransposedBytes) << " saved\n";
  }
  if (const QuantiseReport &narrow = report.quantisation; !narrow.precision.empty()) {
    out << llvm::formatv("precision  {0}: {1} of {2} product weights, {3} instead of {4}\n", narrow.precision,
                         narrow.narrow, narrow.weights, bytesAsText(narrow.narrowBytes), bytesAsText(narrow.bytes));
    if (narrow.alsoRead)
      out << llvm::formatv("  {0} of them are read by other ops, too, and stored in fp32 as well: {1}\n",
                           narrow.alsoRead, bytesAsText(narrow.alsoReadBytes));
    for (const QuantiseReport::Kept &entry : narrow.kept)
      out << "  in fp32: " << entry.node << ": " << entry.reason << "\n";
  }
  for (const EntryKernels &entry : report.kernels) {
    out << llvm::formatv("kernels    {0}: ", entry.entry);
    llvm::interleaveComma(entry.kinds, out, [&](const auto &kind) { out << kind.second << " " << kind.first; });
    out << "\n";
  }
  if (!report.kernels.empty())
    out << "generic    " << countGeneric(report) << " ops in generic form (" << genericKind << ")\n";
  printList(out, "staging", report.staging);
  if (report.fusion)
    printList(out, "assumed", report.fusion->assumptions);
  printList(out, "checked when called", report.guards);
  if (report.sizes)
    out << "artifact   " << bytesAsText(report.sizes->artifact) << ": " << bytesAsText(report.sizes->weights)
        << " weights, " << bytesAsText(report.sizes->code) << " code\n";
  out << "time      ";
  for (const auto &[phase, time] : report.seconds)
    out << llvm::formatv(" {0} {1:f2} s", phase, time);
  out << "\n";
  return page;
}
