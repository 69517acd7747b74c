#include "Description.h"

#include "runtime/CodeObject.h"
#include "runtime/CpuFeatures.h"
#include "runtime/DType.h"
#include "runtime/Expr.h"

#include <algorithm>

namespace transept::tool {

namespace {

using json = nlohmann::ordered_json;
using Symbols = google::protobuf::RepeatedPtrField<program::Symbol>;

/// Expressions over one list of symbols, as text and, where possible, as numbers.
class Formulae {
public:
  Formulae(const Symbols &symbols, const SymbolValues &set) {
    for (const program::Symbol &symbol : symbols) {
      names_.push_back(symbol.name());
      auto given = std::find_if(set.begin(), set.end(), [&](const auto &value) { return value.name == symbol.name(); });
      known_.push_back(given != set.end());
      values_.push_back(given != set.end() ? given->value : 0);
    }
  }

  std::string text(const program::Expr &expr) const { return printExpr(expr, names_); }

  /// Null where a symbol is unknown or the value does not fit.
  json value(const program::Expr &expr) const {
    for (const program::Expr::Term &term : expr.terms())
      if (term.op() == program::Expr::SYMBOL && !known_[static_cast<size_t>(term.value())])
        return nullptr;
    Result<int64_t> result = expr.terms_size() ? evaluateExpr(expr, values_) : Result<int64_t>(0);
    return result.ok() ? json(*result) : json(nullptr);
  }

  json size(const program::Expr &expr) const {
    json out = {{"formula", expr.terms_size() ? text(expr) : "0"}};
    if (json number = value(expr); !number.is_null())
      out["value"] = number;
    return out;
  }

  /// Bytes of a dense tensor.
  template <typename Dims> json denseSize(DType dtype, const Dims &dims) const {
    program::Expr product;
    auto *term = product.add_terms();
    term->set_value(dtypeSize(dtype));
    for (const program::Expr &dim : dims) {
      product.MergeFrom(dim);
      product.add_terms()->set_op(program::Expr::MUL);
    }
    return size(product);
  }

  template <typename Dims> json shape(const Dims &dims) const {
    json out = json::array();
    for (const program::Expr &dim : dims) {
      if (isConstant(dim))
        out.push_back(value(dim));
      else
        out.push_back(text(dim));
    }
    return out;
  }

private:
  std::vector<std::string> names_;
  std::vector<bool> known_;
  std::vector<int64_t> values_;
};

json describeSymbols(const Symbols &symbols) {
  json out = json::array();
  for (const program::Symbol &symbol : symbols) {
    json row = {{"name", symbol.name()}, {"min", symbol.min()}};
    if (symbol.max() != 0)
      row["max"] = symbol.max();
    if (symbol.at_run_time())
      row["at_run_time"] = true;
    out.push_back(row);
  }
  return out;
}

json describeTensors(const program::Entry &entry, program::Storage storage, const Formulae &formulae) {
  json out = json::array();
  for (const program::Buffer &buffer : entry.buffers()) {
    if (buffer.storage() != storage)
      continue;
    json row = {
        {"name", buffer.name()}, {"dtype", dtypeName(buffer.dtype())}, {"shape", formulae.shape(buffer.dims())}};
    if (buffer.has_default())
      row["optional"] = true;
    out.push_back(row);
  }
  return out;
}

json describeDispatches(const program::Manifest &manifest, const program::Entry &entry, const Formulae &formulae) {
  json out = json::array();
  for (const program::Dispatch &dispatch : entry.dispatches()) {
    json buffers = json::array();
    for (uint32_t index : dispatch.buffers()) {
      const program::Buffer &buffer = entry.buffers(static_cast<int>(index));
      buffers.push_back(buffer.name().empty() ? "#" + std::to_string(index) : buffer.name());
    }
    out.push_back({{"kernel", manifest.kernels(static_cast<int>(dispatch.kernel())).name()},
                   {"items", formulae.size(dispatch.items())},
                   {"barrier", dispatch.barrier()},
                   {"buffers", buffers}});
  }
  return out;
}

/// What is set up while the entry runs.
json describeSegments(const program::Entry &entry, const Formulae &formulae) {
  json out = json::array();
  for (const program::Segment &segment : entry.segments()) {
    json sets = json::array();
    for (const program::Assignment &assignment : segment.assignments())
      sets.push_back(entry.symbols(static_cast<int>(assignment.symbol())).name());
    json reads = json::array();
    for (const program::ReadBack &read : segment.read_backs())
      for (uint32_t symbol : read.symbols())
        reads.push_back(entry.symbols(static_cast<int>(symbol)).name());
    json row = {{"dispatches", segment.dispatches()},
                {"arena", formulae.size(segment.arena_bytes())},
                {"sets", sets},
                {"reads", reads},
                {"next", segment.next()}};
    if (segment.branches())
      row["otherwise"] = segment.otherwise();
    out.push_back(row);
  }
  return out;
}

json describeEntry(const program::Manifest &manifest, const program::Entry &entry, const SymbolValues &set, bool plan) {
  Formulae formulae(entry.symbols(), set);
  auto barriers = std::count_if(entry.dispatches().begin(), entry.dispatches().end(),
                                [](const program::Dispatch &dispatch) { return dispatch.barrier(); });
  json out = {{"name", entry.name()},
              {"symbols", describeSymbols(entry.symbols())},
              {"inputs", describeTensors(entry, program::INPUT, formulae)},
              {"outputs", describeTensors(entry, program::OUTPUT, formulae)},
              {"dispatches", entry.dispatches_size()},
              {"barriers", barriers},
              {"arena", formulae.size(entry.segments(0).arena_bytes())}};
  if (entry.segments_size() > 1)
    out["segments"] = describeSegments(entry, formulae);
  if (plan) {
    out["guards"] = json::array();
    for (const program::Guard &guard : entry.guards())
      out["guards"].push_back(guard.message());
    out["program"] = describeDispatches(manifest, entry, formulae);
  }
  return out;
}

json describeStates(const program::Manifest &manifest, const SymbolValues &set) {
  Formulae formulae(manifest.generation_symbols(), set);
  json out = json::array();
  for (const program::State &state : manifest.states())
    out.push_back({{"name", state.name()},
                   {"role", state.role()},
                   {"dtype", dtypeName(state.dtype())},
                   {"shape", formulae.shape(state.dims())},
                   {"bytes", formulae.denseSize(state.dtype(), state.dims())}});
  return out;
}

/// Elements of a state for each value of the symbols in `per`; 0 where its size is not their product times a constant.
int64_t elementsPer(const program::Manifest &manifest, const program::State &state, std::vector<std::string> per) {
  int64_t elements = 1;
  for (const program::Expr &dim : state.dims()) {
    Result<int64_t> constant = isConstant(dim) ? evaluateExpr(dim, {}) : Result<int64_t>(Status(Code::Usage, ""));
    int64_t symbol = plainSymbol(dim);
    auto found = symbol < 0
                     ? per.end()
                     : std::find(per.begin(), per.end(), manifest.generation_symbols(static_cast<int>(symbol)).name());
    if (found != per.end())
      per.erase(found);
    else if (!constant.ok() || !checkedMul(elements, *constant, elements))
      return 0;
  }
  return per.empty() ? elements : 0;
}

/// What a token costs in each cache.
json describeCaches(const program::Manifest &manifest, const SymbolValues &set) {
  constexpr int64_t positionsPerBlock = 16;
  int64_t selfValues = 0, selfBytes = 0, crossValues = 0, crossBytes = 0;
  for (const program::State &state : manifest.states()) {
    if (state.role() == "self-cache") {
      int64_t values = elementsPer(manifest, state, {"blocks"}) / positionsPerBlock;
      selfValues += values;
      selfBytes += values * dtypeSize(state.dtype());
    } else if (state.role() == "cross-cache") {
      int64_t values = elementsPer(manifest, state, {"batch", "source"});
      crossValues += values;
      crossBytes += values * dtypeSize(state.dtype());
    }
  }
  json out = {{"self_per_beam_and_token", {{"values", selfValues}, {"bytes", selfBytes}}},
              {"cross_per_source_token", {{"values", crossValues}, {"bytes", crossBytes}}}};
  for (const SymbolValue &given : set) {
    int64_t values, bytes;
    if (given.name == "capacity" && checkedMul(selfValues, given.value, values) &&
        checkedMul(selfBytes, given.value, bytes))
      out["self_per_beam"] = {{"tokens", given.value}, {"values", values}, {"bytes", bytes}};
    if (given.name == "source" && checkedMul(crossValues, given.value, values) &&
        checkedMul(crossBytes, given.value, bytes))
      out["cross_per_source"] = {{"tokens", given.value}, {"values", values}, {"bytes", bytes}};
  }
  return out;
}

/// What the sizes of a kernel's dispatches are called, by kernel: size0, size1 ...
std::vector<Symbols> sizeNames(const program::Manifest &manifest) {
  std::vector<Symbols> names(static_cast<size_t>(manifest.kernels_size()));
  for (const program::Entry &entry : manifest.entries())
    for (const program::Dispatch &dispatch : entry.dispatches())
      for (Symbols &known = names[dispatch.kernel()]; known.size() < dispatch.sizes_size();)
        known.Add()->set_name("size" + std::to_string(known.size() - 1));
  return names;
}

/// Scratch formulae are over the sizes of a dispatch.
json describeKernels(const program::Manifest &manifest) {
  std::vector<int64_t> calls(static_cast<size_t>(manifest.kernels_size()));
  for (const program::Entry &entry : manifest.entries())
    for (const program::Dispatch &dispatch : entry.dispatches())
      ++calls[dispatch.kernel()];
  const std::vector<Symbols> names = sizeNames(manifest);
  json out = json::array();
  for (int i = 0; i < manifest.kernels_size(); ++i) {
    const program::Kernel &kernel = manifest.kernels(i);
    json row = {{"name", kernel.name()}, {"dispatches", calls[static_cast<size_t>(i)]}, {"source", kernel.source()}};
    if (kernel.scratch_bytes().terms_size() != 0 && calls[static_cast<size_t>(i)] != 0)
      row["scratch_per_thread"] = Formulae(names[static_cast<size_t>(i)], {}).size(kernel.scratch_bytes());
    out.push_back(row);
  }
  return out;
}

json describeGeneration(const program::Generation &generation) {
  json settings = json::parse(generation.settings_json(), nullptr, false);
  return {{"kind", generation.kind()},
          {"strategy", generation.strategy()},
          {"encode", generation.encode()},
          {"step", generation.step()},
          {"step_alignments", generation.step_alignments()},
          {"step_greedy", generation.step_greedy()},
          {"prefill", generation.prefill()},
          {"advance", generation.advance()},
          {"advance_beams", generation.advance_beams()},
          {"score", generation.score()},
          {"vocabulary", generation.vocabulary()},
          {"layers", generation.layers()},
          {"position_limit", generation.position_limit()},
          {"source_limit", generation.source_limit()},
          {"equal_lengths", generation.equal_lengths()},
          {"settings", settings.is_discarded() ? json(generation.settings_json()) : settings},
          {"refused_settings",
           std::vector<std::string>(generation.refused_settings().begin(), generation.refused_settings().end())}};
}

/// Over the sizes of a kernel; empty where it is never called.
std::string itemsText(const program::Expr &items, const Symbols &sizes) {
  std::vector<std::string> words;
  for (const program::Symbol &size : sizes)
    words.push_back(size.name());
  const bool called = std::all_of(items.terms().begin(), items.terms().end(), [&](const auto &term) {
    return term.op() != program::Expr::SYMBOL || static_cast<size_t>(term.value()) < words.size();
  });
  return called ? printExpr(items, words) : "";
}

json describeTile(const program::Shader::Tile &tile, const Symbols &sizes) {
  return {{"rows", tile.rows()},
          {"columns", tile.columns()},
          {"depth", tile.depth()},
          {"matrices", tile.matrices()},
          {"items", itemsText(tile.items(), sizes)}};
}

/// Kernels of a code object that are compute shaders.
json describeShaders(const program::Manifest &manifest, const program::CodeObject &code) {
  const std::vector<Symbols> names = sizeNames(manifest);
  json out = json::array();
  for (int i = 0; i < code.shaders_size(); ++i) {
    const program::Shader &shader = code.shaders(i);
    json row = {{"kernel", manifest.kernels(i).name()},
                {"variants", json::array()},
                {"group_size", shader.group_size()},
                {"group_step", shader.group_step()},
                {"items_per_group", shader.items_per_group()}};
    const Symbols &sizes = names[static_cast<size_t>(i)];
    for (const program::Shader::Variant &variant : shader.variants()) {
      row["variants"].push_back(
          {{"features", std::vector<std::string>(variant.features().begin(), variant.features().end())},
           {"bytes", variant.bytes()},
           {"shared_bytes", variant.shared_bytes()},
           {"shared_bytes_per_invocation", variant.shared_bytes_per_invocation()}});
      if (variant.has_tile())
        row["variants"].back()["tile"] = describeTile(variant.tile(), sizes);
    }
    row["items"] = itemsText(shader.items(), sizes);
    out.push_back(row);
  }
  return out;
}

/// Whether code of other devices than this processor is used here is not known without their drivers.
json describeCode(const program::Manifest &manifest, bool kernels) {
  json out = json::array();
  const std::vector<std::string> features = cpuFeatures();
  Result<const program::CodeObject *> best = chooseCode(manifest, "", features);
  for (const program::CodeObject &code : manifest.code()) {
    json row = {{"target", code.target()},
                {"level", code.level()},
                {"features", std::vector<std::string>(code.features().begin(), code.features().end())}};
    if (code.target() == "cpu")
      row["used_here"] = best.ok() && *best == &code;
    if (kernels && code.shaders_size() != 0)
      row["shaders"] = describeShaders(manifest, code);
    out.push_back(row);
  }
  return out;
}

} // namespace

json describe(const Artifact &artifact, const SymbolValues &set, const DescriptionParts &parts) {
  const program::Manifest &manifest = artifact.manifest();
  json out = {{"producer", manifest.producer()},
              {"precision", manifest.precision()},
              {"licence", manifest.licence()},
              {"source_hash", manifest.source_hash()},
              {"bytes", artifact.fileBytes()},
              {"weight_bytes", artifact.weightBytes()},
              {"unique_weight_bytes", manifest.unique_weight_bytes()},
              {"tokenizer", manifest.tokenizer().kind()},
              {"code", describeCode(manifest, parts.kernels)},
              {"sections", json::array()},
              {"entries", json::array()}};
  for (const SectionInfo &section : artifact.sections())
    out["sections"].push_back({{"name", section.name}, {"bytes", section.bytes}});
  for (const program::Entry &entry : manifest.entries())
    out["entries"].push_back(describeEntry(manifest, entry, set, parts.plan));
  if (manifest.has_generation())
    out["generation"] = describeGeneration(manifest.generation());
  if (parts.plan)
    out["states"] = describeStates(manifest, set);
  if (parts.plan && manifest.has_generation())
    out["caches"] = describeCaches(manifest, set);
  if (parts.kernels)
    out["kernels"] = describeKernels(manifest);
  return out;
}

} // namespace transept::tool
