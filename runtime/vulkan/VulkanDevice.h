// A Vulkan device with the shaders and weights of a model.
#ifndef TRANSEPT_RUNTIME_VULKAN_VULKANDEVICE_H
#define TRANSEPT_RUNTIME_VULKAN_VULKANDEVICE_H

#include "runtime/Artifact.h"
#include "runtime/Device.h"
#include "runtime/vulkan/VulkanDevices.h"

namespace transept {

/// Makes device `index` of listVulkanDevices() ready for an artifact. The weights of the artifact are taken over.
/// Fails with Code::ArtifactRefused where it holds no Vulkan code or malformed code, with Code::DeviceError where there
/// is no such device or it lacks what the code needs, and with Code::OutOfMemory.
Result<std::unique_ptr<Device>> createVulkanDevice(uint32_t index, Artifact &artifact, const VulkanOptions &options);

} // namespace transept

#endif
