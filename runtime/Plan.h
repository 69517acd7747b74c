// An entry for given values of its symbols: every size and item count known, addresses bound to a session's memory.
#ifndef TRANSEPT_RUNTIME_PLAN_H
#define TRANSEPT_RUNTIME_PLAN_H

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
  uint64_t offset = 0; // in the session's arena
  void *data = nullptr;
};

/// Where the buffers of a plan live.
struct PlanMemory {
  uint8_t *arena = nullptr;
  uint8_t *states = nullptr;
  const uint64_t *stateOffsets = nullptr; // by index of Manifest.states
  const uint64_t *stateBytes = nullptr;
  transept_error_word *error = nullptr;
};

class Plan {
public:
  /// Checks symbol ranges and guards, evaluates every size and checks that buffers lie inside their memory.
  /// `symbols` holds a value for each symbol of the entry. Addresses are null until bind().
  static Result<std::unique_ptr<Plan>> create(const Model &model, int entry, Span<const int64_t> symbols,
                                              const PlanMemory &memory);

  /// Sets all addresses. The arena must hold arenaBytes().
  void bind(const Model &model, const PlanMemory &memory);

  int entry() const { return entry_; }
  const std::vector<int64_t> &symbols() const { return symbols_; }
  /// Arena, inputs and outputs together.
  uint64_t arenaBytes() const { return arenaBytes_; }
  uint64_t scratchBytes() const { return scratchBytes_; } // per thread
  const std::vector<PlannedDispatch> &dispatches() const { return dispatches_; }
  const std::vector<PlannedTensor> &inputs() const { return inputs_; }
  const std::vector<PlannedTensor> &outputs() const { return outputs_; }

private:
  friend class Planner;
  struct Place { // of a buffer
    program::Storage storage = program::STORAGE_NONE;
    uint64_t offset = 0; // in arena or weights
    size_t state = 0;    // index of a state
  };

  int entry_ = 0;
  std::vector<int64_t> symbols_;
  uint64_t arenaBytes_ = 0, scratchBytes_ = 0;
  std::vector<Place> places_;           // per buffer of the entry
  std::vector<uint32_t> bufferIndices_; // of all dispatches, one after another
  std::vector<void *> pointers_;        // the same, resolved
  std::vector<int64_t> sizes_;
  std::vector<PlannedDispatch> dispatches_;
  std::vector<PlannedTensor> inputs_, outputs_;
};

/// "batch=2, source=7"
std::string describeSymbols(const program::Entry &entry, Span<const int64_t> values);

/// Bytes of a dense tensor; fails on a negative dimension and on overflow. `dims` receives the evaluated dimensions.
Result<int64_t> denseBytes(DType dtype, const google::protobuf::RepeatedPtrField<program::Expr> &exprs,
                           Span<const int64_t> symbols, std::vector<int64_t> &dims);

} // namespace transept

#endif
