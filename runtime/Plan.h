// An entry for given values of its symbols: every size and item count of the current segment known, addresses bound to
// a session's memory.
#ifndef TRANSEPT_RUNTIME_PLAN_H
#define TRANSEPT_RUNTIME_PLAN_H

#include "runtime/Memory.h"
#include "runtime/Model.h"
#include "runtime/Session.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace transept {

/// A dispatch ready to be called. The pointers inside `call` belong to the plan.
struct PlannedDispatch {
  transept_kernel kernel = nullptr;
  transept_dispatch call{};
  int64_t items = 0;
  bool barrier = false;
};

/// An input or output of the entry.
struct PlannedTensor {
  const program::Buffer *buffer = nullptr;
  std::vector<int64_t> dims;
  int64_t bytes = 0;
  uint64_t offset = 0;  // in its arena
  void *data = nullptr; // null until its segment was entered
};

/// Where the buffers of a plan live.
struct PlanMemory {
  uint8_t *arena = nullptr;           // arena 0
  const Block *laterArenas = nullptr; // arena i at i - 1
  uint8_t *states = nullptr;
  const uint64_t *stateOffsets = nullptr; // by index of Manifest.states
  const uint64_t *stateBytes = nullptr;
  transept_error_word *error = nullptr;
};

class Plan {
public:
  /// `symbols` holds a value for each symbol of the entry, -1 for those that are known at run time only. Enters segment
  /// 0.
  static Result<std::unique_ptr<Plan>> create(const Model &model, int entry, Span<const int64_t> symbols,
                                              const PlanMemory &memory);

  /// Makes assignments, checks symbol ranges and guards, evaluates every size of the segment and checks that its
  /// buffers lie inside their memory. Addresses are null until bind(). Entering segment 0 forgets what a run has set.
  Status enter(const Model &model, size_t segment, const PlanMemory &memory);

  /// Sets the addresses of the current segment. Its arena must hold arenaBytes().
  void bind(const Model &model, const PlanMemory &memory);

  /// After the dispatches of the current segment: takes over what it reads back; returns the segment that follows,
  /// segments() where there is none.
  Result<size_t> finish(const Model &model, const PlanMemory &memory);

  int entry() const { return entry_; }
  const std::vector<int64_t> &symbols() const { return symbols_; }
  size_t segment() const { return segment_; }
  size_t segments() const { return firstDispatch_.size(); }
  /// Which arena the current segment sets up.
  size_t arena() const { return arena_; }
  /// Of the current segment; inputs and outputs included.
  uint64_t arenaBytes() const { return arenaBytes_; }
  uint64_t scratchBytes() const { return scratchBytes_; } // per thread
  const std::vector<PlannedDispatch> &dispatches() const { return dispatches_; }
  const std::vector<PlannedTensor> &inputs() const { return inputs_; }
  const std::vector<PlannedTensor> &outputs() const { return outputs_; }

private:
  friend class Planner;
  struct Place { // of a buffer
    program::Storage storage = program::STORAGE_NONE;
    bool known = false;  // set up by a segment that was entered
    uint64_t offset = 0; // in arena or weights
    uint64_t bytes = 0;
    size_t state = 0; // index of a state
    size_t arena = 0;
  };
  void *address(const Model &model, const PlanMemory &memory, size_t buffer) const;

  int entry_ = 0;
  std::vector<int64_t> symbols_;   // as given
  std::vector<int64_t> values_;    // with what the run has set
  std::vector<int> firstDispatch_; // by segment
  size_t segment_ = 0, arena_ = 0;
  uint64_t arenaBytes_ = 0, scratchBytes_ = 0;
  std::vector<Place> places_;           // per buffer of the entry
  std::vector<uint32_t> bufferIndices_; // of the segment's dispatches, one after another
  std::vector<void *> pointers_;        // the same, resolved
  std::vector<int64_t> sizes_;
  std::vector<PlannedDispatch> dispatches_; // of the segment
  std::vector<PlannedTensor> inputs_, outputs_;
};

/// "batch=2, source=7"; symbols whose value is negative are not known yet and left out.
std::string describeSymbols(const program::Entry &entry, Span<const int64_t> values);

/// Bytes of a dense tensor; fails on a negative dimension and on overflow. `dims` receives the evaluated dimensions.
Result<int64_t> denseBytes(DType dtype, const google::protobuf::RepeatedPtrField<program::Expr> &exprs,
                           Span<const int64_t> symbols, std::vector<int64_t> &dims);

} // namespace transept

#endif
