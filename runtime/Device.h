// Where kernels run: memory that they reach, the code and weights of one model, and the walk over a prepared segment.
#ifndef TRANSEPT_RUNTIME_DEVICE_H
#define TRANSEPT_RUNTIME_DEVICE_H

#include "runtime/Span.h"
#include "runtime/Status.h"
#include "runtime/program.pb.h"
#include "transept/abi.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace transept {

class Plan;
class ThreadTeam;
class Trace;

/// An owned range of memory that kernels of a device reach: aligned to TRANSEPT_BUFFER_ALIGNMENT, with
/// TRANSEPT_BUFFER_SLACK readable bytes behind it. Must not outlive its device.
class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// As kernels see it.
  uint64_t address() const { return address_; }
  /// As the host sees it; null where it does not.
  uint8_t *host() const { return host_; }
  uint64_t size() const { return size_; }

protected:
  DeviceMemory(uint64_t address, uint8_t *host, uint64_t size) : address_(address), host_(host), size_(size) {}

private:
  uint64_t address_;
  uint8_t *host_;
  uint64_t size_;
};

/// A place in memory of a device.
struct DevicePlace {
  const DeviceMemory *memory = nullptr;
  uint64_t offset = 0;

  uint64_t address() const { return memory->address() + offset; }
  uint8_t *host() const { return memory->host() ? memory->host() + offset : nullptr; }
};

/// Bytes that move inside one range of memory; the two places do not overlap.
struct MemoryCopy {
  uint64_t from = 0, to = 0, bytes = 0;
};

/// Who uses memory. The host reads and writes shared memory between runs.
enum class Access { Kernels, Shared };
constexpr size_t accessKinds = 2;

/// What an executor keeps with a segment of a plan.
class Replay {
public:
  virtual ~Replay() = default;
};

/// Bytes that are copied to the host in the middle of a run.
struct KeptRange {
  DevicePlace from;
  uint64_t bytes = 0;
};

/// Runs plans of one session. One thread at a time.
class Executor {
public:
  virtual ~Executor() = default;

  /// Allows plans that need `bytes` of scratch per thread. Fails with Code::OutOfMemory.
  virtual Status reserveScratch(uint64_t bytes) = 0;
  /// All threads together.
  virtual uint64_t scratchBytes() const = 0;

  /// Runs the dispatches of the plan's current segment, which must be bound, and fills plan.fetched(). What the host
  /// wrote to shared memory before is seen by them, what they wrote there is seen by the host afterwards. Returns
  /// Code::Cancelled where `cancelled` stopped it.
  virtual Status run(Plan &plan, const std::atomic<bool> &cancelled) = 0;

  /// Whether runInTurn() does what it says.
  virtual bool runsInTurn() const { return false; }
  /// Runs both plans, of one segment each and bound, `count` times one after the other without waiting between. After
  /// each run of the first one, `kept` is appended to `log`. The second one's last run is left out. Memory that both
  /// bring to the host is not fetched.
  virtual Status runInTurn(Plan &first, Plan &second, int32_t count, Span<const KeptRange> kept, uint8_t *log,
                           const std::atomic<bool> &cancelled) {
    (void)first, (void)second, (void)count, (void)kept, (void)log, (void)cancelled;
    return {Code::Internal, "this device does not run plans in turn"};
  }

  /// Copies memory of the device to the host.
  virtual Status read(const DevicePlace &from, void *to, uint64_t bytes) = 0;

  /// Copies inside `memory`, in any order, between runs.
  virtual Status copy(DeviceMemory &memory, Span<const MemoryCopy> copies) = 0;
};

/// The code and weights of a model on one device. Immutable and thread-safe once it is made; outlives what it makes.
class Device {
public:
  virtual ~Device() = default;

  /// "cpu", or "vulkan:0 (llvmpipe)".
  virtual std::string name() const = 0;
  /// Of the code object in use.
  virtual const std::string &level() const = 0;

  /// Zeroed memory. Fails with Code::OutOfMemory.
  virtual Result<std::unique_ptr<DeviceMemory>> allocate(uint64_t bytes, Access access) const = 0;
  /// Zeroes the first `bytes`.
  virtual Status clear(DeviceMemory &memory, uint64_t bytes) const = 0;

  /// Where byte `offset` of the packed weights is, the first byte of a constant.
  virtual DevicePlace constant(uint64_t offset) const = 0;

  /// A kernel that is a function; null where it is none.
  virtual transept_kernel function(uint32_t kernel) const = 0;
  /// The work items of a kernel over the sizes of its dispatch; null where the dispatch says it.
  virtual const program::Expr *items(uint32_t kernel) const = 0;

  /// `team` must outlive the executor, and `trace`, which may be null, gets a span for each dispatch.
  virtual Result<std::unique_ptr<Executor>> createExecutor(ThreadTeam &team, Trace *trace) const = 0;
};

} // namespace transept

#endif
