// Which Vulkan devices there are, and how the library is found. Known to all who choose a device.
#ifndef TRANSEPT_RUNTIME_VULKAN_VULKANDEVICES_H
#define TRANSEPT_RUNTIME_VULKAN_VULKANDEVICES_H

#include "runtime/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace transept {

struct VulkanOptions {
  std::string loader = "libvulkan.so.1"; // name or path of the Vulkan loader
  std::string cacheFolder;               // where compiled pipelines are kept; empty: nowhere
  /// Runs under the Khronos validation layer, with checks of synchronisation; any message fails the call that caused
  /// it.
  bool validate = false;
  /// Of what devices may offer beyond what they must, the features that shaders may use; each must be there. Empty: the
  /// plain shaders; nothing: as many as the device has.
  std::optional<std::vector<std::string>> features;
};

/// Signed 8-bit integers, [rows, depth] by [depth, columns].
struct MatrixSize {
  uint32_t rows = 0, columns = 0, depth = 0;
};

/// A physical device.
struct VulkanDeviceInfo {
  std::string name, type, driver; // type: "discrete GPU", "CPU" ...
  uint32_t apiVersion = 0;        // as VK_MAKE_API_VERSION
  uint64_t localBytes = 0;        // of the largest device-local heap
  uint64_t maxAllocation = 0;     // bytes
  uint32_t maxGroups = 0;         // workgroups of a dispatch along x
  uint32_t maxGroupSize = 0;      // invocations of a workgroup
  uint32_t maxSharedBytes = 0;    // of a workgroup
  uint32_t subgroupSize = 0;
  std::vector<MatrixSize> matrices;  // that a subgroup multiplies into sums of 32 bits
  std::vector<std::string> features; // those artifacts may ask for
  std::string problem;               // why no artifact runs on it; empty: it is usable
};

/// Invocations of a workgroup on a device, where a kernel or a limit does not ask for another number.
uint32_t usualWorkgroup(const VulkanDeviceInfo &device);

/// Features that shaders have variants for.
const std::vector<std::string> &variantFeatures();

/// All devices, in the order of their index. Fails with Code::DeviceError where there is no loader or no driver.
Result<std::vector<VulkanDeviceInfo>> listVulkanDevices(const VulkanOptions &options = {});

/// "1.3.230"
std::string vulkanVersionText(uint32_t version);

} // namespace transept

#endif
