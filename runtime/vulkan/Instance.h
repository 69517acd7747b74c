// A Vulkan instance: its physical devices, and what the validation layer says.
#ifndef TRANSEPT_RUNTIME_VULKAN_INSTANCE_H
#define TRANSEPT_RUNTIME_VULKAN_INSTANCE_H

#include "runtime/vulkan/Api.h"
#include "runtime/vulkan/VulkanDevices.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace transept::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VulkanDeviceInfo info;
  uint32_t queueFamily = 0;      // that computes
  bool reducesSubgroups = false; // compute shaders have sums, maxima and minima over subgroups
  uint32_t timestampBits = 0;    // of the queue family; 0: it has no clock
  double timestampPeriod = 0;    // nanoseconds
  uint8_t deviceUuid[VK_UUID_SIZE] = {}, driverUuid[VK_UUID_SIZE] = {};
  VkPhysicalDeviceMemoryProperties memory{};
};

class Instance {
public:
  /// Fails with Code::DeviceError where there is no loader, no driver or, where it is wanted, no validation layer.
  static Result<std::unique_ptr<Instance>> create(const VulkanOptions &options);
  ~Instance();
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  const InstanceApi &api() const { return api_; }
  Result<std::vector<PhysicalDevice>> devices() const;

  /// Fails with what the validation layer has said since the last call, from any thread.
  Status validation() const;

private:
  Instance() = default;
  static VKAPI_ATTR VkBool32 VKAPI_CALL hear(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                             VkDebugUtilsMessageTypeFlagsEXT types,
                                             const VkDebugUtilsMessengerCallbackDataEXT *data, void *user);
  Status listen(const LoaderApi &loader, const VkDebugUtilsMessengerCreateInfoEXT &info);

  InstanceApi api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  PFN_vkDestroyDebugUtilsMessengerEXT destroyMessenger_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::vector<std::string> messages_;
};

} // namespace transept::vulkan

#endif
