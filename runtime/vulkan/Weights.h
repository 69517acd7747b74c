// The packed weights in memory of a device.
#ifndef TRANSEPT_RUNTIME_VULKAN_WEIGHTS_H
#define TRANSEPT_RUNTIME_VULKAN_WEIGHTS_H

#include "runtime/vulkan/LogicalDevice.h"

namespace transept::vulkan {

class Weights {
public:
  /// Copies what the constants of the manifest use. Where it is more than the device allocates at once it comes into
  /// several ranges, each constant whole in one; a constant alone that is too large fails with Code::OutOfMemory.
  static Result<Weights> upload(const LogicalDevice &device, const program::Manifest &manifest,
                                Span<const uint8_t> packed);

  /// Where a constant is that begins at byte `offset` of the packed weights.
  DevicePlace at(uint64_t offset) const;

private:
  struct Range {
    uint64_t begin = 0, end = 0; // of the packed weights
    std::unique_ptr<VulkanMemory> memory;
  };
  std::vector<Range> ranges_; // ascending
};

} // namespace transept::vulkan

#endif
