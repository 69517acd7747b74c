#include "runtime/VerifyManifest.h"

#include "runtime/DType.h"
#include "runtime/Expr.h"
#include "transept/abi.h"

#include <algorithm>
#include <limits>
#include <set>

namespace transept {

namespace {

Status refuse(const std::string &why) { return {Code::ArtifactRefused, printable(why, 400)}; }

bool absentOrZero(const program::Expr &expr) {
  return expr.terms_size() == 0 ||
         (expr.terms_size() == 1 && expr.terms(0).op() == program::Expr::CONST && expr.terms(0).value() == 0);
}

class Verifier {
public:
  Verifier(const program::Manifest &manifest, const std::vector<SectionInfo> &sections)
      : manifest_(manifest), sections_(sections) {}

  Status run() {
    TRANSEPT_TRY(checkSections());
    TRANSEPT_TRY(checkSymbols(manifest_.generation_symbols(), "generation"));
    TRANSEPT_TRY(checkStates());
    kernels_.resize(static_cast<size_t>(manifest_.kernels_size()));
    std::set<std::string> names;
    for (const program::Entry &entry : manifest_.entries()) {
      if (entry.name().empty() || !names.insert(entry.name()).second)
        return refuse("entry name '" + entry.name() + "' is empty or used twice");
      Status status = checkEntry(entry);
      if (!status.ok())
        return refuse("entry '" + entry.name() + "': " + status.message());
    }
    for (const program::Kernel &kernel : manifest_.kernels())
      if (kernel.scratch_bytes().terms_size() != 0 &&
          !verifyExpr(kernel.scratch_bytes(), std::numeric_limits<uint32_t>::max()).ok())
        return refuse("kernel '" + kernel.name() + "' has a malformed scratch size");
    for (const program::CodeObject &code : manifest_.code())
      if (Status status = checkShaders(code); !status.ok())
        return refuse("code for " + code.target() + " '" + code.level() + "': " + status.message());
    return manifest_.has_generation() ? checkGeneration(manifest_.generation()) : Status();
  }

private:
  /// How often each kernel's dispatches pass buffers and sizes; -1 before the first.
  struct Signature {
    int buffers = -1, sizes = -1;
  };

  const SectionInfo *findSection(const std::string &name) const {
    auto found = std::find_if(sections_.begin(), sections_.end(), [&](const auto &s) { return s.name == name; });
    return found == sections_.end() ? nullptr : &*found;
  }

  Status checkSections();
  Status checkShaders(const program::CodeObject &code);
  Status checkTile(const program::Shader &shader, const program::Shader::Tile &tile, int sizes,
                   const std::string &name);
  Status checkItems(const program::Expr &items, int sizes);
  Status checkStates();
  Status checkEntry(const program::Entry &entry);
  Status checkBuffer(const program::Entry &entry, const program::Buffer &buffer);
  Status checkConstant(const program::Buffer &buffer);
  Status checkSegment(const program::Entry &entry, const program::Segment &segment);
  Status checkDispatch(const program::Entry &entry, const program::Dispatch &dispatch);
  Status checkGeneration(const program::Generation &generation);

  template <typename Symbols> Status checkSymbols(const Symbols &symbols, const std::string &owner) {
    std::set<std::string> names;
    for (const program::Symbol &symbol : symbols) {
      if (symbol.name().empty() || !names.insert(symbol.name()).second)
        return refuse(owner + ": symbol name '" + symbol.name() + "' is empty or used twice");
      if (symbol.min() < 0 || symbol.max() < 0 || (symbol.max() != 0 && symbol.max() < symbol.min()))
        return refuse(owner + ": symbol '" + symbol.name() + "' has range " + std::to_string(symbol.min()) + " to " +
                      std::to_string(symbol.max()));
    }
    return {};
  }

  const program::Manifest &manifest_;
  const std::vector<SectionInfo> &sections_;
  std::vector<Signature> kernels_;
  uint64_t weightBytes_ = 0;
  bool onlyShaders_ = false; // then nobody needs the work items of a dispatch
};

Status Verifier::checkSections() {
  for (const SectionInfo &section : sections_) {
    if (section.kind != SectionKind::Weights)
      continue;
    if (manifest_.weights_section() != section.name)
      return refuse("weights are in section '" + section.name + "', not in '" + manifest_.weights_section() + "'");
    weightBytes_ = section.bytes;
  }
  if (!manifest_.weights_section().empty() && !findSection(manifest_.weights_section()))
    return refuse("there is no section '" + manifest_.weights_section() + "'");
  onlyShaders_ = manifest_.code_size() != 0 && std::all_of(manifest_.code().begin(), manifest_.code().end(),
                                                           [](const auto &code) { return code.target() == "vulkan"; });
  std::set<std::pair<std::string, std::string>> levels;
  for (const program::CodeObject &code : manifest_.code()) {
    const SectionInfo *section = findSection(code.section());
    if (!section || section->kind != (code.target() == "vulkan" ? SectionKind::Spirv : SectionKind::Code))
      return refuse("there is no code in section '" + code.section() + "'");
    if (!levels.insert({code.target(), code.level()}).second)
      return refuse("code for " + code.target() + " '" + code.level() + "' occurs twice");
  }
  for (const std::string &file : manifest_.tokenizer().files()) {
    const SectionInfo *section = findSection(file);
    if (!section || section->kind != SectionKind::File)
      return refuse("there is no tokenizer file in section '" + file + "'");
  }
  return {};
}

Status Verifier::checkShaders(const program::CodeObject &code) {
  if (code.target() != "vulkan")
    return code.shaders_size() == 0 ? Status() : refuse("has shaders");
  if (code.shaders_size() != manifest_.kernels_size())
    return refuse("has " + std::to_string(code.shaders_size()) + " shaders for " +
                  std::to_string(manifest_.kernels_size()) + " kernels");
  constexpr uint64_t word = sizeof(uint32_t);
  constexpr uint32_t maxGroupSize = 1024, maxSharedBytes = 1 << 20;
  const uint64_t sectionBytes = findSection(code.section())->bytes;
  for (int i = 0; i < code.shaders_size(); ++i) {
    const program::Shader &shader = code.shaders(i);
    const std::string name = "shader " + std::to_string(i) + " ";
    if (shader.variants_size() == 0 || shader.variants().rbegin()->features_size() != 0)
      return refuse(name + "has no variant for every device");
    for (const program::Shader::Variant &variant : shader.variants()) {
      if (variant.offset() % word != 0 || variant.bytes() % word != 0 || variant.bytes() == 0 ||
          variant.offset() > sectionBytes || variant.bytes() > sectionBytes - variant.offset())
        return refuse(name + "lies at " + std::to_string(variant.offset()) + " with " +
                      std::to_string(variant.bytes()) + " bytes in a section of " + std::to_string(sectionBytes));
      if (variant.shared_bytes() > maxSharedBytes || variant.shared_bytes_per_invocation() > maxSharedBytes)
        return refuse(name + "shares " + std::to_string(variant.shared_bytes()) + " bytes and " +
                      std::to_string(variant.shared_bytes_per_invocation()) + " per invocation");
      if (variant.has_tile())
        TRANSEPT_TRY(checkTile(shader, variant.tile(), kernels_[static_cast<size_t>(i)].sizes, name));
    }
    if (shader.group_size() < 1 || shader.group_size() > maxGroupSize || shader.group_step() > maxGroupSize)
      return refuse(name + "has groups of " + std::to_string(shader.group_size()) + " in steps of " +
                    std::to_string(shader.group_step()));
    TRANSEPT_TRY(checkItems(shader.items(), kernels_[static_cast<size_t>(i)].sizes));
  }
  return {};
}

/// `sizes` of the kernel; -1: it is never called.
Status Verifier::checkItems(const program::Expr &items, int sizes) {
  return verifyExpr(items, sizes < 0 ? std::numeric_limits<uint32_t>::max() : static_cast<size_t>(sizes));
}

Status Verifier::checkTile(const program::Shader &shader, const program::Shader::Tile &tile, int sizes,
                           const std::string &name) {
  constexpr uint32_t most = 1024;
  for (uint32_t size : {tile.rows(), tile.columns(), tile.depth(), tile.matrices()})
    if (size < 1 || size > most || shader.items_per_group() != 1)
      return refuse(name + "has tiles of " + std::to_string(tile.rows()) + " x " + std::to_string(tile.columns()) +
                    " x " + std::to_string(tile.depth()) + ", " + std::to_string(tile.matrices()) +
                    " matrices for a subgroup and " + std::to_string(shader.items_per_group()) + " for a workgroup");
  return checkItems(tile.items(), sizes);
}

Status Verifier::checkStates() {
  std::set<std::string> names;
  for (const program::State &state : manifest_.states()) {
    if (state.name().empty() || !names.insert(state.name()).second)
      return refuse("state name '" + state.name() + "' is empty or used twice");
    if (dtypeSize(state.dtype()) == 0)
      return refuse("state '" + state.name() + "' has no element type");
    for (const program::Expr &dim : state.dims())
      if (Status status = verifyExpr(dim, static_cast<size_t>(manifest_.generation_symbols_size())); !status.ok())
        return refuse("state '" + state.name() + "': " + status.message());
  }
  return {};
}

Status Verifier::checkEntry(const program::Entry &entry) {
  TRANSEPT_TRY(checkSymbols(entry.symbols(), "its symbols"));
  const auto symbols = static_cast<size_t>(entry.symbols_size());
  std::set<std::pair<int, std::string>> names; // of inputs and outputs
  for (const program::Buffer &buffer : entry.buffers()) {
    Status status = checkBuffer(entry, buffer);
    if (!status.ok())
      return {status.code(), "buffer '" + buffer.name() + "': " + status.message()};
    bool bound = buffer.storage() == program::INPUT || buffer.storage() == program::OUTPUT;
    if (bound && (buffer.name().empty() || !names.insert({buffer.storage(), buffer.name()}).second))
      return refuse("input or output name '" + buffer.name() + "' is empty or used twice");
  }
  int64_t owned = 0;
  for (int i = 0; i < entry.segments_size(); ++i) {
    if (Status status = checkSegment(entry, entry.segments(i)); !status.ok())
      return {status.code(), "segment " + std::to_string(i) + ": " + status.message()};
    owned += entry.segments(i).dispatches();
  }
  if (owned != entry.dispatches_size() || entry.segments_size() == 0)
    return refuse("its segments own " + std::to_string(owned) + " of " + std::to_string(entry.dispatches_size()) +
                  " dispatches");
  for (const program::Guard &guard : entry.guards()) {
    if (guard.segment() >= static_cast<uint32_t>(entry.segments_size()))
      return refuse("a guard belongs to no segment");
    if (!program::Guard_Relation_IsValid(guard.relation()))
      return refuse("a guard has an unknown relation");
    TRANSEPT_TRY(verifyExpr(guard.left(), symbols));
    TRANSEPT_TRY(verifyExpr(guard.right(), symbols));
  }
  for (int i = 0; i < entry.dispatches_size(); ++i)
    if (Status status = checkDispatch(entry, entry.dispatches(i)); !status.ok())
      return {status.code(), "dispatch " + std::to_string(i) + ": " + status.message()};
  return {};
}

Status Verifier::checkSegment(const program::Entry &entry, const program::Segment &segment) {
  const auto symbols = static_cast<size_t>(entry.symbols_size());
  if (segment.arena_bytes().terms_size() != 0)
    TRANSEPT_TRY(verifyExpr(segment.arena_bytes(), symbols));
  auto isSettable = [&](uint32_t symbol) {
    return symbol < symbols && entry.symbols(static_cast<int>(symbol)).at_run_time();
  };
  auto hasType = [&](uint32_t buffer, DType type) {
    return buffer < static_cast<uint32_t>(entry.buffers_size()) &&
           entry.buffers(static_cast<int>(buffer)).dtype() == type;
  };
  for (const program::Assignment &assignment : segment.assignments()) {
    if (!isSettable(assignment.symbol()))
      return refuse("sets symbol " + std::to_string(assignment.symbol()) + ", which is none of run time");
    TRANSEPT_TRY(verifyExpr(assignment.value(), symbols));
  }
  for (const program::ReadBack &read : segment.read_backs()) {
    if (!hasType(read.buffer(), program::I64))
      return refuse("reads sizes from buffer " + std::to_string(read.buffer()));
    if (!std::all_of(read.symbols().begin(), read.symbols().end(), isSettable))
      return refuse("reads a symbol that is none of run time");
  }
  if (segment.branches() && !hasType(segment.condition(), program::BOOL))
    return refuse("branches on buffer " + std::to_string(segment.condition()));
  const auto count = static_cast<uint32_t>(entry.segments_size());
  if (segment.arena() >= count || (segment.arena() == 0) != (&segment == &entry.segments(0)))
    return refuse("sets up arena " + std::to_string(segment.arena()));
  if (segment.next() > count || (segment.branches() ? segment.otherwise() > count : segment.otherwise() != 0))
    return refuse("is followed by a segment that does not exist");
  return {};
}

Status Verifier::checkBuffer(const program::Entry &entry, const program::Buffer &buffer) {
  const auto symbols = static_cast<size_t>(entry.symbols_size());
  bool hasArena = buffer.storage() == program::ARENA || buffer.storage() == program::OUTPUT;
  if (buffer.arena() >= static_cast<uint32_t>(entry.segments_size()) || (buffer.arena() != 0 && !hasArena))
    return refuse("belongs to arena " + std::to_string(buffer.arena()));
  if (dtypeSize(buffer.dtype()) == 0)
    return refuse("has no element type");
  for (const program::Expr &dim : buffer.dims())
    TRANSEPT_TRY(verifyExpr(dim, symbols));
  if (buffer.bytes().terms_size() != 0)
    TRANSEPT_TRY(verifyExpr(buffer.bytes(), symbols));
  if (buffer.has_default() && buffer.storage() != program::INPUT)
    return refuse("has a default but is no input");
  switch (buffer.storage()) {
  case program::ARENA:
    if (std::none_of(entry.segments().begin(), entry.segments().end(), [&](const program::Segment &segment) {
          return segment.arena() == buffer.arena() && segment.arena_bytes().terms_size() != 0;
        }))
      return refuse("lies in an arena without a size");
    TRANSEPT_TRY(verifyExpr(buffer.offset(), symbols));
    return verifyExpr(buffer.bytes(), symbols);
  case program::CONSTANT:
    return checkConstant(buffer);
  case program::STATE: {
    auto found = std::find_if(manifest_.states().begin(), manifest_.states().end(),
                              [&](const program::State &state) { return state.name() == buffer.name(); });
    if (found == manifest_.states().end())
      return refuse("there is no such state");
    if (found->dtype() != buffer.dtype())
      return refuse("its state has another element type");
    break;
  }
  case program::INPUT:
  case program::OUTPUT:
    break;
  default:
    return refuse("has no storage");
  }
  if (!absentOrZero(buffer.offset()))
    return refuse("has an offset");
  if (!buffer.has_default())
    return buffer.default_value().empty() ? Status() : refuse("has a value but no default");
  int64_t bytes = dtypeSize(buffer.dtype());
  for (const program::Expr &dim : buffer.dims()) {
    Result<int64_t> value = isConstant(dim) ? evaluateExpr(dim, {}) : refuse("has a default of dynamic shape");
    if (!value.ok())
      return value.status();
    if (*value < 0 || !checkedMul(bytes, *value, bytes))
      return refuse("has a default of impossible size");
  }
  if (static_cast<uint64_t>(bytes) != buffer.default_value().size())
    return refuse("has a default of " + std::to_string(buffer.default_value().size()) + " bytes instead of " +
                  std::to_string(bytes));
  return {};
}

Status Verifier::checkConstant(const program::Buffer &buffer) {
  TRANSEPT_TRY(verifyExpr(buffer.offset(), 0));
  TRANSEPT_TRY(verifyExpr(buffer.bytes(), 0));
  TRANSEPT_ASSIGN(int64_t offset, evaluateExpr(buffer.offset(), {}));
  TRANSEPT_ASSIGN(int64_t bytes, evaluateExpr(buffer.bytes(), {}));
  if (offset < 0 || bytes < 0 || static_cast<uint64_t>(offset) > weightBytes_ ||
      static_cast<uint64_t>(bytes) > weightBytes_ - static_cast<uint64_t>(offset))
    return refuse("lies outside the " + std::to_string(weightBytes_) + " bytes of weights");
  if (offset % TRANSEPT_BUFFER_ALIGNMENT != 0)
    return refuse("is not aligned");
  return {};
}

Status Verifier::checkDispatch(const program::Entry &entry, const program::Dispatch &dispatch) {
  const auto symbols = static_cast<size_t>(entry.symbols_size());
  if (dispatch.kernel() >= static_cast<uint32_t>(manifest_.kernels_size()))
    return refuse("calls kernel " + std::to_string(dispatch.kernel()) + " of " +
                  std::to_string(manifest_.kernels_size()));
  if (dispatch.items().terms_size() != 0 || !onlyShaders_)
    TRANSEPT_TRY(verifyExpr(dispatch.items(), symbols));
  for (uint32_t buffer : dispatch.buffers())
    if (buffer >= static_cast<uint32_t>(entry.buffers_size()))
      return refuse("uses buffer " + std::to_string(buffer) + " of " + std::to_string(entry.buffers_size()));
  for (const program::Expr &size : dispatch.sizes())
    TRANSEPT_TRY(verifyExpr(size, symbols));
  const program::Kernel &kernel = manifest_.kernels(static_cast<int>(dispatch.kernel()));
  Signature &signature = kernels_[dispatch.kernel()];
  if (signature.buffers < 0) {
    signature = {dispatch.buffers_size(), dispatch.sizes_size()};
    if (kernel.scratch_bytes().terms_size() != 0)
      TRANSEPT_TRY(verifyExpr(kernel.scratch_bytes(), static_cast<size_t>(dispatch.sizes_size())));
  }
  if (signature.buffers != dispatch.buffers_size() || signature.sizes != dispatch.sizes_size())
    return refuse("calls kernel '" + kernel.name() + "' with another number of arguments than before");
  return {};
}

Status Verifier::checkGeneration(const program::Generation &generation) {
  auto find = [&](const std::string &name) -> const program::Entry * {
    for (const program::Entry &entry : manifest_.entries())
      if (entry.name() == name)
        return &entry;
    return nullptr;
  };
  const program::Entry *encode = find(generation.encode());
  auto missing = [&](const std::string &name) { return !name.empty() && !find(name); };
  bool alone = generation.kind() == "decoder" && generation.encode().empty();
  if ((!encode && !alone) || !find(generation.step()) || missing(generation.score()) || missing(generation.prefill()) ||
      missing(generation.step_alignments()) || missing(generation.advance()) || missing(generation.advance_beams()) ||
      missing(generation.step_greedy()))
    return refuse("generation names an entry that does not exist");
  auto isInput = [&](const std::string &name) {
    return encode &&
           std::any_of(encode->buffers().begin(), encode->buffers().end(), [&](const program::Buffer &buffer) {
             return buffer.storage() == program::INPUT && buffer.name() == name;
           });
  };
  if ((!generation.encoder_input().empty() && !isInput(generation.encoder_input())) ||
      (!generation.encoder_mask().empty() && !isInput(generation.encoder_mask())) ||
      (!generation.encoder_lengths().empty() && !isInput(generation.encoder_lengths())))
    return refuse("generation names an encoder input that does not exist");
  if (generation.vocabulary() <= 0 || generation.position_limit() < 0 || generation.source_limit() < 0 ||
      generation.layers() < 0)
    return refuse("generation has a negative limit");
  if (generation.strategy() != "cached" && generation.strategy() != "recompute")
    return refuse("generation has unknown strategy '" + generation.strategy() + "'");
  return {};
}

} // namespace

Status verifyManifest(const program::Manifest &manifest, const std::vector<SectionInfo> &sections) {
  return Verifier(manifest, sections).run().withContext("has an invalid program");
}

} // namespace transept
