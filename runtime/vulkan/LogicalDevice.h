// A Vulkan device in use: its memory, its queue and the command buffers that run on it.
#ifndef TRANSEPT_RUNTIME_VULKAN_LOGICALDEVICE_H
#define TRANSEPT_RUNTIME_VULKAN_LOGICALDEVICE_H

#include "runtime/Device.h"
#include "runtime/vulkan/Instance.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace transept::vulkan {

class LogicalDevice;

/// Kernels alone use the first kind, kernels and the host shared memory. The host copies from and to its own. Tables
/// are written once by the host and read by every kernel.
enum class MemoryUse { Kernels, Shared, Host, Tables };

/// Memory with one buffer over it. Where kernels would reach what the host sees through a bus only, shared memory is
/// two: kernels work in the one, the host in its mirror, and every run begins and ends with copies.
class VulkanMemory final : public DeviceMemory {
public:
  ~VulkanMemory() override;

  /// What the host sees instead of this memory; null where it sees it, or nothing.
  const VulkanMemory *mirror() const { return mirror_.get(); }
  VkBuffer buffer() const { return buffer_; }
  /// Where address() is in the buffer.
  uint64_t base() const { return base_; }
  /// Another one for every allocation of a device, so that a handle that comes back is not taken for the old one.
  uint64_t serial() const { return serial_; }

private:
  friend class LogicalDevice;
  friend struct RawMemory;
  VulkanMemory(const LogicalDevice &device, VkBuffer buffer, VkDeviceMemory memory, uint64_t base, uint64_t serial,
               uint64_t address, uint8_t *host, uint64_t bytes);
  VulkanMemory(std::unique_ptr<VulkanMemory> kernels, std::unique_ptr<VulkanMemory> mirror);

  const LogicalDevice &device_;
  VkBuffer buffer_;
  VkDeviceMemory memory_;
  uint64_t base_, serial_;
  std::unique_ptr<VulkanMemory> mirror_;
};

/// Command buffers of one thread at a time, and a fence to wait with.
class CommandPool {
public:
  static Result<std::unique_ptr<CommandPool>> create(const LogicalDevice &device);
  ~CommandPool();
  CommandPool(const CommandPool &) = delete;
  CommandPool &operator=(const CommandPool &) = delete;

  /// A command buffer that may run many times. `record` adds the commands.
  Result<VkCommandBuffer> record(const std::function<void(VkCommandBuffer)> &record);
  /// Runs it and waits. What the host wrote before is visible to it.
  Status run(VkCommandBuffer commands);
  /// It must not be running.
  void release(VkCommandBuffer commands);

private:
  explicit CommandPool(const LogicalDevice &device) : device_(device) {}

  const LogicalDevice &device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
};

/// Thread-safe.
class LogicalDevice {
public:
  /// Enables `features`, which the device must have.
  static Result<std::unique_ptr<LogicalDevice>> create(std::unique_ptr<Instance> instance, const PhysicalDevice &device,
                                                       const std::vector<std::string> &features);
  ~LogicalDevice();
  LogicalDevice(const LogicalDevice &) = delete;
  LogicalDevice &operator=(const LogicalDevice &) = delete;

  const DeviceApi &api() const { return api_; }
  VkDevice handle() const { return device_; }
  const PhysicalDevice &physical() const { return physical_; }

  /// Zeroed memory; the host sees it unless it is for kernels only. Fails with Code::OutOfMemory, also where it is more
  /// than the device allocates at once.
  Result<std::unique_ptr<VulkanMemory>> allocate(uint64_t bytes, MemoryUse use) const;
  /// The most bytes that allocate() takes.
  uint64_t allocationLimit() const;

  Status clear(VulkanMemory &memory, uint64_t bytes) const;
  /// Copies from the host, whatever kind of memory it is. `offset + bytes` must not exceed its size.
  Status upload(VulkanMemory &memory, uint64_t offset, const uint8_t *data, uint64_t bytes) const;

  /// Copies to the host. `staging` is kept by the caller, and grows.
  Status download(const VulkanMemory &memory, uint64_t offset, void *to, uint64_t bytes,
                  std::unique_ptr<VulkanMemory> &staging) const;

  /// Copies inside `memory`, after everything that was submitted before.
  Status copy(VulkanMemory &memory, Span<const MemoryCopy> copies) const;

  /// Submits and waits.
  Status run(VkCommandBuffer commands, VkFence fence) const;

  /// The memory with a mirror that holds an address; null where there is none.
  const VulkanMemory *mirroredAt(uint64_t address) const;
  /// Another number whenever memory with a mirror comes or goes; 0: there never was any.
  uint64_t mirrorChanges() const { return mirrorChanges_; }

  /// Fails where the validation layer has said something.
  Status validation() const { return instance_->validation(); }

private:
  friend class VulkanMemory;
  LogicalDevice(std::unique_ptr<Instance> instance, const PhysicalDevice &device)
      : instance_(std::move(instance)), physical_(device) {}
  Status runOnce(const std::function<void(VkCommandBuffer)> &record) const;
  Result<std::unique_ptr<VulkanMemory>> allocateUncleared(uint64_t bytes, MemoryUse use) const;
  Result<std::unique_ptr<VulkanMemory>> allocateMirrored(uint64_t bytes) const;

  std::unique_ptr<Instance> instance_;
  PhysicalDevice physical_;
  DeviceApi api_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  mutable std::mutex queueMutex_;
  mutable std::atomic<bool> lost_{false};
  mutable std::atomic<uint64_t> serial_{0}, mirrorChanges_{0};
  mutable std::mutex mirrorMutex_;
  mutable std::map<uint64_t, const VulkanMemory *> mirrored_; // by address
  mutable std::mutex onceMutex_;                              // for commands that run once
  std::unique_ptr<CommandPool> once_;
};

} // namespace transept::vulkan

#endif
