// When dispatches of a command buffer ran, by the device's own clock.
#ifndef TRANSEPT_RUNTIME_VULKAN_CLOCK_H
#define TRANSEPT_RUNTIME_VULKAN_CLOCK_H

#include "runtime/Trace.h"
#include "runtime/vulkan/LogicalDevice.h"

namespace transept::vulkan {

/// Timestamps before and after each dispatch of one command buffer.
class Clock {
public:
  static Result<std::unique_ptr<Clock>> create(const LogicalDevice &device, size_t dispatches);
  ~Clock();
  Clock(const Clock &) = delete;
  Clock &operator=(const Clock &) = delete;

  /// While the commands are recorded: first, then around each dispatch.
  void reset(VkCommandBuffer commands) const;
  void before(VkCommandBuffer commands, uint32_t kernel, int64_t items);
  void after(VkCommandBuffer commands);

  /// Adds the spans of the last run, as if its first dispatch had begun at `start`.
  Status read(int entry, int64_t start, std::vector<Trace::Span> &spans) const;

private:
  struct Dispatch {
    uint32_t kernel = 0;
    int64_t items = 0;
  };
  Clock(const LogicalDevice &device, size_t dispatches)
      : device_(device), queries_(static_cast<uint32_t>(2 * dispatches)) {}
  void write(VkCommandBuffer commands, VkPipelineStageFlagBits stage);

  const LogicalDevice &device_;
  const uint32_t queries_;
  VkQueryPool pool_ = VK_NULL_HANDLE;
  uint32_t next_ = 0;
  std::vector<Dispatch> dispatches_;
};

} // namespace transept::vulkan

#endif
