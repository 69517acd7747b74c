// Runs segments of plans as command buffers, recorded once and replayed until something in them changes.
#ifndef TRANSEPT_RUNTIME_VULKAN_VULKANEXECUTOR_H
#define TRANSEPT_RUNTIME_VULKAN_VULKANEXECUTOR_H

#include "runtime/Trace.h"
#include "runtime/vulkan/Pipelines.h"

#include <map>

namespace transept::vulkan {

class SegmentRecording;
class TurnRecording;

class VulkanExecutor final : public Executor {
public:
  /// Everything must outlive it. `code` is verified. Where there is a trace, it gets what the device's clock says.
  static Result<std::unique_ptr<Executor>> create(const LogicalDevice &device, const Pipelines &pipelines,
                                                  const program::CodeObject &code, size_t track, Trace *trace);

  Status reserveScratch(uint64_t) override { return {}; } // shaders have none
  uint64_t scratchBytes() const override { return 0; }
  Status run(Plan &plan, const std::atomic<bool> &cancelled) override;
  Status read(const DevicePlace &from, void *to, uint64_t bytes) override;
  Status copy(DeviceMemory &memory, Span<const MemoryCopy> copies) override;

  /// Not while a trace wants to know of every dispatch.
  bool runsInTurn() const override { return !trace_; }
  Status runInTurn(Plan &first, Plan &second, int32_t count, Span<const KeptRange> kept, uint8_t *log,
                   const std::atomic<bool> &cancelled) override;

  ~VulkanExecutor() override;

private:
  VulkanExecutor(const LogicalDevice &device, const Pipelines &pipelines, const program::CodeObject &code, size_t track,
                 Trace *trace);
  Result<std::unique_ptr<SegmentRecording>> record(Plan &plan);
  /// Adds the dispatches of a recording that has run to the trace.
  Status readClock(const SegmentRecording &recording, int entry, int64_t submitted);

  const LogicalDevice &device_;
  const Pipelines &pipelines_;
  const program::CodeObject &code_;
  const size_t track_;
  Trace *const trace_;
  std::unique_ptr<CommandPool> commands_;
  std::unique_ptr<VulkanMemory> staging_;
  std::map<int32_t, std::unique_ptr<TurnRecording>> turns_; // by count
  std::vector<uint64_t> turnWords_;                         // kept to save allocations
};

} // namespace transept::vulkan

#endif
