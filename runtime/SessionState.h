// What a session owns.
#ifndef TRANSEPT_RUNTIME_SESSIONSTATE_H
#define TRANSEPT_RUNTIME_SESSIONSTATE_H

#include "runtime/Device.h"
#include "runtime/Plan.h"
#include "runtime/Session.h"
#include "runtime/ThreadTeam.h"

#include <array>
#include <memory>
#include <vector>

namespace transept {

/// Places of the manifest's states in two ranges of memory, for given generation symbols: only kernels use caches, the
/// search writes and reads the others.
struct StateLayout {
  std::vector<std::vector<int64_t>> dims;
  std::vector<Access> access;
  std::vector<StatePlace> places; // memory is set once it is there
  std::array<uint64_t, accessKinds> totals{};

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

  PlanMemory planMemory() const { return {arenas.data(), layout.places.data(), error->address()}; }
  transept_error_word &errorWord() { return *reinterpret_cast<transept_error_word *>(error->host()); }

  std::shared_ptr<const Model> model;
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<Executor> executor; // before the plans, which keep replays of it
  std::atomic<bool> busy{false};

  std::vector<int64_t> symbols; // one per generation symbol
  StateLayout layout;
  Arena states; // by Access

  std::vector<std::vector<std::unique_ptr<Plan>>> plans; // per entry, most recently used first
  std::vector<int64_t> callSymbols;                      // of the call being set up; kept to save allocations
  std::vector<Arena> arenas = std::vector<Arena>(1);     // those after the first are for the run in progress
  std::unique_ptr<DeviceMemory> error;

  std::vector<TensorView> outputs;
  std::vector<KeptRange> kept; // of a run in turn; memory is kept between runs

private:
  using Plans = std::vector<std::vector<std::unique_ptr<Plan>>>;
  Status reserve(const Plan &plan);
};

} // namespace transept

#endif
