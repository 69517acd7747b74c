#include "runtime/vulkan/VulkanExecutor.h"

#include "runtime/ArtifactFormat.h"
#include "runtime/Plan.h"
#include "runtime/vulkan/Clock.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace transept::vulkan {

namespace {

/// Parts that one dispatch may be split into where the device limits the number of workgroups.
constexpr int64_t partLimit = 1 << 16;

/// A dispatch, or a part of one.
struct Part {
  uint32_t kernel = 0;
  int64_t items = 0;
  VkPipeline pipeline = VK_NULL_HANDLE;
  transept_shader_call call{};
  uint32_t groups = 0;
  bool barrier = false; // before it
};

const VulkanMemory &vulkanMemory(const DevicePlace &place) { return static_cast<const VulkanMemory &>(*place.memory); }

/// Everything of a plan's segment that a recording contains: equal words, equal commands.
void describe(const Plan &plan, std::vector<uint64_t> &words) {
  for (const PlannedDispatch &dispatch : plan.dispatches()) {
    words.insert(words.end(), {dispatch.kernel, dispatch.barrier, static_cast<uint64_t>(dispatch.items),
                               reinterpret_cast<uint64_t>(dispatch.call.error)});
    for (uint32_t i = 0; i < dispatch.buffers; ++i)
      words.push_back(reinterpret_cast<uint64_t>(dispatch.call.buffers[i]));
    for (uint32_t i = 0; i < dispatch.sizes; ++i)
      words.push_back(static_cast<uint64_t>(dispatch.call.sizes[i]));
  }
}

void describeFetches(const Plan &plan, std::vector<uint64_t> &words) {
  for (const Fetch &fetch : plan.fetches())
    words.insert(words.end(), {vulkanMemory(fetch.from).serial(), fetch.from.offset, fetch.bytes, fetch.to});
}

void memoryBarrier(const DeviceApi &api, VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written,
                   VkPipelineStageFlags to, VkAccessFlags used) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = written;
  barrier.dstAccessMask = used;
  api.CmdPipelineBarrier(commands, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

} // namespace

class SegmentRecording final : public Replay {
public:
  explicit SegmentRecording(CommandPool &pool) : pool_(pool) {}
  ~SegmentRecording() override {
    if (commands)
      pool_.release(commands);
  }

  std::vector<uint64_t> description, current; // current: kept to save allocations
  VkCommandBuffer commands = VK_NULL_HANDLE;  // null where there is nothing to run
  std::unique_ptr<VulkanMemory> tables;       // addresses of buffers, and sizes
  std::unique_ptr<VulkanMemory> fetched;
  std::unique_ptr<Clock> clock; // null where nobody asks

private:
  CommandPool &pool_;
};

/// Several rounds of two plans.
class TurnRecording {
public:
  explicit TurnRecording(CommandPool &pool) : pool_(pool) {}
  ~TurnRecording() {
    if (commands)
      pool_.release(commands);
  }

  std::vector<uint64_t> description;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  std::unique_ptr<VulkanMemory> tables[2];
  std::unique_ptr<VulkanMemory> log;

private:
  CommandPool &pool_;
};

namespace {

constexpr VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags transfer = VK_PIPELINE_STAGE_TRANSFER_BIT, host = VK_PIPELINE_STAGE_HOST_BIT;
constexpr VkAccessFlags shaderAccess = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

/// Memory with mirrors that a plan's dispatches and fetches use.
void collectMirrored(const LogicalDevice &device, const Plan &plan, std::set<const VulkanMemory *> &mirrored) {
  auto add = [&](const void *address) {
    if (const VulkanMemory *memory = device.mirroredAt(reinterpret_cast<uint64_t>(address)))
      mirrored.insert(memory);
  };
  if (device.mirrorChanges() == 0)
    return;
  for (const PlannedDispatch &dispatch : plan.dispatches()) {
    add(dispatch.call.error);
    for (uint32_t i = 0; i < dispatch.buffers; ++i)
      add(dispatch.call.buffers[i]);
  }
  for (const Fetch &fetch : plan.fetches())
    if (vulkanMemory(fetch.from).mirror())
      mirrored.insert(&vulkanMemory(fetch.from));
}

void copyMirrored(const DeviceApi &api, VkCommandBuffer commands, const VulkanMemory &memory, bool toHost) {
  const VulkanMemory &mirror = *memory.mirror();
  const uint64_t bytes = alignUp(std::max<uint64_t>(memory.size(), 1), TRANSEPT_BUFFER_ALIGNMENT);
  VkBufferCopy copy{toHost ? memory.base() : mirror.base(), toHost ? mirror.base() : memory.base(), bytes};
  api.CmdCopyBuffer(commands, toHost ? memory.buffer() : mirror.buffer(), toHost ? mirror.buffer() : memory.buffer(), 1,
                    &copy);
}

/// What an earlier submission or the host wrote is visible, and what the host works in is copied.
void beginRun(const DeviceApi &api, VkCommandBuffer commands, const std::set<const VulkanMemory *> &mirrored) {
  memoryBarrier(api, commands, compute | transfer | host,
                VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT,
                compute | transfer, shaderAccess | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  for (const VulkanMemory *memory : mirrored)
    copyMirrored(api, commands, *memory, /*toHost=*/false);
  if (!mirrored.empty())
    memoryBarrier(api, commands, transfer, VK_ACCESS_TRANSFER_WRITE_BIT, compute | transfer,
                  shaderAccess | VK_ACCESS_TRANSFER_READ_BIT);
}

/// What was written is copied back, and visible to the host.
void endRun(const DeviceApi &api, VkCommandBuffer commands, const std::set<const VulkanMemory *> &mirrored) {
  if (!mirrored.empty())
    memoryBarrier(api, commands, compute | transfer, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                  transfer, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  for (const VulkanMemory *memory : mirrored)
    copyMirrored(api, commands, *memory, /*toHost=*/true);
  memoryBarrier(api, commands, compute | transfer, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, host,
                VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
}

/// Writes the tables of a segment and the commands of its dispatches.
class Recorder {
public:
  Recorder(const LogicalDevice &device, const Pipelines &pipelines, const program::CodeObject &code, const Plan &plan)
      : device_(device), pipelines_(pipelines), code_(code), plan_(plan) {}

  Status prepare(std::unique_ptr<VulkanMemory> &tables) {
    TRANSEPT_TRY(writeTables(tables));
    return split(tables ? tables->address() : 0);
  }

  size_t parts() const { return parts_.size(); }

  /// `clock` may be null.
  void record(VkCommandBuffer commands, Clock *clock) const {
    const DeviceApi &api = device_.api();
    VkPipeline bound = VK_NULL_HANDLE;
    for (const Part &part : parts_) {
      if (part.barrier)
        memoryBarrier(api, commands, compute, VK_ACCESS_SHADER_WRITE_BIT, compute, shaderAccess);
      if (bound != part.pipeline)
        api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, bound = part.pipeline);
      api.CmdPushConstants(commands, pipelines_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof part.call, &part.call);
      if (clock)
        clock->before(commands, part.kernel, part.items);
      api.CmdDispatch(commands, part.groups, 1, 1);
      if (clock)
        clock->after(commands);
    }
  }

private:
  /// One after another: the addresses and sizes of each dispatch.
  Status writeTables(std::unique_ptr<VulkanMemory> &tables) const {
    std::vector<uint64_t> words;
    for (const PlannedDispatch &dispatch : plan_.dispatches()) {
      for (uint32_t i = 0; i < dispatch.buffers; ++i)
        words.push_back(reinterpret_cast<uint64_t>(dispatch.call.buffers[i]));
      for (uint32_t i = 0; i < dispatch.sizes; ++i)
        words.push_back(static_cast<uint64_t>(dispatch.call.sizes[i]));
    }
    if (plan_.dispatches().empty())
      return {};
    TRANSEPT_ASSIGN(tables, device_.allocate(words.size() * sizeof(uint64_t), MemoryUse::Tables));
    std::memcpy(tables->host(), words.data(), words.size() * sizeof(uint64_t));
    return {};
  }

  /// Dispatches of at most as many workgroups as the device takes.
  Status split(uint64_t table) {
    const int64_t mostGroups = std::max<int64_t>(device_.physical().info.maxGroups, 1);
    bool barrier = false; // a dispatch without items still separates its neighbours
    for (const PlannedDispatch &dispatch : plan_.dispatches()) {
      const program::Shader &shader = code_.shaders(static_cast<int>(dispatch.kernel));
      Part part;
      part.kernel = dispatch.kernel;
      part.call.buffers = table;
      part.call.sizes = table + dispatch.buffers * sizeof(uint64_t);
      part.call.error = reinterpret_cast<uint64_t>(dispatch.call.error);
      part.call.end = dispatch.items;
      table = part.call.sizes + dispatch.sizes * sizeof(uint64_t);
      barrier = barrier || dispatch.barrier;
      if (dispatch.items <= 0)
        continue;
      TRANSEPT_ASSIGN(part.pipeline, pipelines_.get(dispatch.kernel));
      const int64_t perGroup =
          shader.items_per_group() != 0 ? shader.items_per_group() : pipelines_.groupSize(dispatch.kernel);
      const int64_t groups = (dispatch.items - 1) / perGroup + 1;
      if ((groups - 1) / mostGroups >= partLimit)
        return {Code::LimitExceeded, "a kernel would need " + std::to_string(groups) + " workgroups, device '" +
                                         printable(device_.physical().info.name) + "' takes " +
                                         std::to_string(mostGroups) + " at once"};
      for (int64_t done = 0; done < groups; done += mostGroups) {
        part.call.begin = done * perGroup;
        part.groups = static_cast<uint32_t>(std::min(groups - done, mostGroups));
        part.items = std::min(dispatch.items - part.call.begin, part.groups * perGroup);
        part.barrier = std::exchange(barrier, false);
        parts_.push_back(part);
      }
    }
    return {};
  }

  const LogicalDevice &device_;
  const Pipelines &pipelines_;
  const program::CodeObject &code_;
  const Plan &plan_;
  std::vector<Part> parts_;
};

} // namespace

VulkanExecutor::VulkanExecutor(const LogicalDevice &device, const Pipelines &pipelines, const program::CodeObject &code,
                               size_t track, Trace *trace)
    : device_(device), pipelines_(pipelines), code_(code), track_(track), trace_(trace) {}

VulkanExecutor::~VulkanExecutor() = default;

Result<std::unique_ptr<Executor>> VulkanExecutor::create(const LogicalDevice &device, const Pipelines &pipelines,
                                                         const program::CodeObject &code, size_t track, Trace *trace) {
  if (trace && device.physical().timestampBits == 0)
    return Status(Code::DeviceError, "device '" + printable(device.physical().info.name) +
                                         "' has no clock for its queue: nothing can be traced");
  std::unique_ptr<VulkanExecutor> executor(new VulkanExecutor(device, pipelines, code, track, trace));
  TRANSEPT_ASSIGN(executor->commands_, CommandPool::create(device));
  return std::unique_ptr<Executor>(std::move(executor));
}

Result<std::unique_ptr<SegmentRecording>> VulkanExecutor::record(Plan &plan) {
  auto recording = std::make_unique<SegmentRecording>(*commands_);
  describe(plan, recording->description);
  describeFetches(plan, recording->description);
  recording->description.push_back(device_.mirrorChanges());
  Recorder recorder(device_, pipelines_, code_, plan);
  TRANSEPT_TRY(recorder.prepare(recording->tables));
  if (!plan.fetches().empty()) {
    const Fetch &last = plan.fetches().back();
    TRANSEPT_ASSIGN(recording->fetched, device_.allocate(last.to + last.bytes, MemoryUse::Host));
  }
  if (recorder.parts() == 0 && !recording->fetched)
    return recording;
  if (trace_ && recorder.parts() != 0) {
    TRANSEPT_ASSIGN(recording->clock, Clock::create(device_, recorder.parts()));
  }
  const DeviceApi &api = device_.api();
  std::set<const VulkanMemory *> mirrored;
  collectMirrored(device_, plan, mirrored);
  auto commands = [&](VkCommandBuffer commands) {
    beginRun(api, commands, mirrored);
    if (recording->clock)
      recording->clock->reset(commands);
    recorder.record(commands, recording->clock.get());
    if (recording->fetched) {
      memoryBarrier(api, commands, compute, VK_ACCESS_SHADER_WRITE_BIT, transfer, VK_ACCESS_TRANSFER_READ_BIT);
      for (const Fetch &fetch : plan.fetches()) {
        const VulkanMemory &from = vulkanMemory(fetch.from);
        VkBufferCopy copy{from.base() + fetch.from.offset, recording->fetched->base() + fetch.to, fetch.bytes};
        api.CmdCopyBuffer(commands, from.buffer(), recording->fetched->buffer(), 1, &copy);
      }
    }
    endRun(api, commands, mirrored);
  };
  TRANSEPT_ASSIGN(recording->commands, commands_->record(commands));
  TRANSEPT_TRY(device_.validation());
  return recording;
}

Status VulkanExecutor::runInTurn(Plan &first, Plan &second, int32_t count, Span<const KeptRange> kept, uint8_t *log,
                                 const std::atomic<bool> &cancelled) {
  if (cancelled.load(std::memory_order_relaxed))
    return {Code::Cancelled, "cancelled"};
  uint64_t keptBytes = 0;
  turnWords_.assign(1, device_.mirrorChanges());
  describe(first, turnWords_);
  describe(second, turnWords_);
  for (const KeptRange &range : kept) {
    turnWords_.insert(turnWords_.end(), {vulkanMemory(range.from).serial(), range.from.offset, range.bytes});
    keptBytes += range.bytes;
  }
  std::unique_ptr<TurnRecording> &recording = turns_[count];
  if (!recording || recording->description != turnWords_) {
    recording.reset();
    auto made = std::make_unique<TurnRecording>(*commands_);
    made->description = turnWords_;
    Recorder recorders[] = {{device_, pipelines_, code_, first}, {device_, pipelines_, code_, second}};
    for (size_t i = 0; i < 2; ++i)
      TRANSEPT_TRY(recorders[i].prepare(made->tables[i]));
    TRANSEPT_ASSIGN(made->log,
                    device_.allocate(std::max<uint64_t>(keptBytes * static_cast<uint64_t>(count), 1), MemoryUse::Host));
    const DeviceApi &api = device_.api();
    std::set<const VulkanMemory *> mirrored;
    collectMirrored(device_, first, mirrored);
    collectMirrored(device_, second, mirrored);
    auto commands = [&](VkCommandBuffer commands) {
      beginRun(api, commands, mirrored);
      uint64_t to = made->log->base();
      for (int32_t round = 0; round < count; ++round) {
        recorders[0].record(commands, nullptr);
        memoryBarrier(api, commands, compute, VK_ACCESS_SHADER_WRITE_BIT, transfer | compute,
                      VK_ACCESS_TRANSFER_READ_BIT | shaderAccess);
        for (const KeptRange &range : kept) {
          const VulkanMemory &from = vulkanMemory(range.from);
          VkBufferCopy copy{from.base() + range.from.offset, to, range.bytes};
          api.CmdCopyBuffer(commands, from.buffer(), made->log->buffer(), 1, &copy);
          to += range.bytes;
        }
        if (round + 1 == count)
          break;
        // What was copied may be written now.
        memoryBarrier(api, commands, transfer, VK_ACCESS_TRANSFER_READ_BIT, compute, shaderAccess);
        recorders[1].record(commands, nullptr);
        memoryBarrier(api, commands, compute, VK_ACCESS_SHADER_WRITE_BIT, compute, shaderAccess);
      }
      endRun(api, commands, mirrored);
    };
    TRANSEPT_ASSIGN(made->commands, commands_->record(commands));
    TRANSEPT_TRY(device_.validation());
    recording = std::move(made);
  }
  TRANSEPT_TRY(commands_->run(recording->commands));
  std::memcpy(log, recording->log->host(), keptBytes * static_cast<uint64_t>(count));
  return device_.validation();
}

Status VulkanExecutor::read(const DevicePlace &from, void *to, uint64_t bytes) {
  return device_.download(vulkanMemory(from), from.offset, to, bytes, staging_);
}

Status VulkanExecutor::copy(DeviceMemory &memory, Span<const MemoryCopy> copies) {
  return device_.copy(static_cast<VulkanMemory &>(memory), copies);
}

Status VulkanExecutor::readClock(const SegmentRecording &recording, int entry, int64_t submitted) {
  std::vector<Trace::Span> spans;
  TRANSEPT_TRY(recording.clock->read(entry, submitted, spans));
  trace_->add(track_, spans);
  return {};
}

Status VulkanExecutor::run(Plan &plan, const std::atomic<bool> &cancelled) {
  if (cancelled.load(std::memory_order_relaxed))
    return {Code::Cancelled, "cancelled"};
  auto *recording = static_cast<SegmentRecording *>(plan.replay().get());
  if (recording) {
    recording->current.clear();
    describe(plan, recording->current);
    describeFetches(plan, recording->current);
    recording->current.push_back(device_.mirrorChanges());
  }
  if (!recording || recording->current != recording->description) {
    plan.replay().reset();
    TRANSEPT_ASSIGN(std::unique_ptr<SegmentRecording> made, record(plan));
    recording = made.get();
    plan.replay() = std::move(made);
  }
  if (!recording->commands)
    return {};
  const int64_t submitted = trace_ ? Trace::now() : 0;
  TRANSEPT_TRY(commands_->run(recording->commands));
  if (recording->clock)
    TRANSEPT_TRY(readClock(*recording, plan.entry(), submitted));
  for (const Fetch &fetch : plan.fetches())
    std::memcpy(plan.fetched() + fetch.to, recording->fetched->host() + fetch.to, fetch.bytes);
  return device_.validation();
}

} // namespace transept::vulkan
