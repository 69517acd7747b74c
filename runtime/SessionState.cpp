#include "runtime/SessionState.h"

#include "runtime/BindSymbols.h"
#include "runtime/Expr.h"

#include <algorithm>

namespace transept {

namespace {

/// Whether the host looks at a state never, or seldom enough to fetch it when it does: a search head reads all logits
/// in every step, the host only to sample. Roles and names are those of the plan (docs/artifact-format.md).
bool isForKernelsOnly(const program::State &state) {
  return state.role() == "self-cache" || state.role() == "cross-cache" || state.role() == "recurrent-state" ||
         state.name() == "logits";
}

/// Bytes of the ranges that `needed` exceeds, where memory must be new.
Status growMemory(const Device &device, const Arena &have, const std::array<uint64_t, accessKinds> &needed,
                  Arena &grown) {
  for (size_t i = 0; i < accessKinds; ++i)
    if (!have[i] || needed[i] > have[i]->size()) {
      TRANSEPT_ASSIGN(grown[i], device.allocate(needed[i], static_cast<Access>(i)));
    }
  return {};
}

/// Puts new memory where there is some; whether there is.
bool replaceMemory(Arena &memory, Arena &grown) {
  bool changed = false;
  for (size_t i = 0; i < accessKinds; ++i)
    if (grown[i]) {
      memory[i] = std::move(grown[i]);
      changed = true;
    }
  return changed;
}

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
    Access access = isForKernelsOnly(state) ? Access::Kernels : Access::Shared;
    uint64_t &total = layout.totals[static_cast<size_t>(access)];
    if (static_cast<uint64_t>(*bytes) > (uint64_t(1) << 46) || total > (uint64_t(1) << 46))
      return Status(Code::OutOfMemory,
                    "state '" + printable(state.name()) + "' would have " + std::to_string(*bytes) + " bytes");
    layout.dims.push_back(std::move(dims));
    layout.access.push_back(access);
    layout.places.push_back({{nullptr, total}, static_cast<uint64_t>(*bytes)});
    total += alignUp(static_cast<uint64_t>(*bytes), TRANSEPT_BUFFER_ALIGNMENT);
  }
  return layout;
}

Status Session::State::setSymbols(const SymbolValues &given) {
  const program::Manifest &manifest = model->manifest();
  // Everything that can fail comes before the first change.
  TRANSEPT_ASSIGN(std::vector<int64_t> newSymbols, orderSymbols(manifest, given));
  TRANSEPT_ASSIGN(StateLayout newLayout, StateLayout::create(manifest, newSymbols));
  PlanMemory sizesOnly;
  sizesOnly.states = newLayout.places.data();
  Plans newPlans(plans.size());
  std::array<uint64_t, accessKinds> arenaBytes{};
  uint64_t scratchBytes = 0;
  for (int i = 0; i < manifest.entries_size(); ++i) {
    if (!isFixed(manifest, manifest.entries(i)))
      continue;
    std::vector<int64_t> values = fixedValues(manifest, manifest.entries(i), newSymbols);
    TRANSEPT_ASSIGN(std::unique_ptr<Plan> plan, Plan::create(*model, i, values, sizesOnly));
    for (Access access : {Access::Kernels, Access::Shared})
      arenaBytes[static_cast<size_t>(access)] =
          std::max(arenaBytes[static_cast<size_t>(access)], plan->arenaBytes(access));
    scratchBytes = std::max(scratchBytes, plan->scratchBytes());
    newPlans[static_cast<size_t>(i)].reserve(plansPerEntry + 1);
    newPlans[static_cast<size_t>(i)].push_back(std::move(plan));
  }
  const Device &device = model->device();
  Arena newStates, newArena;
  TRANSEPT_TRY(growMemory(device, states, newLayout.totals, newStates));
  TRANSEPT_TRY(growMemory(device, arenas[0], arenaBytes, newArena));
  TRANSEPT_TRY(executor->reserveScratch(scratchBytes));
  for (size_t i = 0; i < accessKinds; ++i)
    if (!newStates[i])
      TRANSEPT_TRY(device.clear(*states[i], newLayout.totals[i]));

  replaceMemory(states, newStates);
  replaceMemory(arenas[0], newArena);
  for (size_t i = 0; i < newLayout.places.size(); ++i)
    newLayout.places[i].place.memory = states[static_cast<size_t>(newLayout.access[i])].get();
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
      TRANSEPT_TRY(plan->bind(*model, planMemory()));
  return {};
}

Status Session::State::reserve(const Plan &plan) {
  TRANSEPT_TRY(executor->reserveScratch(plan.scratchBytes()));
  Arena grown;
  TRANSEPT_TRY(growMemory(model->device(), arenas[0],
                          {plan.arenaBytes(Access::Kernels), plan.arenaBytes(Access::Shared)}, grown));
  if (!replaceMemory(arenas[0], grown))
    return {};
  outputs.clear(); // they lay in the old memory
  for (auto &entryPlans : plans)
    for (auto &other : entryPlans)
      if (other->segments() == 1) // others are bound in every run
        TRANSEPT_TRY(other->bind(*model, planMemory()));
  return {};
}

Status Session::State::enter(Plan &plan, size_t segment) {
  if (arenas.size() < plan.segments())
    arenas.resize(plan.segments());
  TRANSEPT_TRY(plan.enter(*model, segment, planMemory()));
  TRANSEPT_TRY(executor->reserveScratch(plan.scratchBytes()));
  if (plan.arena() != 0) {
    Arena grown;
    TRANSEPT_TRY(growMemory(model->device(), arenas[plan.arena()],
                            {plan.arenaBytes(Access::Kernels), plan.arenaBytes(Access::Shared)}, grown));
    replaceMemory(arenas[plan.arena()], grown);
  }
  return plan.bind(*model, planMemory());
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
    TRANSEPT_TRY(plan->bind(*model, planMemory()));
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
