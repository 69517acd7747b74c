#include "runtime/vulkan/Api.h"

#include <dlfcn.h>

namespace transept::vulkan {

namespace {

Status missingFunction(const char *name) {
  return {Code::DeviceError, "the Vulkan library lacks vk" + std::string(name) + "; Vulkan 1.2 is needed"};
}

} // namespace

Result<LoaderApi> LoaderApi::open(const std::string &library) {
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = dlerror();
    return Status(Code::DeviceError,
                  "cannot load the Vulkan library: " + printable(reason ? reason : "unknown reason") +
                      "; install a Vulkan driver and its loader, or use --device cpu");
  }
  LoaderApi api;
  api.GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(handle, "vkGetInstanceProcAddr"));
  if (!api.GetInstanceProcAddr)
    return Status(Code::DeviceError, "'" + printable(library) + "' is no Vulkan library");
#define LOAD(name)                                                                                                     \
  api.name = reinterpret_cast<PFN_vk##name>(api.GetInstanceProcAddr(nullptr, "vk" #name));                             \
  if (!api.name)                                                                                                       \
    return missingFunction(#name);
  TRANSEPT_VULKAN_GLOBAL(LOAD)
#undef LOAD
  return api;
}

Result<InstanceApi> InstanceApi::of(const LoaderApi &loader, VkInstance instance) {
  InstanceApi api;
  api.GetInstanceProcAddr = loader.GetInstanceProcAddr;
#define LOAD(name)                                                                                                     \
  api.name = reinterpret_cast<PFN_vk##name>(loader.GetInstanceProcAddr(instance, "vk" #name));                         \
  if (!api.name)                                                                                                       \
    return missingFunction(#name);
  TRANSEPT_VULKAN_INSTANCE(LOAD)
#undef LOAD
  return api;
}

Result<DeviceApi> DeviceApi::of(const InstanceApi &instance, VkDevice device) {
  DeviceApi api;
#define LOAD(name)                                                                                                     \
  api.name = reinterpret_cast<PFN_vk##name>(instance.GetDeviceProcAddr(device, "vk" #name));                           \
  if (!api.name)                                                                                                       \
    return missingFunction(#name);
  TRANSEPT_VULKAN_DEVICE(LOAD)
#undef LOAD
  return api;
}

std::string resultText(VkResult result) {
  switch (result) {
#define NAME(value)                                                                                                    \
  case value:                                                                                                          \
    return #value;
    NAME(VK_SUCCESS)
    NAME(VK_TIMEOUT)
    NAME(VK_INCOMPLETE)
    NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    NAME(VK_ERROR_INITIALIZATION_FAILED)
    NAME(VK_ERROR_DEVICE_LOST)
    NAME(VK_ERROR_MEMORY_MAP_FAILED)
    NAME(VK_ERROR_LAYER_NOT_PRESENT)
    NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    NAME(VK_ERROR_TOO_MANY_OBJECTS)
    NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    NAME(VK_ERROR_INVALID_SHADER_NV)
#undef NAME
  default:
    return "VkResult " + std::to_string(static_cast<int>(result));
  }
}

Status resultStatus(VkResult result, const std::string &what) {
  if (result == VK_SUCCESS)
    return {};
  bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                result == VK_ERROR_MEMORY_MAP_FAILED || result == VK_ERROR_TOO_MANY_OBJECTS;
  return {memory ? Code::OutOfMemory : Code::DeviceError, what + ": " + resultText(result)};
}

} // namespace transept::vulkan
