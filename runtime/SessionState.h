// What a session owns.
#ifndef TRANSEPT_RUNTIME_SESSIONSTATE_H
#define TRANSEPT_RUNTIME_SESSIONSTATE_H

#include "runtime/Memory.h"
#include "runtime/Plan.h"
#include "runtime/Session.h"
#include "runtime/ThreadTeam.h"

#include <array>
#include <memory>
#include <vector>

namespace transept {

/// Places of the manifest's states in one block, for given generation symbols.
struct StateLayout {
  std::vector<std::vector<int64_t>> dims;
  std::vector<uint64_t> offsets, bytes;
  uint64_t total = 0;

  static Result<StateLayout> create(const program::Manifest &manifest, Span<const int64_t> symbols);
};

struct Session::State {
  /// Plans an entry keeps; the least recently used one gives way.
  static constexpr size_t plansPerEntry = 8;

  /// Fixes the generation symbols, allocates states and sets up the entries that need nothing else.
  Status setSymbols(const SymbolValues &given);

  /// The plan for a call, made or found. Grows arena and scratch where needed.
  Result<Plan *> prepare(int entry, const RunArguments &arguments);

  /// Sets up a later segment of a plan in progress. Grows its arena and scratch where needed.
  Status enter(Plan &plan, size_t segment);

  PlanMemory planMemory() {
    return {arena.data(), laterArenas.data(), states.data(), layout.offsets.data(), layout.bytes.data(), &error};
  }

  std::shared_ptr<const Model> model;
  std::unique_ptr<ThreadTeam> team;
  std::atomic<bool> busy{false};

  std::vector<int64_t> symbols; // one per generation symbol
  StateLayout layout;
  Block states;

  std::vector<std::vector<std::unique_ptr<Plan>>> plans; // per entry, most recently used first
  std::vector<int64_t> callSymbols;                      // of the call being set up; kept to save allocations
  Block arena;
  std::vector<Block> laterArenas; // those after the first, for the run in progress
  Block scratch;
  uint64_t scratchStride = 0; // bytes per thread

  std::vector<TensorView> outputs;
  alignas(64) transept_error_word error{};

private:
  using Plans = std::vector<std::vector<std::unique_ptr<Plan>>>;
  Status reserve(const Plan &plan);
  Status reserveScratch(const Plan &plan);
};

} // namespace transept

#endif
