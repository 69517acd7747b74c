#include "runtime/vulkan/VulkanExecutor.h"

#include "runtime/Plan.h"
#include "runtime/vulkan/Clock.h"

#include <algorithm>
#include <cstring>

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
  words.clear();
  for (const PlannedDispatch &dispatch : plan.dispatches()) {
    words.insert(words.end(), {dispatch.kernel, dispatch.barrier, static_cast<uint64_t>(dispatch.items),
                               reinterpret_cast<uint64_t>(dispatch.call.error)});
    for (uint32_t i = 0; i < dispatch.buffers; ++i)
      words.push_back(reinterpret_cast<uint64_t>(dispatch.call.buffers[i]));
    for (uint32_t i = 0; i < dispatch.sizes; ++i)
      words.push_back(static_cast<uint64_t>(dispatch.call.sizes[i]));
  }
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

namespace {

/// Writes the tables of a segment and its commands.
class Recorder {
public:
  Recorder(const LogicalDevice &device, const Pipelines &pipelines, const program::CodeObject &code, Plan &plan,
           bool timed)
      : device_(device), pipelines_(pipelines), code_(code), plan_(plan), timed_(timed) {}

  Status run(CommandPool &pool, SegmentRecording &recording) {
    TRANSEPT_TRY(writeTables(recording));
    TRANSEPT_TRY(split(recording.tables ? recording.tables->address() : 0));
    if (!plan_.fetches().empty()) {
      const Fetch &last = plan_.fetches().back();
      TRANSEPT_ASSIGN(recording.fetched, device_.allocate(last.to + last.bytes, MemoryUse::Shared));
    }
    if (parts_.empty() && !recording.fetched)
      return {};
    if (timed_ && !parts_.empty()) {
      TRANSEPT_ASSIGN(recording.clock, Clock::create(device_, parts_.size()));
    }
    TRANSEPT_ASSIGN(recording.commands, pool.record([&](VkCommandBuffer commands) { record(commands, recording); }));
    return device_.validation();
  }

private:
  /// One after another: the addresses and sizes of each dispatch.
  Status writeTables(SegmentRecording &recording) {
    std::vector<uint64_t> words;
    for (const PlannedDispatch &dispatch : plan_.dispatches()) {
      for (uint32_t i = 0; i < dispatch.buffers; ++i)
        words.push_back(reinterpret_cast<uint64_t>(dispatch.call.buffers[i]));
      for (uint32_t i = 0; i < dispatch.sizes; ++i)
        words.push_back(static_cast<uint64_t>(dispatch.call.sizes[i]));
    }
    if (plan_.dispatches().empty())
      return {};
    TRANSEPT_ASSIGN(recording.tables, device_.allocate(words.size() * sizeof(uint64_t), MemoryUse::Tables));
    std::memcpy(recording.tables->host(), words.data(), words.size() * sizeof(uint64_t));
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
      const int64_t perGroup = shader.items_per_group(), groups = (dispatch.items - 1) / perGroup + 1;
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

  void record(VkCommandBuffer commands, const SegmentRecording &recording) const {
    const DeviceApi &api = device_.api();
    constexpr VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    constexpr VkPipelineStageFlags transfer = VK_PIPELINE_STAGE_TRANSFER_BIT, host = VK_PIPELINE_STAGE_HOST_BIT;
    constexpr VkAccessFlags shaderAccess = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    // What an earlier submission or the host wrote.
    memoryBarrier(api, commands, compute | transfer | host,
                  VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT,
                  compute | transfer, shaderAccess | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
    VkPipeline bound = VK_NULL_HANDLE;
    if (recording.clock)
      recording.clock->reset(commands);
    for (const Part &part : parts_) {
      if (part.barrier)
        memoryBarrier(api, commands, compute, VK_ACCESS_SHADER_WRITE_BIT, compute, shaderAccess);
      if (bound != part.pipeline)
        api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, bound = part.pipeline);
      api.CmdPushConstants(commands, pipelines_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof part.call, &part.call);
      if (recording.clock)
        recording.clock->before(commands, part.kernel, part.items);
      api.CmdDispatch(commands, part.groups, 1, 1);
      if (recording.clock)
        recording.clock->after(commands);
    }
    if (recording.fetched) {
      memoryBarrier(api, commands, compute, VK_ACCESS_SHADER_WRITE_BIT, transfer, VK_ACCESS_TRANSFER_READ_BIT);
      for (const Fetch &fetch : plan_.fetches()) {
        const VulkanMemory &from = vulkanMemory(fetch.from);
        VkBufferCopy copy{from.base() + fetch.from.offset, recording.fetched->base() + fetch.to, fetch.bytes};
        api.CmdCopyBuffer(commands, from.buffer(), recording.fetched->buffer(), 1, &copy);
      }
    }
    memoryBarrier(api, commands, compute | transfer, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, host,
                  VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  }

  const LogicalDevice &device_;
  const Pipelines &pipelines_;
  const program::CodeObject &code_;
  Plan &plan_;
  const bool timed_;
  std::vector<Part> parts_;
};

} // namespace

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
  TRANSEPT_TRY(Recorder(device_, pipelines_, code_, plan, trace_ != nullptr).run(*commands_, *recording));
  return recording;
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
  if (recording)
    describe(plan, recording->current);
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
