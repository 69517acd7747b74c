#include "runtime/CpuDevice.h"

#include "runtime/ArtifactFormat.h"
#include "runtime/Plan.h"
#include "runtime/ThreadTeam.h"
#include "runtime/Trace.h"

#include <cstring>
#include <limits>

namespace transept {

namespace {

class ProcessMemory final : public DeviceMemory {
public:
  explicit ProcessMemory(Block block)
      : DeviceMemory(reinterpret_cast<uintptr_t>(block.data()), block.data(), block.size()), block_(std::move(block)) {}

private:
  Block block_;
};

/// A walk of all threads over one list of dispatches.
struct Walk {
  const std::vector<PlannedDispatch> &dispatches;
  ThreadTeam &team;
  uint8_t *scratch;
  uint64_t scratchStride;
  const std::atomic<bool> &cancelled;
  int entry;
  std::vector<Trace::Span> *spans; // per thread; null: nobody asks
  /// Number of the barrier at which all threads stop. A thread that is still leaving one barrier is not confused by
  /// member 0 asking for a stop at the next.
  std::atomic<int64_t> stopAt{std::numeric_limits<int64_t>::max()};

  static void member(void *context, int thread, int threads) {
    Walk &walk = *static_cast<Walk *>(context);
    void *scratch = walk.scratch + walk.scratchStride * static_cast<uint64_t>(thread);
    int64_t barriers = 0;
    for (const PlannedDispatch &dispatch : walk.dispatches) {
      if (dispatch.barrier) {
        if (thread == 0 && walk.cancelled.load(std::memory_order_relaxed))
          walk.stopAt.store(barriers, std::memory_order_relaxed);
        walk.team.barrier();
        if (walk.stopAt.load(std::memory_order_relaxed) <= barriers++)
          return;
      }
      Share share = shareOf(dispatch.items, thread, threads);
      if (share.begin >= share.end)
        continue;
      int64_t begin = walk.spans ? Trace::now() : 0;
      dispatch.function(&dispatch.call, share.begin, share.end, scratch);
      if (walk.spans)
        walk.spans[thread].push_back({walk.entry, dispatch.kernel, share.end - share.begin, begin, Trace::now()});
    }
  }

  bool stopped() const { return stopAt.load() != std::numeric_limits<int64_t>::max(); }
};

class CpuExecutor final : public Executor {
public:
  CpuExecutor(ThreadTeam &team, Trace *trace) : team_(team), trace_(trace) {
    if (!trace)
      return;
    spans_.resize(static_cast<size_t>(team.size()));
    for (int i = 0; i < team.size(); ++i)
      tracks_.push_back(trace->addTrack("thread " + std::to_string(i)));
  }

  Status reserveScratch(uint64_t bytes) override {
    uint64_t stride = alignUp(bytes, TRANSEPT_SCRATCH_ALIGNMENT);
    if (scratch_.data() && stride <= stride_)
      return {};
    TRANSEPT_ASSIGN(scratch_, Block::allocate(stride * static_cast<uint64_t>(team_.size())));
    stride_ = stride;
    return {};
  }
  uint64_t scratchBytes() const override { return scratch_.size(); }

  Status run(Plan &plan, const std::atomic<bool> &cancelled) override {
    Walk walk{
        plan.dispatches(), team_, scratch_.data(), stride_, cancelled, plan.entry(), trace_ ? spans_.data() : nullptr};
    TRANSEPT_TRY(team_.run(Walk::member, &walk));
    for (size_t i = 0; i < spans_.size(); ++i) {
      trace_->add(tracks_[i], spans_[i]);
      spans_[i].clear();
    }
    if (walk.stopped())
      return {Code::Cancelled, "cancelled"};
    for (const Fetch &fetch : plan.fetches())
      std::memcpy(plan.fetched() + fetch.to, fetch.from.host(), fetch.bytes);
    return {};
  }

  Status read(const DevicePlace &from, void *to, uint64_t bytes) override {
    std::memcpy(to, from.host(), bytes);
    return {};
  }

  Status copy(DeviceMemory &memory, Span<const MemoryCopy> copies) override {
    for (const MemoryCopy &copy : copies)
      std::memcpy(memory.host() + copy.to, memory.host() + copy.from, copy.bytes);
    return {};
  }

private:
  ThreadTeam &team_;
  Trace *trace_;
  std::vector<std::vector<Trace::Span>> spans_; // of the run, per thread
  std::vector<size_t> tracks_;
  Block scratch_;
  uint64_t stride_ = 0; // bytes of scratch per thread
};

} // namespace

CpuDevice::CpuDevice(CodeObject code, std::string level, Block weights)
    : code_(std::move(code)), kernels_(code_.kernels()), level_(std::move(level)),
      weights_(new ProcessMemory(std::move(weights))) {}

CpuDevice::CpuDevice(const transept_kernel_table &kernels, Block weights)
    : kernels_(kernels), level_("injected"), weights_(new ProcessMemory(std::move(weights))) {}

Result<std::unique_ptr<DeviceMemory>> CpuDevice::allocate(uint64_t bytes, Access) const {
  TRANSEPT_ASSIGN(Block block, Block::allocate(bytes));
  return std::unique_ptr<DeviceMemory>(new ProcessMemory(std::move(block)));
}

Status CpuDevice::clear(DeviceMemory &memory, uint64_t bytes) const {
  std::memset(memory.host(), 0, bytes);
  return {};
}

Result<std::unique_ptr<Executor>> CpuDevice::createExecutor(ThreadTeam &team, Trace *trace) const {
  return std::unique_ptr<Executor>(new CpuExecutor(team, trace));
}

} // namespace transept
