// Runs segments of plans as command buffers, recorded once and replayed until something in them changes.
#ifndef TRANSEPT_RUNTIME_VULKAN_VULKANEXECUTOR_H
#define TRANSEPT_RUNTIME_VULKAN_VULKANEXECUTOR_H

#include "runtime/vulkan/Pipelines.h"

namespace transept::vulkan {

class SegmentRecording;

class VulkanExecutor final : public Executor {
public:
  /// Everything must outlive it. `code` is verified.
  static Result<std::unique_ptr<Executor>> create(const LogicalDevice &device, const Pipelines &pipelines,
                                                  const program::CodeObject &code);

  Status reserveScratch(uint64_t) override { return {}; } // shaders have none
  uint64_t scratchBytes() const override { return 0; }
  Status run(Plan &plan, const std::atomic<bool> &cancelled) override;
  Status read(const DevicePlace &from, void *to, uint64_t bytes) override;

private:
  VulkanExecutor(const LogicalDevice &device, const Pipelines &pipelines, const program::CodeObject &code)
      : device_(device), pipelines_(pipelines), code_(code) {}
  Result<std::unique_ptr<SegmentRecording>> record(Plan &plan);

  const LogicalDevice &device_;
  const Pipelines &pipelines_;
  const program::CodeObject &code_;
  std::unique_ptr<CommandPool> commands_;
  std::unique_ptr<VulkanMemory> staging_;
};

} // namespace transept::vulkan

#endif
