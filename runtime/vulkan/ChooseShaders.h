// Which variant of each shader a device runs, and in workgroups of what size.
#ifndef TRANSEPT_RUNTIME_VULKAN_CHOOSESHADERS_H
#define TRANSEPT_RUNTIME_VULKAN_CHOOSESHADERS_H

#include "runtime/program.pb.h"
#include "runtime/vulkan/VulkanDevices.h"

#include <string>
#include <vector>

namespace transept::vulkan {

struct ChosenShader {
  const program::Shader::Variant *variant = nullptr;
  uint32_t groupSize = 0;
  MatrixSize matrices; // where the variant multiplies matrices: those of the device that it takes
};

/// The features that variants of shaders may use: those of `wanted`, or without it all that the device has. Fails with
/// Code::DeviceError for a wanted one that it lacks, with Code::Usage for one that no shader ever asks for.
Result<std::vector<std::string>> usableFeatures(const VulkanDeviceInfo &device,
                                                const std::optional<std::vector<std::string>> &wanted);

/// For each kernel the first variant that uses only `features`; one that multiplies matrices only where the device has
/// some that divide its tile, and enough subgroups in a workgroup. Fails with Code::DeviceError where the device takes
/// no workgroup that is large enough. `code` is verified and must outlive the result.
Result<std::vector<ChosenShader>> chooseVariants(const program::CodeObject &code, const VulkanDeviceInfo &device,
                                                 const std::vector<std::string> &features);

} // namespace transept::vulkan

#endif
