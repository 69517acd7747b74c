// Functions of the Vulkan library, found at run time: nothing links against it.
#ifndef TRANSEPT_RUNTIME_VULKAN_API_H
#define TRANSEPT_RUNTIME_VULKAN_API_H

#include "runtime/Status.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <string>

namespace transept::vulkan {

// clang-format off
#define TRANSEPT_VULKAN_GLOBAL(X) \
  X(EnumerateInstanceVersion) X(EnumerateInstanceLayerProperties) X(CreateInstance)

#define TRANSEPT_VULKAN_INSTANCE(X) \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures2) \
  X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceQueueFamilyProperties) X(CreateDevice) X(GetDeviceProcAddr) \
  X(EnumerateDeviceExtensionProperties)

#define TRANSEPT_VULKAN_DEVICE(X) \
  X(DestroyDevice) X(GetDeviceQueue) X(QueueSubmit) X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) \
  X(AllocateMemory) X(FreeMemory) X(BindBufferMemory) X(MapMemory) X(GetBufferDeviceAddress) X(CreateCommandPool) \
  X(DestroyCommandPool) X(AllocateCommandBuffers) X(FreeCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) \
  X(CmdBindPipeline) X(CmdPushConstants) X(CmdDispatch) X(CmdPipelineBarrier) X(CmdCopyBuffer) X(CmdFillBuffer) \
  X(CreateFence) X(DestroyFence) X(ResetFences) X(WaitForFences) X(CreatePipelineLayout) X(DestroyPipelineLayout) \
  X(CreateShaderModule) X(DestroyShaderModule) X(CreateComputePipelines) X(DestroyPipeline) X(CreatePipelineCache) \
  X(DestroyPipelineCache) X(GetPipelineCacheData) X(CreateQueryPool) X(DestroyQueryPool) X(CmdResetQueryPool) \
  X(CmdWriteTimestamp) X(GetQueryPoolResults)
// clang-format on

#define TRANSEPT_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;

/// What can be called without an instance.
struct LoaderApi {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  TRANSEPT_VULKAN_GLOBAL(TRANSEPT_VULKAN_MEMBER)

  /// The library stays loaded: drivers leave destructors of threads behind. Fails with Code::DeviceError.
  static Result<LoaderApi> open(const std::string &library);
};

struct InstanceApi {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr; // for what not every instance has
  TRANSEPT_VULKAN_INSTANCE(TRANSEPT_VULKAN_MEMBER)

  static Result<InstanceApi> of(const LoaderApi &loader, VkInstance instance);
};

struct DeviceApi {
  TRANSEPT_VULKAN_DEVICE(TRANSEPT_VULKAN_MEMBER)

  static Result<DeviceApi> of(const InstanceApi &api, VkDevice device);
};

/// "VK_ERROR_DEVICE_LOST"
std::string resultText(VkResult result);

/// What a result means for a call; `what` is a sentence that fits before ": VK_ERROR_...". Ok for VK_SUCCESS.
Status resultStatus(VkResult result, const std::string &what);

} // namespace transept::vulkan

#endif
