#include "runtime/SessionState.h"

#include "runtime/BindSymbols.h"
#include "runtime/Expr.h"

#include <algorithm>
#include <cstring>

namespace transept {

namespace {

/// One value per generation symbol, in their order.
Result<std::vector<int64_t>> orderSymbols(const program::Manifest &manifest, const SymbolValues &given) {
  std::vector<int64_t> values;
  for (const program::Symbol &symbol : manifest.generation_symbols()) {
    auto found =
        std::find_if(given.begin(), given.end(), [&](const auto &value) { return value.name == symbol.name(); });
    if (found == given.end())
      return Status(Code::InvalidInput, "a session of this model needs a value for '" + printable(symbol.name()) + "'");
    if (found->value < symbol.min() || (symbol.max() != 0 && found->value > symbol.max()))
      return Status(Code::InvalidInput, "'" + printable(symbol.name()) + "' is " + std::to_string(found->value) +
                                            ", the model takes " + std::to_string(symbol.min()) +
                                            (symbol.max() == 0 ? " or more" : " to " + std::to_string(symbol.max())));
    values.push_back(found->value);
  }
  for (const SymbolValue &value : given)
    if (std::none_of(manifest.generation_symbols().begin(), manifest.generation_symbols().end(),
                     [&](const program::Symbol &symbol) { return symbol.name() == value.name; }))
      return Status(Code::InvalidInput, "the model has no generation symbol '" + printable(value.name) + "'");
  return values;
}

/// Whether a session's symbols determine the entry.
bool isFixed(const program::Manifest &manifest, const program::Entry &entry) {
  return std::all_of(entry.symbols().begin(), entry.symbols().end(), [&](const program::Symbol &symbol) {
    return std::any_of(manifest.generation_symbols().begin(), manifest.generation_symbols().end(),
                       [&](const program::Symbol &fixed) { return fixed.name() == symbol.name(); });
  });
}

std::vector<int64_t> fixedValues(const program::Manifest &manifest, const program::Entry &entry,
                                 const std::vector<int64_t> &symbols) {
  std::vector<int64_t> values;
  for (const program::Symbol &symbol : entry.symbols())
    for (int i = 0; i < manifest.generation_symbols_size(); ++i)
      if (manifest.generation_symbols(i).name() == symbol.name())
        values.push_back(symbols[static_cast<size_t>(i)]);
  return values;
}

} // namespace

Result<StateLayout> StateLayout::create(const program::Manifest &manifest, Span<const int64_t> symbols) {
  StateLayout layout;
  for (const program::State &state : manifest.states()) {
    std::vector<int64_t> dims;
    Result<int64_t> bytes = denseBytes(state.dtype(), state.dims(), symbols, dims);
    if (!bytes.ok())
      return bytes.status().withContext("state '" + printable(state.name()) + "'");
    if (static_cast<uint64_t>(*bytes) > (uint64_t(1) << 46) || layout.total > (uint64_t(1) << 46))
      return Status(Code::OutOfMemory,
                    "state '" + printable(state.name()) + "' would have " + std::to_string(*bytes) + " bytes");
    layout.dims.push_back(std::move(dims));
    layout.offsets.push_back(layout.total);
    layout.bytes.push_back(static_cast<uint64_t>(*bytes));
    layout.total += alignUp(static_cast<uint64_t>(*bytes), TRANSEPT_BUFFER_ALIGNMENT);
  }
  return layout;
}

Status Session::State::setSymbols(const SymbolValues &given) {
  const program::Manifest &manifest = model->manifest();
  // Everything that can fail comes before the first change.
  TRANSEPT_ASSIGN(std::vector<int64_t> newSymbols, orderSymbols(manifest, given));
  TRANSEPT_ASSIGN(StateLayout newLayout, StateLayout::create(manifest, newSymbols));
  PlanMemory sizesOnly;
  sizesOnly.stateBytes = newLayout.bytes.data();
  Plans newPlans(plans.size());
  uint64_t arenaBytes = 0, scratchBytes = 0;
  for (int i = 0; i < manifest.entries_size(); ++i) {
    if (!isFixed(manifest, manifest.entries(i)))
      continue;
    std::vector<int64_t> values = fixedValues(manifest, manifest.entries(i), newSymbols);
    TRANSEPT_ASSIGN(std::unique_ptr<Plan> plan, Plan::create(*model, i, values, sizesOnly));
    arenaBytes = std::max(arenaBytes, plan->arenaBytes());
    scratchBytes = std::max(scratchBytes, plan->scratchBytes());
    newPlans[static_cast<size_t>(i)].reserve(plansPerEntry + 1);
    newPlans[static_cast<size_t>(i)].push_back(std::move(plan));
  }
  const uint64_t stride = alignUp(scratchBytes, TRANSEPT_SCRATCH_ALIGNMENT);
  const auto threads = static_cast<uint64_t>(team->size());
  Block newStates, newArena, newScratch;
  bool growStates = !states.data() || newLayout.total > states.size();
  bool growArena = !arena.data() || arenaBytes > arena.size();
  bool growScratch = !scratch.data() || stride > scratchStride;
  if (growStates) {
    TRANSEPT_ASSIGN(newStates, Block::allocate(newLayout.total));
  }
  if (growArena) {
    TRANSEPT_ASSIGN(newArena, Block::allocate(arenaBytes));
  }
  if (growScratch) {
    TRANSEPT_ASSIGN(newScratch, Block::allocate(stride * threads));
  }

  if (growStates)
    states = std::move(newStates);
  else
    std::memset(states.data(), 0, newLayout.total);
  if (growArena)
    arena = std::move(newArena);
  if (growScratch) {
    scratch = std::move(newScratch);
    scratchStride = stride;
  }
  symbols = std::move(newSymbols);
  layout = std::move(newLayout);
  plans = std::move(newPlans);
  outputs.clear();
  for (const program::Entry &entry : manifest.entries()) { // a run must not allocate
    outputs.reserve(static_cast<size_t>(entry.buffers_size()));
    callSymbols.reserve(static_cast<size_t>(entry.symbols_size()));
  }
  for (auto &entryPlans : plans)
    for (auto &plan : entryPlans)
      plan->bind(*model, planMemory());
  return {};
}

Status Session::State::reserve(const Plan &plan) {
  if (plan.arenaBytes() > arena.size()) {
    TRANSEPT_ASSIGN(Block grown, Block::allocate(plan.arenaBytes()));
    outputs.clear(); // they lie in the old block
    arena = std::move(grown);
    for (auto &entryPlans : plans)
      for (auto &other : entryPlans)
        other->bind(*model, planMemory());
  }
  return reserveScratch(plan);
}

Status Session::State::reserveScratch(const Plan &plan) {
  uint64_t stride = alignUp(plan.scratchBytes(), TRANSEPT_SCRATCH_ALIGNMENT);
  if (stride > scratchStride) {
    TRANSEPT_ASSIGN(Block grown, Block::allocate(stride * static_cast<uint64_t>(team->size())));
    scratch = std::move(grown);
    scratchStride = stride;
  }
  return {};
}

Status Session::State::enter(Plan &plan, size_t segment) {
  if (laterArenas.size() + 1 < plan.segments())
    laterArenas.resize(plan.segments() - 1);
  TRANSEPT_TRY(plan.enter(*model, segment, planMemory()));
  TRANSEPT_TRY(reserveScratch(plan));
  if (plan.arena() != 0) {
    Block &block = laterArenas[plan.arena() - 1];
    if (!block.data() || plan.arenaBytes() > block.size()) {
      TRANSEPT_ASSIGN(block, Block::allocate(plan.arenaBytes()));
    }
  }
  plan.bind(*model, planMemory());
  return {};
}

Result<Plan *> Session::State::prepare(int entry, const RunArguments &arguments) {
  const program::Manifest &manifest = model->manifest();
  TRANSEPT_TRY(bindSymbols(manifest.entries(entry), manifest.generation_symbols(), symbols, arguments, callSymbols));
  auto &known = plans[static_cast<size_t>(entry)];
  auto found =
      std::find_if(known.begin(), known.end(), [&](const auto &plan) { return plan->symbols() == callSymbols; });
  if (found == known.end()) {
    TRANSEPT_ASSIGN(std::unique_ptr<Plan> plan, Plan::create(*model, entry, callSymbols, planMemory()));
    TRANSEPT_TRY(reserve(*plan));
    plan->bind(*model, planMemory());
    if (known.size() == plansPerEntry)
      known.pop_back();
    known.push_back(std::move(plan));
    found = known.end() - 1;
  }
  std::rotate(known.begin(), found, found + 1);
  Plan *plan = known.front().get();
  if (plan->segments() > 1) // an earlier run ended in another segment
    TRANSEPT_TRY(enter(*plan, 0));
  return plan;
}

} // namespace transept
