// An entry for given values of its symbols: every size and item count of the current segment known, addresses bound to
// a session's memory.
#ifndef TRANSEPT_RUNTIME_PLAN_H
#define TRANSEPT_RUNTIME_PLAN_H

#include "runtime/Device.h"
#include "runtime/Model.h"
#include "runtime/Session.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace transept {

/// A dispatch ready to be called. The tables inside `call` belong to the plan; addresses are those of the device.
struct PlannedDispatch {
  transept_kernel function = nullptr; // null where kernels are none
  transept_dispatch call{};
  int64_t items = 0;
  uint32_t kernel = 0;             // index into Manifest.kernels
  uint32_t buffers = 0, sizes = 0; // of `call`
  bool barrier = false;
};

/// Bytes that a segment leaves for the host, in memory that the host may not see.
struct Fetch {
  DevicePlace from;
  uint64_t bytes = 0;
  uint64_t to = 0; // offset in Plan::fetched()
};

/// An input or output of the entry.
struct PlannedTensor {
  const program::Buffer *buffer = nullptr;
  std::vector<int64_t> dims;
  int64_t bytes = 0;
  void *data = nullptr; // null until its segment was entered
};

/// Where one state lives. Without memory only its size is known yet.
struct StatePlace {
  DevicePlace place;
  uint64_t bytes = 0;
};

/// By Access: buffers between kernels; inputs and outputs.
using Arena = std::array<std::unique_ptr<DeviceMemory>, accessKinds>;

/// Where the buffers of a plan live.
struct PlanMemory {
  const Arena *arenas = nullptr;
  const StatePlace *states = nullptr; // by index of Manifest.states
  uint64_t error = 0;                 // address of the error word
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

  /// Sets the addresses of the current segment. Its arena must hold arenaBytes(). Fails where it reads back more than
  /// a buffer holds.
  Status bind(const Model &model, const PlanMemory &memory);

  /// After the dispatches of the current segment: takes over what it reads back; returns the segment that follows,
  /// segments() where there is none.
  Result<size_t> finish(const Model &model);

  int entry() const { return entry_; }
  const std::vector<int64_t> &symbols() const { return symbols_; }
  size_t segment() const { return segment_; }
  size_t segments() const { return firstDispatch_.size(); }
  /// Which arena the current segment sets up.
  size_t arena() const { return arena_; }
  /// Of the current segment.
  uint64_t arenaBytes(Access access) const { return arenaBytes_[static_cast<size_t>(access)]; }
  uint64_t scratchBytes() const { return scratchBytes_; } // per thread
  const std::vector<PlannedDispatch> &dispatches() const { return dispatches_; }
  const std::vector<PlannedTensor> &inputs() const { return inputs_; }
  const std::vector<PlannedTensor> &outputs() const { return outputs_; }

  /// What the executor brings to the host after the dispatches of the current segment, and where to.
  const std::vector<Fetch> &fetches() const { return fetches_; }
  uint8_t *fetched() { return fetched_.data(); }

  /// What the executor keeps with the current segment; null at first.
  std::unique_ptr<Replay> &replay() { return replays_[segment_]; }

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
  DevicePlace locate(const Model &model, const PlanMemory &memory, size_t buffer) const;
  Status bindFetches(const Model &model, const PlanMemory &memory);

  int entry_ = 0;
  std::vector<int64_t> symbols_;   // as given
  std::vector<int64_t> values_;    // with what the run has set
  std::vector<int> firstDispatch_; // by segment
  size_t segment_ = 0, arena_ = 0;
  std::array<uint64_t, accessKinds> arenaBytes_{};
  uint64_t scratchBytes_ = 0;
  std::vector<Place> places_;           // per buffer of the entry
  std::vector<uint32_t> bufferIndices_; // of the segment's dispatches, one after another
  std::vector<void *> pointers_;        // the same, resolved
  std::vector<int64_t> sizes_;
  std::vector<PlannedDispatch> dispatches_; // of the segment
  std::vector<PlannedTensor> inputs_, outputs_;
  std::vector<Fetch> fetches_;
  std::vector<uint8_t> fetched_;
  std::vector<std::unique_ptr<Replay>> replays_; // by segment
};

/// "batch=2, source=7"; symbols whose value is negative are not known yet and left out.
std::string describeSymbols(const program::Entry &entry, Span<const int64_t> values);

/// Bytes of a dense tensor; fails on a negative dimension and on overflow. `dims` receives the evaluated dimensions.
Result<int64_t> denseBytes(DType dtype, const google::protobuf::RepeatedPtrField<program::Expr> &exprs,
                           Span<const int64_t> symbols, std::vector<int64_t> &dims);

} // namespace transept

#endif
