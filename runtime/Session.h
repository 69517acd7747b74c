// Runs the entries of a model.
#ifndef TRANSEPT_RUNTIME_SESSION_H
#define TRANSEPT_RUNTIME_SESSION_H

#include "runtime/DType.h"
#include "runtime/Span.h"
#include "runtime/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

class Model;
class ThreadTeam;

/// A symbol of the manifest and its value for a session or a call.
struct SymbolValue {
  std::string name;
  int64_t value = 0;
};
using SymbolValues = std::vector<SymbolValue>;

/// A dense row-major tensor that somebody else owns.
template <typename Pointer> struct BasicTensorView {
  std::string_view name;
  DType dtype = program::DTYPE_NONE;
  Span<const int64_t> dims;
  Pointer data = nullptr;
  int64_t bytes = 0; // product of dims times the element size

  /// The elements, or null where there is no tensor or its type is not T.
  template <typename T> T *as() const {
    return dtype == dtypeOf<std::remove_const_t<T>>() ? static_cast<T *>(data) : nullptr;
  }
};
using TensorView = BasicTensorView<void *>;
using ConstTensorView = BasicTensorView<const void *>;

struct SessionOptions {
  int threads = 0; // 0: as many as the affinity mask allows; more than that are not started
  /// Values of the manifest's generation symbols (all of them, or none where the model has none).
  SymbolValues symbols;
};

/// What one run of an entry gets. Everything is only read during the call.
struct RunArguments {
  std::vector<ConstTensorView> inputs;
  /// Symbols of the entry that no input's shape determines. One that the session fixes may be given, too: the call then
  /// works on states of that shape inside the session's, which must be large enough.
  SymbolValues symbols;
};

/// Bytes that move inside one state; the two places do not overlap.
struct StateCopy {
  size_t state = 0; // index in Manifest.states
  uint64_t from = 0, to = 0, bytes = 0;
};

/// Bytes. Planned figures are exact: nothing else is allocated for a run.
struct MemoryUse {
  uint64_t weights = 0;  // shared by all sessions of the model
  uint64_t states = 0;   // caches and step state
  uint64_t arena = 0;    // what the largest entry set up so far needs, inputs and outputs included
  uint64_t reserved = 0; // allocated for states and arena
  uint64_t scratch = 0;  // all threads together
};

/// Where the states of one model live, and prepared entries. One thread at a time: a second one gets Code::Busy.
/// Keeps its model alive. Generation symbols are fixed by creation and resize(); states are allocated once for them.
class Session {
public:
  /// Also sets up every entry that needs no more than the generation symbols, so that running it allocates nothing.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Model> model,
                                                 const SessionOptions &options = {});
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const Model &model() const;

  /// Changes the generation symbols. Contents of states are undefined afterwards and all pointers handed out before
  /// are invalid; memory is reused where it is large enough. On failure the session stays as it was.
  Status resize(const SymbolValues &symbols);

  /// Value of a generation symbol, -1 where the model has none of that name.
  int64_t symbol(std::string_view name) const;

  /// The buffer of a state, valid until resize(); the name is empty where the model has no state of that name, data is
  /// null where the state is a cache in memory that the host does not see. Zero after creation and resize().
  TensorView state(std::string_view name) const;

  /// Copies the first `bytes` of a state, wherever it is; refuses more than it has.
  Status readState(std::string_view name, void *to, uint64_t bytes);

  /// Copies inside states, in any order. Refuses what lies outside of them.
  Status copyInStates(Span<const StateCopy> copies);

  /// Runs an entry. Refuses missing, unknown and mismatching inputs by name before anything is computed.
  Status run(std::string_view entry, const RunArguments &arguments);
  Status run(std::string_view entry);

  /// Whether runInTurn() may be called: the device can.
  bool runsInTurn() const;
  /// Runs two entries without inputs, `count` times one after the other (the second one's last run is left out). After
  /// each run of the first one, the first `bytes` of each state in `kept` are appended to `log`. Neither may need
  /// more than the generation symbols nor decide anything while it runs. Fails like run(); then what is in states and
  /// `log` is undefined.
  struct KeptState {
    std::string_view name;
    uint64_t bytes = 0;
  };
  Status runInTurn(std::string_view first, std::string_view second, int32_t count, Span<const KeptState> kept,
                   uint8_t *log);

  /// Outputs of the last run that succeeded, in the model's order. Valid until the next run or resize().
  Span<const TensorView> outputs() const;
  /// One of them; data is null where there is none of that name.
  TensorView output(std::string_view name) const;

  MemoryUse memory() const;
  int threads() const;
  /// The session's threads, for host work between runs.
  ThreadTeam &team();

  /// From any thread: the next run, and a run in progress at its next dispatch with a barrier (on the processor) or its
  /// next segment, return Code::Cancelled until clearCancel().
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void clearCancel() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

private:
  Session();
  friend class SessionProbe; // tests read prepared lists
  struct State;
  std::unique_ptr<State> state_;
  std::atomic<bool> cancelled_{false};
};

} // namespace transept

#endif
